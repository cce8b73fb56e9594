"""Which columns of a table are read: lists of names, repeated options, the labels alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Udcp = Callable[..., Result]
ORDER = ("order", "pets.loss", "--probs", "p.csv", "--row", "1", "--oracle", "lac")


@pytest.fixture(autouse=True)
def table(folder: Path) -> None:
    rows = [",".join([*(str(x) for x in row), "north", "7", "2"]) for row in np.eye(4)]
    Path("p.csv").write_text("\n".join(['cat,dog,wolf,lynx,site,age,"a,b"', *rows, ""]))


@pytest.mark.parametrize(
    "options",
    [
        ["--ignore", "site,age", "--ignore", '"a,b"'],
        ["--ignore", 'site, age,"a,b"'],
        ["--ignore", "site", "--ignore", "age", "--ignore", '"a,b"'],
        ["--only-labels"],
        ["--only-labels", "--id", "age"],
    ],
)
def test_columns_to_leave_unread(udcp: Udcp, options: list[str]) -> None:
    result = udcp(*ORDER, *options)
    assert result.exit_code == 0, result.output
    assert "dog" in result.stdout


def test_all_that_are_left_are_named(udcp: Udcp) -> None:
    result = udcp(*ORDER, "--ignore", "site")
    assert result.exit_code == 2
    assert "columns 'age' and 'a,b' are not labels" in " ".join(result.output.split())
    assert "--only-labels" in result.output
