"""The option `mass` of oracles that score by mass: how much of a label's own p its score counts.

The score of y is minus the sum of the mass after y in the order and a share of p(y) (`numeric.remaining`):

- before: share 1, so that the mass before y counts. The first label of every row has the score -1.
- through: share 0, so that the mass up to and including y counts, as in the paper.
- random: share 1 - U, with U uniform on (0, 1] and drawn once per row; the mass before y plus U p(y) counts (Romano,
  Sesia and Candes, NeurIPS 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from udcp_dsl.diagnostics import OracleError, did_you_mean
from udcp_dsl.predict.calibrate.randomized import DRAWS, row_draws
from udcp_dsl.predict.oracle import Floats, Oracle, Probabilities

MASSES = ("before", "through", "random")

# A predictor with randomize=True draws from its seed, too; this stream keeps the two draws independent.
_STREAM = 1


@dataclass(frozen=True)
class MassRule:
    """The checked options `mass` and `seed`. The share of a row depends only on the row, not on its batch or
    process."""

    mass: str
    seed: int | None

    @property
    def options(self) -> dict[str, object]:
        return {"mass": self.mass} if self.seed is None else {"mass": self.mass, "seed": self.seed}

    def own_shares(self, P: Probabilities) -> Floats:
        """(n,) the share of p(y) that each row adds to the mass after y."""
        if self.seed is None:
            return np.full(len(P), 1.0 if self.mass == "before" else 0.0)
        draws = row_draws(P, (self.seed, _STREAM))[:, 0]
        return (DRAWS - draws) / DRAWS  # whole numbers up to 2^53, so both steps are exact


class ByMass(Oracle):
    """An oracle with the option `mass`."""

    _mass_rule: MassRule

    @property
    def about(self) -> str:
        return f"mass {self._mass_rule.mass}"

    @classmethod
    def of_format(cls, version: int, options: Mapping[str, object]) -> Mapping[str, object]:
        """Add mass="through" to options of format 1, when it was the only rule and not an option."""
        return {**options, "mass": "through"} if version < 2 else options


def checked_mass(oracle: str, mass: object, seed: object) -> MassRule:
    """Check the options `mass` and `seed`; raises OracleError if they are invalid."""
    if not isinstance(mass, str) or mass not in MASSES:
        help_text = f": {did_you_mean(mass, MASSES)}" if isinstance(mass, str) else ""
        raise OracleError(f"oracle {oracle!r}: mass must be 'before', 'through' or 'random', not {mass!r}{help_text}")
    if mass != "random":
        if seed is not None:
            raise OracleError(f"oracle {oracle!r}: nothing is drawn with mass={mass!r}: seed is for mass='random'")
        return MassRule(mass, None)
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise OracleError(f"oracle {oracle!r}: seed must be a whole number, 0 or more, not {seed!r}")
    return MassRule(mass, 0 if seed is None else seed)
