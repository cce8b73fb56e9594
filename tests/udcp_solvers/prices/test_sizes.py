"""Prices of functions of the size plus costs of labels, against brute force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.udcp_solvers.prices.price_losses import OF_SIZE, assert_priced_by
from udcp_solvers.prices.sizes import SizePrices

if TYPE_CHECKING:
    from tests.conftest import Sizes


@pytest.mark.parametrize("text", OF_SIZE)
def test_scores_are_those_of_brute_force(text: str, sizes: Sizes) -> None:
    assert_priced_by(SizePrices, text, sizes.cases)
