"""`udcp compare SPEC... --probs P --truth Y`: every oracle that applies, side by side, over repeated splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish
from udcp_dsl.cli.progress import tracked
from udcp_dsl.cli.promise_options import asks
from udcp_dsl.cli.row_options import (
    RowOptions,
    check_folder,
    check_output,
    check_table,
    collect_warnings,
    names_option,
    reads_rows,
)
from udcp_dsl.cli.spec import diagnostics_of, reads_specs
from udcp_dsl.cli.terminal import STDOUT, written_to
from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.predict.promise import COMPARED, Promise
from udcp_dsl.showing import Styled

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.measure.comparison import Comparison
    from udcp_dsl.measure.sweep import Sweep
    from udcp_dsl.showing import Description


@dataclass(frozen=True)
class Outputs:
    """The files to write for a comparison: a table of its runs, the page, and a folder of figures."""

    out: str | None = None
    report: str | None = None
    figures: str | None = None

    @property
    def drawn(self) -> bool:
        """Whether there are figures to draw."""
        return self.report is not None or self.figures is not None

    def check(self) -> None:
        """Refuse places that cannot be written to."""
        from udcp_dsl.measure.comparison import runs_ending

        if self.out is not None:
            check_table(self.out, runs_ending)
        if self.report is not None:
            check_output(self.report, ".html", ".htm")
        if self.figures is not None:
            check_folder(self.figures)

    def write(self, comparison: Comparison, data: str) -> list[str]:
        """Write the files and return their names; `data` describes the rows on the page."""
        written = []
        if self.report is not None:
            from udcp_dsl.report import write_report

            write_report(self.report, comparison, data=data, command=click.get_current_context().find_root().obj)
            written.append(self.report)
        if self.figures is not None:
            from udcp_dsl.report import write_figures

            written += [str(file) for file in write_figures(self.figures, comparison)]
        if self.out is not None:
            from udcp_dsl.measure.comparison import write_runs

            with written_to(self.out, ".csv") as file:
                write_runs(file, comparison)
            written += [self.out] if self.out != STDOUT else []
        return written


@click.command(
    "compare",
    epilog="Example:  udcp compare pets.loss --probs p.csv --truth label --alpha 0.1 --alpha 0.05 "
    "--conditional difficulty --report pets.html",
)
@reads_specs
@reads_rows("truth_column", "group_column", "id_column", "column", numbers=True)
@names_option
@asks(COMPARED, conditional=("difficulty", "decision"))
@click.option(
    "--oracle",
    "oracles",
    multiple=True,
    metavar="NAME",
    help="Oracle to compare; may be repeated (default: all that apply except ilp, which is slow).",
)
@click.option("--splits", type=click.IntRange(min=1), default=10, show_default=True, help="Number of random splits.")
@click.option("--out", metavar="FILE", help="Write all runs, one per row: .parquet, .arrow or .csv; - prints CSV.")
@click.option("--report", metavar="FILE", help="Write an HTML page with figures and examples, which opens offline.")
@click.option("--figures", metavar="FOLDER", help="Folder for the figures, as SVG and PDF.")
def command(
    losses: list[Loss],
    swept: dict[str, list[float]],
    row_options: RowOptions,
    label_names: dict[str, str] | None,
    asked: dict[str, Any],
    oracles: tuple[str, ...],
    splits: int,
    **files: str | None,
) -> int:
    """Compare the cost and coverage of oracles, on labelled rows that the classifier was not trained on.

    In each split, half of the rows set the thresholds, a quarter tunes the lambda of `penalized`, and a quarter is the
    test set. Several specs are compared one after the other; they must have the same labels. --group adds coverage by
    group; thresholds are those of all rows. --conditional difficulty adds a second table, on the same splits: the cost
    of covering hard rows as often as easy ones (--conditional decision: of covering each decision separately). --miss
    25 finds an alpha for each oracle, and adds 25 for each missed true label. --param coherence=0,1,2,5 shows cost and
    coverage for each value, and --figures draws them. If there are more than 16 million probabilities, a random sample
    is used and a warning says so.
    """
    from udcp_dsl.measure.compare import compare, compared_promise
    from udcp_dsl.measure.sweep import sweep
    from udcp_dsl.predict.oracle import oracle_names

    outputs = Outputs(**files)
    outputs.check()
    if asked["miss"] is not None and outputs.drawn:
        raise InputError(
            "--report and --figures compare oracles at one alpha, but --miss finds one alpha per oracle: give --alpha"
        )
    if outputs.drawn and find_spec("matplotlib") is None:
        raise InputError(f"the report and the figures need matplotlib: {install_hint('report')}")
    if swept:
        _check_sweep(swept, losses, outputs)
    with collect_warnings():  # refuses impossible promises before anything is read
        promise = compared_promise(Promise(**asked))
        if swept and not promise.is_marginal:
            raise InputError("--param with several values cannot be combined with --conditional: give one value")
        for loss in losses:
            promise.harm(loss)
    diagnostics = [x for loss in losses for x in diagnostics_of(loss, oracles or oracle_names())]
    with collect_warnings() as warnings:
        rows = row_options.source(*map(promise.reads, losses)).sampled(promise.seed)
        options: dict[str, Any] = {"oracles": oracles or None, "splits": splits, "progress": tracked}
        options |= {"label_names": label_names, "promise": promise}
        if swept:
            ((param, values),) = swept.items()
            found = sweep(losses[0], rows, param=param, values=values, **options)
        else:
            comparison = compare(losses, rows, **options)
    fields = {"diagnostics": diagnostics, "warnings": warnings}
    if swept:
        return finish(found, fields, write=lambda: _write_sweep(found, outputs.figures), key="files")
    data, silent = Path(row_options.file).name, outputs.out == STDOUT
    return finish(
        _with_verdict(comparison), fields, write=lambda: outputs.write(comparison, data), key="files", err=silent
    )


def _with_verdict(comparison: Comparison) -> Description:
    """The comparison, ended by one sentence per loss and alpha: what is cheapest, by how much, and how sure that is."""
    from udcp_dsl.report.page import finding

    kinds = [comparison, *([] if comparison.beside is None else [comparison.beside])]
    named = len(comparison.names) > 1
    verdicts = [
        Styled(f"{f'{name}: ' if named else ''}{finding(kind, name, alpha)}", "bold")
        for name in comparison.names
        for alpha in comparison.alphas
        for kind in kinds
    ]
    described = comparison.describe()
    return replace(described, notes=(*described.notes, *verdicts))


def _check_sweep(swept: dict[str, list[float]], losses: list[Loss], outputs: Outputs) -> None:
    if len(swept) > 1:
        raise InputError(
            f"--param: {' and '.join(swept)} have several values; give several values for one parameter only"
        )
    if len(losses) > 1:
        raise InputError("--param with several values works for one loss of one spec only")
    if outputs.out is not None or outputs.report is not None:
        raise InputError("--param with several values works with --figures and --json, not with --out and --report")


def _write_sweep(found: Sweep, figures: str | None) -> list[str]:
    if figures is None:
        return []
    from udcp_dsl.files import atomic_write

    Path(figures).mkdir(parents=True, exist_ok=True)
    files = [Path(figures) / f"{found.loss}-{found.param}{ending}" for ending in (".svg", ".pdf")]
    plot = found.plot()
    for file in files:
        with atomic_write(file) as temporary:
            plot.savefig(temporary, format=file.suffix[1:])
    return [str(file) for file in files]
