"""Declarations of numbers that come with each row: `input km in [0, 200]`, `costs fee per row in [0, 500]`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udcp_dsl.expression.domain import Costs, Family, Floats


@dataclass(frozen=True)
class RowInput:
    """An input of a loss: its name, its range, and its entries.

    `entries` is None for one number per row; for costs, it has the labels or the categories of the family `of`.
    """

    name: str
    low: float
    high: float
    entries: tuple[str, ...] | None = None
    of: str | None = None

    @property
    def width(self) -> int | None:
        """The number of entries per row; None for one number per row."""
        return None if self.entries is None else len(self.entries)

    def shape(self, n: int | str = "n") -> str:
        """The shape of the array for n rows, as text."""
        return f"({n},)" if self.width is None else f"({n}, {self.width})"

    def __str__(self) -> str:
        what = "a number" if self.width is None else f"{self.width} costs of {self.of or 'labels'}"
        return f"{self.name}: {what} per row in [{self.low:g}, {self.high:g}]"

    @property
    def entry_columns(self) -> tuple[str, ...]:
        """The columns of a table that has one column per entry instead of a column of lists: fee.gp, fee.nurse."""
        return tuple(f"{self.name}.{entry}" for entry in self.entries or ())

    @property
    def example(self) -> Floats:
        """An example of one row: the middle of the range, or for costs distinct numbers from the range."""
        shares = np.array(0.5) if self.width is None else (1 + np.arange(self.width)) / (1 + self.width)
        return np.asarray(self.low * (1 - shares) + self.high * shares)


@dataclass(frozen=True, eq=False)
class RowCosts(Costs):
    """Costs that come with each row; `values` is a placeholder, with all costs at the upper end of the range."""

    low: float = 0.0
    high: float = 0.0

    @staticmethod
    def of_range(name: str, many: int, of: Family | None, low: float, high: float) -> RowCosts:
        return RowCosts(name, np.full(many, high), of, low, high)

    def extreme_costs(self) -> tuple[Costs, Costs, Costs]:
        """Costs at the lower end, at the upper end, and alternating: what is proved for all three holds for any."""
        many = len(self.values)
        alternating = np.where(np.arange(many) % 2 == 0, self.low, self.high)
        return (
            Costs(self.name, np.full(many, self.low), self.of),
            Costs(self.name, np.full(many, self.high), self.of),
            Costs(self.name, alternating, self.of),
        )
