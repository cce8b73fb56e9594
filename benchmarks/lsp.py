"""How long the language server's features take after a key, on a spec with a file of 10,000 labels.

    python benchmarks/lsp.py

A key is typed into the loss, so that the text is compiled again; the median and the slowest of the keys are shown, in
milliseconds, and the same for a spec that was never seen before (everything is read and built).
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from udcp_dsl.lsp import Document, Reader, completion, diagnostics, hover, inlay_hints, semantic_tokens

LABELS, KEYS = 10_000, 30
SPEC = """\
labels from "big.csv" column label
hierarchy h from "big.csv" levels l1, l2, l3, l4, l5, l6
costs w from "big.csv" column cost
categories team from "big.csv" column team
param k = 2 in [0, 10]
let mixed = any(h.l1.a0) and any(h.l1.a1)
loss triage = sum(w) + k * count(h.l5) + 10 * mixed + diameter(h) + 0.01 * size + count(team)
"""


def write_data(folder: Path) -> None:
    rng = random.Random(0)
    rows = ["label,l1,l2,l3,l4,l5,l6,cost,team"]
    for i in range(LABELS):
        levels = f"a{i // 5000},b{i // 1000},c{i // 200},d{i // 50},e{i // 10},f{i // 5}"
        rows.append(f"label{i:05d},{levels},{rng.random():.3f},t{i % 17}")
    (folder / "big.csv").write_text("\n".join(rows) + "\n")


def at(document: Document, piece: str) -> dict[str, int]:
    return document.lines.position(document.text.index(piece) + len(piece))


FEATURES: dict[str, Callable[[Document], object]] = {
    "compile and diagnostics": diagnostics,
    "completion of a label": lambda d: completion(d, at(d, "any({ label0")),
    "completion in an atom": lambda d: completion(d, at(d, "diameter(")),
    "hover over costs": lambda d: hover(d, at(d, "costs w")),
    "colours": semantic_tokens,
    "facts and oracles (in a thread)": inlay_hints,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        inlay_hints(Reader().read("labels { a }  loss l = size"))  # imports
        reader, times = Reader(), dict[str, list[float]]()
        for key in range(KEYS):
            # One letter more of a label in every text.
            text = SPEC + f"loss other = 5 * any({{ label0{'0123'[key % 4]}{key:03d} }}) + size  # {key}\n"
            start = time.perf_counter()
            document = reader.read(text, folder)
            for feature, run in FEATURES.items():
                if feature.startswith("facts") and key > 3:
                    continue
                run(document)
                stop = time.perf_counter()
                times.setdefault(feature, []).append(1e3 * (stop - start))
                start = stop
    title = f"milliseconds after a key, {LABELS:,} labels"
    print(f"{title:<44}{'first':>8}{'median':>8}{'slowest':>9}")
    for feature, found in times.items():
        first, rest = found[0], found[1:]
        print(f"{feature:<44}{first:8.0f}{statistics.median(rest):8.1f}{max(rest):9.1f}")


if __name__ == "__main__":
    main()
