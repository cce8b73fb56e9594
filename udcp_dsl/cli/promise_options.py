"""The options of a promise on the command line, made from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import click

from udcp_dsl.predict.promise import OPTIONS, Option

F = TypeVar("F", bound=Callable[..., Any])


def asks(names: Sequence[str] = tuple(OPTIONS), **narrowed: tuple[str, ...]) -> Callable[[F], F]:
    """Give a command these options; it gets their values as one argument, `asked`, for `Promise(**asked)`.

    `narrowed` names the choices of an option, if a command allows only some of them.
    """

    def decorate(verb: F) -> F:
        @wraps(verb)
        def with_asked(*args: Any, **kwargs: Any) -> Any:
            asked = {name: kwargs.pop(name) for name in names}
            return verb(*args, **kwargs, asked=asked)

        command: Any = with_asked
        for name in reversed(names):
            own = OPTIONS[name]
            if name in narrowed:
                own = replace(own, choices=narrowed[name], help=own.narrowed_help or own.help)
            command = _click_option(name, own)(command)
        return command  # type: ignore[no-any-return]  # with the options of a command

    return decorate


def _click_option(name: str, own: Option) -> Callable[[Any], Any]:
    flag = f"--{name.replace('_', '-')}"
    if own.default is False:
        return click.option(flag, name, is_flag=True, help=own.help)
    if own.choices:
        return click.option(flag, name, type=click.Choice(list(own.choices)), help=own.help)
    return click.option(
        flag,
        name,
        metavar=own.metavar,
        multiple=own.repeated,
        default=None if own.repeated else own.default,
        callback=_reader(name, own),
        show_default=own.default is not None,
        help=own.help,
    )


def _reader(name: str, own: Option) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def read(ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
        if own.repeated:
            return [own.parse(text, name) for text in given] or None
        return own.parse(given, name) if isinstance(given, str) else given

    return read
