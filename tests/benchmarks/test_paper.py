"""benchmarks/paper: the page shows what was measured, and the authors' layout is read."""

from __future__ import annotations

import doctest
import json
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from udcp_dsl import InputError
from udcp_dsl.predict.calibrate import coverage_law

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "paper"
RESULTS = ROOT / "benchmarks" / "results" / "paper"
EXPERIMENTS = ("tables", "sizes", "conditional", "softmax", "lambdas", "accuracy", "bayes")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Masks = NDArray[np.bool_]
Load = Callable[[str], Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.syspath_prepend(FOLDER)
    return import_module


# What was measured ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_page_shows_the_results(load: Load, experiment: str) -> None:
    page = load("page")
    data = json.loads((RESULTS / f"{experiment}.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert text == page.between_markers(text, experiment, page.shown(data))
    assert (RESULTS / f"{experiment}.md").read_text(encoding="utf-8") == page.report(data)


def test_no_other_method_is_cheaper_than_price_in_the_tables() -> None:
    data = json.loads((RESULTS / "tables.json").read_text(encoding="utf-8"))
    assert len(data["data"]) >= 7
    for one in data["data"].values():
        for loss in ("separable", "max_distance", "coverage_loss"):
            costs = {row["oracle"]: row["cost"] for row in one["rows"] if row["loss"] == loss}
            assert costs["price"] == min(costs.values())
            assert costs["penalized through"] < costs["base through"]
            assert costs["base"] < costs["base through"]
            assert costs["greedy"] < costs["greedy through"]


def test_the_page_names_the_orders_of_greedy_and_penalized_that_are_inverted(load: Load) -> None:
    measured = json.loads((RESULTS / "tables.json").read_text(encoding="utf-8"))["data"]
    inverted, compared = set(), 0
    for loss, paper in load("figures").COSTS.items():
        for name, theirs in paper.items():
            if "greedy" not in theirs:
                continue
            ours = {row["oracle"]: row["cost"] for row in measured[name]["rows"] if row["loss"] == loss}
            agree = (theirs["greedy"] < theirs["penalized"]) == (ours["greedy through"] < ours["penalized through"])
            compared += 1
            inverted |= set() if agree else {(name, loss)}
    both = {(name, loss) for name in ("fitzpatrick", "fitzpatrick-clean") for loss in ("max_distance", "coverage_loss")}
    assert inverted == both
    assert compared == 10
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert "Four of the ten orders of `greedy` and `penalized` are inverted" in page


def test_coverage_in_the_tables_is_that_of_the_law() -> None:
    """The mean over overlapping splits varies no more than one split, whose law is known."""
    data = json.loads((RESULTS / "tables.json").read_text(encoding="utf-8"))
    for one in data["data"].values():
        n_test = one["n"] // 4
        law = coverage_law(one["n"] // 2, data["alpha"], n_test)
        for row in one["rows"]:
            assert row["coverage"] * n_test >= law.ppf(1e-4), (one["about"], row)


@pytest.mark.slow
def test_a_quick_run(load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    run = load("run")
    before = run.PAGE.read_bytes()
    quick = ["--quick", "--splits", "2", "--output", str(tmp_path)]
    assert run.main(["tables", "sizes", "conditional", "softmax", "lambdas", "--data", "digits", *quick]) == 0
    assert run.main(["tables", "--data", "fitzpatrick", *quick, "--taxonomies", str(tmp_path)]) == 0
    tables = json.loads((tmp_path / "tables.json").read_text())
    assert list(tables["data"]) == ["digits", "fitzpatrick"]  # what was measured before stays
    assert {row["oracle"] for row in tables["data"]["digits"]["rows"]} == set(load("experiments").ORACLES)
    assert "a made tree" in tables["data"]["fitzpatrick"]["about"]
    assert "| digits | 10 |" in (tmp_path / "tables.md").read_text()
    for experiment in ("sizes", "conditional", "softmax", "lambdas"):
        assert json.loads((tmp_path / f"{experiment}.json").read_text())["data"]["digits"]["rows"]
    assert run.PAGE.read_bytes() == before
    with pytest.raises(SystemExit):
        run.main(["sizes", "--data", "digits", *quick, "--splits", "3"])
    assert "holds results of splits = 2" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["tables", "--quick"])
    assert "--output FOLDER" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["tables", "--taxonomies", str(tmp_path / "none"), *quick])
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_run_of_the_networks(load: Load, tmp_path: Path) -> None:
    for package in ("torch", "py3langid", "django"):
        pytest.importorskip(package)
    assert load("run").main(["accuracy", "bayes", "--quick", "--splits", "2", "--output", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "bayes.json").read_text())["data"]["texts"]["rows"]
    assert {row["sets"] for row in rows} == {"at its word", "calibrated"}


@pytest.mark.parametrize("module", ["taxonomies", "losses"])
def test_examples_of_the_modules(load: Load, module: str) -> None:
    failed, tried = doctest.testmod(load(module))
    assert (failed, tried > 0) == (0, True)


# The synthetic classifiers ------------------------------------------------------------------------------------------


def test_a_synthetic_classifier_has_the_accuracy_and_its_confusions_follow_the_tree(load: Load) -> None:
    tree = load("taxonomies").made(40, (2, 4))
    drawn = load("synthetic").draw(tree, 4000, 0.6, 1.0, np.random.default_rng(0))
    guessed = drawn.probs.argmax(axis=1)
    assert abs((guessed == drawn.y).mean() - 0.6) <= 1 / 4000
    branch = np.array([int(path[1][1:]) for path in tree.paths])
    wrong = guessed != drawn.y
    assert (branch[guessed] == branch[drawn.y])[wrong].mean() > 2 / 8  # by chance 4 of 39
    # At temperature 1 the probabilities are true: their mean is the accuracy, within four standard errors.
    top = drawn.probs.max(axis=1)
    assert abs(top.mean() - 0.6) < 4 * math.sqrt((top * (1 - top)).mean() / 4000)


def test_losses_are_those_of_the_tree(load: Load) -> None:
    tree = load("taxonomies").made(12, (2, 2))
    separable, distance, coverage = load("losses").paper_losses(tree, 3)
    assert {separable({label}) for label in tree.labels} <= {1.0, 2.0, 3.0}
    assert distance({"y0", "y1"}) == pytest.approx(2 / 8 + 0.002)
    assert distance({"y0", "y5"}) == pytest.approx(4 / 8 + 0.002)
    assert distance({"y0", "y11"}) == pytest.approx(6 / 8 + 0.002)
    assert coverage({"y0", "y3", "y4", "y11"}) == pytest.approx(3 + 0.04)


def test_a_posterior_at_its_word_holds_the_mass_that_was_asked_for(load: Load) -> None:
    P = np.random.default_rng(0).dirichlet(np.ones(6), 500)
    scores = -P
    tau = load("experiments").own_word(scores, P)
    mass = [float((P * (scores <= t)).sum(axis=1).mean()) for t in (np.nextafter(tau, -np.inf), tau)]
    assert mass[0] < 0.9 <= mass[1]


# The authors' layout ------------------------------------------------------------------------------------------------


def artefacts(tmp_path: Path, dataset: str | None = "Fitzpatrick", K: int = 12, n: int = 400) -> Path:
    """A folder in the layout of the authors' download, without its hierarchy."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "utility_input_artifacts" / "some_run"
    folder.mkdir(parents=True)
    P = rng.dirichlet(np.full(K, 0.3), n)
    np.save(folder / "model_predictions.npy", P.astype(np.float32))
    np.save(
        folder / "labels.npy", np.append(np.arange(K), (P[K:].cumsum(axis=1) > rng.random((n - K, 1))).argmax(axis=1))
    )
    if dataset is not None:
        (folder / "metadata.json").write_text(json.dumps({"dataset": dataset}))
    return folder


def fitzpatrick_levels(K: int = 12) -> Ints:
    """First level, second level, label: 4, 3 and 2 categories under three parents, in no order."""
    second = np.arange(K) % 9
    first = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])[second]
    return np.random.default_rng(1).permutation(np.stack([first, second, np.arange(K)], axis=1))


def test_the_authors_folder_is_read_and_runs(load: Load, tmp_path: Path) -> None:
    folder = artefacts(tmp_path)
    place = tmp_path / "hierarchy_artifacts" / "fitzpatrick"
    place.mkdir(parents=True)
    levels = fitzpatrick_levels()
    np.save(place / "fitzpatrick_hierarchy.npy", np.repeat(levels, 3, axis=0))  # a row an image is fine
    problem = load("published").published(folder)
    assert problem.name == "Fitzpatrick (published)"
    assert problem.tree.labels == tuple(map(str, range(12)))
    assert problem.tree.level == 2
    for first, second, label in levels.tolist():
        assert problem.tree.paths[label] == (f"first {first}", f"second {second}")
    assert (problem.y == np.load(folder / "labels.npy")).all()
    quick = ["--quick", "--splits", "2", "--output", str(tmp_path)]
    assert load("run").main(["tables", "lambdas", "--folder", str(folder), *quick]) == 0
    assert list(json.loads((tmp_path / "tables.json").read_text())["data"]) == ["Fitzpatrick (published)"]


def test_every_other_hierarchy_is_read(load: Load, tmp_path: Path) -> None:
    published = load("published").published
    species = [f"{i:05}_K{i % 2}_P{i % 4}_C{i % 12}_Ord_Fam_Gen_sp{i}" for i in range(24)]
    folder = artefacts(tmp_path, "iNaturalist")
    (folder / "species_list.json").write_text(json.dumps(species))
    (folder / "mapping_dict.json").write_text(json.dumps({"class": {f"C{i}": 11 - i for i in range(12)}}))
    tree = published(folder).tree
    assert (tree.labels[0], tree.paths[0]) == ("C11", ("K1", "P3"))

    np.save(folder / "embeddings.npy", np.random.default_rng(0).normal(size=(400, 5)))
    (folder / "metadata.json").write_text(json.dumps({"dataset": "CIFAR100"}))
    pytest.importorskip("torch")
    tree = published(folder).tree
    assert [len({path[:d] for path in tree.paths}) for d in (1, 2)] == [3, 9]

    (folder / "metadata.json").unlink()
    (folder / "hierarchy.json").write_text(
        json.dumps({"a": {"b": [1, 0], "c": [2, 3, 4, 5]}, "d": {"e": [*range(6, 12)]}})
    )
    assert published(folder).tree.paths[:3] == (("a", "b"), ("a", "b"), ("a", "c"))

    rows = ["label,top", *(f"l{i},t{i // 4}" for i in range(12))]
    (folder / "hierarchy.csv").write_text("\n".join(rows))
    problem = published(folder)
    assert problem.name == "some_run (published)"
    assert (problem.tree.labels[5], problem.tree.paths[5], problem.tree.level) == ("l5", ("t1",), 1)


def test_csv_files_are_matched_by_name(load: Load, tmp_path: Path) -> None:
    (tmp_path / "softmax.csv").write_text("b,a,c\n" + "0.5,0.3,0.2\n" * 4)
    (tmp_path / "labels.csv").write_text("truth\nb\nc\na\nb\n")
    (tmp_path / "hierarchy.csv").write_text("label,top\na,x\nb,x\nc,z\n")
    problem = load("published").published(tmp_path)
    assert problem.tree.labels == ("a", "b", "c")
    assert problem.probs[0].tolist() == [0.3, 0.5, 0.2]
    assert problem.y.tolist() == [1, 2, 0, 1]


def pickled(folder: Path) -> None:
    np.save(folder / "labels.npy", np.array([{}], dtype=object), allow_pickle=True)


def shorter(folder: Path) -> None:
    np.save(folder / "labels.npy", np.zeros(3, np.int64))


def unlikely(folder: Path) -> None:
    np.save(folder / "model_predictions.npy", np.full((400, 12), 0.5))


def two_parents(folder: Path) -> None:
    np.save(folder / "fitzpatrick_hierarchy.npy", np.append(fitzpatrick_levels(), [[2, 8, 0]], axis=0))


def flat(folder: Path) -> None:
    np.save(folder / "fitzpatrick_hierarchy.npy", np.zeros(12))


def more_labels(folder: Path) -> None:
    np.save(folder / "fitzpatrick_hierarchy.npy", fitzpatrick_levels(13))


def nested_text(folder: Path) -> None:
    (folder / "hierarchy.json").write_text('{"a": "b"}')


def ragged(folder: Path) -> None:
    (folder / "hierarchy.csv").write_text("label,top\nl0\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "model_predictions.npy").unlink(), "has no model_predictions.npy or softmax.npy"),
        (lambda folder: (folder / "labels.npy").unlink(), "has no labels.npy or labels.csv"),
        (lambda folder: (folder / "fitzpatrick_hierarchy.npy").unlink(), "fitzpatrick_hierarchy.npy is neither in"),
        (lambda folder: (folder / "metadata.json").unlink(), "has no hierarchy: give hierarchy.csv"),
        (lambda folder: (folder / "metadata.json").write_text("{"), "metadata.json: is not JSON"),
        (lambda folder: (folder / "metadata.json").write_text("[]"), "metadata.json: an object with a name"),
        (pickled, "labels.npy.*pickled Python objects, which are never loaded"),
        (shorter, "labels.npy: .*3"),
        (unlikely, "model_predictions.npy: .*sums to 6"),
        (two_parents, "fitzpatrick_hierarchy.npy: .* each below one parent"),
        (flat, "fitzpatrick_hierarchy.npy: float64 of shape"),
        (more_labels, "model_predictions.npy.*13"),
        (nested_text, "hierarchy.json: below a is neither"),
        (ragged, "hierarchy.csv: row 2 has not one entry"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(
    load: Load, tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    folder = artefacts(tmp_path)
    np.save(folder / "fitzpatrick_hierarchy.npy", fitzpatrick_levels())
    load("published").published(folder)
    spoil(folder)
    with pytest.raises(InputError, match=message):
        load("published").published(folder)


def test_a_folder_that_is_not_there(load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load("run").main(["tables", "--folder", str(tmp_path / "none"), "--output", str(tmp_path)])
    assert "is not a folder" in capsys.readouterr().err


def sliced(first_level: Ints) -> list[int]:
    """The parents that the authors' code gives categories in the order of their parents `first_level`."""
    change = np.flatnonzero(np.flatnonzero(first_level != 0) != 0)
    return [0 if j <= change[0] else 1 if j <= change[1] else 2 for j in range(len(first_level))]


@pytest.mark.parametrize("counts", [(4, 3, 2), (3, 3, 3), (1, 1, 7), (2, 5, 2)])
def test_slicing_puts_categories_under_the_wrong_parents_and_the_loader_does_not(
    load: Load, tmp_path: Path, counts: tuple[int, int, int]
) -> None:
    parents = np.repeat([0, 1, 2], counts)
    assert np.bincount(sliced(parents)).tolist() == [1, 1, 7]  # whatever the tree
    folder = artefacts(tmp_path, K=9)
    np.save(folder / "fitzpatrick_hierarchy.npy", np.stack([parents, np.arange(9), np.arange(9)], axis=1))
    tree = load("published").published(folder).tree
    assert [path[0] for path in tree.paths] == [f"first {parent}" for parent in parents]
    distance = load("losses").paper_losses(tree, 3)[1]
    for a in range(9):
        for b in range(a):
            edges = 4 if parents[a] == parents[b] else 6
            assert distance({str(a), str(b)}) == pytest.approx(edges / 8 + 0.002)


def test_price_has_the_lowest_multiple_beside_the_paper(load: Load) -> None:
    """What the page says of its tables, from the figures themselves."""
    figures = load("figures")
    data = json.loads((RESULTS / "tables.json").read_text(encoding="utf-8"))
    for loss, published in figures.COSTS.items():
        for name, theirs in published.items():
            found = {row["oracle"]: row["cost"] for row in data["data"][name]["rows"] if row["loss"] == loss}
            assert found["price"] <= min(found.values()) * (1 + 1e-12), (loss, name)
            assert min(theirs.values()) < theirs["base"]
