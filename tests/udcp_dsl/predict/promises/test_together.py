"""Promises in combination: each keeps its law through the predictor, is saved and loaded, and changes no score."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check.coverage import Problem
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.stages.repair import tempered

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = udcp.loads(
    "labels {a, b, c, d}  costs harm {a: 4, b: 2, c: 1, d: 0.5}  category g {a, b}  category h {c, d} "
    "loss l = size + 3 * (any(g) and any(h))"
)
NAMES = np.array(LOSS.labels)

TOGETHER: list[dict[str, Any]] = [
    {"conditional": "difficulty"},
    {"conditional": "difficulty", "bins": 2, "alpha": 0.1, "confidence": 0.9, "simultaneous": True},
    {"conditional": "difficulty", "repair": "temperature", "nonempty": True},
    {"conditional": "difficulty", "randomize": True, "repair": udcp.Repair(1 / 1.5)},
    {"conditional": "class", "alpha": 0.1, "confidence": 0.8},
    {"conditional": "group", "alpha": 0.1, "confidence": 0.8, "pool": True},
    {"risk": "harm", "alpha": [0.3, 1.2], "conditional": "difficulty", "bins": 3, "repair": "temperature"},
    {"risk": "harm", "alpha": 0.3, "conditional": "group"},
    {"risk": "harm", "alpha": 0.3, "nonempty": True},
    {"confidence": 0.95, "alpha": [0.1, 0.3], "repair": "temperature"},
]


def drawn(n: int, seed: int, kind: str = "overconfident") -> tuple[np.ndarray, np.ndarray]:
    P, y = Problem.generated(4, np.random.default_rng(9), kind=kind).draw(n, np.random.default_rng(seed))
    return P, NAMES[y]


# With `price`, which has anchors, and with one of the two that have none; in the slow run with both.
WITH_ORACLES = [
    pytest.param(oracle, settings, marks=pytest.mark.slow if oracle == ("lac", "base")[i % 2] else ())
    for i, settings in enumerate(TOGETHER)
    for oracle in ("price", "lac", "base")
]


@pytest.mark.parametrize(("oracle", "settings"), WITH_ORACLES, ids=str)
def test_saved_and_loaded_they_give_the_same_sets(settings: dict[str, Any], oracle: str, tmp_path: Path) -> None:
    several = oracle == "price" and isinstance(settings.get("alpha"), list)
    P, y = drawn(400, 0)
    groups = {"groups": ["g", "h"] * 200} if settings.get("conditional") == "group" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = udcp.SetPredictor(LOSS, oracle, **settings).calibrate(P, y, **groups)
        predictor.save(tmp_path / "p.json")
        again = udcp.SetPredictor.load(tmp_path / "p.json")
        assert again.promise == predictor.promise
        for alpha in predictor.alphas:
            one, other = (x.predict_set(P, alpha=alpha, **groups) for x in (predictor, again))
            np.testing.assert_array_equal(one.mask, other.mask)
            assert 0 < one.sizes.mean() < 4
        assert (predictor.anchors is not None) == (oracle == "price")
        assert not several or predictor.anchors is not None
        # A part of the rows gives the part of the sets.
        part = predictor.predict_set(
            P[5:9], alpha=predictor.alphas[-1], **({"groups": ["h", "g"] * 2} if groups else {})
        )
        np.testing.assert_array_equal(part.mask, one.mask[5:9])
        # Calibrating again starts afresh.
        np.testing.assert_array_equal(
            again.calibrate(P, y, **groups).predict_set(P, alpha=again.alphas[-1], **groups).mask, one.mask
        )


def test_a_change_of_what_is_promised_is_noticed(tmp_path: Path) -> None:
    from udcp_dsl.predict.saved import _hash

    P, y = drawn(200, 1)
    file = tmp_path / "p.json"
    settings = {"alpha": 0.1, "conditional": "difficulty", "confidence": 0.8, "repair": udcp.Repair(0.5)}
    udcp.SetPredictor(LOSS, "lac", **settings).calibrate(P, y).save(file)
    whole = json.loads(file.read_text())
    for change in (
        lambda c: c["promise"].update(confidence="0.999999999999"),  # more than its rows allow
        lambda c: c["promise"].update(conditional=None, bins=None),
        lambda c: c["promise"].update(conditional="class", bins=None),
        lambda c: c["promise"].update(repair="hot"),
        lambda c: c["stages"][0]["repair"].update(exponent=30.0),
        lambda c: c["stages"][0].update(total=-1),
        lambda c: c["stages"][1].update(edges=c["stages"][1]["edges"][::-1]),
        lambda c: c["stages"][1].update(edges=c["stages"][1]["edges"][:1]),
        lambda c: c["stages"].pop(),
        lambda c: c["promise"].update(risk="harm"),
    ):
        content = json.loads(json.dumps(whole))
        change(content)
        content["sha256"] = _hash(content)
        file.write_text(json.dumps(content))
        with pytest.raises(InputError):
            udcp.SetPredictor.load(file)
    file.write_text(json.dumps(whole))
    udcp.SetPredictor.load(file)


def test_difficulty_is_the_highest_probability_at_the_temperature() -> None:
    P, y = drawn(200, 2)
    predictor = udcp.SetPredictor(
        LOSS, "lac", conditional="difficulty", repair=udcp.Repair(1 / 3.0), alpha=0.2
    ).calibrate(P, y)
    edges = predictor.fitted.context.strata.edges
    own = np.setdiff1d(np.arange(200), predictor.threshold_rows(predictor.rows(P, y)))
    v = np.sort(tempered(P[own], 3.0).max(axis=1))
    assert len(own) == 40
    assert edges == tuple(v[[9, 19, 29]])
    # And under a risk that of p, not of w p.
    predictor = udcp.SetPredictor(LOSS, "lac", conditional="difficulty", risk="harm", alpha=0.5).calibrate(P, y)
    assert predictor.fitted.context.strata.edges == tuple(np.sort(P[own].max(axis=1))[[9, 19, 29]])


def test_edges_are_those_of_the_rows_of_the_repair() -> None:
    P, y = drawn(800, 3)
    predictor = udcp.SetPredictor(LOSS, "lac", conditional="difficulty", alpha=0.2).calibrate(P, y)
    assert [stage.rows_used for stage in predictor.fitted.stages] == [160, 0]
    own = np.setdiff1d(np.arange(800), predictor.threshold_rows(predictor.rows(P, y)))
    v = np.sort(predictor.repaired(P[own]).max(axis=1))
    assert len(own) == 160
    assert predictor.fitted.context.strata.edges == tuple(v[[39, 79, 119]])


def test_every_bin_has_its_anchor() -> None:
    P, y = drawn(800, 3)
    predictor = udcp.SetPredictor(LOSS, "price", conditional="difficulty", alpha=0.2, repair=None).calibrate(P, y)
    assert predictor.anchors is not None
    (anchor,) = predictor.anchors.values()
    assert anchor.n == 160  # a quarter of what the edges leave
    assert list(anchor.by_stratum) == list(predictor.fitted.context.strata.names)
    assert len(set(anchor.by_stratum.values())) == 4


def by_quarter(oracle: str, draws: int, n: int, kind: str, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Hits and points in each quarter, by rank among the n + 1 points, of one fresh row a draw."""
    hits, points = np.zeros(4), np.zeros(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(draws):
            P, y = drawn(n + 1, 1000 + seed, kind)
            predictor = udcp.SetPredictor(LOSS, oracle, alpha=0.2, conditional="difficulty", **settings)
            mask = predictor.calibrate(P[:-1], y[:-1]).predict_set(P[-1:]).mask
            v = P.max(axis=1)
            b = int(np.searchsorted([b * (n + 1) // 4 for b in (1, 2, 3)], 1 + (v[:-1] < v[-1]).sum(), side="left"))
            points[b] += 1
            hits[b] += mask[0, LOSS.labels.index(y[-1])]
    return hits, points


SLOW = pytest.mark.slow


@pytest.mark.parametrize("oracle", ["lac", *(pytest.param(x, marks=SLOW) for x in ("price", "base", "greedy"))])
@pytest.mark.parametrize(
    "kind", ["overconfident", "certain", *(pytest.param(x, marks=SLOW) for x in ("saturated", "coarse"))]
)
def test_every_quarter_is_covered(kind: str, oracle: str, sizes: Sizes) -> None:
    hits, points = by_quarter(oracle, sizes.draws, 39, kind)
    for h, m in zip(hits[points > 0], points[points > 0], strict=True):
        assert h / m > 0.8 - 4 * np.sqrt(0.16 / m)


def test_confidence_through_the_predictor(sizes: Sizes) -> None:
    """Of draws of 100 rows with alpha 0.2, the share whose predictor covers 0.8 of very many fresh rows."""
    fresh, truth = drawn(4000, 77, "noisy")
    places = np.array([LOSS.labels.index(x) for x in truth])
    reached = []
    for seed in range(sizes.repeats):
        P, y = drawn(100, 5000 + seed, "noisy")
        predictor = udcp.SetPredictor(LOSS, "lac", alpha=0.2, confidence=0.9).calibrate(P, y)
        reached.append(predictor.predict_set(fresh).mask[np.arange(4000), places].mean() >= 0.8 - 0.006)
    assert np.mean(reached) > 0.9 - 4 * np.sqrt(0.09 / sizes.repeats)
