"""The gallery: a page for each folder of specs/, with its losses, what is proved of them, and one row with its sets."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from adopted import DOCS, MADE, ROOT, turned

ORACLES = ("base", "lac", "greedy", "price")
ROWS = 300


def page_of(folder: Path) -> str:
    """The folder's own README, then each loss of it."""
    origin = (folder / "README.md").relative_to(ROOT).as_posix()
    parts = [turned((folder / "README.md").read_text(encoding="utf-8"), f"made/gallery/{folder.name}", origin)]
    parts += [_loss(spec) for spec in sorted(folder.glob("*.loss"))]
    return "\n\n".join(parts)


def _loss(spec: Path) -> str:
    import udcp_dsl as udcp

    loss = udcp.load(spec)
    name = spec.relative_to(ROOT).as_posix()
    return "\n\n".join([
        f"## `{spec.name}`",
        f"```loss\n{spec.read_text(encoding='utf-8').strip()}\n```",
        f"What is proved of `{loss.name}` (`udcp check {name}`):",
        f"```text\n{loss.explain()}\n```",
        _sets(loss),
    ])  # fmt: skip


def _sets(loss: Any) -> str:
    """One drawn row and the sets of some oracles, calibrated on other drawn rows."""
    import udcp_dsl as udcp

    rng = np.random.default_rng(7)
    logits = rng.normal(scale=2.5, size=(ROWS + 1, loss.K))
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(loss.K, p=p) for p in P])
    inputs = {
        name: rng.uniform(x.low, x.high, (ROWS + 1,) if x.width is None else (ROWS + 1, x.width))
        for name, x in loss.inputs.items()
    }
    old, new = ({name: x[part] for name, x in inputs.items()} or None for part in (slice(ROWS), slice(ROWS, None)))
    top = np.argsort(-P[-1])[:5]
    likely = ", ".join(f"{loss.labels[i]} {P[-1, i]:.2f}" for i in top)
    lines = [
        f"A row drawn at random ({likely}, ...), and its sets at alpha 0.1, calibrated on {ROWS} others:",
        "",
        "| oracle | set | cost |",
        "|---|---|---|",
    ]
    for oracle in ORACLES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictor = udcp.SetPredictor(loss, oracle=oracle, alpha=0.1).calibrate(P[:-1], y[:-1], inputs=old)
            sets = predictor.predict_set(P[-1:], inputs=new)
        names = list(sets.labels[0])
        shown = ", ".join(map(str, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        lines.append(f"| `{oracle}` | {shown or 'none'} | {sets.costs[0]:.2f} |")
    return "\n".join(lines)


def make(app: Any) -> None:
    folder = MADE / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(path.parent.name for path in (ROOT / "specs").glob("*/README.md") if path.parent.name != "reference")
    for name in names:
        (folder / f"{name}.md").write_text(page_of(ROOT / "specs" / name), encoding="utf-8")
    index = turned((ROOT / "specs" / "README.md").read_text(encoding="utf-8"), "made/gallery/index", "specs/README.md")
    index += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    (folder / "index.md").write_text(index, encoding="utf-8")
    assert folder.is_relative_to(DOCS)


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", make, priority=200)
    return {"parallel_read_safe": False}
