"""`udcp predict FILE --probs P -o sets.parquet`: the prediction sets of new rows by a saved predictor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish, json_option
from udcp_dsl.cli.row_options import RowOptions, check_folder, check_output, check_table, collect_warnings, reads_rows
from udcp_dsl.cli.solving import Computing, chooses_engine, computes, on_cluster, solving
from udcp_dsl.cli.terminal import STDOUT, written_to
from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Description, Line, counted, in_unit

if TYPE_CHECKING:
    from fractions import Fraction

    from udcp_dsl.cluster.folders import ResultFolder
    from udcp_dsl.cluster.streams import Tally
    from udcp_dsl.measure.evaluate import Risk
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.rows.source import Source

_FORMATS = ("parquet", "arrow", "csv", "jsonl", "npy")
_OF_TEXT = ("csv", "jsonl")
_NOT_IN_PARTS = (
    "no sets were written; with a folder (-o sets/) finished parts are kept, and rerunning the command continues"
)


@click.command(
    "predict",
    epilog="Examples:  udcp predict pets.json --probs new.csv --id photo -o sets.csv;  "
    "udcp predict pets.json --probs 'day/*.parquet' --id photo -o sets/",
)
@click.argument("predictor_file", metavar="FILE", type=click.Path())
@reads_rows("id_column", "group_column", "weight_column", "column", "carry", "truth_column", truth=False)
@click.option("--alpha", metavar="LEVEL", help="Alpha to use, if several were calibrated.")
@computes
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE|FOLDER/",
    help="File for the sets: .parquet, .arrow, .csv, .jsonl or .npy; - for standard output; or a folder, which gets "
    "one file per input file, several for a large one (run the same command again to continue after an interruption).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="Format for standard output (default: csv) or for a folder (default: parquet).",
)
@click.option(
    "--p-values",
    "p_values_file",
    metavar="FILE",
    help="Also write the p-value of each label: .npy (rows x labels) or .csv (one column per label).",
)
@chooses_engine
@json_option
def command(
    predictor_file: str,
    row_options: RowOptions,
    alpha: str | None,
    output: str,
    form: str | None,
    p_values_file: str | None,
    computing: Computing,
) -> int:
    """Predict sets for new rows and write one line per row: id, labels, size and cost (.npy: the boolean matrix).

    Ids keep the name and the type of their column.

    A loss with worst(...) adds the best action for each set and its worst cost over the set; a loss min(L, c) adds
    whether the row is handed over, that is, whether it costs c.

    With --truth, coverage and the classes below the target coverage are reported, too.

    Rows are processed in batches, so that memory does not grow with their number.
    """
    from udcp_dsl.cluster.folders import refuse_shared_ids
    from udcp_dsl.cluster.streams import predict_file, write_p_values
    from udcp_dsl.predict.predictor import SetPredictor

    folder = _is_folder(output)
    _check_outputs(output, form, p_values_file, row_options.columns.carry)
    if computing.dask and not folder:
        raise InputError("--engine dask writes one file per input part: give a folder, -o sets/")
    parts, existing = None, 0
    with collect_warnings() as warnings:
        predictor = SetPredictor.load(predictor_file)
        level = predictor.level(alpha)
        source = row_options.source_for(predictor)
        predictor.promise.check_groups(row_options.by_group)
        refuse_shared_ids(source)
        if p_values_file is not None:
            with (
                _with_advice(lambda: _NOT_IN_PARTS),
                solving(predictor.oracle, source.rows, computing, doing="p-values", blocks=True) as tell,
            ):
                write_p_values(predictor, source, p_values_file, tell)
        if folder:
            parts = _opened(predictor, source, level, output, f".{form or 'parquet'}")
            existing = len(parts.files) - len(parts.remaining)
            with _with_advice(lambda: _finished(parts)):
                tally = _into_folder(predictor, parts, level, computing)
        else:
            with (
                _with_advice(lambda: _NOT_IN_PARTS),
                written_to(output, f".{form or 'csv'}") as file,
                solving(predictor.oracle, source.rows, computing, doing="predicting", blocks=True) as tell,
            ):
                tally = predict_file(predictor, source, file, level, tell)
        tally.warn_of_another_order(predictor.loss.labels)
    predicted = _Predicted(predictor, level, tally, output, p_values_file, parts, existing)
    return finish(predicted.describe(), {"warnings": warnings}, err=output == STDOUT)


def _check_outputs(output: str, form: str | None, p_values_file: str | None, carry: Sequence[str]) -> None:
    """Refuse, before anything is read, what cannot be written."""
    from udcp_dsl.files import known_ending
    from udcp_dsl.rows.writing import P_VALUES, refuse_taken_names, sets_ending

    if _is_folder(output):
        check_folder(output)
        sets_ending(f"part.{form or 'parquet'}")
    else:
        check_table(output, sets_ending)
        if form is not None and output != STDOUT:
            raise InputError("--format is for standard output (-o -) and folders: a file's extension sets its format")
        if form not in (None, *_OF_TEXT):
            raise InputError(f"standard output is for text, {' or '.join(_OF_TEXT)}, not {form}: name a file with -o")
    refuse_taken_names(carry)
    if p_values_file is not None:
        check_output(p_values_file)
        known_ending(Path(p_values_file), P_VALUES)


@dataclass(frozen=True)
class _Predicted:
    """What was predicted and where it is; `parts` if that is a folder, of which `existing` were there before."""

    predictor: SetPredictor
    level: Fraction
    tally: Tally
    output: str
    p_values_file: str | None
    parts: ResultFolder | None
    existing: int

    def describe(self) -> Description:
        """What is printed: a sentence on the sets and, if the truth is known, on their coverage."""
        from udcp_dsl.measure.coverage import LeastCovered

        summary, data, lines = self.tally.coverage_summary(self.predictor, self.level), self._data(), list[Line]()
        if isinstance(summary, LeastCovered):
            lines, data["least_covered"] = list(summary.lines()), summary.as_dict()
        elif summary is not None:
            lines, data["risk"] = [_harm(summary)], vars(summary)
        parts = self.parts
        if parts is not None and parts.manifest.parent == parts.folder:
            files = Path(self.output) / f"*{parts.files[0].suffix}"
            lines.append(f"the manifest is in the folder ({parts.manifest}): read the sets as {files}")
        return Description(lines=tuple(lines), verdict=(self._sentence(),), data=data)

    @property
    def _means(self) -> tuple[float | None, float | None, float | None]:
        """Mean size and cost and, for min(L, c), the share of rows handed over."""
        tally = self.tally
        if not tally.n:
            return None, None, None
        handed = tally.handed_over / tally.n if self.predictor.loss.ceiling is not None else None
        return tally.size / tally.n, tally.cost / tally.n, handed

    def _sentence(self) -> str:
        from udcp_dsl.measure.coverage import share_text
        from udcp_dsl.predict.calibrate import show_level

        where, tally = "standard output" if self.output == STDOUT else self.output, self.tally
        size, cost, handed = self._means
        parts = 0 if self.parts is None else len(self.parts.files)
        existed = f"{self.existing:,} of {counted(parts, 'part')} already existed"
        if size is not None:
            of = f"{in_unit('mean cost', self.predictor.loss.unit)} {cost:.6g}"
            found = [f"{tally.n:,} sets at alpha {show_level(self.level)}", f"mean size {size:.4g}", of]
            found += [f"{tally.empty:,} empty ({share_text(tally.empty / tally.n)})"] if tally.empty else []
            found += [f"{handed:.1%} handed over"] if handed is not None else []
            found += [existed] if self.existing else []
        elif self.existing and self.parts is not None and not self.parts.remaining:
            found = [f"nothing to do: {existed}"]
        else:
            found = [f"0 sets at alpha {show_level(self.level)}", "there were no rows"]
        return f"{where}: {', '.join(found)}"

    def _data(self) -> dict[str, Any]:
        from udcp_dsl.predict.calibrate import show_level

        size, cost, handed = self._means
        parts = {} if self.parts is None else {"parts": len(self.parts.files), "parts_before": self.existing}
        return {
            "file": self.output,
            **({} if self.p_values_file is None else {"p_values": self.p_values_file}),
            "loss": self.predictor.loss.name,
            "oracle": self.predictor.oracle.name,
            "alpha": show_level(self.level),
            **parts,
            "n": self.tally.n,
            "mean_size": size,
            "mean_cost": cost,
            "unit": self.predictor.loss.unit,
            "empty": self.tally.empty,
            "handed_over": handed,
        }


@contextmanager
def _with_advice(how: Callable[[], str]) -> Iterator[None]:
    """Make an interrupt of the block say how to continue."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(how()) from error


def _finished(parts: ResultFolder) -> str:
    there = sum(file.exists() for file in parts.files)
    return f"{there:,} of {len(parts.files):,} parts are finished; rerun the command to continue"


def _harm(risk: Risk) -> str:
    error = "" if risk.error is None else f"; standard error {risk.error:.2g}"
    return f"mean harm {risk.mean:.4g} (at most {risk.alpha:.4g} guaranteed{error})"


def _is_folder(output: str) -> bool:
    return output != STDOUT and (output.endswith(("/", "\\")) or not Path(output).suffix)


def _opened(predictor: SetPredictor, source: Source, level: Fraction, output: str, ending: str) -> ResultFolder:
    from udcp_dsl.cluster.folders import open_folder
    from udcp_dsl.rows.parts import STREAM

    if source.parts[0].name == STREAM:
        raise InputError("standard input has no parts: give -o a file")
    if source.beside:
        raise InputError(f"{next(iter(source.beside))}: give a column of the parts, not a separate file")
    return open_folder(output, ending, predictor, source, level)


def _into_folder(predictor: SetPredictor, parts: ResultFolder, level: Fraction, computing: Computing) -> Tally:
    from udcp_dsl.cluster.streams import predict_parts

    counts = [parts.source.parts[which].rows for which in parts.remaining]
    rows = None if None in counts else sum(counts)  # type: ignore[arg-type]  # None is not among them
    if computing.dask:
        from udcp_dsl.cluster.dask import write_parts

        with on_cluster(computing, "predicting", rows) as (cluster, reach):
            return write_parts(cluster, predictor, parts, level, reach)
    with solving(predictor.oracle, rows, computing, doing="predicting", blocks=True) as tell:
        return predict_parts(predictor, parts, level, tell)
