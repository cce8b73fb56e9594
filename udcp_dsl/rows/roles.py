"""The roles of the columns of a table: every role is declared once, and all columns are passed as one object.

From a declaration come the keyword in Python, the option of the command line with its help, and the word for it in
messages. Nothing heavy is imported here: the command line shows its help from these declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from udcp_dsl.diagnostics import InputError

# Prefix of an input's name, in the role of its column.
INPUT = "input "


@dataclass(frozen=True)
class Role:
    """What a column is for; `entry` is the field of `Rows` it becomes, if it has one entry per row."""

    option: str
    called: str  # in messages
    help: str
    entry: str | None = None
    default: Any = None  # () if there may be several, False for a flag
    place: str | None = None  # what is given, as the help shows it

    @property
    def metavar(self) -> str:
        """What is given, as the help shows it: a column or, with one entry per row, a file."""
        return self.place or ("COLUMNS" if self.several else "COLUMN|FILE" if self.entry else "COLUMN")

    @property
    def several(self) -> bool:
        return isinstance(self.default, tuple)

    @property
    def flag(self) -> bool:
        return self.default is False


def _role(*declared: Any, **more: Any) -> Any:
    role = Role(*declared, **more)
    return field(default=role.default, metadata={"role": role})


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of a table are read, and for what. A field has the name of the keyword in Python.

    >>> Columns(id_column="photo", ignore=["site"]).per_row
    {'ids': 'photo'}
    """

    column: str | None = _role(
        "--column", "lists", "Column of lists that contains the probabilities, if there are several."
    )
    id_column: str | None = _role("--id", "ids", "Ids of the rows: a column of the table, or a file.", "ids")
    group_column: str | None = _role(
        "--group",
        "groups",
        "Group of each row, for coverage in each group: a column of the table, or a file.",
        "groups",
    )
    truth_column: str | None = _role(
        "--truth",
        "true labels",
        "True labels: a column of the table, or a file (.npy, .npz:KEY, .csv:COLUMN, .txt, .json ...).",
        "y",
        place="FILE|COLUMN",
    )
    weight_column: str | None = _role(
        "--weights",
        "weights",
        "Weight of each row, for a covariate shift: a column of the table, or a file.",
        "weights",
    )
    ignore: Sequence[str] = _role(
        "--ignore", "ignored", "Columns of the table to ignore: a,b; may be repeated.", default=()
    )
    only_labels: bool = _role(
        "--only-labels",
        "only labels",
        "Ignore all columns that are neither labels nor named in another option.",
        default=False,
    )
    carry: Sequence[str] = _role(
        "--carry", "carried", "Columns of the table to copy to the output: a,b; may be repeated.", default=()
    )

    inputs: Sequence[str] = ()  # that the loss reads, each from the column of its name

    def __post_init__(self) -> None:
        if isinstance(self.carry, str) or isinstance(self.ignore, str):
            raise InputError("carry and ignore are lists of columns: give ['name'] for one")
        for name in ("carry", "ignore"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def per_row(self) -> dict[str, str]:
        """The columns with one entry per row, except probabilities, by their role's name in messages."""
        named = {role.called: getattr(self, keyword) for keyword, role in ROLES.items() if role.entry is not None}
        found = {called: column for called, column in named.items() if column is not None}
        return found | {f"{INPUT}{name}": name for name in self.inputs}


ROLES: Mapping[str, Role] = MappingProxyType(
    {x.name: x.metadata["role"] for x in fields(Columns) if "role" in x.metadata}
)  # by keyword
ENTRIES: Mapping[str, str] = MappingProxyType(
    {role.called: role.entry for role in ROLES.values() if role.entry is not None}
)  # the field of `Rows`, by the role's name in messages
