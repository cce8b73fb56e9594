"""Prices of submodular losses by minimum cuts, against brute force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.udcp_solvers.prices.price_losses import CUTS, assert_priced_by
from udcp_solvers.prices.cuts import CutPrices

if TYPE_CHECKING:
    from tests.conftest import Sizes


@pytest.mark.parametrize("text", CUTS)
def test_scores_are_those_of_brute_force(text: str, sizes: Sizes) -> None:
    assert_priced_by(CutPrices, text, sizes.cases)
