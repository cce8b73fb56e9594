"""`udcp monitor`: alarms and the exit status, state that is gone on with, the figure, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl

Udcp = Callable[..., Result]
LOSS = "labels { cat, dog, wolf }  loss pets = size"


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


@pytest.fixture(autouse=True)
def saved(folder: Path) -> udcp_dsl.SetPredictor:
    for name, n, seed in (("new", 300, 1), ("later", 200, 2)):
        P, y = rows(n, seed)
        np.save(f"{name}.npy", P)
        np.save(f"{name}_y.npy", y)
        np.save(f"{name}_wrong.npy", P.argmin(axis=1))
    predictor = udcp_dsl.SetPredictor(udcp_dsl.loads(LOSS), "lac", repair=None).calibrate(*rows(400, 0))
    predictor.save("pets.json")
    return predictor


def test_rows_like_those_of_calibration_raise_no_alarm(udcp: Udcp) -> None:
    result = udcp("monitor", "pets.json", "--probs", "new.npy", "--truth", "new_y.npy")
    assert result.exit_code == 0, result.stderr
    assert "pets by lac, alpha 0.1: 300 rows watched at level 0.05" in result.stdout
    assert "no alarm" in result.stdout


def test_an_alarm_has_its_row_its_reason_and_exit_status_1(udcp: Udcp) -> None:
    result = udcp("monitor", "pets.json", "--probs", "new.npy", "--truth", "new_wrong.npy")
    assert result.exit_code == 1
    assert "ALARM: row " in result.stdout
    assert "more true labels are missed" in result.stdout
    result = udcp(
        "monitor", "pets.json", "--probs", "new.npy", "--truth", "new_wrong.npy", "--json", "--watch", "misses"
    )
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["ok"] is False
    assert (data["rows"], data["watch"], data["alarms"][0]["why"]) == (300, "misses", "misses")
    assert data["streams"][0]["alarm"] == data["alarms"][0]


def test_state_is_gone_on_with(udcp: Udcp, saved: udcp_dsl.SetPredictor) -> None:
    first = ("monitor", "pets.json", "--probs", "new.npy", "--truth", "new_y.npy", "--state", "watch.json")
    assert udcp(*first, "--level", "0.01").exit_code == 0
    more = ("monitor", "pets.json", "--probs", "later.npy", "--state", "watch.json")
    data = json.loads(udcp(*more, "--truth", "later_y.npy", "--json").stdout)
    assert (data["rows"], data["level"], data["state"]) == (500, 0.01, "watch.json")
    whole = udcp_dsl.Monitor(saved, level=0.01)
    for name in ("new", "later"):
        whole.update(np.load(f"{name}.npy"), np.load(f"{name}_y.npy"))
    assert data["streams"][0]["evidence"] == pytest.approx(whole.streams[0].evidence)
    result = udcp(*more, "--truth", "later_y.npy", "--level", "0.05")
    assert result.exit_code == 2
    assert "--level differs from the monitor in --state" in result.stderr
    assert udcp(*more, "--truth", "later_wrong.npy").exit_code == 1
    result = udcp(*more, "--truth", "later_y.npy")
    assert result.exit_code == 1  # it stays raised
    assert "alarm before: row " in result.stdout


def test_groups_and_ids_say_where(udcp: Udcp) -> None:
    P, y = rows(400, 0)
    sites = np.where(np.arange(400) % 2, "north", "south")
    predictor = udcp_dsl.SetPredictor(udcp_dsl.loads(LOSS), "lac", conditional="group")
    predictor.calibrate(P, y, groups=sites).save("sites.json")
    Path("sites.txt").write_text("\n".join(sites[:300]))
    Path("ids.txt").write_text("\n".join(f"case-{i}" for i in range(300)))
    truth = np.where(sites[:300] == "north", np.load("new_wrong.npy"), np.load("new_y.npy"))
    np.save("mixed.npy", truth)
    options = ("--probs", "new.npy", "--truth", "mixed.npy", "--group", "sites.txt", "--id", "ids.txt")
    data = json.loads(udcp("monitor", "sites.json", *options, "--json").stdout)
    assert "north" in {alarm["where"] for alarm in data["alarms"]}
    assert "south" not in {alarm["where"] for alarm in data["alarms"]}
    assert all(alarm["id"] == f"case-{alarm['row'] - 1}" for alarm in data["alarms"])


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_figure_is_written(udcp: Udcp, ending: str) -> None:
    pytest.importorskip("matplotlib")
    result = udcp("monitor", "pets.json", "--probs", "new.npy", "--truth", "new_y.npy", "--plot", f"watch.{ending}")
    assert result.exit_code == 0, result.stderr
    assert Path(f"watch.{ending}").stat().st_size > 1000


def test_what_is_refused(udcp: Udcp, saved: udcp_dsl.SetPredictor) -> None:
    good = ("--probs", "new.npy", "--truth", "new_y.npy")
    fitted = replace(saved.fitted, thresholds=replace(saved.fitted.thresholds, scores=None))
    saved.fits = {fitted.alpha: fitted}
    saved.save("old.json")
    Path("other.json").write_text("{}")
    for arguments, message in [
        (("pets.json", *good, "--level", "2"), "level is '2'"),
        (("pets.json", *good, "--alpha", "0.5"), "not calibrated for alpha 0.5"),
        (("pets.json", *good, "--plot", "w.txt"), "unknown extension '.txt'"),
        (("pets.json", *good, "--state", "other.json"), "not a saved monitor"),
        (("old.json", *good), "kept no calibration scores"),
        (("none.json", *good), "no file"),
    ]:
        result = udcp("monitor", *arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
    assert not Path("w.txt").exists()
    assert Path("other.json").read_text() == "{}"
