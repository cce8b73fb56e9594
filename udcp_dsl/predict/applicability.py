"""Which oracles apply to a loss, by which algorithm, and which of them need a fact, as they declare."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.predict.oracle import Declaration, Refusal, Time, declaration_of, make_oracle, oracle_names

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_SLOWER = (Time.MILLISECONDS, Time.LONGER)


@dataclass(frozen=True)
class Applicability:
    """Whether an oracle applies to a loss; `why` is its algorithm, or the reason why not. Unknown fields are None."""

    name: str
    applies: bool
    why: str
    exact: bool | None = None
    time: Time | None = None
    declaration: Declaration | None = None


def oracles(loss: Loss) -> tuple[Applicability, ...]:
    """Every oracle that is installed, and whether it applies to the loss."""
    return tuple(applicability(name, loss) for name in oracle_names())


def lost_by(name: str, loss: Loss, installed: Sequence[Applicability]) -> tuple[str, ...]:
    """What the installed oracles cannot do for this loss because the fact called `name` is not proved."""
    return () if getattr(loss.facts, name) else tuple(_lost(name, installed))


def _lost(name: str, installed: Sequence[Applicability]) -> Iterator[str]:
    for oracle in installed:
        if oracle.declaration is not None and name in oracle.declaration.needs:
            yield oracle.name
        elif oracle.declaration is not None and name in oracle.declaration.quick_with and oracle.time in _SLOWER:
            yield f"{oracle.name} in {Time.MICROSECONDS}"


def applicability(name: str, loss: Loss) -> Applicability:
    """Whether one oracle applies to the loss."""
    try:
        declaration = declaration_of(name)
    except OracleError as error:
        return Applicability(name, False, str(error))
    if declaration is None:
        return _tried(name, loss)
    way = declaration.way(loss)
    if isinstance(way, Refusal):
        return Applicability(name, False, way.why, declaration=declaration)
    return Applicability(name, True, way.algorithm, way.exact, way.time, declaration)


def _tried(name: str, loss: Loss) -> Applicability:
    """Construct an oracle that has no declaration; the first line of its docstring describes it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # shown when the oracle is used
            made = make_oracle(name, loss)
    except OracleError as error:
        return Applicability(name, False, str(error))
    except Exception as error:  # a third-party constructor may raise anything; the spec is not at fault
        return Applicability(name, False, f"its constructor fails: {type(error).__name__}: {error}")
    lines = (made.__doc__ or "").strip().splitlines()
    return Applicability(name, True, f"undeclared: {lines[0] if lines else 'its constructor takes the loss'}")
