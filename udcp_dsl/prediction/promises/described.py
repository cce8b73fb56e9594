"""The description of a predictor: its guarantee, rows and thresholds, and which rows it covers too rarely."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.showing import Column, Description, Line, Shown, Styled, Table, in_unit

if TYPE_CHECKING:
    from udcp_dsl.prediction.predictor import SetPredictor


class DescribedPredictor(Shown):
    """Base of `SetPredictor` that shows it, for `rich.print` and notebooks."""

    def describe(self: SetPredictor) -> Description:  # type: ignore[misc]  # of its only subclass
        """The guarantee, the thresholds, and the rows that are covered least."""
        title = (Styled(self.loss.name, "bold"), f" by {self.oracle.name}, alpha {self.promise.shown_alphas}")
        if not self.fits:
            return Description(title, verdict=(Styled("not calibrated: call calibrate(probs, y)", "open"),))
        guarantees = (f"At alpha {show_level(alpha)} it {fitted.guarantee}." for alpha, fitted in self.fits.items())
        return Description(
            title,
            lines=(*guarantees, f"Calibrated on {self.fitted.rows_used}; {self.fitted.about_p}."),
            tables=(_thresholds(self),),
            notes=tuple(_least(self)),
        )


def _thresholds(predictor: SetPredictor) -> Table:
    """One row per alpha; for `price`, the threshold is what a missed truth is worth. Empty unless marginal."""
    if not predictor.promise.is_marginal:
        return Table((), ())
    rows = [(show_level(alpha), predictor.thresholds(alpha)) for alpha in predictor.alphas]
    priced = predictor.oracle.name == "price"
    head = in_unit("threshold: what a miss is worth", predictor.loss.unit) if priced else "threshold"
    shown = Column(head, lambda row: "none: all labels" if math.isinf(row[1]) else f"{row[1]:.6g}", kind="number")
    return Table((Column("alpha", 0), shown), rows)


def _least(predictor: SetPredictor) -> Iterator[Line]:
    for alpha in predictor.alphas:
        found = predictor.least_covered(alpha)
        yield from () if found is None else found.lines()
