"""In a notebook: `%load_ext udcp_dsl`, then cells that begin with `%%loss NAME` are specs.

The loss becomes the variable NAME. Errors are shown at their place, without a traceback. Paths of data files are
relative to the folder of the notebook. `%%loss triage coherence=3` sets parameters.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.loss import Loss, loads


def register(shell: Any) -> None:
    """Register the cell magic `%%loss` with an IPython shell."""

    def cell_magic(line: str, cell: str) -> Loss | None:
        return loss_cell(shell, line, cell)

    cell_magic.__doc__ = __doc__
    shell.register_magic_function(cell_magic, "cell", "loss")


def loss_cell(shell: Any, line: str, cell: str) -> Loss | None:
    """Compile a cell into the variable that its first line names, and return the loss; None if there are errors."""
    try:
        name, params = _arguments(line)
        loss = loads(cell, folder=Path.cwd(), params=params, name=f"%%loss {name}")
    except (SpecError, InputError) as error:
        print(error, file=sys.stderr)
        return None
    shell.user_ns[name] = loss
    return loss


def _arguments(line: str) -> tuple[str, dict[str, float]]:
    words = shlex.split(line)
    if not words or not words[0].isidentifier():
        raise InputError("write %%loss NAME, where NAME is the variable to create")
    params: dict[str, float] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        try:
            params[name] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"{word!r} is not of the form PARAMETER=NUMBER")
    return words[0], params
