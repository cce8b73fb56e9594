"""Find ids that occur in more than one file, since results are joined by id.

This is done before prediction, because only the column of ids has to be read; it keeps eight bytes per row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.rows.file_parts import naming_file_in_errors
from udcp_dsl.prediction.rows.reading import read_column
from udcp_dsl.prediction.rows.row_attributes import sample_texts
from udcp_dsl.prediction.rows.source import Source


def refuse_shared_ids(source: Source) -> None:
    """Refuse an id that is in two parts, and name both places; warn of an id that is twice in one part."""
    if "ids" in source.beside:
        sample_texts(source.beside["ids"], len(source.beside["ids"]))
    column = source.wanted.columns.id_column
    if column is None or source.parts[0].stream is not None:
        return
    seen: list[npt.NDArray[np.int64]] = []
    for which in range(len(source.parts)):
        names = _ids(source, which, column)
        hashes = np.sort(np.fromiter(map(hash, names), np.int64, len(names)))
        if any(_meet(hashes, others) for others in seen):
            for earlier in range(which):
                _refuse(source, earlier, which, column)
        while seen and len(seen[-1]) <= len(hashes):  # merged, so that each part is looked up in few arrays
            hashes = np.sort(np.concatenate([seen.pop(), hashes]))
        seen.append(hashes)


def _meet(some: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> bool:
    """Whether two sorted arrays share an entry."""
    if not len(others):  # of a part without rows
        return False
    place = np.searchsorted(others, some)
    return bool((others[np.minimum(place, len(others) - 1)] == some).any())


def _ids(source: Source, which: int, column: str) -> list[str]:
    values = read_column(source.parts[which].path, column)
    with naming_file_in_errors(source.parts[which].path):
        return sample_texts(values, len(values))


def _refuse(source: Source, first: int, second: int, column: str) -> None:
    """Refuse an id that is in both parts; the ids themselves are compared, as two ids may share a hash."""
    place = {name: row for row, name in reversed(list(enumerate(_ids(source, first, column))))}
    for row, name in enumerate(_ids(source, second, column)):
        if name in place:
            raise InputError(
                f"{source.parts[second].path}: sample ids: row {row} (counted from 0) has the id {name!r}, as has row "
                f"{place[name]} of {source.parts[first].path}: a join by id would mix up their sets"
            )
