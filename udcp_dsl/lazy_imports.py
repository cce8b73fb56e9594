"""Import the names of a package on first use, so that importing the package is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def on_first_use(
    package: str, names: Mapping[str, str], modules: tuple[str, ...] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    `names` has the names of each module, separated by spaces; `modules` are attributes themselves.
    """
    where = {name: module for module, of_module in names.items() for name in of_module.split()}

    def get(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where, *modules})

    return get, known
