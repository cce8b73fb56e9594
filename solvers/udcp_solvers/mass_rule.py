"""The option `mass` of oracles that go by mass: which mass scores a label, as a share of its own p.

The score of y is minus the mass after it in the order and a share of p(y) (`numeric.remaining`):

- before: share 1, so that the mass before y counts. The first label of every row has the score -1.
- through: share 0, the mass of all labels up to y: the paper's.
- random: share 1 - U, U uniform on (0, 1], one draw a row: the mass before y and U p(y) (Romano, Sesia and Candes,
  NeurIPS 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from udcp_dsl.diagnostics import OracleError, did_you_mean
from udcp_dsl.prediction.calibrate.randomized import DRAWS, row_draws
from udcp_dsl.prediction.oracle import Floats, Oracle, Probabilities

MASSES = ("before", "through", "random")

# A predictor with randomize=True draws by its seed as well, and must not draw the same numbers.
_STREAM = 1


@dataclass(frozen=True)
class MassRule:
    """Which mass scores a label. A row has the same share alone, in any batch and after a restart."""

    mass: str
    seed: int | None

    @property
    def options(self) -> dict[str, object]:
        return {"mass": self.mass} if self.seed is None else {"mass": self.mass, "seed": self.seed}

    def shares(self, P: Probabilities) -> Floats:
        """(n,) which part of p(y) each row counts with the mass after y."""
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
        """Up to format 1 there was only the paper's mass, and no option."""
        return {**options, "mass": "through"} if version < 2 else options


def checked_mass(oracle: str, mass: object, seed: object) -> MassRule:
    """The options `mass` and `seed` as they were given; OracleError for others."""
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
