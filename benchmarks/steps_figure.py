"""The figure of docs/idea.md: probabilities, order, cut, set, on a made-up row of five labels.

    python benchmarks/steps_figure.py

Scores are those of `price` for the loss below; the threshold is drawn where calibration might put it. Writes
docs/figures/steps.svg.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
from idea import STYLE
from writing import write

import udcp_dsl as udcp

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "steps.svg"
SPEC = "labels { cat, lynx, dog, wolf, fox } category wild { lynx, wolf, fox } loss keepers = any(wild) + 0.5 * size"
P = np.array([0.36, 0.26, 0.22, 0.10, 0.06])
THRESHOLD = 4.0


def drawn() -> str:
    loss = udcp.loads(SPEC)
    scores = udcp.make_oracle("price", loss).scores(P[None])[0]
    order = np.lexsort((-P, scores))
    inside = [loss.labels[i] for i in order if scores[i] <= THRESHOLD]
    said = "Probabilities of five labels; the labels in the order of their scores; a cut at the threshold; the set"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 250" role="img" aria-labelledby="t">',
        f'<title id="t">{escape(said)}: {", ".join(inside)}</title>',
        f"<style>{STYLE}</style>",
        '<rect class="card" x="1" y="1" width="958" height="248" rx="12"/>',
        *(
            f'<text class="head" x="{x}" y="40">{words}</text>'
            for x, words in ((28, "Probabilities"), (290, "Order"), (530, "Cut"), (770, "Set"))
        ),
    ]
    for i, name in enumerate(loss.labels):
        y = 66 + 34 * i
        parts += [
            f'<text x="28" y="{y + 15}">{name}</text>',
            f'<rect class="bar" x="82" y="{y}" width="{200 * P[i]:.0f}" height="20" rx="4"/>',
            f'<text x="{90 + 200 * P[i]:.0f}" y="{y + 15}">{P[i]:.2f}</text>',
        ]
    for x in (290, 530):
        for place, i in enumerate(order):
            y = 66 + 34 * place
            kind = "chip" if x == 290 or scores[i] <= THRESHOLD else "track"
            parts += [
                f'<rect class="{kind}" x="{x}" y="{y - 3}" width="64" height="26" rx="13"/>',
                f'<text x="{x + 14}" y="{y + 15}">{loss.labels[i]}</text>',
                f'<text class="small" x="{x + 76}" y="{y + 15}">score {scores[i]:.2f}</text>',
            ]
    cut = 66 + 34 * len(inside) - 8
    parts += [
        f'<path class="cut" stroke-width="2" stroke-dasharray="5 4" d="M520 {cut} h180"/>',
        *(f'<path class="arrow" stroke-width="2" d="M{x} 140 h20"/>' for x in (246, 486, 722)),
        *(f'<path class="tip" d="M{x + 28} 140 l-10 -6 v12 z"/>' for x in (246, 486, 722)),
    ]
    for place, name in enumerate(inside):
        y = 66 + 34 * place
        parts += [
            f'<rect class="chip" x="770" y="{y - 3}" width="64" height="26" rx="13"/>',
            f'<text x="784" y="{y + 15}">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>"]).replace("</style>", "  .cut { stroke: #c8500a; fill: none }\n</style>") + "\n"


if __name__ == "__main__":
    write(FIGURE, drawn())
