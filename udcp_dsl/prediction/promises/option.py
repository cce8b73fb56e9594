"""An option of a promise, declared once: meaning, values, saved form, and the options that it excludes.

The check in Python, the command-line option, the row of the reference table and the saved field all come from this
declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.containers import flag


@dataclass(frozen=True)
class Option:
    """One option. `check` takes the option's value and name, and returns the value in canonical form or refuses it.

    On the command line, an option is a flag if its default is False, else one of its `choices`, else a text that
    `parse` reads; a `repeated` option may be given several times. A `compared` option is available in comparisons; an
    `alias` is a deprecated name of another option, and is not saved. `narrowed_help` replaces `help` in a command that
    allows only some of the choices.
    `refuse` returns the text of an error if the option cannot be combined with the rest of the promise, else None.
    `to_json` gives the saved form, which `check` reads back.
    """

    help: str
    values: str
    check: Callable[[Any, str], Any]
    default: Any = None
    choices: tuple[str, ...] = ()
    narrowed_help: str = ""
    parse: Callable[[str, str], Any] = lambda text, name: text
    metavar: str | None = None
    repeated: bool = False
    compared: bool = False
    alias: bool = False
    refuse: Callable[[Any], str | None] = lambda promise: None
    to_json: Callable[[Any], Any] = lambda value: value


def option(declared: Option) -> Any:
    """The field of a dataclass that holds an option."""
    return field(default=declared.default, metadata={"option": declared})


def options_of(promise: Any) -> dict[str, Option]:
    """The options of a promise, or of its class, by name."""
    return {own.name: own.metadata["option"] for own in fields(promise) if _declared(own)}


def _declared(own: Field[Any]) -> bool:
    return "option" in own.metadata


def as_flag(value: Any, name: str) -> bool:
    """True or False."""
    return flag(value, name)


def one_of(*choices: str) -> Callable[[Any, str], Any]:
    """A check: None, or one of the choices."""

    def check(value: Any, name: str) -> Any:
        if value is not None and value not in choices:
            named = ", ".join(f'"{choice}"' for choice in choices[:-1])
            raise InputError(f'{name} is {value!r}: choose None, {named} or "{choices[-1]}"')
        return value

    return check


def as_whole_number(value: Any, name: str) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name} is {value!r}: give a whole number, 0 or more")
    return int(value)


def read_whole_number(text: str, name: str) -> int:
    """A whole number, 0 or more, from the command line."""
    try:
        return as_whole_number(int(text), f"--{name}")
    except ValueError:
        raise InputError(f"--{name} is {text!r}: give a whole number, 0 or more") from None


def reference_table(options: Mapping[str, Option]) -> str:
    """The options as a Markdown table, for the reference manual."""
    lines = ["| option | values | default | meaning |", "|---|---|---|---|"]
    for name, own in options.items():
        lines.append(f"| `{name}` | {own.values} | `{own.default!r}` | {own.help} |")
    return "\n".join(lines) + "\n"
