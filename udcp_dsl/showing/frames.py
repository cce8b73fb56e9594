"""Columns as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    import pandas as pd


def as_pandas(columns: Mapping[str, Any], index: Any = None, name: str | None = None) -> pd.DataFrame:
    """A frame of pandas, by an index (of that name) if one is given; InputError without pandas."""
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas needs pandas: pip install pandas") from None
    return pandas.DataFrame(dict(columns), index=index if name is None else pandas.Index(index, name=name))
