"""Prices of laminar losses, separable ones among them, against brute force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import of_seven
from tests.udcp_solvers.prices.price_losses import LAMINAR, SEPARABLE, assert_priced_by, rows
from udcp_solvers.prices.laminar import LaminarPrices

if TYPE_CHECKING:
    from tests.conftest import Sizes


@pytest.mark.parametrize("text", [*SEPARABLE, *LAMINAR])
def test_scores_are_those_of_brute_force(text: str, sizes: Sizes) -> None:
    assert_priced_by(LaminarPrices, text, sizes.cases)


def test_separable_prices_are_ratios_to_the_last_bit() -> None:
    loss = of_seven("sum(k) + 0.1 * size")
    P = rows(loss.K, 3, 60)
    price, ratio = (udcp.make_oracle(name, loss) for name in ("price", "ratio"))
    np.testing.assert_array_equal(price.scores(P), ratio.scores(P))
