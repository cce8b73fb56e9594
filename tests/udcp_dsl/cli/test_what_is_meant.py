"""W602 to W605 in a section of their own: by check, by calibrate with what its rows know, first by validate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Udcp = Callable[..., Result]
HEAD = "Is it what you meant?"
SPEC = """\
labels { a, b, c, d, e, f }
category A { a, b }
category B { b, c }
costs c { f: %s, default: 1 }
loss l = sum(c) + 9 * (any(A) and any(B)) + 2 * (size > %d)
"""


@pytest.fixture
def rows(folder: Path) -> None:
    """Rows in which two or three labels are open; f is sometimes true, and sure."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 400)
    P = np.full((400, 6), 1e-4)
    P[np.arange(400), y] = 0.7
    P[np.arange(400), (y + rng.integers(1, 3, 400)) % 6] = 0.3
    np.save("p.npy", P / P.sum(axis=1, keepdims=True))
    np.save("y.npy", y)


def test_check_has_a_section_and_diagnostics_for_machines(folder: Path, udcp: Udcp) -> None:
    (folder / "s.loss").write_text(SPEC % ("1", 3))
    result = udcp("check", "s.loss")
    assert result.exit_code == 0
    section = result.stdout.partition(HEAD)[2]
    assert "W602, line 5" in section
    assert "'b' alone pays 9 for (any(A) and any(B))" in section
    assert HEAD not in udcp("check", "pets.loss").stdout
    (told,) = json.loads(udcp("check", "s.loss", "--json").stdout)["diagnostics"]
    assert (told["code"], told["severity"], told["line"]) == ("W602", "warning", 5)


def test_calibrate_knows_the_size_of_sets_and_the_price(rows: None, folder: Path, udcp: Udcp) -> None:
    """In the spec alone neither is to be seen: six labels may be open, and f costs no 20 times the others."""
    (folder / "s.loss").write_text(SPEC % ("15", 3))
    line = "calibrate s.loss --probs p.npy --truth y.npy -o s.json --alpha 0.2"
    told = json.loads(udcp(*line.split(), "--json").stdout)
    assert [x["code"] for x in told["diagnostics"]] == ["W603", "W602", "W604"]
    assert "no set contains it" in told["diagnostics"][0]["message"]
    assert "up to 2 labels, as many as these rows need" in told["diagnostics"][2]["message"]
    section = udcp(*line.split()).stdout.partition(HEAD)[2]
    assert all(code in section for code in ("W602", "W603", "W604"))
    assert [x["code"] for x in json.loads(udcp("check", "s.loss", "--json").stdout)["diagnostics"]] == ["W602"]


@pytest.mark.parametrize("more", ["--oracle lac", "--conditional class", "--logits", "--conditional difficulty"])
def test_calibrate_with_other_promises(rows: None, folder: Path, udcp: Udcp, more: str) -> None:
    (folder / "s.loss").write_text(SPEC % ("1", 3))
    if more == "--logits":
        np.save("p.npy", np.log(np.load("p.npy")))
    result = udcp(*f"calibrate s.loss --probs p.npy --truth y.npy -o s.json --alpha 0.2 {more}".split())
    assert result.exit_code == 0, result.stderr
    assert "W602" in result.stdout
    assert ("W604" in result.stdout) == (more != "--logits")


def test_validate_asks_it_first_and_fails_by_nothing_of_it(folder: Path, udcp: Udcp) -> None:
    (folder / "s.loss").write_text(SPEC % ("1", 3))
    line = ("validate", "s.loss", "--cases", "1", "--oracle", "base")
    result = udcp(*line)
    assert result.exit_code == 0
    assert 0 < result.stdout.index(HEAD) < result.stdout.index("tests of udcp_dsl on this spec")
    data = json.loads(udcp(*line, "--json").stdout)
    assert [x["code"] for x in data["diagnostics"]] == ["W602"]
