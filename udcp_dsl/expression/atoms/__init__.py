"""The atoms by name: one file each here, one line each in `udcp_dsl.language.words`, one page each of the reference."""

from __future__ import annotations

from importlib import import_module

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.language.words import ATOM_NAMES


def _named(name: str) -> type[Atom]:
    """The class whose `name` this is, from the file of that name."""
    for found in vars(import_module(f"{__name__}.{name}")).values():
        if isinstance(found, type) and issubclass(found, Atom) and vars(found).get("name") == name:
            return found
    raise ImportError(f"{__name__}.{name} has no atom with name = {name!r}")


ATOMS: dict[str, type[Atom]] = {name: _named(name) for name in ATOM_NAMES}

__all__ = ["ATOMS", "Atom", "Held", "Increment", "Sets"]
