"""Figures rendered by matplotlib: as SVG and PDF files, and as SVG that takes its colours from the page around it.

The same input gives the same bytes: the user's own matplotlib styles are ignored, ids come from a fixed salt, and no
date is written.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.prediction.files import PathLike, atomic_write
from udcp_dsl.report.figures import Figure, figures
from udcp_dsl.report.palette import COLOURS, GRID, INK, MUTED, PAPER
from udcp_dsl.report.wording import shown

if TYPE_CHECKING:
    from udcp_dsl.comparison import Comparison

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
