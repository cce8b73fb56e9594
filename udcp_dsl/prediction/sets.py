"""Prediction sets and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.loss import Loss

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Prediction sets for n instances, with their costs under the loss."""

    loss: Loss
    mask: npt.NDArray[np.bool_]
    ids: npt.NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.mask)

    @cached_property
    def labels(self) -> list[tuple[str, ...]]:
        """The labels of each set, in the order of the spec."""
        names = np.array(self.loss.labels, dtype=object)
        return [tuple(names[row]) for row in self.mask]

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of labels of each set."""
        return np.asarray(np.count_nonzero(self.mask, axis=1), dtype=np.int64)

    @cached_property
    def costs(self) -> npt.NDArray[np.float64]:
        """L(S) of each set."""
        return self.loss.batch(self.mask)

    def to_pandas(self) -> pd.DataFrame:
        """A frame with columns labels, size and cost, indexed by the ids where there are any."""
        try:
            import pandas as pd
        except ImportError:
            raise InputError("to_pandas needs pandas: pip install pandas") from None
        data = {"labels": self.labels, "size": self.sizes, "cost": self.costs}
        return pd.DataFrame(data, index=None if self.ids is None else pd.Index(self.ids, name="id"))
