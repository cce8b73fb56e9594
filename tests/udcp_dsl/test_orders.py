"""Columns, labels and rows in another order than somebody thought: refused or warned of at every door, and once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import udcp_dsl as udcp
from udcp_dsl import SetPredictor
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.columns import NamedPositions
from udcp_dsl.rows.rows import rows_of

SPEC = "labels {wolf, cat, lynx, dog}  category wild {wolf, lynx}  loss l = size + 5 * any(wild)"
LOSS = udcp.loads(SPEC)
LABELS = list(LOSS.labels)
SORTED = sorted(LABELS)
ORDER = [LABELS.index(name) for name in SORTED]
rng = np.random.default_rng(0)
P = rng.dirichlet(np.full(4, 0.1), 240)  # in the order of the spec
Y = np.argmax(np.log(P + 1e-300) + rng.gumbel(size=P.shape), axis=1)
NAMES = np.array(LABELS)[Y]
FRAME = pd.DataFrame(P[:, ORDER], columns=SORTED)  # as a classifier's predict_proba, with classes_ as names
BARE = P[:, ORDER]
REFUSED = (
    r"the columns have no names, and calibration matched them by name, in another order \(cat, dog, .*class_names="
)


def said(do: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        do()
    return [str(warning.message) for warning in caught]


@pytest.fixture(scope="module")
def predictor() -> SetPredictor:
    return SetPredictor(LOSS, "lac", alpha=0.2).calibrate(FRAME, NAMES)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pets.loss").write_text(SPEC)
    FRAME.assign(truth=NAMES).to_csv("named.csv", index=False)
    np.save("bare.npy", BARE)
    np.save("spec.npy", P)
    np.save("y.npy", Y)
    Path("y.txt").write_text("\n".join(NAMES) + "\n")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


# --- an array, after calibration by name ---


DOORS: dict[str, Callable[..., Any]] = {
    "predict_set": lambda p, P, **names: p.predict_set(P, **names).mask,
    "p_values": lambda p, P, **names: p.p_values(P, **names),
    "evaluate": lambda p, P, **names: udcp.evaluate(p, P, NAMES, **names).mean_size,
    "Monitor": lambda p, P, **names: (m := udcp.Monitor(p), m.update(P, NAMES, **names), str(m.streams[0]))[-1],
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_an_array_is_refused_until_its_columns_are_named(door: Callable[..., Any], predictor: SetPredictor) -> None:
    by_name = door(predictor, FRAME[LABELS])
    for given in (BARE, BARE.tolist(), rows_of(BARE, LABELS)):
        with pytest.raises(InputError, match=REFUSED):
            door(predictor, given)
    np.testing.assert_array_equal(door(predictor, BARE, class_names=SORTED), by_name)
    np.testing.assert_array_equal(door(predictor, P, class_names=LOSS.labels), by_name)
    np.testing.assert_array_equal(door(predictor, FRAME), by_name)


def test_the_order_is_saved(predictor: SetPredictor, tmp_path: Path) -> None:
    predictor.save(tmp_path / "p.json")
    loaded = SetPredictor.load(tmp_path / "p.json")
    assert loaded.columns == tuple(SORTED)
    with pytest.raises(InputError, match=REFUSED):
        loaded.predict_set(BARE)
    plain = SetPredictor(LOSS, "lac", alpha=0.2).calibrate(FRAME[LABELS], NAMES)
    plain.save(tmp_path / "plain.json")
    assert SetPredictor.load(tmp_path / "plain.json").columns is None
    np.testing.assert_array_equal(
        SetPredictor.load(tmp_path / "plain.json").predict_set(P).mask, predictor.predict_set(FRAME).mask
    )


def test_class_names_of_the_predictor_name_later_arrays() -> None:
    named = SetPredictor(LOSS, "lac", alpha=0.2, class_names=SORTED).calibrate(FRAME, NAMES)
    np.testing.assert_array_equal(named.predict_set(BARE).mask, named.predict_set(FRAME).mask)
    again = named.calibrate(BARE, NAMES)
    np.testing.assert_array_equal(again.predict_set(P, class_names=LABELS).mask, again.predict_set(FRAME).mask)


def test_to_adapt_needs_names_too() -> None:
    rows = rng.dirichlet(np.full(4, 0.4), 2000)
    y = np.array(LABELS)[np.argmax(np.log(rows + 1e-300) + rng.gumbel(size=rows.shape), axis=1)]
    frame = pd.DataFrame(rows[:, ORDER], columns=SORTED)
    found = SetPredictor(LOSS, "lac", alpha=0.2).calibrate(frame, y)
    with pytest.raises(InputError, match=REFUSED):
        found.adapt(rows[:, ORDER], calibration=(frame, y))
    by_name = found.adapt(frame, calibration=(frame, y)).predict_set(frame).mask
    adapted = found.adapt(rows[:, ORDER], calibration=(rows[:, ORDER], y), class_names=SORTED)
    np.testing.assert_array_equal(adapted.predict_set(frame).mask, by_name)


def test_batches_of_lists_are_arrays(predictor: SetPredictor) -> None:
    pa = pytest.importorskip("pyarrow")
    lists, named = pa.record_batch({"p": BARE.tolist()}), pa.RecordBatch.from_pandas(FRAME, preserve_index=False)
    (by_name,) = predictor.predict_batches([named])
    with pytest.raises(InputError, match=f"batch 0: {REFUSED}"):
        list(predictor.predict_batches([lists]))
    (found,) = predictor.predict_batches([lists], class_names=SORTED)
    assert found.to_pylist() == by_name.to_pylist()
    with pytest.raises(InputError, match="class_names has 2 names"):
        predictor.predict_batches([lists], class_names=SORTED[:2])


@pytest.mark.parametrize("output", ["sets.csv", "sets/"])
def test_files_without_names_need_class_names(folder: Path, output: str) -> None:
    calibrated = run(
        "calibrate",
        "pets.loss",
        "--probs",
        "named.csv",
        "--truth",
        "y.txt",
        "--ignore",
        "truth",
        "--oracle",
        "lac",
        "-o",
        "p.json",
    )
    assert calibrated.exit_code == 0, calibrated.output
    refused = run("predict", "p.json", "--probs", "bare.npy", "-o", output, "--format", "csv")
    refused = run("predict", "p.json", "--probs", "bare.npy", "-o", output)
    assert refused.exit_code == 2
    assert "in another order (cat, dog, lynx, wolf ...)" in " ".join(refused.stderr.split())
    assert "--class-names" in refused.stderr
    assert (
        run("predict", "p.json", "--probs", "bare.npy", "-o", "a.csv", "--class-names", ",".join(SORTED)).exit_code == 0
    )
    assert run("predict", "p.json", "--probs", "named.csv", "-o", "b.csv", "--ignore", "truth").exit_code == 0
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert "columns by name (in calibration: cat, dog, lynx, wolf)" in " ".join(run("show", "p.json").stdout.split())
    for command in (["evaluate"], ["monitor"]):
        assert "--class-names" in run(*command, "p.json", "--probs", "bare.npy", "--truth", "y.txt").stderr


def test_rows_that_stay_in_their_files_know_their_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udcp_dsl.rows.source.MEMORY_CELLS", 8)
    monkeypatch.setattr("udcp_dsl.rows.source._MEMORY_BYTES", 8)
    for truth in (["--truth", "truth"], ["--truth", "y.txt", "--ignore", "truth"]):
        made = run("calibrate", "pets.loss", "--probs", "named.csv", *truth, "--oracle", "lac", "-o", "p.json")
        assert made.exit_code == 0, made.output
        assert SetPredictor.load("p.json").columns == tuple(SORTED)
        assert run("evaluate", "p.json", "--probs", "named.csv", *truth).exit_code == 0


# --- columns in another order are warned of where truth is known ---


def test_evaluation_warns_of_columns_in_another_order() -> None:
    plain = SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P, NAMES)
    assert said(lambda: udcp.evaluate(plain, P, NAMES)) == []
    (message,) = said(lambda: udcp.evaluate(plain, BARE, NAMES))
    assert "are the columns in the order of the labels" in message


@pytest.mark.parametrize("parts", [1, 4])
def test_prediction_with_truth_warns_once_for_all_parts(folder: Path, parts: int) -> None:
    SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P, NAMES).save("p.json")
    for name, rows in (("day", BARE), ("right", P)):
        Path(name).mkdir()
        for i, part in enumerate(np.array_split(np.arange(240), parts)):
            rows_of_part = pd.DataFrame({"p": rows[part].tolist(), "truth": NAMES[part]})
            rows_of_part.to_json(Path(name, f"{i}.jsonl"), orient="records", lines=True, double_precision=15)
    result = run("predict", "p.json", "--probs", "day", "--truth", "truth", "-o", "sets/", "--format", "csv")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("are the columns in the order of the labels") == 1
    assert "warning" not in run("predict", "p.json", "--probs", "right", "--truth", "truth", "-o", "s.csv").stderr


# --- integers for labels that are names ---


def counted(messages: list[str]) -> list[str]:
    return [message for message in messages if message.startswith("y contains integers")]


def test_integers_for_names_are_warned_of_once_at_calibration() -> None:
    made = SetPredictor(LOSS, "lac", alpha=0.2)
    (message,) = said(lambda: made.calibrate(P, Y))
    assert "0 is 'wolf'" in message
    assert "sorted order: 0 is 'cat'" in message
    assert counted(said(lambda: udcp.evaluate(made, P, Y))) == []
    (message,) = counted(said(lambda: udcp.compare(LOSS, P, Y, oracles=["lac"], splits=5)))
    in_order = udcp.loads("loss l = size", labels=SORTED)
    numbers = udcp.loads("labels {3, 1, 2, 0}  loss l = size")
    silent: list[Callable[[], object]] = [
        lambda: made.calibrate(P, NAMES),
        lambda: SetPredictor(LOSS, "lac", class_names=LOSS.labels).calibrate(P, Y),
        lambda: made.calibrate(P, NamedPositions.of(Y, LABELS)),
        lambda: SetPredictor(in_order, "lac").calibrate(BARE, [SORTED.index(name) for name in NAMES]),
        lambda: SetPredictor(numbers, "lac").calibrate(P, np.array([3, 1, 2, 0])[Y]),
    ]
    assert [counted(said(do)) for do in silent] == [[]] * len(silent)


def test_integers_in_files_are_warned_of(folder: Path) -> None:
    how = ["calibrate", "pets.loss", "--probs", "spec.npy", "--truth", "y.npy", "--oracle", "lac", "-o", "p.json"]
    assert run(*how).stderr.count("0 is 'wolf'") == 1
    assert "integers" not in run(*how, "--class-names", ",".join(LABELS)).stderr
    by_count = SetPredictor.load("p.json").calibrated.thresholds()
    Path("p.json").unlink()
    assert "integers" not in run(*how[:5], "y.txt", *how[6:]).stderr
    assert SetPredictor.load("p.json").calibrated.thresholds() == by_count


def test_positions_that_know_their_names_are_matched_by_name() -> None:
    y = NamedPositions.of([SORTED.index(name) for name in NAMES], SORTED)
    np.testing.assert_array_equal(rows_of(P, LABELS, y=y).y, Y)
    np.testing.assert_array_equal(rows_of(P[50:60], LABELS, y=y[50:60]).y, Y[50:60])
    np.testing.assert_array_equal(rows_of(P, LABELS, y=y[::-1]).y, Y[::-1])
    assert y[3] == SORTED.index(NAMES[3])
    with pytest.raises(InputError, match="is 9, which is out of range"):
        rows_of(P, LABELS, y=y + (9 - y))
    with pytest.raises(InputError, match="which is not a label; known: a"):
        rows_of(P, ["a", "b", "c", "d"], y=y)


def test_data_sets_of_the_package_do_not_warn() -> None:
    data = udcp.datasets.icons()
    assert list(data.labels) != sorted(data.labels)
    loss = udcp.load("specs/icons/icons.loss")
    assert said(lambda: SetPredictor(loss, "lac").calibrate(data.probs[:2500], data.y[:2500])) == []
    assert rows_of(data.probs, data.labels, y=data.y).hits / len(data) == pytest.approx(0.73, abs=0.01)


def learned() -> tuple[Any, Any, Any]:
    """Features of four kinds, their names, and the numbers that an encoder gives these."""
    rng = np.random.default_rng(1)
    k = rng.integers(4, size=800)
    words = np.array(LABELS)[k]
    return rng.normal(size=(800, 3)) + np.eye(4)[k][:, :3] * 2, words, np.searchsorted(SORTED, words)


@pytest.mark.parametrize("cv", [None, 3])
def test_classes_that_are_integers_need_names(cv: int | None) -> None:
    sklearn = pytest.importorskip("udcp_dsl.sklearn")
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    X, words, numbers = learned()
    how: dict[str, Any] = {"oracle": "price", "random_state": 0, "cv": cv}

    def model(**more: Any) -> Any:
        return sklearn.UtilitySetClassifier(naive_bayes.GaussianNB(), LOSS, **how, **more)

    refused = (
        r"the order wolf, cat, lynx, dog .* cat, dog, lynx, wolf .*inverse_transform.*class_names=encoder.classes_"
    )
    with pytest.raises(InputError, match=refused):
        model().fit(X, numbers)
    by_name = model().fit(X[:600], words[:600])
    encoded = model(class_names=np.array(SORTED)).fit(X[:600], numbers[:600])
    np.testing.assert_array_equal(encoded.predict_set(X[600:]).mask, by_name.predict_set(X[600:]).mask)
    assert (
        encoded.evaluate_sets(X[600:], numbers[600:]).mean_cost == by_name.evaluate_sets(X[600:], words[600:]).mean_cost
    )
    assert [{SORTED[k] for k in s} for s in encoded.predict_set(X[:9])] == [set(s) for s in by_name.predict_set(X[:9])]
    some = numbers[:600] != 1  # a class that the data lack
    few = model(class_names=SORTED).fit(X[:600][some], numbers[:600][some])
    assert set().union(*few.predict_set(X)) <= {0, 1, 2, 3}
    np.testing.assert_array_equal(
        few.predict_set(X).mask, model().fit(X[:600][some], words[:600][some]).predict_set(X).mask
    )
    with pytest.raises(InputError, match="class_names has 2 names"):
        model(class_names=SORTED[:2]).fit(X, numbers)
    with pytest.raises(InputError, match="class_names= names columns of probabilities, but a classifier"):
        udcp.evaluate(encoded, X, numbers, class_names=SORTED)


# --- rows in another order than their truth ---

NOTHING = "the probabilities say almost nothing about these labels"


def nothing(P: Any, y: Any, **settings: Any) -> bool:
    labels = [f"l{i:03}" for i in range(P.shape[1])]
    predictor = SetPredictor(udcp.loads("loss l = size", labels=labels), **{"oracle": "lac", **settings})
    found = [message for message in said(lambda: predictor.calibrate(P, y)) if message.startswith(NOTHING)]
    assert len(found) <= 1
    return len(found) == 1


def drawn(n: int, K: int, sure: float, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    z = sure * rng.normal(size=(n, K))
    P = np.exp(z - z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P, np.argmax(np.log(P + 1e-300) + rng.gumbel(size=P.shape), axis=1)


@pytest.mark.parametrize("settings", [{}, {"oracle": "price"}, {"oracle": "price", "repair": None}], ids=str)
@pytest.mark.parametrize(("n", "K"), [(50, 4), (600, 23)])
def test_shuffled_truth_is_warned_of(n: int, K: int, settings: dict[str, Any]) -> None:
    """Of shuffled ones, 95 % are found, by definition; of these classifiers, none is accused in order."""
    found = []
    for seed in range(6):
        P, y = drawn(n, K, 4.0, seed)
        assert not nothing(P, y, **settings)
        found.append(nothing(P, np.random.default_rng(seed).permutation(y), **settings))
    assert sum(found) >= 4  # at most 3 of 6 with probability below 2e-3, were seeds random


def test_shuffled_truth_is_warned_of_at_the_command_line_and_in_comparisons(folder: Path) -> None:
    y = np.random.default_rng(3).permutation(NAMES)
    Path("y.txt").write_text("\n".join(y) + "\n")
    result = run("calibrate", "pets.loss", "--probs", "spec.npy", "--truth", "y.txt", "-o", "p.json")
    assert " ".join(result.stderr.split()).count(NOTHING) == 1
    found = said(lambda: udcp.compare(LOSS, P, y, oracles=["lac", "price"], splits=5))
    assert sum(message.startswith(NOTHING) for message in found) == 1


def rare(n: int, events: int, distance: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Calibrated probabilities of a rare event, from a feature whose two normal distributions are so far apart."""
    y = np.zeros(n, int)
    y[rng.choice(n, events, replace=False)] = 1
    odds = events / (n - events) * np.exp(distance * (rng.normal(size=n) + distance * (y - 0.5)))
    return np.stack([1 - odds / (1 + odds), odds / (1 + odds)], axis=1), y


def test_good_classifiers_of_rare_events_are_not_accused() -> None:
    """With the area under the curve at 0.76 (distance 1), fewer than 1 % are; fewer than 20 events are not judged."""
    rng = np.random.default_rng(0)
    assert sum(nothing(*rare(2000, 24, 1.0, rng)) for _ in range(20)) <= 1
    assert not any(nothing(*rare(2000, 24, 2.0, rng)) for _ in range(10))
    for events in (0, 1, 19):
        P, y = rare(1000, events or 5, 1.0, rng)
        assert not nothing(P, rng.permutation(y) if events else np.zeros(1000, int))


def test_flat_probabilities_say_nothing_and_few_rows_are_not_judged() -> None:
    y = np.arange(60) % 4
    assert nothing(np.full((60, 4), 0.25), y)
    assert nothing(np.tile([0.4, 0.3, 0.2, 0.1], (60, 1)), y[::-1])
    P, y = drawn(49, 4, 4.0, 0)
    assert not nothing(P, np.random.default_rng(0).permutation(y))


def test_the_test_of_a_large_source_reads_some_of_its_rows() -> None:
    P, y = drawn(9000, 5, 3.0, 1)
    assert not nothing(P, y)
    assert nothing(P, np.random.default_rng(0).permutation(y))


# --- limits and costs that do nothing ---


def test_limits_that_an_oracle_does_not_enforce_are_warned_of() -> None:
    limited = udcp.loads(SPEC + "  limit slots: any(wild) <= 0.6")
    for oracle in ("lac", "greedy"):
        (message,) = said(lambda oracle=oracle: SetPredictor(limited, oracle, repair=None).calibrate(P, NAMES))  # type: ignore[misc]
        assert message == f"limits of the spec are reported, not enforced, by {oracle!r}: use price"
    enforced = said(lambda: SetPredictor(limited, "price", alpha=0.3, repair=None).calibrate(P, NAMES))
    assert not [message for message in enforced if "not enforced" in message]


def test_costs_of_labels_by_class_have_no_effect_and_that_is_said() -> None:
    additive = udcp.loads(
        "labels {wolf, cat, lynx, dog}  costs c {wolf: 9, cat: 1, lynx: 4, dog: 2}  loss l = 1 + sum(c)"
    )
    cases = [
        (additive, "price", True),
        (additive, "ratio", True),
        (additive, "lac", False),
        (LOSS, "price", False),
    ]
    by_class = SetPredictor(additive, "lac", alpha=0.3, conditional="class").calibrate(P, NAMES).predict_set(P).mask
    for loss, oracle, expected in cases:
        made = SetPredictor(loss, oracle, alpha=0.3, conditional="class")
        found = [x for x in said(lambda made=made: made.calibrate(P, NAMES)) if "those of 'lac'" in x]  # type: ignore[misc]
        assert len(found) == expected
        if expected:
            np.testing.assert_array_equal(made.predict_set(P).mask, by_class)
    marginal = SetPredictor(additive, "price", alpha=0.3)
    assert not [x for x in said(lambda: marginal.calibrate(P, NAMES)) if "those of 'lac'" in x]
