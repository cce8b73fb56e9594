"""`udcp demo` on the digits, and on a few strings of the languages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl.cli import compiling
from udcp_dsl.cli import demo as verb
from udcp_dsl.datasets import digits
from udcp_dsl.datasets.kept_rows import digit_losses, language_losses, language_names

Udcp = Callable[..., Result]


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.usefixtures("undrawn")
def test_digits(udcp: Udcp) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    result = udcp("demo", "--dataset", "digits", "--splits", "2", "--rows", "800", "--report", "digits.html")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "a logistic regression on the digits of scikit-learn: 800 rows, 10 labels" in text
    assert "kinds = count(strokes.level(1)) + 0.01 * size  (monotone, submodular, laminar)" in text
    assert "apart = diameter(strokes) + 0.01 * size  (monotone, tree diameter)" in text
    for part in ("kinds, alpha 0.1, over 2 splits:", "apart, alpha 0.1, over 2 splits:", "less than the next cheapest"):
        assert part in text
    assert text.count("Instance ") == 5
    assert text.rstrip().endswith(
        "The report is in digits.html: curves, strata, and more instances. Open it in a browser."
    )
    assert "<svg" in Path("digits.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_digits_are_drawn(udcp: Udcp) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    assert udcp("demo", "--dataset", "digits", "--splits", "2", "--rows", "800").exit_code == 0
    assert len(re.findall("<svg.{1000}", Path("udcp-demo.html").read_text(encoding="utf-8"), re.S)) > 10


@pytest.mark.usefixtures("undrawn")
def test_the_numbers_are_those_of_a_comparison(udcp: Udcp) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    arguments = ("--dataset", "digits", "--splits", "2", "--seed", "1", "--alpha", "0.05", "--json")
    data = json.loads(udcp("demo", *arguments).stdout)
    drawn = digits(1)
    expected = udcp_dsl.compare(digit_losses(), drawn.probs, drawn.y, alphas="0.05", splits=2, seed=1)
    assert [x["cost"] for x in data["summaries"]] == [x.cost for x in expected.summaries()]
    assert data["report"] == "udcp-demo.html"
    assert Path("udcp-demo.html").is_file()
    losses = dict(zip(expected.names, digit_losses(), strict=True))
    for instance in data["instances"]:
        example, best, rival = instance["example"], instance["best"], instance["rival"]
        assert best == "price"
        assert set(example["sets"][best]) != set(example["sets"][rival])
        assert example["truth"] == str(drawn.y[example["row"]])
        for oracle, labels in example["sets"].items():
            assert example["costs"][oracle] == losses[instance["loss"]](set(labels))
        assert example["truth"] in instance["why"]
        assert " instead of " in instance["why"]
    assert len(data["instances"]) == 5


@pytest.mark.usefixtures("undrawn", "read_once")
def test_languages(udcp: Udcp) -> None:
    for package in ("py3langid", "django", "matplotlib"):
        pytest.importorskip(package)
    arguments = ("demo", "--rows", "600", "--splits", "1", "--probabilities", "raw")
    result = udcp(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""  # strings repeat, and are no ids
    assert "raw probabilities: 600" in result.stdout
    assert "branches = count(langs.branch) + 0.01 * size  (monotone, submodular, laminar)" in result.stdout
    assert "spread_out, alpha 0.1, over 1 split:" in result.stdout
    first, second = re.split(r"Instance \d: “", result.stdout)[1:3]  # with the text of the instance
    names = language_names()
    for part in (first, second):
        truth = re.search(r"true label ([^,]+), by branches", part)
        assert truth is not None
        assert truth[1] in names.values()
        assert truth[1] not in names
    assert re.search(r"Both contain the true label,\s", first)
    assert "price misses the true label, " in second
    assert "with it the set would cost" in re.sub(r"\s+", " ", second)
    page = Path("udcp-demo.html").read_text(encoding="utf-8")
    assert "on the translation catalogues of Django" in page.partition("</title>")[0]
    data = json.loads(page.partition('id="instances">')[2].partition("</script>")[0])
    assert {label for loss in data["losses"] for label in loss["labels"]} <= set(names.values())
    assert Path("udcp-demo.html").is_file()
    assert len(list((Path(os.environ["XDG_CACHE_HOME"]) / "udcp_dsl").iterdir())) == 1
    again = udcp(*arguments)
    untimed = [line for line in again.stdout.split("\n") if not line[:1].isalpha() or "0." not in line]
    assert untimed == [line for line in result.stdout.split("\n") if not line[:1].isalpha() or "0." not in line]


@pytest.mark.usefixtures("read_once")
def test_the_specs_fit_the_data() -> None:
    pytest.importorskip("py3langid")
    pytest.importorskip("django")
    data = udcp_dsl.datasets.languages(rows=200)
    assert all(loss.labels == data.labels for loss in language_losses())
    labels = digits().labels
    assert all(loss.labels == labels for loss in digit_losses())


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("matplotlib", [], "[demo]"),
        ("py3langid", [], "[demo]"),
        ("matplotlib", ["--dataset", "digits"], "[demo,sklearn]"),
        ("sklearn", ["--dataset", "digits"], "[demo,sklearn]"),
    ],
)
def test_all_that_is_missing_is_told_at_once(
    missing: str, arguments: list[str], extra: str, udcp: Udcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda name: None if name == missing else find_spec(name))
    result = udcp("demo", *arguments)
    assert result.exit_code == 2
    assert f"pip install 'udcp_dsl{extra}'" in result.stderr
    assert result.stdout == ""
    assert not Path("udcp-demo.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "0"], "strictly between 0 and 1"),
        (["--report", "absent/demo.html"], "there is no folder 'absent'"),
        (["--dataset", "numbers"], "'numbers' is not one of"),
        (["--rows", "3"], "3 is not in the range"),
        (["--rows", "10000000"], "the catalogues have"),
    ],
)
@pytest.mark.usefixtures("read_once")
def test_mistakes(udcp: Udcp, arguments: list[str], message: str) -> None:
    dataset = [] if "--dataset" in arguments or "--rows" in arguments else ["--dataset", "digits"]
    result = udcp("demo", *arguments, *dataset)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("udcp-demo.html").exists()


def test_kernels_are_compiled_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_COMPILED_ALREADY", -1.0)
    P = np.full((2, 10), 0.1)
    compiling.compile_kernels(digit_losses(), ["lac", "ratio"], P)  # one of which does not apply


def test_help(udcp: Udcp) -> None:
    result = udcp("demo", "--help")
    assert result.exit_code == 0
    assert "Example:  udcp demo" in result.stdout


def test_coverages_that_are_all_below_are_explained() -> None:
    from types import SimpleNamespace

    from udcp_dsl.cli.demo import _why_below

    def said(*coverages: float) -> str:
        summaries = [SimpleNamespace(alpha=Fraction(1, 10), coverage=coverage) for coverage in coverages]
        comparison = SimpleNamespace(n=8000, fractions=(0.4, 0.2, 0.4))
        return " ".join(_why_below(summaries, comparison))  # type: ignore[arg-type]

    assert "below 0.9: that is sampling error" in said(0.894, 0.898)
    assert "between 0.885 and 0.915" in said(0.894, 0.898)
    assert said(0.894, 0.9) == ""
    assert said(0.87, 0.89) == ""  # chance does not explain it
