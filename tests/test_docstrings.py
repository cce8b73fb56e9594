"""The Python interface is documented: every public name has a page, every parameter a line in its docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import udcp_dsl

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "extensions"))

import python_pages  # noqa: E402, an extension of the site

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
WITH_EXTRAS = {"udcp_dsl.sklearn": "sklearn", "udcp_dsl.torch": "torch", "udcp_dsl.datasets:TorchTexts": "torch"}


def _object(name: str) -> Any:
    for begin, package in {**WITH_EXTRAS, "udcp_dsl.datasets:texts_through_torch": "torch"}.items():
        if name.startswith(begin):
            pytest.importorskip(package)
    module, _, short = name.partition(":")
    return getattr(import_module(module), short)


def _function(member: Any) -> Any:
    return getattr(member, "__func__", member)


def _members(value: type) -> Iterator[tuple[str, Any]]:
    for name in python_pages.members(value):
        yield name, inspect.getattr_static(value, name)


def _sections(doc: str) -> dict[str, str]:
    pieces = SECTION.split(inspect.cleandoc(doc))
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def _named(text: str) -> set[str]:
    """The names that a section of parameters or attributes lists: lines that are not indented."""
    heads = [line.partition(" :")[0] for line in text.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def _undocumented(function: Any) -> set[str]:
    """Parameters without a line, and lines without a parameter."""
    wanted = {name for name in inspect.signature(function).parameters if name not in ("self", "cls")}
    return wanted ^ _named(_sections(function.__doc__ or "").get("Parameters", ""))


def test_every_public_name_has_a_page() -> None:
    shown = {name.partition(":")[2] for name in python_pages.names()}
    assert set(udcp_dsl.__all__) <= shown
    for module in ("udcp_dsl.check", "udcp_dsl.datasets"):
        assert {f"{module}:{name}" for name in import_module(module).__all__} <= set(python_pages.names())
    pytest.importorskip("torch")
    assert {f"udcp_dsl.torch:{name}" for name in import_module("udcp_dsl.torch").__all__} <= set(python_pages.names())


@pytest.mark.parametrize("name", python_pages.names())
def test_every_parameter_is_in_the_docstring(name: str) -> None:
    value = _object(name)
    assert value.__doc__, name
    if not inspect.isclass(value):
        assert not _undocumented(value), f"{name}: parameters without a line"
        returns = inspect.signature(value).return_annotation not in (None, "None")
        assert ("Returns" in _sections(value.__doc__)) == returns, f"{name}: section Returns"
        return
    if not issubclass(value, Exception):
        listed = _sections(value.__doc__)
        given = {"self"} if value.__init__ is object.__init__ else set(inspect.signature(value).parameters)
        if value.__name__ in python_pages.MADE_BY_US:  # users read its attributes, and make none
            given = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
        missing = given - _named(listed.get("Parameters", "")) - _named(listed.get("Attributes", ""))
        assert not missing - {"self"}, f"{name}: parameters without a line"
    for own, member in _members(value):
        if isinstance(member, property | cached_property):
            text = (member.fget if isinstance(member, property) else member.func).__doc__ or ""
            assert text, f"{name}.{own}"
            # Napoleon takes "text: more" at the head of a property for its type.
            assert not re.match(r"[^`\n]*: ", text.strip().splitlines()[0]), f"{name}.{own}: a colon in the first line"
        else:
            function = _function(member)
            assert function.__doc__, f"{name}.{own}"
            assert not _undocumented(function), f"{name}.{own}: parameters without a line"


def test_what_is_internal_exists() -> None:
    for name in python_pages.names():
        short = name.partition(":")[2]
        if short in python_pages.INTERNAL and not name.startswith("udcp_dsl.sklearn"):
            value = _object(name)
            assert all(hasattr(value, own) for own in python_pages.INTERNAL[short]), short


def test_examples_are_no_wider_than_a_page() -> None:
    wide = []
    for name in python_pages.names():
        module, _, short = name.partition(":")
        if not module.startswith(("udcp_dsl.torch", "udcp_dsl.sklearn")):
            value = getattr(import_module(module), short) if "orch" not in short else None
            lines = (inspect.getdoc(value) or "").splitlines()
            wide += [f"{name}: {line}" for line in lines if line.startswith((">>>", "...")) and len(line) > 88]
    assert not wide


def test_a_parameter_without_a_line_is_found() -> None:
    def example(first: int, *, second: int) -> None:
        """What it does.

        Parameters
        ----------
        first, third : int
            Something.
        """

    assert _undocumented(example) == {"second", "third"}
