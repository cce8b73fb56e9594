"""Columns as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


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
