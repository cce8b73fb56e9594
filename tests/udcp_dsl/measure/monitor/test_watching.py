"""The monitor: its level and power by simulation, batches and single rows, saved and resumed, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

import udcp_dsl as udcp
from tests.specs import ANCHORED
from udcp_dsl.measure.monitored import Ranks, Stream, WatchedRows
from udcp_dsl.predict.calibrate.ranks import RankTable

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = "labels { a, b, c }  costs harm { a: 1, default: 2 }  loss l = size"
N, LEVEL = 1000, 0.05


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def watched(calibration: np.ndarray, new: np.ndarray, rng: np.random.Generator, k: int, watch: Any = "both") -> Stream:
    """What a monitor makes of scores, without the predictor that gave them."""
    ranks = Ranks.among(RankTable.of(calibration), k, rng)
    gaps = ranks.places(new, rng.random(len(new)))
    _, p, above_threshold, chance = ranks.after(gaps, rng.random(len(new)))
    rows_seen = WatchedRows(np.arange(1, len(new) + 1), p, above_threshold, chance, above_threshold)
    return Stream(None, LEVEL, watch).after(rows_seen)


def misses_alone(rng: np.random.Generator, n: int, rate: float) -> np.ndarray:
    """Scores that were uniform, with another share of them above 0.9: covered ones are as before."""
    missed = rng.random(n) < rate
    return np.where(missed, 0.9 + 0.1 * rng.random(n), 0.9 * rng.random(n))


def false_alarms(runs: int, length: int, seed: int, law: str) -> int:
    rng = np.random.default_rng(seed)
    draw = {"continuous": lambda m: rng.random(m), "ties": lambda m: rng.random(m).round(1)}[law]
    return sum(watched(draw(N), draw(length), rng, 901).alarm is not None for _ in range(runs))


def found_within(runs: int, quiet: int, after: int, seed: int) -> tuple[int, int]:
    """How many drops from 0.9 to 0.8 are found in time, and how many there are without a false alarm before."""
    rng = np.random.default_rng(seed)
    found = tried = 0
    for _ in range(runs):
        new = np.concatenate([rng.random(quiet), misses_alone(rng, after, 0.2)])
        alarm = watched(rng.random(N), new, rng, 901).alarm
        tried += alarm is None or alarm.row > quiet
        found += alarm is not None and alarm.row > quiet
    return found, tried


@pytest.mark.parametrize("law", ["continuous", "ties"])
@pytest.mark.parametrize("length", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_false_alarms_are_no_more_than_the_level(law: str, length: int, sizes: Sizes) -> None:
    """At the level so many alarms have a chance of 1e-5."""
    assert false_alarms(sizes.repeats, length, 1, law) <= binom(sizes.repeats, LEVEL).isf(1e-5)


@pytest.mark.parametrize(("quiet", "after"), [(0, 400), (1000, 600)])
def test_a_drop_of_coverage_is_found_soon(quiet: int, after: int, sizes: Sizes) -> None:
    """In 95 of 100 runs: at that rate, so few of these have a chance of 1e-5."""
    found, tried = found_within(sizes.repeats, quiet, after, 2)
    assert found >= binom(tried, 0.95).ppf(1e-5)


def test_what_would_not_do_raises_false_alarms(sizes: Sizes) -> None:
    """Why ranks are among all rows so far: against the fixed calibration rows, good predictors fail. At the level so
    many alarms would have a chance of 1e-5."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(sizes.repeats):
        calibration, new = np.sort(rng.random(200)), rng.random(4000)
        p = (len(calibration) - np.searchsorted(calibration, new) + rng.random(len(new))) / (len(calibration) + 1)
        above_threshold = new > calibration[180]
        rows_seen = WatchedRows(np.arange(1, 4001), p, above_threshold, np.full(len(new), 0.1), above_threshold)
        alarms += Stream(None, LEVEL, "both").after(rows_seen).alarm is not None
    assert alarms > binom(sizes.repeats, LEVEL).isf(1e-5)


def predictor(**options: Any) -> udcp.SetPredictor:
    P, y = rows(400, 0)
    groups = np.where(np.arange(400) % 2, "north", "south") if options.get("conditional") == "group" else None
    return udcp.SetPredictor(udcp.loads(LOSS), "lac", **{"repair": None, **options}).calibrate(P, y, groups=groups)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"conditional": "group"},
    {"conditional": "class"},
    {"conditional": "difficulty"},
    {"alpha": 0.1, "confidence": 0.9},
    {"risk": "harm", "alpha": 0.2},
    {"nonempty": True},
    {"randomize": True},
    {"repair": udcp.Repair(1 / 1.5)},
    {"conditional": "group", "pool": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches_single_rows_and_another_day_come_to_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    made = predictor(**options)
    P, y = rows(120, 1)
    groups = np.where(np.arange(120) % 3, "north", "south")

    def give(monitor: udcp.Monitor, part: slice) -> None:
        of = {"groups": groups[part]} if made.conditional == "group" else {}
        monitor.update(P[part], y[part], **of)

    whole = udcp.Monitor(made)
    give(whole, slice(0, 120))
    made.save(tmp_path / "p.json")
    loaded = udcp.SetPredictor.load(tmp_path / "p.json")
    parts = udcp.Monitor(loaded)
    for start in range(0, 60, 10):
        give(parts, slice(start, start + 10))
    parts.save(tmp_path / "m.json")
    parts = udcp.Monitor.load(tmp_path / "m.json", loaded)
    for start in range(60, len(P)):
        give(parts, slice(start, start + 1))
    for a, b in zip(whole.streams, parts.streams, strict=True):
        assert (a.name, a.seen, a.missed) == (b.name, b.seen, b.missed)
        assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-9)
        assert a.course.rows.tolist() == b.course.rows.tolist()
        assert a.expected == pytest.approx(b.expected, nan_ok=True)
    assert json.loads(json.dumps(whole.as_dict()))["rows"] == 120
    kind = made.conditional
    assert len(whole.streams) == {None: 1, "group": 3, "class": 4, "difficulty": 5}[kind]
    assert sum(s.level for s in whole.streams) == pytest.approx(LEVEL)
    mask = made.predict_set(P, groups=groups if kind == "group" else None).mask
    assert whole.streams[0].missed == (~mask[np.arange(120), y]).sum()


def test_an_alarm_says_when_where_and_why() -> None:
    made = predictor(conditional="group")
    monitor = udcp.Monitor(made)
    P, y = rows(600, 2)
    groups = np.where(np.arange(600) % 2, "north", "south")
    assert monitor.update(P, y, groups=groups, ids=[f"day {i}" for i in range(600)]) == ()
    worst = P.argmin(axis=1)
    wrong = np.where(groups == "north", worst, y)
    new = monitor.update(P, wrong, groups=groups, ids=[f"late {i}" for i in range(600)])
    assert {alarm.where for alarm in new} == {None, "north"}
    north = next(alarm for alarm in new if alarm.where == "north")
    assert 600 < north.row < 700
    assert north.id == f"late {north.row - 601}"
    assert north.why == "misses"
    assert north.evidence >= 1 / monitor.streams[1].level
    assert monitor.update(P[:5], worst[:5], groups=groups[:5]) == ()  # the first of a stream counts
    assert monitor.alarms == tuple(sorted(new, key=lambda alarm: alarm.row))
    assert f"row {north.row:,} (id {north.id}), north: more true labels are missed" in str(north)
    assert "alarm at" in str(monitor)
    assert "south" in monitor._repr_html_()
    assert f"alarm at row {new[0].row:,}" in repr(monitor)


def test_a_shift_that_does_not_hurt_is_found_by_ranks_alone() -> None:
    made = predictor()
    P = np.tile([[0.98, 0.01, 0.01]], (300, 1))
    found = {watch: udcp.Monitor(made, watch=watch) for watch in ("both", "misses", "ranks")}  # type: ignore[arg-type]
    for monitor in found.values():
        monitor.update(P, np.zeros(300, dtype=int))
    assert not found["misses"].alarms
    assert found["both"].alarms[0].why == found["ranks"].alarms[0].why == "ranks"


def test_rows_of_new_groups_are_counted_and_not_tested() -> None:
    monitor = udcp.Monitor(predictor(conditional="group", pool=True))
    P, y = rows(10, 3)
    monitor.update(P, y, groups=["west"] * 4 + ["north"] * 6)
    assert (monitor.rows, monitor.untested, monitor.streams[0].seen) == (10, 4, 6)
    assert "4 rows of groups without calibration rows" in str(monitor)


def test_one_row_and_none() -> None:
    monitor = udcp.Monitor(predictor())
    assert monitor.update(np.array([0.7, 0.2, 0.1]), 0) == ()
    assert monitor.update(np.array([0.7, 0.2, 0.1]), "a") == ()
    assert monitor.update(np.empty((0, 3)), []) == ()
    assert monitor.rows == 2


def test_anchored_scores_are_watched_at_their_alpha() -> None:
    P, y = rows(300, 4)
    made = udcp.SetPredictor(ANCHORED, "price", alpha=[0.1, 0.3]).calibrate(P, y)
    assert made.anchors is not None
    own = [fitted.thresholds.scores for fitted in made.fits.values()]
    assert own[0] is not own[1]
    with pytest.raises(udcp.InputError, match="several alphas: give alpha"):
        udcp.Monitor(made)
    new, truth = rows(200, 5)
    for alpha in ("0.1", "0.3"):
        monitor = udcp.Monitor(made, alpha=alpha)
        monitor.update(new, truth)
        mask = made.predict_set(new, alpha=alpha).mask
        assert monitor.streams[0].missed == (~mask[np.arange(200), truth]).sum()


def test_a_million_scores_take_seconds() -> None:
    """By counting what is done, not by the clock: the state does not grow with the rows."""
    rng = np.random.default_rng(8)
    stream = watched(rng.random(5000), rng.random(60_000), rng, 4501)
    assert len(stream.course.rows) <= 1000
    assert stream.seen == 60_000


def test_refusals(tmp_path: Path) -> None:
    made = predictor()
    with pytest.raises(TypeError, match="not a SetPredictor"):
        udcp.Monitor("x")  # type: ignore[arg-type]
    with pytest.raises(udcp.InputError, match="not calibrated"):
        udcp.Monitor(udcp.SetPredictor(udcp.loads(LOSS), "lac"))
    for options, message in [
        ({"level": 1.0}, "level is 1.0"),
        ({"level": "no"}, "level is 'no'"),
        ({"watch": "all"}, "watch is 'all': choose 'both', 'misses', 'ranks'"),
        ({"seed": -1}, "seed is -1"),
        ({"alpha": 0.2}, "not calibrated for alpha 0.2"),
    ]:
        with pytest.raises(udcp.InputError, match=message):
            udcp.Monitor(made, **options)  # type: ignore[arg-type]
    with pytest.raises(udcp.InputError, match="harm is bounded"):
        udcp.Monitor(predictor(risk="harm", alpha=0.2), watch="misses")
    P, y = rows(30, 0)
    weighted = udcp.SetPredictor(udcp.loads(LOSS), "lac", alpha=0.3).calibrate(P, y, weights=np.ones(30))
    with pytest.raises(udcp.InputError, match="calibrated with weights"):
        udcp.Monitor(weighted)
    made.fits = {made.fitted.alpha: replace(made.fitted, thresholds=replace(made.fitted.thresholds, scores=None))}
    with pytest.raises(udcp.InputError, match=r"before 0\.2\.0.*calibrate and save again"):
        udcp.Monitor(made)
    monitor = udcp.Monitor(predictor())
    with pytest.raises(udcp.InputError, match="true label"):
        monitor.update(P)
    with pytest.raises(udcp.InputError, match="needs the group"):
        udcp.Monitor(predictor(conditional="group")).update(P, y)
    before = repr(monitor.as_dict())
    with pytest.raises(udcp.InputError, match="row 1"):
        monitor.update([[1, 0, 0], [0, float("nan"), 0]], [0, 1])
    assert repr(monitor.as_dict()) == before  # nothing was taken


def test_saved_monitors_that_are_refused(tmp_path: Path) -> None:
    made = predictor()
    monitor = udcp.Monitor(made)
    monitor.update(*rows(20, 1))
    monitor.save(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    with pytest.raises(udcp.InputError, match="another predictor"):
        udcp.Monitor.load(tmp_path / "m.json", udcp.SetPredictor(made.loss, "lac").calibrate(*rows(400, 9)))
    with pytest.raises(udcp.InputError, match="no file"):
        udcp.Monitor.load(tmp_path / "none.json", made)
    for changed in (text.replace('"rows": 20', '"rows": 21'), text[:-40], "[]", "{}"):
        (tmp_path / "m.json").write_text(changed)
        with pytest.raises(udcp.InputError, match="not a saved monitor"):
            udcp.Monitor.load(tmp_path / "m.json", made)


def test_the_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    monitor = udcp.Monitor(predictor(conditional="class"))
    with pytest.raises(udcp.InputError, match="the monitor has seen no row"):
        monitor.plot()
    P, y = rows(300, 6)
    monitor.update(P, (y + 1) % 3)
    figure = monitor.plot()
    above, below = figure.axes
    assert above.get_lines()[0].get_label() == "all rows"
    all_rows = below.get_lines()[0]
    assert all_rows.get_ydata()[-1] == pytest.approx(1 - monitor.streams[0].missed / 300)
