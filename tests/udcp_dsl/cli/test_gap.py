"""`udcp gap`: the cost that oracles leave against sets proved optimal."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from tests.specs import hard_to_solve
from udcp_dsl.loss import load, loads
from udcp_dsl.measure.gap import prefixes
from udcp_dsl.predict.oracle import make_oracle
from udcp_dsl.rows.rows import Rows

Udcp = Callable[..., Result]


@pytest.fixture
def probs(folder: Path) -> str:
    np.save(folder / "p.npy", np.random.default_rng(0).dirichlet(np.full(4, 0.6), size=30))
    return "p.npy"


def test_optima_and_gaps_are_those_of_brute_force(udcp: Udcp, probs: str, folder: Path) -> None:
    arguments = ["--probs", probs, "--oracle", "greedy", "--oracle", "base", "--alpha", "0.3", "--json"]
    result = udcp("gap", "pets.loss", *arguments)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    loss = load("pets.loss")
    P = np.load(probs)
    assert (data["ok"], data["n"], data["alpha"], data["unproved"]) == (True, 30, "0.3", 0)
    sets = [set(s) for k in range(5) for s in itertools.combinations(range(4), k)]
    for row, p in zip(data["rows"], P, strict=True):
        t = 0.7 * math.fsum(p)
        best = min(loss.interpret_positions(s) for s in sets if math.fsum(p[list(s)]) >= t)
        assert row["optimum"] == pytest.approx(best, abs=1e-12)
        assert row["proved"]
        falling = np.argsort(-p)
        count = next(k for k in range(1, 5) if math.fsum(p[falling[:k]]) >= t)
        assert row["costs"]["base"] == pytest.approx(loss.interpret_positions(falling[:count].tolist()), abs=1e-12)
        assert min(row["costs"].values()) >= best - 1e-12
    greedy, base = data["oracles"]
    assert (greedy["oracle"], base["oracle"]) == ("greedy", "base")
    gaps = [row["costs"]["base"] - row["optimum"] for row in data["rows"]]
    assert base["mean_gap"] == pytest.approx(np.mean(gaps))
    assert base["mean_gap"] > 0
    assert base["largest_gap"] == pytest.approx(max(gaps))
    assert base["relative_gap"] == pytest.approx(np.mean(gaps) / data["mean_optimum"])
    assert base["optimal_rows"] == sum(gap < 1e-9 for gap in gaps)


def test_text(udcp: Udcp, probs: str, folder: Path) -> None:
    (folder / "ids.txt").write_text("\n".join(f"pet{i}" for i in range(30)))
    arguments = ["--probs", probs, "--sample", "20", "--alpha", "0.3", "--oracle", "base", "--id", "ids.txt"]
    result = udcp("gap", "pets.loss", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("pets over 20 of 30 rows, sets of mass 0.7: the optimum costs ")
    assert lines[2].split() == ["oracle", "mean", "cost", "mean", "size", "gap", "of", "optimum", "largest", "optimal"]
    assert lines[4].startswith("base ")
    worst = lines.index("rows with the largest gaps, cost:")
    assert lines[worst + 1].split() == ["row", "id", "optimum", "base"]
    row, name, *_ = lines[worst + 3].split()
    assert name == f"pet{row}"


def test_a_sample_depends_on_its_seed_alone(udcp: Udcp, probs: str) -> None:
    def rows(*more: str) -> list[int]:
        result = udcp("gap", "pets.loss", "--probs", probs, "--oracle", "base", "--sample", "5", "--json", *more)
        return [row["row"] for row in json.loads(result.stdout)["rows"]]

    assert rows() == rows() == sorted(set(rows()))
    assert rows() != rows("--seed", "1")


def test_the_optimal_oracle_leaves_nothing(udcp: Udcp, probs: str) -> None:
    arguments = ["--loss", "plain", "--probs", probs, "--oracle", "lac", "--json"]
    data = json.loads(udcp("gap", "pets.loss", *arguments).stdout)
    assert (data["oracles"][0]["mean_gap"], data["oracles"][0]["optimal_rows"]) == (0.0, 30)


def test_a_prefix_that_has_the_mass_by_a_hair_is_taken() -> None:
    oracle = make_oracle("lac", loads("labels 0..2 loss l = size"))
    P = np.array([[0.9, 0.1, 0.0], [0.9 - 2**-53, 0.1 + 2**-53, 0.0], [0.0, 0.4, 0.6]])
    rows = Rows(oracle.loss.labels, P)
    assert prefixes(oracle, rows, Fraction(9, 10)).sum(axis=1).tolist() == [1, 2, 2]


def test_resume_takes_up_finished_rows(udcp: Udcp, probs: str, folder: Path) -> None:
    arguments = ["gap", "pets.loss", "--probs", probs, "--oracle", "base", "--resume", "run.c", "--workers", "1"]
    first = udcp(*arguments)
    kept = (folder / "run.c").read_bytes()
    assert kept.count(b"\n") == 31
    assert udcp(*arguments).stdout == first.stdout
    assert (folder / "run.c").read_bytes() == kept
    other = udcp(*arguments, "--alpha", "0.2")
    assert other.exit_code == 2
    assert "belongs to another loss, other options" in other.stderr


def test_what_is_not_proved_is_counted_and_left_out(udcp: Udcp, folder: Path) -> None:
    (folder / "hard.loss").write_text(hard_to_solve().source.text)
    np.save(folder / "q.npy", np.full((2, 60), 1 / 60))
    arguments = ["gap", "hard.loss", "--probs", "q.npy", "--oracle", "base", "--time-limit", "0.001", "--alpha", "0.5"]
    result = udcp(*arguments)
    assert result.exit_code == 1
    assert "no optimum is proved\n2 rows are left out: their optimum is not proved" in result.stdout
    data = json.loads(udcp(*arguments, "--json").stdout)
    assert (data["ok"], data["unproved"], data["oracles"], data["mean_optimum"]) == (False, 2, [], None)
    assert "2 of 2 instances are not proved optimal" in data["warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--oracle", "greedi"], "there is no oracle 'greedi'"),
        (["--oracle", "penalized"], "has no order before it is calibrated"),
        (["--oracle", "ratio"], "ratio"),
        (["--alpha", "1.5"], "alpha"),
        (["--time-limit", "0"], "time_limit must be a number of seconds above 0"),
        (["--solver", "nonesuch"], "PuLP has no solver 'nonesuch'"),
        (["--sample", "0"], "--sample"),
        (["--workers", "0"], "--workers"),
    ],
)
def test_mistakes(udcp: Udcp, probs: str, arguments: list[str], message: str) -> None:
    result = udcp("gap", "pets.loss", "--probs", probs, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
