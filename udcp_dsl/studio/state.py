"""What the user has chosen: the text, the sliders, the set, the row. A frozen value; a change gives the next one.

A change comes from the page as plain data and is checked here; anything invalid raises InputError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.predict.calibrate import exact_level, show_level
from udcp_dsl.predict.oracle import oracle_names
from udcp_dsl.studio.spec_folder import SpecFolder

MOST_TEXT = 1 << 20  # characters of a spec
_MOST_NAME = 1000
# The oracles that a studio begins with, if they apply; `ilp` solves a program per row, and runs only on request.
FIRST_ORACLES = ("price", "ratio", "greedy", "penalized", "lac", "base")
QUICK_ORACLES = ("lac", "base")  # they need no compilation, and are shown while others compile


@dataclass(frozen=True)
class State:
    """`moved` are the moved sliders: their values, and the values that the spec gave when they were moved.

    `saved` is the text as it was opened or last saved. `row` is None until one is chosen; `drags` are its dragged bars,
    in order. `by` is the page that changed the text last.
    """

    place: SpecFolder
    text: str
    loss: str | None = None
    moved: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    inputs: Mapping[str, float] = field(default_factory=dict)  # moved inputs of the chosen set's row
    row: int | None = None
    drags: tuple[tuple[int, float], ...] = ()
    why: str | None = None
    alpha: Fraction = Fraction(1, 10)
    oracles: tuple[str, ...] = FIRST_ORACLES
    by: str = ""
    saved: str | None = None

    def as_data(self) -> dict[str, Any]:
        """What the page shows of the state."""
        return {
            "name": self.place.name,
            "place": self.place.shown,
            "example": self.place.carried is not None,
            "text": self.text,
            "unsaved": self.saved is not None and self.text != self.saved,
            "loss": self.loss,
            "members": list(self.members),
            "row": self.row,
            "why": self.why,
            "alpha": float(self.alpha),
            "alpha_text": show_level(self.alpha),
            "oracles": list(self.oracles),
            "by": self.by,
        }


def changed(state: State, change: object) -> State:
    """The state after a change, which maps what to set to new values."""
    if not isinstance(change, dict) or not change:
        raise InputError("a change is an object that says what is to be set")
    for key, value in change.items():
        if key not in _CHANGES:
            raise InputError(
                f"there is nothing called {str(key)[:80]!r} to set; {did_you_mean(str(key)[:80], _CHANGES)}"
            )
        state = _CHANGES[key](state, value)
    return state


def _text(state: State, value: object) -> State:
    if not isinstance(value, dict) or set(value) != {"text", "by"}:
        raise InputError("a text is an object with text and by")
    text = _string(value["text"], "text", MOST_TEXT)
    return replace(state, text=text.replace("\r\n", "\n"), by=_string(value["by"], "by"))


def _param(state: State, value: object) -> State:
    name, now, default = _triple(value, "param")
    pair = (finite_number(now, "param"), finite_number(default, "param"))
    return replace(state, moved={**state.moved, _string(name, "param"): pair})


def _input(state: State, value: object) -> State:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError("input is a list of a name and a number")
    number = finite_number(value[1], "input")
    return replace(state, inputs={**state.inputs, _string(value[0], "input"): number})


def _members(state: State, value: object) -> State:
    if not isinstance(value, list):
        raise InputError("members is a list of labels")
    return replace(state, members=tuple(dict.fromkeys(_string(label, "members") for label in value)))


def _row(state: State, value: object) -> State:
    return replace(state, row=_count(value, "row"), drags=(), inputs={})  # a row has its own inputs


def _drag(state: State, value: object) -> State:
    if value is None:
        return replace(state, drags=())
    if not isinstance(value, list) or len(value) != 2:
        raise InputError("drag is a list of a label's place and its probability")
    place, p = _count(value[0], "drag"), finite_number(value[1], "drag")
    if not 0 <= p <= 1:
        raise InputError(f"drag: {p!r} is no probability: give a number from 0 to 1")
    # If the last bar is dragged again, only its latest position counts.
    before = state.drags[:-1] if state.drags and state.drags[-1][0] == place else state.drags
    return replace(state, drags=(*before, (place, p)))


def _alpha(state: State, value: object) -> State:
    if isinstance(value, str):
        return replace(state, alpha=exact_level(value[:_MOST_NAME]))
    return replace(state, alpha=exact_level(finite_number(value, "alpha")))


def _oracles(state: State, value: object) -> State:
    if not isinstance(value, list) or not value:
        raise InputError("oracles is a list of at least one oracle")
    known = oracle_names()
    for name in value:
        if not isinstance(name, str) or name not in known:
            raise InputError(f"there is no oracle {str(name)[:80]!r}; {did_you_mean(str(name)[:80], known)}")
    return replace(state, oracles=tuple(dict.fromkeys(value)))


_CHANGES: Mapping[str, Callable[[State, object], State]] = {
    "text": _text,
    "loss": lambda state, value: replace(state, loss=None if value is None else _string(value, "loss")),
    "param": _param,
    "input": _input,
    "members": _members,
    "row": _row,
    "drag": _drag,
    "why": lambda state, value: replace(state, why=None if value is None else _string(value, "why")),
    "alpha": _alpha,
    "oracles": _oracles,
}


def _string(value: object, what: str, longest: int = _MOST_NAME) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise InputError(f"{what}: a text of at most {longest:,} characters is expected")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair
        raise InputError(f"{what}: the text holds half a character, which is no text") from None
    return value


def finite_number(value: object, what: str) -> float:
    """A number from the page; raises InputError if it is not a finite number."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:  # an integer with hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{what}: a finite number is expected")
    return number


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise InputError(f"{what}: a whole number, 0 or more is expected")
    return value


def _triple(value: object, what: str) -> tuple[object, object, object]:
    if not isinstance(value, list) or len(value) != 3:
        raise InputError(f"{what} is a list of a name, a number, and the number that the spec gives")
    return value[0], value[1], value[2]
