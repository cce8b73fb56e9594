"""A description as plain data for JSON: its own data, and the records of its tables under their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Description

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


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


# Columns as data frames.


def as_pandas(columns: Mapping[str, Any], index: Any = None, name: str | None = None) -> pd.DataFrame:
    """A pandas DataFrame, with an index (of that name) if one is given; InputError without pandas."""
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas needs pandas: pip install pandas") from None
    return pandas.DataFrame(dict(columns), index=index if name is None else pandas.Index(index, name=name))


def as_polars(columns: Mapping[str, Any], lists_of: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """A polars DataFrame; `lists_of` has, for columns of lists, the possible elements. InputError without polars."""
    try:
        import polars
    except ImportError:
        raise InputError("to_polars needs polars: pip install polars") from None
    kinds = {name: polars.List(polars.Series(values).dtype) for name, values in lists_of.items()}
    return polars.DataFrame(dict(columns), schema_overrides=kinds)
