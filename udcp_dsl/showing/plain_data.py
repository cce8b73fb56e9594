"""A description as plain data for JSON: its own data, and the records of its tables under their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from udcp_dsl.showing.description import Description


def as_data(description: Description) -> dict[str, Any]:
    """Plain data; an object with `as_dict` becomes that, any other dataclass a dict of its fields."""
    tables = {table.key: table.records for table in description.tables if table.key}
    return {key: plain(value) for key, value in {**description.data, **tables}.items()}


def plain(value: Any) -> Any:
    """
    >>> plain({"interval": (0.5, 1.0)})
    {'interval': [0.5, 1.0]}
    """
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(part) for part in value]
    return value


def records_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The rows of a table that is given by its columns."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
