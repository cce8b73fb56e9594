"""`--input km=12`: the inputs of one row, on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from udcp_dsl.cli.spec import settings_of
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from udcp_dsl.expression.inputs import RowInput

F = TypeVar("F", bound=Callable[..., Any])


def takes_inputs(verb: F) -> F:
    """Give a command --input."""
    return click.option(
        "--input",
        "inputs",
        multiple=True,
        callback=_parsed,
        metavar="NAME=VALUE",
        help="Input of the row: km=12; for costs per row fee=1,2,3 in order or fee=cat:1,dog:2 by name.",
    )(verb)


def wanted(inputs: Mapping[str, RowInput]) -> str:
    """The options that give these inputs."""
    by_name = {name: f"{x.entries[0]}:NUMBER,..." if x.entries else "NUMBER" for name, x in inputs.items()}
    return " ".join(f"--input {name}={value}" for name, value in by_name.items())


def _parsed(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any] | None:
    return {name: _value(name, text) for name, text in settings_of(ctx, parameter, texts).items()} or None


def _value(name: str, text: str) -> Any:
    parts = [part.strip() for part in text.split(",")]
    if any(":" in part for part in parts):
        pairs = [part.rpartition(":") for part in parts]
        entries = [key.strip().strip('"') for key, _, _ in pairs]
        twice = next((entry for entry in entries if entries.count(entry) > 1), None)
        if twice is not None:
            raise InputError(f"--input {name}: {twice!r} is given twice: give each entry once")
        return {entry: _number(name, number) for entry, (_, _, number) in zip(entries, pairs, strict=True)}
    numbers = [_number(name, part) for part in parts]
    return numbers if len(numbers) > 1 else numbers[0]


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--input {name}: {text!r} is not a number") from None
