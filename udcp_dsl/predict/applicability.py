"""What is known of a loss: the oracles that apply, by which algorithm, and which of them need which fact."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import OracleError, worded
from udcp_dsl.expression.explain import facts_as_dict, shown_blame, summary
from udcp_dsl.predict.oracle import Declaration, Refusal, Time, declaration_of, make_oracle, oracle_names
from udcp_dsl.showing import MARKS, Column, Description, Line, Result, Styled, Table

if TYPE_CHECKING:
    from udcp_dsl.expression.facts import Fact
    from udcp_dsl.loss import Loss
    from udcp_dsl.showing import Style

_WORDS = {"proved": "proved", "refuted": "not", "unknown": "unknown"}
_STYLES: Mapping[str, Style] = {"proved": "good", "refuted": "dim", "unknown": "dim"}
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


@dataclass(frozen=True, eq=False)
class Applicable(Result):
    """What is proved about a loss, and the oracles that apply to it; `applicable_oracles` makes it.

    Attributes
    ----------
    loss : Loss
        The loss.
    oracles : tuple of Applicability
        Every installed oracle: whether it applies, why, whether it is exact, and its time per row.
    seconds : mapping or None
        The seconds per row by oracle, if they were measured.
    """

    loss: Loss
    oracles: tuple[Applicability, ...]
    seconds: Mapping[str, float | None] | None = None

    def table(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name, one entry per oracle."""
        return {name: [getattr(x, name) for x in self.oracles] for name in ("name", "applies", "exact", "time", "why")}

    def describe(self, why: bool = False) -> Description:
        """The oracles, and what is proved; with `why`, each fact with its reason."""
        loss = self.loss
        lost = {name: lost_by(name, loss, self.oracles) for name, _ in loss.facts}
        settings = ", ".join(f"{name} = {value:.10g}" for name, value in loss.params.items())
        others = ", ".join(name for name in loss.losses if name != loss.name)
        return Description(
            title=(Styled(loss.name, "bold"), f" in {loss.source.name}: {summary(loss)}"),
            lines=(
                f"with {settings}" if settings else "",
                "" if loss.unit is None else f"costs in {loss.unit}",
                f"the spec also has {others}: choose with {worded('loss=', '--loss')}" if others else "",
            ),
            tables=(self._oracle_table(), *([_fact_table(loss, lost)] if why else [])),
            notes=() if why else (_known(loss),),
            data={
                "loss": loss.name,
                "losses": loss.losses,
                "unit": loss.unit,
                "labels": loss.K,
                "params": loss.params,
                **facts_as_dict(loss),
                "lost": lost,
                "free_labels": loss.free_labels,
            },
        )

    def _oracle_table(self) -> Table:
        seconds = self.seconds
        columns = (
            Column("oracle", "name", kind="word"),
            Column("applies", lambda x: _applies(x["applies"]), kind="word"),
            Column("exact", lambda x: {None: "", True: "yes", False: "no"}[x["exact"]], kind="word"),
            Column("time per row", "time", kind="word"),
            *([] if seconds is None else [Column("measured", lambda x: _shown(x["seconds_a_row"]), kind="word")]),
            Column("how", "why"),
        )
        return Table(columns, [_as_data(x, seconds) for x in self.oracles], key="oracles")


def applicable_oracles(loss: Loss) -> Applicable:
    """Which oracles apply to a loss: the algorithm of each, whether it is exact, and its time per row.

    Parameters
    ----------
    loss : Loss
        The loss.

    Returns
    -------
    Applicable
        One entry per installed oracle; prints as `udcp check` does.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b, c}  loss l = size")
    >>> found = udcp.applicable_oracles(loss)
    >>> [x.name for x in found.oracles if x.applies and x.exact]
    ['ilp', 'price', 'ratio']
    """
    return Applicable(loss, oracles(loss))


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


def _known(loss: Loss) -> Line:
    """One line: the facts by their state. A refuted fact is an answer, not a failure."""
    named = {state: [name for name, fact in loss.facts if fact.state == state] for state in _WORDS}
    return "; ".join(f"{word}: {', '.join(named[state])}" for state, word in _WORDS.items() if named[state]) + (
        worded(" (loss.explain() says why)", " (--why explains)")
    )


def _fact_table(loss: Loss, lost: Mapping[str, tuple[str, ...]]) -> Table:
    def why(named: tuple[str, Fact]) -> Line:
        name, fact = named
        lines: tuple[str | Styled, ...] = (fact.reason,)
        if fact.blame is not None:
            lines += ("\n", Styled(f"because of {shown_blame(fact.blame)}", "dim"))
        if lost[name]:
            lines += ("\n", f"so that {' and '.join(map(_consequence, lost[name]))}")
        return lines

    columns = (
        Column("fact", 0, kind="word"),
        Column("state", lambda named: Styled(named[1].state, _STYLES[named[1].state]), kind="word"),
        Column("why", why),
    )
    return Table(columns, list(loss.facts))


def _consequence(lost: str) -> str:
    """What an oracle does without a fact: "ratio" does not apply, "price in microseconds" is slower."""
    name, quick, time = lost.partition(" in ")
    return f"{name} takes longer than {time}" if quick else f"{name} does not apply"


def _applies(applies: bool) -> Styled:
    return Styled(f"{MARKS[True]} yes", "good") if applies else Styled("no", "dim")


def _as_data(oracle: Applicability, seconds: Mapping[str, float | None] | None) -> dict[str, object]:
    declaration = oracle.declaration
    return {
        "name": oracle.name,
        "applies": oracle.applies,
        "why": oracle.why,
        "exact": oracle.exact,
        "time": oracle.time,
        "declared": declaration is not None,
        "does": None if declaration is None else declaration.does,
        "tuned": None if declaration is None else declaration.tuned,
        "solves": None if declaration is None else declaration.solves,
        **({} if seconds is None else {"seconds_a_row": seconds.get(oracle.name)}),
    }


def _shown(seconds: float | None) -> str:
    """A time with two digits, in a suitable unit."""
    if seconds is None:
        return ""
    unit, many = next((x for x in (("s", 1.0), ("ms", 1e-3)) if seconds >= x[1]), ("us", 1e-6))
    return f"{seconds / many:.2g} {unit}" if seconds < 99.5 * many else f"{seconds / many:.0f} {unit}"
