"""The real data: read rightly from the packages, classified as they classify, repeatable, and kept in a cache."""

from __future__ import annotations

import gettext
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.datasets import Languages, digits, languages, medicine
from udcp_dsl.datasets.cache import cache_folder, cached
from udcp_dsl.datasets.language_strings import Identifier, _messages, _text, entries, load_identifier
from udcp_dsl.datasets.medical_terms import Term, icd_9, icd_10, words
from udcp_dsl.rows.matrix import probabilities

SPEC = Path(__file__).parents[2] / "specs" / "languages" / "branches.loss"
ROWS = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache") / "made" / "when needed"


@pytest.fixture(scope="module")
def data(folder: Path, read_once: None) -> Languages:
    return languages(cache=folder, rows=ROWS)


@pytest.fixture(scope="module")
def identifier() -> Identifier:
    return load_identifier()


# Languages


def test_the_labels_are_those_of_the_spec(data: Languages) -> None:
    assert data.labels == udcp.load(SPEC).labels
    assert len(data.labels) == 140


def test_rows_are_probabilities_of_a_classifier_with_mistakes(data: Languages) -> None:
    rows = np.arange(ROWS)
    assert len(data) == len(data.texts) == len(data.catalogues) == ROWS
    assert data.probs_normalised.dtype == np.float32
    assert data.probs_raw.dtype == np.float64
    P: Any
    for P in (data.probs_normalised, data.probs_raw):
        assert P.shape == (ROWS, 140)
        assert probabilities(P, data.labels) is P
        assert 0.65 < (P.argmax(axis=1) == data.y).mean() < 0.78
        assert (P[rows, data.y] > 0).all()
    accuracy = (data.probs_raw.argmax(axis=1) == data.y).mean()
    assert data.probs_normalised.max(axis=1).mean() + 0.05 < accuracy < data.probs_raw.max(axis=1).mean() - 0.05


def test_the_probabilities_are_those_of_the_package(data: Languages, identifier: Identifier) -> None:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    raw = LanguageIdentifier.from_model_file(MODEL_FILE)
    for text, normalised, ours in zip(data.texts[:200], data.probs_normalised, data.probs_raw, strict=False):
        expected = dict(identifier.model.rank(text))
        np.testing.assert_allclose(normalised, [expected[label] for label in data.labels], atol=3e-5)
        # Of two columns of one label the package keeps the larger score; we add their probabilities.
        scores = dict(raw.rank(text))
        z = np.array([scores[label] for label in data.labels])
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        doubled = [data.labels.index("sr"), data.labels.index("uz")]
        if p[doubled].max() < 1e-9:
            np.testing.assert_allclose(ours, p, atol=1e-4)


def test_texts_of_which_nothing_is_known_are_uniform(identifier: Identifier) -> None:
    normalised, raw = identifier.probabilities(["", "\u16a0", "the quick brown fox jumps"])
    assert identifier.labels[raw[2].argmax()] == "en"
    for P in (normalised, raw):
        np.testing.assert_allclose(P[0].sum(), 1, rtol=1e-6)
        assert Counter(P[0].tolist()).most_common()[0][1] == 138  # all but the two labels of two columns each


def test_strings_are_distinct_and_in_their_language(data: Languages) -> None:
    pairs = [
        *zip(data.y.tolist(), data.texts, strict=True),
        *zip(data.training_y.tolist(), data.training_texts, strict=True),
    ]
    assert len(set(pairs)) == len(pairs) > 50_000
    assert len({y for y, _ in pairs}) > 75
    assert all(any(ch.isalpha() for ch in text) and "%(" not in text for _, text in pairs)
    for y, catalogue in zip(data.y, data.catalogues, strict=True):
        locale = catalogue.rpartition("/")[2].partition("_")[0]
        assert data.labels[y] == {"nb": "no"}.get(locale, locale)
    english = {text for y, text in pairs if data.labels[y] == "en"}
    assert "Password" in english
    german = {text for y, text in pairs if data.labels[y] == "de"}
    assert "Passwort" in german
    assert "Password" not in german


def test_samples_are_repeatable_and_differ_by_seed(data: Languages, folder: Path) -> None:
    (file,) = folder.iterdir()
    held = file.read_bytes()
    again = languages(cache=folder, rows=ROWS)  # from the cache
    fresh = languages(cache=False, rows=ROWS)
    for other in (again, fresh):
        assert (other.labels, other.texts, other.catalogues) == (data.labels, data.texts, data.catalogues)
        assert other.training_texts == data.training_texts
        assert other.origin == data.origin
        for name in ("probs_normalised", "probs_raw", "y", "training_y"):
            np.testing.assert_array_equal(getattr(other, name), getattr(data, name))
    assert file.read_bytes() == held
    assert languages(1, cache=False, rows=50).texts != data.texts[:50]


@pytest.mark.usefixtures("read_once")
def test_refusals() -> None:
    with pytest.raises(udcp.InputError, match="rows is 0"):
        languages(rows=0)
    with pytest.raises(udcp.InputError, match=r"the catalogues have \d+ strings"):
        languages(rows=10**7, cache=False)
    pytest.importorskip("torch")
    with pytest.raises(udcp.InputError, match="epochs is 0"):
        udcp.datasets.texts_through_torch(epochs=0)


def test_the_missing_package_is_named() -> None:
    words = {
        ("django", "languages(cache=False)"): "Django: pip install 'udcp_dsl[demo]'",
        ("py3langid", "languages(cache=False)"): "py3langid: pip install 'udcp_dsl[demo]'",
        ("sklearn", "digits()"): "pip install 'udcp_dsl[sklearn]'",
    }
    code = (
        "import sys, udcp_dsl as udcp\n"
        f"for module, call in {list(words)}:\n"
        "    sys.modules[module] = None\n"
        "    try: eval('udcp.datasets.' + call)\n"
        "    except udcp.InputError as error: print(error)\n"
        "    del sys.modules[module]"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = run.stdout.splitlines()
    assert len(told) == 3
    assert all(wanted in line for wanted, line in zip(words.values(), told, strict=True)), told


# Catalogues


def test_messages_are_those_that_gettext_reads() -> None:
    spec = find_spec("django")
    assert spec is not None
    assert spec.origin is not None
    files = sorted(Path(spec.origin).parent.rglob("pl/LC_MESSAGES/*.mo"))
    assert len(files) > 8
    for file in files:
        with file.open("rb") as opened:
            catalogue = gettext.GNUTranslations(opened)
        for sources, translations in _messages(file.read_bytes()):
            if len(sources) == 1 and catalogue.gettext(sources[0]) != sources[0]:
                assert len(translations) == 1
            if len(sources) == 2 and catalogue.ngettext(sources[0], sources[1], 1) not in sources:
                forms = [catalogue.ngettext(sources[0], sources[1], n) for n in range(1, 30)]
                assert forms[0] == translations[0]
                assert set(forms) <= set(translations)


strings = st.text(st.characters(exclude_characters="\0\x04", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(
    st.dictionaries(
        strings, st.tuples(st.lists(strings, min_size=1, max_size=3), st.booleans(), st.booleans()), max_size=5
    ),
    st.sampled_from("<>"),
)
def test_messages_of_generated_files(messages: dict[str, Any], order: str) -> None:
    expected, tables = [], [("", "Content-Type: text/plain\n")]
    for source, (forms, plural, context) in messages.items():
        sources = [source, source + "s"] if plural else [source]
        expected.append((sources, forms))
        tables.append((("menu\x04" if context else "") + "\0".join(sources), "\0".join(forms)))
    start = 28 + 16 * len(tables)
    body, places = b"", []
    for column in (0, 1):
        for pair in tables:
            data = pair[column].encode()
            places.append((len(data), start + len(body)))
            body += data + b"\0"
    head = struct.pack(f"{order}7I", 0x950412DE, 0, len(tables), 28, 28 + 8 * len(tables), 0, start)
    places_as_bytes = b"".join(struct.pack(f"{order}2I", *place) for place in places)
    assert list(_messages(head + places_as_bytes + body)) == expected


@pytest.mark.parametrize(
    ("string", "text"),
    [
        ("Hello %(name)s,  you\nhave %d%% of {count:.2f}", "Hello , you have of"),
        ('Please <a href="%(url)s">log in</a>&nbsp;again', "Please log in again"),
        ("100 % (%(n)i of %(all))", "100 % ( of )"),
    ],
)
def test_placeholders_and_markup_are_no_language(string: str, text: str) -> None:
    assert _text(string) == text


def test_dialects_count_as_their_language() -> None:
    found = entries({"pt", "no"})
    assert {entry.code for entry in found} == {"pt", "no"}
    assert {entry.catalogue.partition("/")[2] for entry in found} == {"pt", "pt_BR", "nb"}


# The cache


def test_what_is_cached_is_not_built_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.npz"
    built = []

    def build() -> dict[str, Any]:
        built.append(1)
        return {"a": np.arange(3), "b": np.ones((2, 2), np.float32)}

    for _ in range(2):
        arrays = cached(file.parent, file.name, build)
        np.testing.assert_array_equal(arrays["a"], np.arange(3))
        assert arrays["b"].dtype == np.float32
    assert len(built) == 1
    whole = file.read_bytes()
    for damaged in (b"", b"noise", whole[: len(whole) // 2], whole.replace(np.arange(3).tobytes(), b"\xff" * 24)):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(cached(file.parent, file.name, build)["a"], np.arange(3))
        assert file.read_bytes() == whole
    assert len(built) == 5
    assert [path.name for path in file.parent.iterdir()] == ["a.npz"]


def test_a_folder_that_cannot_be_written_costs_time_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert list(cached(tmp_path / "file", "a.npz", lambda: {"a": np.ones(1)})) == ["a"]
    assert list(cached(False, "a.npz", lambda: {"a": np.ones(1)})) == ["a"]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "udcp_dsl"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for platform, place in (("linux", ".cache/udcp_dsl"), ("darwin", "Library/Caches/udcp_dsl")):
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == tmp_path / place


# Digits


def test_digits() -> None:
    pytest.importorskip("sklearn")
    data = digits()
    assert data.labels == tuple("0123456789")
    assert (len(data), data.probs.shape) == (1497, (1497, 10))
    assert 0.92 < (data.probs.argmax(axis=1) == data.y).mean() < 0.97
    np.testing.assert_array_equal(data.probs, digits().probs)
    assert not np.array_equal(data.y, digits(1).y)
    loss = udcp.loads("loss l = size", labels=data.labels)
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.05).calibrate(data.probs[:700], data.y[:700])
    assert udcp.evaluate(predictor, data.probs[700:], data.y[700:]).coverage == pytest.approx(0.95, abs=0.03)
    with pytest.raises(udcp.InputError, match="training_rows is 3"):
        digits(training_rows=3)
    with pytest.raises(udcp.InputError, match="C is 0"):
        digits(C=0)


def test_digits_are_as_sure_as_the_training_rows_allow() -> None:
    pytest.importorskip("sklearn")

    def likelihood(C: float) -> float:
        data = digits(C=C)
        return float(np.log(data.probs[np.arange(len(data)), data.y]).mean())

    assert likelihood(30.0) > max(likelihood(1.0) + 0.1, likelihood(1000.0) + 0.01)


# Through torch


@pytest.fixture(scope="module")
def small(data: Languages) -> Languages:
    return replace(data, training_texts=data.training_texts[:4000], training_y=data.training_y[:4000])


def accuracy(trained: Any) -> float:
    return float((trained.probs.argmax(axis=1) == trained.y).mean())


@pytest.mark.slow
def test_the_same_rows_through_torch(small: Languages) -> None:
    torch = pytest.importorskip("torch")
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    trained = udcp.datasets.texts_through_torch(small, epochs=4)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert trained.probs.shape == (ROWS, 140)
    assert trained.probs.dtype == np.float32
    assert trained.labels == small.labels
    np.testing.assert_array_equal(trained.y, small.y)
    probabilities(trained.probs, trained.labels)
    assert accuracy(trained) > 0.35  # of 81 languages, from 3,600 strings
    assert not trained.model.training
    first = udcp.torch.probabilities(trained.model, trained.batches[:2], "cpu")
    np.testing.assert_allclose(first, trained.probs[:512], atol=1e-6)
    mean = udcp.torch.mc_probabilities(trained.model, trained.batches[:1], samples=3)
    assert mean.shape == (256, 140)
    assert np.abs(mean - trained.probs[:256]).max() > 0.01  # there is dropout to average over


def test_training_is_repeatable_and_stops_early(small: Languages) -> None:
    pytest.importorskip("torch")
    brief = udcp.datasets.texts_through_torch(small, epochs=0.2)
    np.testing.assert_array_equal(brief.probs, udcp.datasets.texts_through_torch(small, epochs=0.2).probs)
    assert not np.array_equal(brief.probs, udcp.datasets.texts_through_torch(small, epochs=0.2, seed=1).probs)
    stopped = udcp.datasets.texts_through_torch(small, epochs=20, stop_at=0.2)
    assert accuracy(brief) < 0.1 < accuracy(stopped) < 0.35


@pytest.mark.slow
def test_the_whole() -> None:
    pytest.importorskip("torch")
    data = languages(cache=False)
    assert (len(data), len(data.training_y) > 20_000) == (30_000, True)
    assert 0.69 < (data.probs_normalised.argmax(axis=1) == data.y).mean() < 0.74
    assert 0.74 < accuracy(udcp.datasets.texts_through_torch(data)) < 0.8


# Medicine


@pytest.mark.slow
def test_diagnoses_are_read_and_classified(folder: Path) -> None:
    """A few steps of training are enough to see that titles teach what inclusion terms mean."""
    data = medicine(cache=folder, steps=3)
    loss = udcp.load(SPEC.parents[1] / "medicine" / "blocks.loss")
    assert data.labels == loss.labels
    assert data.probs.shape == (len(data), 285) == (12_563, 285)
    assert len(data.shifted_y) == len(data.shifted_texts) == 11_351
    for P, y in ((data.probs, data.y), (data.shifted_probs, data.shifted_y)):
        probabilities(P, loss.labels)
        assert (P.argmax(axis=1) == y).mean() > 0.4
        assert set(np.unique(y)) <= set(range(285))
    again = medicine(cache=folder, steps=3)
    assert np.array_equal(again.probs, data.probs)
    assert again.texts == data.texts


def test_no_inclusion_term_is_a_title() -> None:
    found = icd_10()
    titles = {words(term.text) for term in found.titles}
    assert not titles & {words(term.text) for term in (*found.terms, *icd_9(found))}
    assert found.blocks["C50"] == ("2", "Malignant neoplasms of breast")
    assert found.block_of["A000"] == "A00-A09"
    assert Term("A00-A09", "Classical cholera") in found.terms


def test_medicine_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(udcp.InputError, match="at least one step"):
        medicine(steps=0)
    monkeypatch.setattr("udcp_dsl.datasets.medical_terms.find_spec", lambda name: None)
    with pytest.raises(udcp.InputError, match=r"need simple-icd-10-cm: pip install 'udcp_dsl\[medicine\]'"):
        icd_10()
