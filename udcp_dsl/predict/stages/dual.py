"""The multipliers nu >= 0 at which limits hold, with complementary slackness.

Minimising mean L subject to coverage 1 - alpha and mean E_j <= b_j has the dual

    g(mu, nu) = mean over rows of min_S [L(S) + sum nu_j E_j(S) - mu p(S)] + mu (1 - alpha) - sum nu_j b_j,

concave in (mu, nu). With the best mu for each nu (the price at which the sets cover), the slope of g in nu_j is
e_j(nu) - b_j, where e_j(nu) is the mean of E_j over the sets. So nu is found from the means alone: nu_j = 0 if
e_j <= b_j at 0, else the root of e_j = b_j, one coordinate after the other until all limits hold (coordinate ascent).
The e_j are means over finitely many rows: step functions, not always decreasing. A root is a place where e_j - b_j
changes sign; of its two sides, the one where the limit holds is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

# Factor between the first two guesses of a multiplier: without, and with a known value to start from.
_FIRST_FACTOR, _RESTART_FACTOR = 4.0, 1.5
# The search stops at multipliers above or below these multiples of their expected size.
_MAX_MULTIPLE, _MIN_MULTIPLE = 1e6, 1e-6
# A root is found to a relative precision of _ROOT_PRECISION, or until the mean is `near` the limit. Several limits are
# solved once all are within _SOLVED_WITHIN times `near`. Means are steps and may not come so close: one of several
# limits counts as unreachable only if it is exceeded by more than _UNREACHABLE_BEYOND times `near`.
_ROOT_PRECISION, _SOLVED_WITHIN, _UNREACHABLE_BEYOND = 1e-3, 4.0, 10.0
_MAX_ROUNDS = 25
_MAX_STEPS = 40


@dataclass(frozen=True)
class Dual:
    """The result: multipliers, the means at these, and the positions of the limits that could not be reached.

    `least` is the smallest mean found for each limit, whether the others held or not.
    """

    multipliers: tuple[float, ...]
    means: tuple[float, ...]
    unreachable: tuple[int, ...]
    least: tuple[float, ...]


def find_multipliers(
    means: Callable[[tuple[float, ...]], Floats], at_most: Floats, near: Floats, scale: Floats
) -> Dual:
    """The least multipliers at which `means`, a function of them, are at most `at_most`.

    A mean that is below its limit by at most `near` counts as at the limit; `scale` is the expected size of each
    multiplier.
    """
    return _Ascent(means, at_most, near, scale).found()


class _Ascent:
    def __init__(
        self, means: Callable[[tuple[float, ...]], Floats], at_most: Floats, near: Floats, scale: Floats
    ) -> None:
        self._means, self._at_most, self._near, self._scale = means, at_most, near, scale
        self._known: dict[tuple[float, ...], Floats] = {}

    def found(self) -> Dual:
        nu: tuple[float, ...] = (0.0,) * len(self._at_most)
        for _ in range(_MAX_ROUNDS):
            for j in range(len(nu)):
                nu = self._root(nu, j)
            if len(nu) == 1 or self._residual(nu) <= _SOLVED_WITHIN or max(np.array(nu) / self._scale) >= _MAX_MULTIPLE:
                break
        if len(nu) > 1 and (self._excess(nu) > _SOLVED_WITHIN * self._near).any():
            nu = min(self._known, key=self._residual)
        means = self._excess(nu) + self._at_most
        broken = tuple(
            np.flatnonzero(self._excess(nu) > (1 if len(nu) == 1 else _UNREACHABLE_BEYOND) * self._near).tolist()
        )
        least = np.min(list(self._known.values()), axis=0) + self._at_most
        return Dual(nu, tuple(means.tolist()), broken, tuple(least.tolist()))

    def _excess(self, nu: tuple[float, ...]) -> Floats:
        """By how much the means exceed their limits."""
        if nu not in self._known:
            self._known[nu] = self._means(nu) - self._at_most
        return self._known[nu]

    def _residual(self, nu: tuple[float, ...]) -> float:
        """How far the multipliers are from a solution: by how much a limit is broken or, if its multiplier is not 0,
        by how much its mean is below it; in units of `near`."""
        over = self._excess(nu) / self._near
        return float(np.where(np.array(nu) > 0, np.abs(over), over).max())

    def _root(self, nu: tuple[float, ...], j: int) -> tuple[float, ...]:
        """The multipliers with nu_j moved to the root of limit j, the others unchanged."""

        def over(number: float) -> float:
            return float(self._excess((*nu[:j], number, *nu[j + 1 :]))[j])

        number = self._least_number(over, nu[j], float(self._scale[j]), float(self._near[j]))
        return (*nu[:j], number, *nu[j + 1 :])

    def _least_number(self, over: Callable[[float], float], start: float, scale: float, near: float) -> float:
        """Approximately the least number at which `over` is at most 0; a very large number if there is none."""
        if not start and over(0.0) <= 0:
            return 0.0
        low, high = 0.0, start or scale
        apart = _RESTART_FACTOR if start else _FIRST_FACTOR
        while over(high) > 0:
            if high > _MAX_MULTIPLE * scale:
                return high
            low, high, apart = high, high * apart, apart * apart
        if not low:  # it holds at the first guess: find a lower one where it does not
            while low == 0.0 and over(high) < -near:
                below = high / apart
                if below < _MIN_MULTIPLE * scale:
                    if over(0.0) <= 0:
                        return 0.0
                    break
                if over(below) > 0:
                    low = below
                else:
                    high, apart = below, apart * apart
        for step in range(_MAX_STEPS):
            if over(high) >= -near or high - low <= _ROOT_PRECISION * high:
                break
            middle = _between(low, high, over(low), over(high), halve=step % 3 == 2)
            if over(middle) <= 0:
                high = middle
            else:
                low = middle
        return high


def _between(low: float, high: float, above: float, below: float, *, halve: bool) -> float:
    """A guess of the root between `low`, where the function has the value `above` > 0, and `high`, where it has
    `below`: by linear interpolation on a logarithmic scale, or in the middle (`halve`)."""
    share = 0.5 if halve else min(0.9, max(0.1, above / (above - below)))
    return high * share if low == 0 else float(low ** (1 - share) * high**share)
