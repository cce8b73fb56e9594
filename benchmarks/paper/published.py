"""The authors' published artefacts, or anyone's in the same layout: a folder with softmax, labels and a hierarchy.

    model_predictions.npy     probabilities (n, K); or softmax.npy, or softmax.csv, whose columns are named by label
    labels.npy                n true labels, as columns of the softmax; or labels.csv, one column, also by name
    metadata.json             {"dataset": NAME}, which says what the hierarchy is; may be left out

and a hierarchy, the first of these that is there:

    hierarchy.csv             one row a label, in the order of the softmax: label, then categories, coarse to fine
    hierarchy.json            nested objects, arrays of columns of the softmax at the leaves
    Fitzpatrick               fitzpatrick_hierarchy.npy: whole numbers (rows, 3), first level, second level, column
    FitzpatrickClean          fitzpatrick_clean_hierarchy.npy, the same
    iNaturalist               species_list.json, ["00000_kingdom_phylum_class_...", ...], and mapping_dict.json,
                              {"class": {NAME: column}}
    embeddings.npy            (n, d): class means are clustered, 3 > 9 > K (CIFAR100 and ImageNet)

The files of the three named data sets are looked for in the folder, and in hierarchy_artifacts/fitzpatrick and
hierarchy_artifacts/inaturalist two folders up, where the authors' download puts them. Nothing is unpickled. What is
missing, or is not what it should be, is an InputError that names the file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from problems import Problem, clustered
from taxonomies import Taxonomy

from udcp_dsl import InputError
from udcp_dsl.rows import columns as row_attributes
from udcp_dsl.rows.source import read_column, read_rows

_SOFTMAX = ("model_predictions.npy", "softmax.npy", "softmax.csv")
_LABELS = ("labels.npy", "labels.csv")
_FITZPATRICK = {
    "Fitzpatrick": "fitzpatrick_hierarchy.npy",
    "FitzpatrickClean": "fitzpatrick_clean_hierarchy.npy",
}


def published(folder: Path) -> Problem:
    """The problem in a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: give the one that holds the softmax and the labels")
    softmax, labels = _first(folder, _SOFTMAX), _first(folder, _LABELS)
    dataset = _dataset(folder)
    tree = _tree(folder, dataset, softmax, labels)
    probs = read_rows(softmax, tree.labels).P
    y = _truth(labels, tree.labels, len(probs))
    return Problem(f"{dataset or folder.name} (published)", f"hierarchy: {tree.about}", tree, probs, y)


def _tree(folder: Path, dataset: str | None, softmax: Path, labels: Path) -> Taxonomy:
    if (file := folder / "hierarchy.csv").is_file():
        return _from_csv(file)
    if (file := folder / "hierarchy.json").is_file():
        return _from_nested(file)
    if dataset in _FITZPATRICK:
        return _from_columns(_hierarchy_file(folder, "fitzpatrick", _FITZPATRICK[dataset]))
    if dataset == "iNaturalist":
        files = (_hierarchy_file(folder, "inaturalist", name) for name in ("species_list.json", "mapping_dict.json"))
        return _from_species(*files)
    if (file := folder / "embeddings.npy").is_file():
        return _from_embeddings(file, softmax, labels)
    raise InputError(
        f"{folder} has no hierarchy: give hierarchy.csv, hierarchy.json or embeddings.npy, or name the dataset in "
        'metadata.json, as {"dataset": "Fitzpatrick"}'
    )


# One reader a kind of hierarchy -------------------------------------------------------------------------------------


def _from_csv(file: Path) -> Taxonomy:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.reader(lines) if row]
    if len(rows) < 2 or len(rows[0]) < 2:
        raise InputError(f"{file}: a header and one row a label are expected: label, then categories, coarse to fine")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]) or not all(row):
            raise InputError(f"{file}: row {number} has not one entry for each of {', '.join(rows[0])}")
    return _taxonomy(file, {row[0]: tuple(row[1:]) for row in rows[1:]}, len(rows) - 1, depth=len(rows[0]) - 1)


def _from_nested(file: Path) -> Taxonomy:
    def leaves(node: object, path: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
        if isinstance(node, dict):
            for name, below in node.items():
                yield from leaves(below, (*path, name))
        elif isinstance(node, list) and all(isinstance(leaf, int) for leaf in node):
            yield from ((leaf, path) for leaf in node)
        else:
            where = " > ".join(path) or "the root"
            raise InputError(f"{file}: below {where} is neither an object nor an array of column numbers")

    return _numbered(file, list(leaves(_json(file), ())))


def _from_columns(file: Path) -> Taxonomy:
    array = np.asarray(read_column(file))
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        raise InputError(
            f"{file}: {array.dtype} of shape {array.shape}, where whole numbers (rows, 3) are expected: first level, "
            "second level, label"
        )
    return _numbered(file, [(y, (f"first {a}", f"second {b}")) for a, b, y in np.unique(array, axis=0).tolist()])


def _from_species(species: Path, mapping: Path) -> Taxonomy:
    names, index = _json(species), _json(mapping)
    if not isinstance(names, list) or not isinstance(index, dict) or not isinstance(index.get("class"), dict):
        raise InputError(f"{species} is to be an array of names and {mapping} an object with 'class'")
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        parts = str(name).split("_")
        if len(parts) < 4:
            raise InputError(f"{species}: {name!r} is not of the form 00000_kingdom_phylum_class_...")
        found[parts[3]] = (parts[1], parts[2])
    columns: dict[str, int] = index["class"]
    if sorted(columns.values()) != list(range(len(columns))) or not columns.keys() <= found.keys():
        raise InputError(f"{mapping}: 'class' is to number the classes of {species.name} from 0, each once")
    ordered = sorted(columns, key=columns.__getitem__)
    return _taxonomy(mapping, {name: found[name] for name in ordered}, len(ordered), depth=2)


def _from_embeddings(file: Path, softmax: Path, labels: Path) -> Taxonomy:
    K = np.asarray(read_column(softmax)).shape[-1] if softmax.suffix == ".npy" else 0
    if not K:
        raise InputError(f"{softmax}: with embeddings.npy the softmax is to be an .npy file")
    names = tuple(map(str, range(K)))
    embeddings, y = np.asarray(read_column(file)), _truth(labels, names)
    with _blamed_on(file):
        return clustered(embeddings, y, names)


# What they share ----------------------------------------------------------------------------------------------------


def _numbered(file: Path, leaves: list[tuple[int, tuple[str, ...]]]) -> Taxonomy:
    paths = dict(leaves)
    if sorted(y for y, _ in leaves) != list(range(len(paths))):
        raise InputError(f"{file}: the labels are to be the columns of the softmax, 0 to K - 1, each below one parent")
    depth = min(map(len, paths.values()))
    return _taxonomy(file, {str(y): paths[y] for y in sorted(paths)}, len(leaves), depth)


def _taxonomy(file: Path, paths: Mapping[str, tuple[str, ...]], rows: int, depth: int) -> Taxonomy:
    if len(paths) < rows or depth < 1:
        raise InputError(f"{file}: a label appears twice, or stands directly below the root")
    return Taxonomy(file.name, tuple(paths), tuple(paths.values()), depth, np.ones(len(paths)))


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder} has no {' or '.join(names)}")


def _hierarchy_file(folder: Path, kind: str, name: str) -> Path:
    places = (folder / name, folder.resolve().parents[1] / "hierarchy_artifacts" / kind / name)
    for place in places:
        if place.is_file():
            return place
    raise InputError(f"{name} is neither in {places[0].parent} nor in {places[1].parent}")


def _dataset(folder: Path) -> str | None:
    file = folder / "metadata.json"
    if not file.is_file():
        return None
    data = _json(file)
    if not isinstance(data, dict) or not isinstance(data.get("dataset"), str):
        raise InputError(f'{file}: an object with a name is expected, as {{"dataset": "CIFAR100"}}')
    return str(data["dataset"])


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file}: is not JSON: {error}") from None


def _truth(file: Path, labels: tuple[str, ...], n: int | None = None) -> NDArray[np.int64]:
    given = read_column(file)
    with _blamed_on(file):
        return row_attributes.truth(given, labels, n)


@contextmanager
def _blamed_on(file: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise InputError(f"{file}: {error}") from None
