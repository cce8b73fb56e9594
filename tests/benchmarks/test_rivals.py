"""benchmarks/rivals: each published formula against brute force, and equal to a loss of ours where it is one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import all_masks

FOLDER = Path(__file__).parents[2] / "benchmarks"
MODULES = {"mapie": "mapie", "torchcp": "torchcp", "crepes": "crepes", "puncc": "deel"}
TREE = "hierarchy h { A { 0, 1, B { 2, 3 } }, C { 4, 5 }, 6 }"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return import_module


def rows(K: int, n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(K)
    P = rng.dirichlet(np.full(K, 0.5), size=n)
    P[: n // 4] = np.round(P[: n // 4] * 16) + (np.arange(K) == 0)  # ties and labels without mass
    return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("lam", [0.0, 0.05, 1.0])
def test_socop_is_a_loss_under_price(load: Any, lam: float) -> None:
    P = rows(8)
    loss = udcp.loads(f"labels 0..7  loss singleton = (size >= 2) + {lam} * size")
    found = load("rivals.socop").scores(P, lam)
    if lam:
        np.testing.assert_allclose(found, udcp.make_oracle("price", loss).scores(P), rtol=1e-9)
    # By all sets: at every slope no set is better than the labels scored up to it.
    masks = all_masks(8)
    for mu in (0.05, 0.3, 0.8, 1.7, 4.0):
        best = (loss.batch(masks)[:, None] - mu * (masks @ P.T)).min(axis=0)
        sets = found <= mu
        np.testing.assert_allclose(loss.batch(sets) - mu * (sets * P).sum(axis=1), best, atol=1e-9)


def test_pas_is_label_costs_equal_to_prevalence(load: Any) -> None:
    P, y = rows(6), np.arange(40) % 6
    prevalence = load("rivals").frequencies(np.array([0, 0, 0, 1, 2, 2, 5]), 6)
    assert prevalence.sum() == pytest.approx(1.0)
    assert (prevalence > 0).all()
    costs = ", ".join(f"{i}: {c}" for i, c in enumerate(prevalence.tolist()))
    loss = udcp.loads(f"labels 0..5  costs prevalence {{ {costs} }}  loss l = sum(prevalence)")
    ours, theirs = udcp.make_oracle("ratio", loss).scores(P), load("rivals.pas").scores(P, prevalence)
    # One rises with the other, so every coverage has the same sets.
    assert np.allclose(theirs[P > 0], -1 / ours[P > 0])
    assert np.array_equal(ours, udcp.make_oracle("price", loss).scores(P))
    k = load("rivals").ByScore(theirs).levels(y)[20]
    assert (theirs <= k).any()


def test_rac_is_worst_under_price(load: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    losses = np.round(rng.uniform(0, 5, size=(7, 3)), 1)
    P = rows(7)
    labels = list("abcdefg")
    table = {y: {f"act{a}": u for a, u in enumerate(row)} for y, row in zip(labels, losses.tolist(), strict=True)}
    (tmp_path / "u.json").write_text(json.dumps(table), encoding="utf-8")
    loss = udcp.loads(
        'labels { a, b, c, d, e, f, g }  actions treat from "u.json"  loss l = worst(treat)', folder=tmp_path
    )
    rac = load("rivals.rac")
    rival = rac.Rac(P, losses)
    masks = all_masks(7)
    value = loss.batch(masks)
    for b in (0.1, 0.7, 2.3, 6.1, 40.0):
        theirs = rival.at(b)
        best = (value[:, None] - b * (masks @ P.T)).min(axis=0)
        found = loss.batch(theirs) - b * (theirs * P).sum(axis=1)
        np.testing.assert_allclose(found, best, atol=1e-9)
        ours = udcp.make_oracle("price", loss).best(P, np.full(len(P), b))
        np.testing.assert_allclose((ours * P).sum(axis=1), (theirs * P).sum(axis=1), atol=1e-9)
        # The same labels, but for those without mass, which RAC takes along where they cost nothing more.
        same = ((ours == theirs) | (P == 0)).all(axis=1)
        assert same.mean() > 0.9  # ties between sets of one value and mass aside
    assert rac.certificate(losses, masks[5]) == loss.batch(masks[5:6])[0]


def test_class_similarity_pays_a_fee_outside_the_group_of_the_likeliest(load: Any) -> None:
    fargion, same = load("rivals.fargion"), load("rivals").same_group
    groups = np.array([0, 0, 1, 1, 2])
    P = rows(5, 12)
    for p, plain, by_mass in zip(
        P, fargion.scores(P, same(groups), 0.2), fargion.mass_scores(P, groups, 0.2), strict=True
    ):
        top = int(p.argmax())
        rank = np.argsort(-p, kind="stable").tolist()
        for y in range(5):
            assert plain[y] == pytest.approx(1 - p[y] + 0.2 * (groups[y] != groups[top]))
            above = rank[: rank.index(y)]
            assert by_mass[y] == pytest.approx(1 - p[y] + 0.2 * sum(p[z] for z in above if groups[z] != groups[y]))
    lac = udcp.make_oracle("lac", udcp.loads("labels 0..4  loss l = size")).scores(P)
    assert np.allclose(fargion.scores(P, same(groups), 0.0), 1 + lac)


@pytest.mark.slow  # as a kernel of the benchmark is compiled
@pytest.mark.parametrize("most", [1, 2, 3])
def test_structured_sets_are_the_fewest_labels_of_so_many_nodes(load: Any, most: int) -> None:
    loss = udcp.loads(f"labels 0..6  {TREE}  loss l = nodes(h)")
    (tree,) = loss.hierarchies
    P = rows(7, 16)
    rival = load("rivals.structured").Structured(P, tree, most)
    leaves = [frozenset(tree.members(v).tolist()) for v in range(len(tree.names))]
    unions = {frozenset().union(*some) for m in range(most + 1) for some in combinations(leaves, m)}
    for tau in (0.0, 0.3, 0.55, 0.9, 0.999):
        for p, mask in zip(P, rival.at(tau), strict=True):
            found = frozenset(np.flatnonzero(mask).tolist())
            assert found in unions
            assert sum(p[list(found)]) >= tau - 1e-9
            assert len(found) == min(len(s) for s in unions if sum(p[y] for y in s) >= tau - 1e-12)


@pytest.mark.slow
def test_structured_sets_are_the_same_for_one_level_and_for_all_at_once(load: Any) -> None:
    (tree,) = udcp.loads(f"labels 0..6  {TREE}  loss l = nodes(h)").hierarchies
    structured, P = load("rivals.structured"), rows(7)
    rival = structured.Structured(P, tree, 2)
    for level in structured.GRID[::5].tolist():
        alone = structured._sets(rival.P, np.array([level]), *rival.tree, 2)[0]
        np.testing.assert_array_equal(rival.at(level), alone)


@pytest.mark.slow
def test_structured_prediction_is_a_loss_of_ours(load: Any) -> None:
    """At one price of mass: fewest labels with at most two nodes."""
    loss = udcp.loads(f"labels 0..6  {TREE}  loss l = size + 100 * (nodes(h) >= 3)")
    P = rows(7, 16)
    ours = udcp.make_oracle("price", loss).best(P, np.full(len(P), 6.0))
    rival = load("rivals.structured").Structured(P, loss.hierarchies[0], 2)
    for p, mask in zip(P, ours, strict=True):
        theirs = load("rivals.structured").Structured(p[None], loss.hierarchies[0], 2).at(float(p[mask].sum()))[0]
        assert theirs.sum() == mask.sum(), (p, mask, theirs)
    assert rival.at(0.5).any()


def test_stratcp_orders_by_likeness_among_the_likeliest(load: Any) -> None:
    stratcp = load("rivals.stratcp")
    similarity = np.array([[1, 0, 0.9, 0.1], [0, 1, 0, 0], [0.9, 0, 1, 0], [0.1, 0, 0, 1.0]])
    p = np.array([0.4, 0.3, 0.05, 0.25])
    assert stratcp.order(p, similarity) == [0, 2, 3, 1]
    assert stratcp.order(p, similarity, most=2) == [0, 3, 2, 1]
    assert stratcp.order(p, similarity, most=1) == [0, 1, 3, 2]
    np.testing.assert_allclose(stratcp.scores(p[None], similarity)[0], [0.0, 1.0, 0.45, 0.7])


def test_clusters_share_thresholds_and_cover(load: Any) -> None:
    clustered = load("rivals.clustered")
    rng = np.random.default_rng(0)
    assert clustered.quantile(np.array([1.0, 2.0, 3.0]), 0.75) == 3.0
    assert clustered.quantile(np.array([1.0, 2.0, 3.0]), 0.76) == np.inf
    points = np.concatenate([rng.normal(0, 0.1, (9, 2)), rng.normal(3, 0.1, (7, 2))])
    near = clustered.k_means(points, np.ones(16), 2, rng)
    assert len(set(near[:9].tolist())) == 1 != len(set(near.tolist()))
    y = rng.integers(0, 20, 8000)
    easy = np.where(y < 10, 6.0, 1.5)
    z = rng.normal(size=(8000, 20))
    z[np.arange(8000), y] += easy
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    rival = clustered.Clustered(P[4000:], P[:4000], y[:4000], 0.1, rng)
    assert rival.cluster.max() >= 1
    assert not set(rival.cluster[:10].tolist()) & set(rival.cluster[10:].tolist())
    covered = rival.at(0.9)[np.arange(4000), y[4000:]]
    assert abs(covered.mean() - 0.9) < 0.03
    assert min(covered[y[4000:] == c].mean() for c in range(20)) > 0.8


@pytest.mark.parametrize(
    "tried",
    [("mapie", "crepes", "puncc"), pytest.param(("torchcp",), marks=pytest.mark.slow)],  # which imports torch first
    ids=" ".join,
)
def test_a_library_that_fails_is_named_and_the_others_go_on(
    load: Any, monkeypatch: pytest.MonkeyPatch, tried: tuple[str, ...]
) -> None:
    """Without an environment of its own a library is not there, and its process ends at once."""
    libraries = load("rivals.libraries")
    monkeypatch.setattr(libraries, "environment", lambda folder, library: Path(sys.executable))
    monkeypatch.setenv("PYTHONPATH", "")
    P, y = rows(5), np.arange(40) % 5
    with libraries.Asked(FOLDER, P, y, P) as asked:
        absent = [library for library in tried if find_spec(MODULES[library]) is None]
        for library in absent:
            with pytest.raises(libraries.Refused, match=f"{libraries.NAMES[library]}, lac at level 0.9: it ended"):
                libraries.Library(asked, library, "lac").at(0.9)


def test_how_a_library_is_asked(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a stand-in for the process: sets by level, an error by its words, each level asked for once."""
    worker = """
import sys, numpy as np
Q = np.load(sys.argv[2])["Q"]
for line in sys.stdin:
    method, level, file = line.rstrip().split("\\t")
    if method == "raps":
        print("ValueError: too few", flush=True)
        continue
    np.save(file, np.packbits(Q >= 1 - float(level), axis=1))
    print(0.25, flush=True)
"""
    libraries = load("rivals.libraries")
    (tmp_path / "library_worker.py").write_text(worker, encoding="utf-8")
    monkeypatch.setattr(libraries, "__file__", str(tmp_path / "libraries.py"))
    monkeypatch.setattr(libraries, "environment", lambda folder, library: Path(sys.executable))
    P, y = rows(11), np.arange(40) % 11
    with libraries.Asked(FOLDER, P, y, P) as asked:
        found = libraries.Library(asked, "mapie", "lac")
        for level in (0.6, 0.9, 0.6):
            np.testing.assert_array_equal(found.at(level), P.astype(np.float32) >= 1 - level)
        assert len(asked._held) == 2
        assert asked.ms_a_row("mapie", "lac") == 1000 * 0.25 / 40
        with pytest.raises(libraries.Refused, match=r"MAPIE, raps at level 0\.9: ValueError: too few"):
            asked.sets("mapie", "raps", 0.9)


@pytest.fixture
def digits(load: Any) -> Any:
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    return dict(load("dominance_cases").real(quick=True))["digits, C = 1: shapes"]()


def test_a_temperature_is_fitted_on_rows_that_are_not_judged(load: Any, digits: Any) -> None:
    """The judged rows replaced, it stays the same; the others replaced, it does not. So with the repair."""
    cases = load("rivals_cases")
    T, repair = cases.fitted(digits)[1], cases.repaired(digits).repair.as_dict()
    some_wrong = np.where(np.arange(len(digits.tuning_y)) % 10, digits.tuning_y, 0)
    for changes, same in (({"P": digits.P[::-1], "y": digits.y * 0}, True), ({"tuning_y": some_wrong}, False)):
        changed = replace(digits, **changes)
        assert (cases.fitted(changed)[1] == T) is same
        assert (cases.repaired(changed).repair.as_dict() == repair) is same


def test_rivals_have_the_power_of_p_that_is_likeliest(load: Any, digits: Any) -> None:
    state, T = load("rivals_cases").fitted(digits)

    def scaled(p: Any, T: float) -> Any:
        powers = p ** (1 / T)
        return powers / powers.sum(axis=1, keepdims=True)

    def likelihood(T: float) -> float:
        truth = scaled(digits.tuning, T)[np.arange(len(digits.tuning)), digits.tuning_y]
        return float(np.log(truth).mean())

    assert likelihood(T) > max(likelihood(T * 0.98), likelihood(T * 1.02), likelihood(1.0))
    np.testing.assert_allclose(state.P, scaled(digits.P, T), rtol=1e-9)
    np.testing.assert_allclose(state.tuning, scaled(digits.tuning, T), rtol=1e-9)
    assert state.y is digits.y


def test_price_has_the_repaired_p_and_rivals_the_other_or_the_same(load: Any) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    problem = dict(load("rivals_cases").problems(400))["digits: shapes"]()
    family = _script().price(problem)
    expected = udcp.make_oracle("price", problem.case.loss).scores(problem.repaired.P)
    np.testing.assert_array_equal(family.scores, expected)
    assert problem.all_repaired().case is problem.repaired
    assert not np.array_equal(problem.case.P, problem.repaired.P)


def test_the_page_shows_what_was_measured(load: Any) -> None:
    """And says by name where a rival is cheaper than `price`: nowhere, but on another rival's own loss."""
    results = FOLDER / "results"
    data = json.loads((results / "rivals.json").read_text(encoding="utf-8"))
    script = _script()
    assert (results / "rivals.md").read_text(encoding="utf-8") == script.report(data)
    for row in data["rows"]:
        found = [*row["methods"], *row["repaired"]]
        for one in found:
            unmatched = one["method"] in script.LIBRARIES and one["coverage"] > 1 - row["alpha"]  # shown in brackets
            assert unmatched or one["coverage"] == pytest.approx(1 - row["alpha"], abs=2e-3), (row["case"], one)
        for one in found:
            if row["own"] in (None, "pas", one["method"]):
                assert one["verdict"] != "cheaper", (row["case"], one)


def _script() -> Any:
    """benchmarks/rivals.py, whose name is also that of the folder beside it."""
    spec = spec_from_file_location("rivals_script", FOLDER / "rivals.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["rivals_script"] = module
    spec.loader.exec_module(module)
    return module
