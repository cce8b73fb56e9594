"""From a batch of rows to a batch of sets (id, labels, size, cost); all engines use this code.

An engine passes batches and receives batches: Spark's `mapInArrow`, Ray, Dask, and our own files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.diagnostics import InputError, RowFault
from udcp_dsl.expression.rows.given import RowInputs
from udcp_dsl.prediction.calibrate import Level
from udcp_dsl.prediction.rows import Rows
from udcp_dsl.prediction.rows.arrow_tables import block_of
from udcp_dsl.prediction.rows.column_roles import Columns
from udcp_dsl.prediction.rows.columns import ColumnSpec
from udcp_dsl.prediction.rows.probability_matrix import check_class_names, names_of_classes
from udcp_dsl.prediction.rows.row_attributes import Names
from udcp_dsl.prediction.rows.source import block_rows
from udcp_dsl.prediction.sets import MadeSets, PredictionSets
from udcp_dsl.prediction.writing import CoverageRecord, OutputBlock, refuse_taken_names

if TYPE_CHECKING:
    from udcp_dsl.prediction.predictor import SetPredictor


def output_of(
    predictor: SetPredictor,
    made: MadeSets,
    ids: Names | None,
    *,
    first: int = 0,
    carried: Any = None,
    inputs: RowInputs | None = None,
) -> OutputBlock:
    """What is written for rows with these sets; rows without ids are numbered from `first` on."""
    sets = PredictionSets(predictor.loss, made.mask, ids, inputs=inputs, decided=made.decided)
    _ = sets.views.members  # needed for writing; once they are cached, costs are computed faster
    names: Sequence[str] | range = range(first, first + len(sets)) if ids is None else ids.tolist()
    return OutputBlock(predictor.loss.labels, sets.views, names, sets.costs, sets.decisions, carried)


def predict_block(
    predictor: SetPredictor, rows: Rows, level: Fraction, *, first: int = 0, carried: Any = None
) -> OutputBlock:
    """Make the sets of rows, and what is written for them; if truth is known, also which rows are covered."""
    predictor.check_columns(rows)
    made = predictor.make_sets_and_warn(rows, level)
    found = output_of(predictor, made, rows.ids, first=first, carried=carried, inputs=rows.inputs)
    if rows.y is None:
        return found
    covered = made.mask[np.arange(len(rows)), rows.truth]
    harm = predictor.promise.harm(predictor.loss)
    harms = None if harm is None else harm.of_truth(rows.truth, rows.inputs)
    known = rows.truth, covered, rows.highest_probabilities, rows.likeliest, rows.untied
    return replace(found, coverage=CoverageRecord(*known, harms))


def predict_batches(
    predictor: SetPredictor,
    batches: Iterable[Any],
    alpha: Level | None,
    columns: Columns,
    class_names: Sequence[object] | None = None,
) -> Iterator[Any]:
    """`SetPredictor.predict_batches`; what can be checked without a batch is checked at the call."""
    level = predictor.level(alpha)
    refuse_taken_names(columns.carry)
    predictor.promise.check_groups(columns.group_column is not None)
    loss = predictor.loss
    names = predictor.class_names if class_names is None else names_of_classes(class_names)
    if names is not None:
        check_class_names(names, loss.labels)
    wanted = ColumnSpec.of(loss.labels, names, columns, predictor.inputs, unread=loss.declared_inputs)
    return _answered(predictor, batches, level, wanted)


def _answered(predictor: SetPredictor, batches: Iterable[Any], level: Fraction, wanted: ColumnSpec) -> Iterator[Any]:
    first, numbers = 0, {"logits": predictor.logits, "normalize": predictor.normalize}
    for number, batch in enumerate(batches):
        try:
            block = block_of(batch, wanted.choose)
            found = wanted.roles(block.texts)
            rows = block_rows(block, wanted, found, **numbers, empty=True)
            made = predict_block(predictor, rows, level, first=first, carried=block.carried).batch()
        except InputError as error:
            counted = " (rows counted from 0 in their batch, as are batches)" if isinstance(error, RowFault) else ""
            raise InputError(f"batch {number}: {error}{counted}") from error
        first += len(rows)
        yield made
