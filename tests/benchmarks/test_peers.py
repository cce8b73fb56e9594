"""`lac` is the LAC of other libraries, row for row, where they are installed; and benchmarks/peers.py runs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return import_module("peers")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("library", ["mapie", "crepes"])
def test_lac_gives_the_sets_of_others_row_for_row(peers: Any, library: str) -> None:
    pytest.importorskip(library)
    on = peers.drawn(777, 50)  # 778 alpha is not whole: there crepes counts a tie at alpha as inside
    (job, masks) = {"mapie": peers.mapie("lac"), "crepes": peers.crepes}[library](on)
    mine, as_masks = peers.ours("lac")(on)
    assert np.array_equal(masks(job()), as_masks(mine()))


def test_what_is_measured_of_ours(peers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On rows whose p is the truth every method covers; by the mass before no set is empty, through it some are."""
    own = tuple(peer for peer in peers.PEERS if peer[0] == "udcp_dsl")
    monkeypatch.setattr(peers, "PEERS", own)
    rows = {row["method"]: row for row in peers.measured(peers.drawn(400, 30), repeats=1)}
    assert len(rows) == len(own)
    assert all(row["coverage"] > 0.84 for row in rows.values())
    assert rows["`base` (APS)"]["empty"] == 0 < rows["`base`, through (the paper's)"]["empty"]
    assert rows["`price`"]["cost"] == min(row["cost"] for row in rows.values())


def test_the_page_shows_what_was_measured(peers: Any) -> None:
    """For each library and method size, coverage and cost beside the time."""
    content = json.loads((peers.RESULTS / "peers.json").read_text(encoding="utf-8"))
    text = peers.PAGE.read_text(encoding="utf-8").split(peers.BEGIN)[1].split(peers.END)[0]
    assert text.strip() == peers.shown(content)
    assert {row["library"] for row in content["rows"]} == {peer[0] for peer in peers.PEERS}
    of_lac = [row for row in content["rows"] if "LAC" in row["method"] or row["method"] == "`lac`"]
    for problem in {row["problem"] for row in of_lac}:  # one method, in five libraries, but for labels at the threshold
        sizes, costs = zip(*((row["size"], row["cost"]) for row in of_lac if row["problem"] == problem), strict=True)
        assert max(sizes) - min(sizes) < 0.01
        assert max(costs) - min(costs) < 0.01
