"""Figures rendered by matplotlib: as SVG and PDF files, and as SVG that takes its colours from the page around it.

The same input gives the same bytes: the user's own matplotlib styles are ignored, ids come from a fixed salt, and no
date is written.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from udcp_dsl.diagnostics import InputError, did_you_mean, install_hint
from udcp_dsl.files import PathLike, atomic_write
from udcp_dsl.measure.evaluate import QUARTERS, Evaluation
from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.predict.sets import PredictionSets
from udcp_dsl.report import plots
from udcp_dsl.report.figures import (
    FEWEST,
    Figure,
    asked_for,
    figures,
    figures_at,
    figures_over_alpha,
    reliability_figure,
)
from udcp_dsl.report.look import COLOURS, GRID, INK, MUTED, PAPER, shown, styles

if TYPE_CHECKING:
    from udcp_dsl.measure.comparison import Comparison
    from udcp_dsl.measure.monitor import Monitor
    from udcp_dsl.measure.sweep import Sweep
    from udcp_dsl.predict.repair import Repair

_WIDTH = 4.8  # inches
_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED.light,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK.light,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER.light,
    "font.size": 9,
    "grid.color": GRID.light,
    "grid.linewidth": 0.7,
    "legend.borderaxespad": 0.3,
    "legend.columnspacing": 1.2,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "legend.labelcolor": INK.light,
    "legend.labelspacing": 0.3,
    "pdf.fonttype": 42,  # embedded TrueType: journals refuse Type 3
    "savefig.dpi": 200,  # of PNG
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "udcp_dsl",
    "text.color": INK.light,
    "text.parse_math": False,  # a name with two dollar signs is no formula
    "text.usetex": False,
    "xtick.color": MUTED.light,
    "xtick.labelcolor": INK.light,
    "ytick.color": MUTED.light,
    "ytick.labelcolor": INK.light,
}
# For names in scripts that matplotlib's own font lacks, if one of these is installed.
_OTHER_SCRIPTS = (
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Hiragino Sans GB",
)
_METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
_VARIABLES = {colour.light: f"var({colour.variable})" for colour in COLOURS}


def write_figures(folder: PathLike, comparison: Comparison) -> list[Path]:
    """Write every figure of a comparison as SVG and as PDF into a folder, made if needed; returns the files written.

    Raises InputError without matplotlib (the extra `report`), and if the folder cannot be written to.
    """
    require_matplotlib()
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror or error}") from error
    written = []
    for figure in figures(comparison):
        for ending, content in rendered(figure, "svg", "pdf").items():
            file = target / f"{figure.name}.{ending}"
            with atomic_write(file) as temporary:
                temporary.write_bytes(content)
            written.append(file)
    return written


def require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401  # asked for here, so that nothing is half done without it
    except ImportError as error:
        raise InputError(f"reports and figures need matplotlib: {install_hint('report')}") from error


def rendered(figure: Figure, *formats: str) -> dict[str, bytes]:
    """The figure in some of the formats svg, pdf and png."""
    return _rendered(figure, formats)[0]


def _rendered(figure: Figure, formats: Sequence[str]) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    """The same, and the texts for the marks of its elements, by their ids."""
    from matplotlib.figure import Figure as Canvas

    with _style():
        canvas: Any = Canvas(figsize=(_WIDTH, figure.height), layout="constrained")
        hover = figure.draw(canvas)
        for i, (artist, _) in enumerate(hover):
            artist.set_gid(f"marks-{i}")
        # Laid out once: otherwise matplotlib would draw everything once more for each format.
        canvas.get_layout_engine().execute(canvas)
        canvas.set_layout_engine(None)
        found = {}
        for ending in formats:
            out = BytesIO()
            canvas.savefig(out, format=ending, metadata=_METADATA[ending])
            found[ending] = out.getvalue()
        return found, {f"marks-{i}": texts for i, (_, texts) in enumerate(hover)}


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an element of a page: its ids begin with the prefix, its colours are the page's variables.

    Each mark has a title, which browsers show to a reader who points at it.
    """
    found, hover = _rendered(figure, ["svg"])
    root = ElementTree.fromstring(found["svg"])
    for element in list(root.iter()):
        _titled(element, hover.get(element.attrib.get("id", ""), []))
    for parent in root.iter():
        for child in [part for part in parent if _local(part.tag) in ("metadata", "style")]:
            parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            element.set(name, _of_page(name, value, prefix))
        # Whitespace between elements is layout of the file, except in text, which contains no elements.
        if len(element):
            element.text = None
        element.tail = None
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", figure.text)
    return ElementTree.tostring(root, encoding="unicode")


def _titled(element: ElementTree.Element, texts: Sequence[str]) -> None:
    if not texts:
        return
    markers = [part for part in element.iter() if _local(part.tag) == "use"]
    marks = markers or [part for part in element.iter() if _local(part.tag) == "path"]
    for mark, text in zip(marks, texts, strict=True):
        title = ElementTree.Element("title")
        title.text = shown(text)
        mark.insert(0, title)


def _local(name: str) -> str:
    """A name without its namespace, which inline SVG does not need."""
    return name.rpartition("}")[2]


def _of_page(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "href":
        return value.replace("#", f"#{prefix}", 1)
    if name == "style":
        return re.sub("#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], found[0]), value)
    return value.replace("url(#", f"url(#{prefix}")


def drawn(figure: Figure, kind: Any) -> Any:
    """The figure drawn into a matplotlib figure of the class `kind`, in our style."""
    with _style():
        canvas = kind(figsize=(_WIDTH, figure.height), layout="constrained")
        figure.draw(canvas)
    return canvas


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    with matplotlib.rc_context(), warnings.catch_warnings():
        # The page still shows a script that no installed font has, in the reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams
        settings.update(_STYLE)
        settings["font.family"] = ["DejaVu Sans", *(f for f in _OTHER_SCRIPTS if f in there)]
        yield


# One figure of a result as a matplotlib figure, drawn in the style of the report.


_WORST = 8  # classes and groups that are shown
_TITLE = 64  # characters per line of a title
_WATCHED = 5  # cells of a monitor that are shown


def plot_sets(sets: PredictionSets) -> Any:
    """The sizes and the costs of sets, as histograms."""
    if not len(sets):
        raise InputError("there are no sets to be drawn")
    draw = partial(plots.sizes_and_costs, sizes=sets.sizes, costs=sets.costs, unit=sets.loss.unit)
    return _plotted(draw, 2.9, f"{len(sets):,} sets: how large they are, what they cost under {sets.loss.name}")


def plot_evaluation(evaluation: Evaluation) -> Any:
    """Coverage by stratum, with exact intervals; only the least covered classes and groups with enough points."""
    points = [replace(stratum, name=f"size {stratum.name}") for stratum in evaluation.by_size if stratum.name != "0"]
    quarters = evaluation.by_difficulty
    names = QUARTERS if len(quarters) == len(QUARTERS) else [stratum.name for stratum in quarters]  # fewer, by ties
    points += [replace(stratum, name=f"by top p: {name}") for stratum, name in zip(quarters, names, strict=True)]
    for kind, strata in (("class", evaluation.by_class), ("group", evaluation.by_group)):
        enough = [stratum for stratum in strata if stratum.n >= FEWEST]
        least = sorted(enough, key=lambda s: s.coverage)[:_WORST]
        points += [replace(stratum, name=f"{kind} {stratum.name}") for stratum in least]
    draw = partial(
        plots.coverage,
        found={evaluation.oracle: points},
        order=[point.name for point in points],
        looks=styles([evaluation.oracle]),
        level=None if evaluation.risk is not None else float(1 - evaluation.alpha),
    )
    title = f"Coverage of {evaluation.loss} by {evaluation.oracle}, alpha {show_level(evaluation.alpha)}"
    return _plotted(draw, plots.listed_height(len(points), 1) + 0.3, title)


def plot_repair(repair: Repair) -> Any:
    """Reliability on held-out rows, before and after the repair."""
    if repair.reliability is None:
        raise InputError(f"there is no reliability to draw: it is measured when a repair is fitted: {repair}")
    figure = reliability_figure(repair.reliability)
    return _plotted(figure.draw, figure.height, figure.title)


def plot_monitor(monitor: Monitor) -> Any:
    """Evidence and coverage over the rows seen so far, for all rows and for the cells with most evidence."""
    if not monitor.rows:
        raise InputError("the monitor has seen no row yet, so there is nothing to draw")
    cells = sorted((s for s in monitor.streams[1:] if s.seen), key=lambda s: (s.alarm is None, -s.log_most))[:_WATCHED]
    draw = partial(plots.evidence_and_coverage, streams=[monitor.streams[0], *cells], alpha=float(monitor.alpha))
    title = f"Does coverage at alpha {show_level(monitor.alpha)} still hold? {monitor.rows:,} rows"
    return _plotted(draw, 4.9, title)


def plot_comparison(comparison: Comparison, loss: str | None = None) -> Any:
    """Mean cost against coverage of each oracle for a loss; with too few rows for that, mean cost by term."""
    name = comparison.names[0] if loss is None else loss
    if name not in comparison.names:
        raise InputError(f"there is no loss {name!r} here; {did_you_mean(name, comparison.names)}")
    figures = figures_over_alpha(comparison, name) or figures_at(comparison, name, comparison.alphas[0])
    return _plotted(figures[0].draw, figures[0].height + 0.3, f"{figures[0].title}: {name}")


def plot_sweep(sweep: Sweep) -> Any:
    """The cost (above) and the coverage (below) of each oracle against the parameter, at the first alpha."""
    alpha = sweep.comparisons[0].alphas[0]
    found = [(value, s) for value, s in sweep.summaries() if s.alpha == alpha]
    lines = {
        oracle: [(value, s.cost_mean, s.coverage) for value, s in found if s.oracle == oracle]
        for oracle in dict.fromkeys(s.oracle for _, s in found)
    }
    level = asked_for(sweep.comparisons[0], alpha)
    draw = partial(
        plots.cost_and_coverage, lines=lines, looks=styles(lines), along=sweep.param, level=level, unit=sweep.unit
    )
    return _plotted(draw, 4.9, f"{sweep.loss} against {sweep.param}, alpha {show_level(alpha)}")


def _plotted(draw: Any, height: float, title: str) -> Any:
    require_matplotlib()
    from matplotlib.figure import Figure as Canvas

    class Plot(Canvas):
        """A figure that a notebook shows even if pyplot is not imported."""

        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=144)
            return out.getvalue()

    canvas = drawn(Figure("plot", title, "", "", height, draw), Plot)
    canvas.suptitle(fill(shown(title), _TITLE), x=0.01, ha="left", fontsize=9.5, fontweight="bold")
    for legend in canvas.legends:  # constrained layout does not stack a legend below a title
        legend.set_loc("outside lower left")
    return canvas
