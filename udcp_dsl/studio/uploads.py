"""Rows that are dropped on the page: probabilities and the truth, in the files that `--probs` and `--truth` take.

They are written to a temporary folder while they are read, and never leave this machine.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError, keeping_warnings
from udcp_dsl.studio.instances import own

if TYPE_CHECKING:
    from udcp_dsl.studio.studio import Studio

_ENDINGS = (".npy", ".npz", ".csv", ".parquet", ".arrow")
_LONGEST = 1000  # characters of a name


def load_rows(studio: Studio, body: Any) -> Any:
    """Load {probs: {name, content}, truth: {name, content} or {column}, normalize}, with content in base 64.

    Answers with what was loaded. Raises InputError if it cannot be used; the rows then stay what they were.
    """
    from udcp_dsl.rows.roles import Columns
    from udcp_dsl.rows.source import open_rows, read_column

    loss = studio.loss
    if loss is None:
        raise InputError("the spec does not compile: fix it first, so that its labels are known")
    if not isinstance(body, dict) or not isinstance(body.get("truth"), dict):
        raise InputError("rows are an object with probs and truth")
    truth = body["truth"]
    column = truth.get("column")
    if column is not None and (not isinstance(column, str) or len(column) > _LONGEST):
        raise InputError("the column of the truth is a name")
    with TemporaryDirectory(prefix="udcp-studio-") as folder, keeping_warnings():
        file = _write_upload(Path(folder) / "probs", body.get("probs"), "probabilities")
        beside = {} if column else {"true labels": _write_upload(Path(folder) / "truth", truth, "truth")}
        columns = Columns(truth_column=column) if column else Columns()
        table = file.suffix not in (".npy", ".npz")  # for an array, inputs are drawn
        read: dict[str, Any] = {"inputs": loss.inputs if table else None, "unread": loss.declared_inputs}
        source = open_rows(str(file), loss.labels, columns, normalize=body.get("normalize") is True, **read)
        rows = replace(source, beside={role: read_column(str(path)) for role, path in beside.items()}).whole()
    name = body["probs"]["name"]
    about = f"{len(rows):,} rows of {Path(name).name}"
    studio.use_rows(own(rows, about))
    return {"about": about, "rows": len(rows)}


def _write_upload(path: Path, given: Any, what: str) -> Path:
    """A file from the page, written to disk under our own name with its ending."""
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or len(given["name"]) > _LONGEST:
        raise InputError(f"the file of the {what} has a name and a content")
    ending = Path(given["name"]).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"{given['name']}: the {what} are in a file that ends in {', '.join(_ENDINGS)}")
    try:
        content = base64.b64decode(given.get("content", ""), validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InputError(f"{given['name']}: the content is not base 64") from None
    placed = path.with_suffix(ending)
    placed.write_bytes(content)
    return placed


def error_message(error: Exception) -> str:
    """The text of an error, without the temporary folder that the files were read from."""
    return re.sub(r"[^\s'\"]*udcp-studio-[^/\s]*/", "", str(error))
