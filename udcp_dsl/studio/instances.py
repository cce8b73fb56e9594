"""The rows of a studio: the user's own, or those of a generated classifier; half of them calibrate, half are shown.

The log-odds of a generated row are noise for every node of the hierarchy and every label, so that near labels are
confused. The truth is drawn from these odds; the classifier is a little overconfident.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.diagnostics import InputError, keeping_warnings
from udcp_dsl.expression.given import inputs_of
from udcp_dsl.loss import Loss
from udcp_dsl.report.browser import tree_of
from udcp_dsl.rows.roles import Columns
from udcp_dsl.rows.rows import Rows, rows_of
from udcp_dsl.rows.source import open_rows, read_column

if TYPE_CHECKING:
    from udcp_dsl.studio.studio import Studio

MOST = 4000  # most rows of the user's that are kept, so that a slider acts at once
_CELLS, _FEWEST, _ENOUGH = 4_000_000, 200, 1000  # probabilities, fewest rows and most rows that are generated
_SURE = 1.25  # overconfidence of the generated classifier
_ENDINGS = (".npy", ".npz", ".csv", ".parquet", ".arrow")  # of files that are dropped on the page
_LONGEST = 1000  # characters of a name
_OWN, _SHARED = 2.2, 2.6  # scales of the noise of labels and of nodes


@dataclass(frozen=True, eq=False)
class Instances:
    """`about` describes the rows in a few words; `places` are the positions of `shown` in the rows that were read."""

    calibration: Rows
    shown: Rows
    about: str
    places: tuple[int, ...]


# Makes the rows for a loss.
Supply = Callable[[Loss], Instances]


def generated(loss: Loss, seed: int = 0) -> Instances:
    """Rows of a generated classifier for the labels of a loss."""
    rng = np.random.default_rng(seed)
    n = int(min(_ENOUGH, max(_FEWEST, _CELLS // loss.K)))
    odds = _OWN * rng.gumbel(size=(n, loss.K))
    tree = tree_of(loss)
    if tree is not None and tree.names:
        shared = rng.gumbel(size=(n, len(tree.names)))
        for node, above in enumerate(tree.parent):  # parents come before their children
            if above >= 0:
                shared[:, node] += shared[:, above]
        for y, nodes in enumerate(tree.above):
            if nodes:
                odds[:, y] += _SHARED * shared[:, list(nodes)].mean(axis=1)
    y = np.argmax(odds + rng.gumbel(size=odds.shape), axis=1)
    scores = _SURE * odds
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    rows = rows_of(P / P.sum(axis=1, keepdims=True), loss.labels, y=np.array(loss.labels, dtype=object)[y].tolist())
    return halved(with_inputs(rows, loss, seed), f"{n:,} rows of a generated classifier", seed)


def with_inputs(rows: Rows, loss: Loss, seed: int = 0) -> Rows:
    """Rows with all inputs that the spec declares; missing ones are drawn uniformly from their ranges."""
    declared, rng = loss.declared_inputs, np.random.default_rng([seed, 1])
    known = {} if rows.inputs is None else dict(rows.inputs)
    if not declared or known.keys() >= declared.keys():
        return rows
    drawn = {
        name: rng.uniform(x.low, x.high, (len(rows),) if x.width is None else (len(rows), x.width))
        for name, x in declared.items()
    }
    return replace(rows, inputs=inputs_of(declared, {**drawn, **known}, len(rows)))


def halved(rows: Rows, about: str, seed: int = 0) -> Instances:
    """Split rows into two halves at random; only `MOST` of them, if there are more."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(rows))[:MOST]
    half = len(chosen) // 2
    first, second = np.sort(chosen[:half]), np.sort(chosen[half:])
    if len(rows) > MOST:
        about = f"{about}, {MOST:,} of {len(rows):,} by chance"
    return Instances(rows.take(first), rows.take(second), about, tuple(second.tolist()))


def own(rows: Rows, about: str) -> Supply:
    """The user's rows for any spec with their labels, and generated rows for other specs."""

    def supply(loss: Loss) -> Instances:
        if loss.labels == rows.labels:
            lacking = loss.inputs.keys() - (() if rows.inputs is None else rows.inputs.keys())
            description = f"{about}, with inputs that are drawn: {', '.join(sorted(lacking))}" if lacking else about
            return halved(with_inputs(rows, loss), description)
        made = generated(loss)
        return Instances(
            made.calibration, made.shown, f"{made.about}: the labels are not those of {about}", made.places
        )

    return supply


def dragged(p: Any, label: int, value: float) -> Any:
    """A row in which one label has this probability, and the others share the rest in their previous proportions.

    >>> dragged(np.array([0.5, 0.3, 0.2]), 0, 0.0).round(3).tolist()
    [0.0, 0.6, 0.4]
    """
    now = np.array(p, dtype=np.float64)
    value = min(1.0, max(0.0, float(value)))
    others = np.arange(len(now)) != label
    left = float(now[others].sum())
    if left > 0:
        now[others] *= (1 - value) / left
    elif len(now) > 1:
        now[others] = (1 - value) / (len(now) - 1)
    now[label] = value if len(now) > 1 else 1.0
    return now / now.sum()


# Rows that are dropped on the page: probabilities and the truth, in the files that `--probs` and `--truth` take. They
# are written to a temporary folder while they are read, and never leave this machine.


def load_rows(studio: Studio, body: Any) -> Any:
    """Load {probs: {name, content}, truth: {name, content} or {column}, normalize}, with content in base 64.

    Answers with what was loaded. Raises InputError if it cannot be used; the rows then stay what they were.
    """
    loss = studio.loss
    if loss is None:
        raise InputError("the spec does not compile: fix it first, so that its labels are known")
    if not isinstance(body, dict) or not isinstance(body.get("truth"), dict):
        raise InputError("rows are an object with probs and truth")
    truth = body["truth"]
    column = truth.get("column")
    if column is not None and (not isinstance(column, str) or len(column) > _LONGEST):
        raise InputError("the column of the truth is a name")
    with TemporaryDirectory(prefix="udcp-studio-") as folder, keeping_warnings():
        file = _write_upload(Path(folder) / "probs", body.get("probs"), "probabilities")
        beside = {} if column else {"true labels": _write_upload(Path(folder) / "truth", truth, "truth")}
        columns = Columns(truth_column=column) if column else Columns()
        table = file.suffix not in (".npy", ".npz")  # for an array, inputs are drawn
        read: dict[str, Any] = {"inputs": loss.inputs if table else None, "unread": loss.declared_inputs}
        source = open_rows(str(file), loss.labels, columns, normalize=body.get("normalize") is True, **read)
        rows = replace(source, beside={role: read_column(str(path)) for role, path in beside.items()}).whole()
    name = body["probs"]["name"]
    about = f"{len(rows):,} rows of {Path(name).name}"
    studio.use_rows(own(rows, about))
    return {"about": about, "rows": len(rows)}


def _write_upload(path: Path, given: Any, what: str) -> Path:
    """A file from the page, written to disk under our own name with its ending."""
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or len(given["name"]) > _LONGEST:
        raise InputError(f"the file of the {what} has a name and a content")
    ending = Path(given["name"]).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"{given['name']}: the {what} are in a file that ends in {', '.join(_ENDINGS)}")
    try:
        content = base64.b64decode(given.get("content", ""), validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InputError(f"{given['name']}: the content is not base 64") from None
    placed = path.with_suffix(ending)
    placed.write_bytes(content)
    return placed
