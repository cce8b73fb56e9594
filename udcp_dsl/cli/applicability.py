"""Which oracles take a loss, what its facts buy from them, and what is lost where a fact fails."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.explain import shown_blame
from udcp_dsl.expression.lower import LoweringError, lower
from udcp_dsl.prediction.oracle import make_oracle, oracle_names

if TYPE_CHECKING:
    from udcp_dsl.expression.facts import Fact, Facts
    from udcp_dsl.loss import Loss


@dataclass(frozen=True)
class Applicability:
    """Whether an oracle takes a loss: what it does for it, or why it does not."""

    name: str
    applies: bool
    why: str


@dataclass(frozen=True)
class _Use:
    """What an oracle does, the facts that it needs, and those of which one is enough to make it quick."""

    does: str
    needs: tuple[str, ...] = ()
    quick_when: tuple[str, ...] = ()
    quick: str = ""
    slow: str = ""
    linear: bool = False  # whether it needs a linear model of the loss


# Importing a solver takes longer than all the rest of a check, so what is said here of the usual oracles is said
# without loading them (and the tests hold it to what their constructors do). An oracle that is not listed is made.
_USES = {
    "base": _Use("labels by falling p; knows no cost"),
    "lac": _Use("labels above one p; knows no cost, sets are small"),
    "raps": _Use("base, with a penalty on rank"),
    "penalized": _Use("base, with a penalty on cost that is tuned on rows of its own"),
    "ratio": _Use("cost by probability: exactly optimal", needs=("separable", "monotone")),
    "greedy": _Use(
        "adds the label that leaves most room below the bound",
        quick_when=("monotone",),
        quick="lazy",
        slow="every label anew at each step",
    ),
    "ilp": _Use("sets proved optimal by mixed-integer programming", linear=True),
    "price": _Use(
        "buys coverage where it is cheapest",
        quick_when=("separable", "laminar", "tree_diameter", "cardinality"),
        quick="very fast",
        slow="by an exact search at every price",
    ),
}


def oracles(loss: Loss) -> tuple[Applicability, ...]:
    """Every oracle that is installed, and whether it applies to the loss."""
    return tuple(_applicability(name, loss) for name in oracle_names())


def lost_by(name: str, loss: Loss, installed: Sequence[str]) -> tuple[str, ...]:
    """Of the installed oracles, what the loss cannot have because the fact called `name` is not proved."""
    return tuple(_lost(name, loss.facts, installed))


def _applicability(name: str, loss: Loss) -> Applicability:
    use = _USES.get(name)
    if use is None:
        return _tried(name, loss)
    for need in use.needs:
        fact: Fact = getattr(loss.facts, need)
        if not fact:
            culprit = f" because of {shown_blame(fact.blame)}" if fact.blame is not None else f": {fact.reason}"
            return Applicability(name, False, f"needs {need}, which is {fact}{culprit}")
    if use.linear:
        try:
            lower(loss)
        except LoweringError as error:
            return Applicability(name, False, str(error))
    if not use.quick_when:
        return Applicability(name, True, use.does)
    quick = next((fact for fact in use.quick_when if getattr(loss.facts, fact)), None)
    return Applicability(name, True, f"{use.does}; {use.slow if quick is None else f'{use.quick} ({quick})'}")


def _tried(name: str, loss: Loss) -> Applicability:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when it is used
            made = make_oracle(name, loss)
    except OracleError as error:
        return Applicability(name, False, str(error))
    except Exception as error:  # whatever a stranger's constructor raises is no fault of the spec
        return Applicability(name, False, f"its constructor fails: {type(error).__name__}: {error}")
    lines = (type(made).__doc__ or "").strip().splitlines()
    return Applicability(name, True, lines[0] if lines else "its constructor takes the loss")


def _lost(name: str, facts: Facts, installed: Sequence[str]) -> Iterator[str]:
    if getattr(facts, name):
        return
    for oracle in installed:
        use = _USES.get(oracle)
        if use is None:
            continue
        if name in use.needs:
            yield oracle
        elif name in use.quick_when and not any(getattr(facts, other) for other in use.quick_when):
            yield f"{oracle} is not {use.quick}"
