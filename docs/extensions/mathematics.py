"""Formulas as inline SVG in the colour of the text, set by matplotlib: no network, no LaTeX."""

from __future__ import annotations

from html import escape
from typing import Any

SIZE = 12.0  # points, for text of 16 pixels
COMMANDS = {0: "", 1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}


def svg(formula: str) -> str:
    """The formula as one SVG path that stands on the line of the text."""
    from matplotlib.textpath import TextPath

    path = TextPath((0, 0), f"${formula}$", size=SIZE)
    box = path.get_extents()
    parts = []
    for points, code in path.iter_segments(simplify=False, curves=True):
        numbers = [] if code == 79 else [f"{x if i % 2 == 0 else -x:.2f}" for i, x in enumerate(points)]
        parts.append(COMMANDS[int(code)] + " ".join(numbers))
    height, width, below = box.height + 1, box.width + 1, box.y0 - 0.5
    return (
        f'<svg class="formula" role="img" aria-label="{escape(formula, quote=True)}" xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="{box.x0 - 0.5:.2f} {-box.y1 - 0.5:.2f} {width:.2f} {height:.2f}" fill="currentColor"'
        f' style="height:{height / SIZE:.3f}em;width:{width / SIZE:.3f}em;vertical-align:{below / SIZE:.3f}em">'
        f'<path d="{"".join(parts)}"/></svg>'
    )


def setup(app: Any) -> dict[str, Any]:
    from docutils import nodes

    def inline(writer: Any, node: Any) -> None:
        writer.body.append(svg(node.astext()))
        raise nodes.SkipNode

    def block(writer: Any, node: Any) -> None:
        writer.body.append(f'<div class="formula">{svg(node.astext().strip())}</div>')
        raise nodes.SkipNode

    app.add_html_math_renderer("drawn", (inline, None), (block, None))
    app.config.html_math_renderer = "drawn"
    return {"parallel_read_safe": True}
