"""`udcp calibrate`: the file it writes is that of the Python interface, whatever the rows are kept in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl import SetPredictor

Udcp = Callable[..., Result]
LABELS = ["cat", "dog", "wolf", "lynx"]
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 90)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)
NAMES = np.array(LABELS)[Y]
SITES = ["north", "south", "south"] * 30


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    np.save("p.npy", P)
    np.save("y.npy", NAMES)
    np.savez("both.npz", p=P, y=NAMES)
    rows = "".join(
        f"photo{i},{','.join(repr(float(x)) for x in row[[3, 0, 1, 2]])},{LABELS[y]},{site}\n"
        for i, (row, y, site) in enumerate(zip(P, Y, SITES, strict=True))
    )
    Path("rows.csv").write_text(f"photo,lynx,cat,dog,wolf,truth,site\n{rows}")
    Path("truth.csv").write_text("name,other\n" + "".join(f"{LABELS[y]},0\n" for y in Y))
    Path("sites.txt").write_text("\n".join(SITES) + "\n")


def calibrate(udcp: Udcp, *arguments: str, output: str = "out.json") -> Result:
    result = udcp("calibrate", "pets.loss", *arguments, "-o", output)
    assert result.exit_code == 0, result.output
    return result


def expected(*, named: bool = False, **settings: Any) -> SetPredictor:
    """The predictor of the Python interface, from an array or from columns with names."""
    groups = SITES if settings.get("conditional") == "group" else None
    probs = pd.DataFrame(P, columns=LABELS)[["lynx", "cat", "dog", "wolf"]] if named else P
    made = SetPredictor(udcp_dsl.load("pets.loss"), **{"oracle": "lac", **settings})
    return made.calibrate(probs, NAMES, groups=groups)


def same(predictor: SetPredictor, file: str = "out.json") -> bool:
    predictor.save("expected.json")
    return Path(file).read_bytes() == Path("expected.json").read_bytes()


TABLE = ["--probs", "rows.csv", "--id", "photo"]
SOURCES = [
    ["--probs", "p.npy", "--truth", "y.npy"],
    ["--probs", "both.npz:p", "--truth", "both.npz:y"],
    ["--probs", "p.npy", "--truth", "truth.csv:name"],
    [*TABLE, "--truth", "truth", "--ignore", "site"],
    [*TABLE, "--truth", "y.npy", "--ignore", "site", "--ignore", "truth"],
]


@pytest.mark.parametrize("source", SOURCES, ids=" ".join)
def test_the_file_is_that_of_the_python_interface(udcp: Udcp, source: list[str]) -> None:
    result = calibrate(udcp, *source, "--oracle", "lac")
    assert same(expected(named=source[:4] == TABLE))
    assert result.stdout.startswith(
        "out.json: pets by lac, alpha 0.1 (default); accuracy of the likeliest label 60.0%\n"
    )
    assert re.search(r"rows +90 rows\n", result.stdout)
    assert result.stderr == ""


def test_settings(udcp: Udcp) -> None:
    source = ["--probs", "p.npy", "--truth", "y.npy"]
    calibrate(
        udcp, *source, "--oracle", "raps", "--option", "lam=0.2", "--option", "k=1", "--alpha", "0.2", "--alpha", "1/7"
    )
    assert same(expected(oracle="raps", options={"lam": 0.2, "k": 1}, alpha=[0.2, "1/7"]))
    for true in ("true", "True"):
        calibrate(udcp, *source, "--oracle", "price", "--option", f"exact={true}")
        assert same(expected(oracle="price", options={"exact": True}))
    assert re.search("options +exact = True", calibrate(udcp, *source, "--option", "exact=true").stdout)
    assert "options" not in calibrate(udcp, *source, "--option", "exact=false").stdout  # the default
    calibrate(udcp, *source, "--oracle", "lac", "--nonempty", "--conditional", "class", "--pool")
    assert same(expected(nonempty=True, conditional="class", pool=True))
    calibrate(udcp, *source, "--oracle", "lac", "--randomize", "--seed", "4")
    assert same(expected(randomize=True, seed=4))
    calibrate(udcp, *source, "--oracle", "lac", "--param", "weight=5")
    loss = udcp_dsl.load("pets.loss", params={"weight": 5})
    assert same(SetPredictor(loss, "lac").calibrate(P, NAMES))


@pytest.mark.parametrize("group", [["--group", "site"], ["--group", "sites.txt", "--ignore", "site"]])
def test_by_group(udcp: Udcp, group: list[str]) -> None:
    result = calibrate(udcp, *TABLE, "--truth", "truth", *group, "--oracle", "lac")
    assert same(expected(named=True, conditional="group"))
    rows = [line.split() for line in result.stdout.split("\n") if line.split()[:1] == ["0.1"]]
    thresholds: Any = expected(conditional="group").calibrated.thresholds()
    assert rows == [["0.1", site, n, f"{thresholds[site]:.10g}"] for site, n in (("north", "30"), ("south", "60"))]


def test_class_names_are_kept_for_prediction(udcp: Udcp) -> None:
    names = ["lynx", "cat", "dog", "wolf"]
    np.save("q.npy", P[:, [3, 0, 1, 2]])
    calibrate(
        udcp, "--probs", "q.npy", "--truth", "truth.csv:name", "--class-names", ",".join(names), "--oracle", "lac"
    )
    loaded = SetPredictor.load("out.json")
    assert loaded.class_names == tuple(names)
    assert np.array_equal(loaded.predict_set(P[:, [3, 0, 1, 2]]).mask, expected().predict_set(P).mask)
    # Of a table the columns name themselves, and the class names are for the arrays to come.
    calibrate(udcp, *TABLE, "--truth", "truth", "--ignore", "site", "--class-names", ",".join(names), "--oracle", "lac")
    assert SetPredictor.load("out.json").calibrated.thresholds() == expected().calibrated.thresholds()


def test_logits_and_scores(udcp: Udcp) -> None:
    np.save("logits.npy", np.log(P))
    np.save("scores.npy", 3 * P)
    for file, flag in (("logits.npy", "--logits"), ("scores.npy", "--normalize")):
        calibrate(udcp, "--probs", file, "--truth", "y.npy", "--oracle", "lac", flag)
        loaded = SetPredictor.load("out.json")
        assert (loaded.logits, loaded.normalize) == (flag == "--logits", flag == "--normalize")
        assert loaded.calibrated.thresholds() == pytest.approx(expected().calibrated.thresholds())


def test_as_data(udcp: Udcp) -> None:
    result = calibrate(udcp, "--probs", "p.npy", "--truth", "y.npy", "--oracle", "lac", "--alpha", "0.001", "--json")
    data = json.loads(result.stdout)
    assert data["ok"] is True
    assert (data["file"], data["rows"], data["n"], data["oracle"]) == ("out.json", 90, 90, "lac")
    assert data["thresholds"] == [{"alpha": "0.001", "cells": [{"name": None, "n": 90, "threshold": "inf"}]}]
    assert "alpha 0.001 needs 999, but there are 90" in data["warnings"][0]
    assert result.stderr == ""


def test_warnings_are_told_in_terms_of_the_options(udcp: Udcp) -> None:
    result = calibrate(udcp, *TABLE, "--truth", "truth", "--group", "site", "--oracle", "lac", "--alpha", "0.02")
    assert result.stderr.startswith("warning: too few calibration rows: alpha 0.02 needs 49, but group 'north' has 30")
    assert "or --pool" in result.stderr


def test_anchors_are_told_with_the_rows_they_took(udcp: Udcp) -> None:
    text = Path("pets.loss").read_text() + "category tame { cat, dog }\n"
    Path("pets.loss").write_text(text + "loss both = (any(wild) and any(tame)) + 0.1 * size\n")
    shown = calibrate(udcp, *SOURCES[0], "--oracle", "price").stdout
    anchors = SetPredictor.load("out.json").anchors
    assert anchors is not None
    n = next(iter(anchors.values())).n
    assert f" for thresholds, {n:,} for the anchor" in shown
    assert "None" not in shown


def test_a_tuned_lambda(udcp: Udcp) -> None:
    result = calibrate(udcp, "--probs", "p.npy", "--truth", "y.npy", "--oracle", "penalized", "--seed", "1")
    predictor = expected(oracle="penalized", seed=1)
    assert same(predictor)
    assert predictor.tuning is not None
    assert f"lambda {predictor.tuning.best:g} of 0.001, 0.01, 0.1, 1, 10, which cost" in result.stdout
    data = json.loads(
        calibrate(udcp, "--probs", "p.npy", "--truth", "y.npy", "--oracle", "penalized", "--seed", "1", "--json").stdout
    )
    assert data["n"] == 30
    assert data["tuning"]["best"] == data["options"]["lam"] == predictor.tuning.best
    assert data["tuning"]["excess"] == predictor.tuning.excess


def test_a_file_that_is_there_is_replaced(udcp: Udcp) -> None:
    Path("out.json").write_text("old")
    calibrate(udcp, "--probs", "p.npy", "--truth", "y.npy", "--oracle", "lac")
    assert SetPredictor.load("out.json").calibrated.n == 90
    assert not list(Path().glob(".udcp*"))


SOURCE = ["--probs", "p.npy", "--truth", "y.npy", "--oracle", "lac"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SOURCE, "--alpha", "1.5"], "alpha is '1.5': give a number strictly between 0 and 1"),
        ([*SOURCE, "--alpha", "abc"], "between 0 and 1, such as 0.1 or 1/10\n"),
        ([*SOURCE, "--alpha", "0.1", "--alpha", "1/10"], "each once"),
        ([*SOURCE, "--conditional", "group"], "--conditional group needs the group of each row: --group COLUMN"),
        ([*SOURCE, "--conditional", "class", "--group", "sites.txt"], "choose one"),
        ([*SOURCE, "--conditional", "label"], "'label' is not one of 'group', 'class'"),
        ([*SOURCE, "--pool"], "--pool needs --group or"),
        ([*SOURCE, "--nonempty", "--randomize"], "exclude each other"),
        ([*SOURCE, "--group", "site"], "p.npy: an array has no column of groups"),
        ([*SOURCE, "--oracle", "none"], "there is no oracle 'none'"),
        ([*SOURCE, "--seed", "-1"], "seed is -1: give a whole number, 0 or more"),
        (["--probs", "p.npy", "--truth", "truth.csv", "--oracle", "lac"], "has 2 columns (name, other): name one"),
        (["--probs", "p.npy", "--truth", "truth.csv:nmae", "--oracle", "lac"], "no column 'nmae'; did you mean 'name'"),
        (["--probs", "p.npy", "--truth", "sites.txt", "--oracle", "lac"], "'north', which is not a label"),
        (["--probs", "rows.csv", "--truth", "truth", "--oracle", "lac"], "columns 'photo' and 'site' are not labels"),
        (["--probs", "rows.csv", "--truth", "truht", "--oracle", "lac"], "no column 'truht'; did you mean 'truth'"),
        (["--probs", "p.npy", "--oracle", "lac"], "Missing option '--truth'"),
        (["--probs", "p.txt", "--truth", "y.npy", "--oracle", "lac"], "p.txt: unknown extension '.txt'"),
        (["--probs", "y.npy", "--truth", "y.npy", "--oracle", "lac"], "a vector of 90"),
    ],
)
def test_mistakes(udcp: Udcp, arguments: list[str], message: str) -> None:
    result = udcp("calibrate", "pets.loss", *arguments, "-o", "out.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert not Path("out.json").exists()


def test_a_place_that_cannot_be_written_to_is_refused_first(udcp: Udcp) -> None:
    for output, message in (("absent/out.json", "there is no folder 'absent'"), (".", "is a folder, not a file")):
        result = udcp("calibrate", "pets.loss", "--probs", "absent.npy", "--truth", "y.npy", "-o", output)
        assert result.exit_code == 2
        assert message in result.stderr
    assert udcp("calibrate", "pets.loss", *SOURCE).exit_code == 2
