"""A calibrated predictor as one JSON file: the spec with its data files, the oracle, the thresholds. No pickle.

The file carries a hash of its own content, so that a change is noticed; a newer format is refused. Everything is
checked again on loading: the spec is compiled from the text and the data in the file, never from elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from udcp_dsl import __version__
from udcp_dsl.diagnostics import InputError, nearest
from udcp_dsl.files import atomic_write
from udcp_dsl.loss import Loss, loads
from udcp_dsl.predict.chain import plain, read
from udcp_dsl.predict.oracle import oracle_names
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.predict.promise import Promise
from udcp_dsl.predict.stages.stage import FitContext
from udcp_dsl.rows.matrix import check_class_names

FORMAT = "udcp_dsl predictor"
FORMAT_VERSION = 4  # 3: udcp_dsl 0.3; those before are read, and converted, by version 0.3

# Options of oracles that depend on the machine (where and how fast to solve), and so are not saved.
_MACHINE_OPTIONS = ("workers", "checkpoint")

# In UTF-8, only escapes can stand for half of a surrogate pair, which no UTF-8 file can hold when it is saved again.
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_INPUT_FLAGS = ("logits", "normalize")


def save(predictor: SetPredictor, path: str | Path) -> None:
    """Write the predictor; the file appears only when it is complete."""
    text = json.dumps(_content(predictor), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def digest(predictor: SetPredictor) -> str:
    """A hash that identifies the predictor: that of its file, if unchanged since loading, or of what `save` writes."""
    read = predictor.file_hash
    if read is not None and read[0] is predictor.fits:
        return read[1]
    return str(_content(predictor)["sha256"])


def _content(predictor: SetPredictor) -> dict[str, Any]:
    """The content of a saved file, including its hash."""
    if not predictor.fits:
        raise InputError("the predictor is not calibrated, so there is nothing to save: call calibrate first")
    if predictor.oracle.name not in oracle_names():
        raise InputError(
            f"oracle {predictor.oracle.name!r} has no entry point, so a saved file could not find it again"
        )
    if predictor.loss.multipliers:
        raise InputError(
            "the loss has multipliers, which a saved file does not hold: give the predictor the loss of the spec, "
            "whose limits 'price' enforces"
        )
    loss, given = predictor.loss, predictor.given_labels
    content: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "version": __version__,
        "spec": {
            "name": loss.source.name,
            "text": loss.source.text,
            "loss": loss.name,
            "params": dict(loss.params),
            "labels": list(loss.labels),
            **_fixed_inputs(loss),
            "files": {
                name: {"sha256": hashlib.sha256(data).hexdigest(), "base64": base64.b64encode(data).decode("ascii")}
                for name, data in loss.files.items()
            },
        },
        "oracle": {
            "name": predictor.oracle.name,
            "options": {name: x for name, x in predictor.oracle.options.items() if name not in _MACHINE_OPTIONS},
        },
        "promise": predictor.promise.as_dict(),
        "class_names": None if predictor.class_names is None else list(predictor.class_names),
        "columns": None if predictor.columns is None else list(predictor.columns),
        "given_labels": list(given) if given is not None and all(map(_is_plain, given)) else None,
        **{name: getattr(predictor, name) for name in _INPUT_FLAGS},
        **plain(predictor.fits),
    }
    try:
        content["sha256"] = _hash(content)
    except (TypeError, ValueError) as error:  # everything else in it is plain data
        raise InputError(
            f"the options of oracle {predictor.oracle.name!r} cannot be written as JSON, so it cannot be saved: {error}"
        ) from error
    return content


def _fixed_inputs(loss: Loss) -> dict[str, Any]:
    """The numbers of the inputs that `loss.at(...)` has fixed; nothing for other losses."""
    fixed = loss.fixed_inputs
    return {} if fixed is None else {"inputs": {name: np.asarray(value).tolist() for name, value in fixed.items()}}


def load(path: str | Path) -> SetPredictor:
    """Read a predictor; check that the file is complete and unchanged."""
    content = _read(Path(path))
    where = str(path)
    try:
        predictor = _rebuild(content)
        if (content["version"], content["format_version"]) == (__version__, FORMAT_VERSION):
            predictor.file_hash = predictor.fits, content["sha256"]
        return predictor
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{where} is not a saved predictor: {type(error).__name__} at {error}; save it again"
        ) from None
    except ValueError as error:
        raise InputError(f"{where} cannot be loaded: {error}") from error


def saved_by(path: str | Path) -> tuple[str, int]:
    """The version of udcp_dsl that saved a predictor, and the format of the file."""
    content = _read(Path(path))
    return str(content.get("version")), int(content["format_version"])


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except InputError as error:
        raise InputError(f"{path} is not a saved predictor: {error}") from None
    except FileNotFoundError:
        near = nearest(path.name, (x.name for x in path.parent.iterdir())) if path.parent.is_dir() else []
        meant = f"; did you mean {str(path.parent / near[0])!r}?" if near else ""
        raise InputError(f"there is no file {str(path)!r}{meant}") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        if path.suffix == ".loss":
            way_out = f"make one with udcp calibrate {path} ... -o FILE"
            raise InputError(f"{path} is a spec, not a saved predictor: {way_out}") from None
        raise InputError(f"{path} is not a saved predictor: it is not JSON, or cut short") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved predictor")
    if _ESCAPED_SURROGATE.search(text) and not _is_text(content):
        raise InputError(f"{path} is not a saved predictor: a text in it has half of a surrogate pair")
    version = content.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(f"{path} has no format version; save the predictor again")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} is of format {version}, saved by udcp_dsl {content.get('version')}; this one ({__version__}) "
            f"reads up to format {FORMAT_VERSION}: upgrade udcp_dsl"
        )
    try:
        own = _hash(content)
    except (ValueError, RecursionError):  # 1e999 is read as infinity
        raise InputError(f"{path} is not a saved predictor: a number is too large, or lists are too deep") from None
    if content.get("sha256") != own:
        raise InputError(f"{path} was changed after it was saved; calibrate and save again")
    return content


def _is_text(content: object) -> bool:
    """Whether all texts can be written as UTF-8."""
    try:
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    except (ValueError, RecursionError):  # told apart when it is hashed
        return True
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; refuses a repeated key, as readers differ in which of its values they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        name, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise InputError(f"the key {name!r} appears twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise InputError(f"{name} is not a JSON number")


def _hash(content: Mapping[str, Any]) -> str:
    """The hash of the content without its hash, in a canonical form."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _rebuild(content: Mapping[str, Any]) -> SetPredictor:
    content = migrated(content)
    spec, oracle = content["spec"], content["oracle"]
    if not all(isinstance(content[flag], bool) for flag in _INPUT_FLAGS):
        raise InputError(f"one of its options {', '.join(_INPUT_FLAGS)} is neither true nor false; save it again")
    for option in _MACHINE_OPTIONS:
        if option in oracle["options"]:
            raise InputError(
                f"its oracle has the option {option!r}, which starts processes or writes files and is never saved, so "
                "the file was edited: calibrate and save again"
            )
    loss = loads(
        spec["text"],
        labels=spec["labels"],
        params=spec["params"],
        loss=spec["loss"],
        files={name: _bytes(name, file) for name, file in spec["files"].items()},
        name=spec["name"],
    )
    if "inputs" in spec:
        loss = loss.reading(*spec["inputs"]).at(spec["inputs"])
    predictor = SetPredictor(
        loss,
        oracle["name"],
        promise=Promise.from_dict(content["promise"]),
        options=oracle["options"],
        class_names=content["class_names"],
    )
    predictor.use(read(content, FitContext(predictor.promise, predictor.oracle)))
    predictor.logits, predictor.normalize = content["logits"], content["normalize"]
    predictor.given_labels = _given_labels(content["given_labels"], loss.K)
    if content.get("columns") is not None:
        check_class_names(content["columns"], loss.labels)
        predictor.columns = tuple(content["columns"])
    return predictor


def _given_labels(data: object, K: int) -> tuple[Any, ...] | None:
    """One text, number or truth value for each label, all different, or None."""
    if data is None:
        return None
    if not isinstance(data, list) or not all(map(_is_plain, data)) or not len(data) == len(set(data)) == K:
        raise InputError("its given_labels must have one entry per label; save it again")
    return tuple(data)


def _is_plain(label: object) -> bool:
    return isinstance(label, str | int | float)


def migrated(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of a file of format 3, where a stage had a value for each alpha, converted to the current format."""
    version = content["format_version"]
    if version == FORMAT_VERSION:
        return content
    if version < 3:
        raise InputError(
            f"it is of format {version}, saved by udcp_dsl {content.get('version')}: load and save it with version "
            "0.3, which converts it"
        )
    *stages, last = content["stages"]
    calibration, scores = last["calibration"], last["scores"]
    if calibration["conditional"] == "difficulty":
        raise InputError(
            "its bins by difficulty depend on the ranks of rows, and bins have fitted edges since version 0.4: "
            "calibrate again"
        )
    by_alpha = {x["stage"] for x in stages} & {"anchor", "multipliers"}
    fits = [
        {
            "alpha": alpha,
            "stages": [_at_alpha(stage, alpha) for stage in stages if stage["stage"] in by_alpha],
            "calibration": _calibration_at(calibration, i),
            "scores": i if scores is not None and scores["alphas"] else 0,
        }
        for i, alpha in enumerate(calibration["alphas"])
    ]
    return {
        **content,
        "stages": [stage for stage in stages if stage["stage"] not in by_alpha],
        "strata": {"names": calibration["groups"]},
        "fits": fits,
        "scores": [None] if scores is None else scores["cells"],
    }


def _at_alpha(stage: Mapping[str, Any], alpha: str) -> dict[str, Any]:
    """A stage of format 3 at one alpha."""

    def anchor(found: Mapping[str, Any]) -> dict[str, Any]:
        by_group = {name: x[alpha] for name, x in found["by_group"].items()}
        return {"n": found["n"], "overall": found["overall"][alpha], "by_stratum": by_group}

    if stage["stage"] == "anchor":
        return {"stage": "anchor", **anchor(stage)}
    own = None if stage["anchors"] is None else anchor(stage["anchors"])
    return {"stage": "multipliers", "n": stage["n"], "effects": stage["found"][alpha], "anchor": own}


def _calibration_at(calibration: Mapping[str, Any], i: int) -> dict[str, Any]:
    """The calibration of format 3 at its i-th alpha."""

    def cell(found: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: found[name] for name in ("n", "scores", "weights", "harms")}
        return {**kept, "threshold": found["thresholds"][i], "steps": found["steps"][i] if found["steps"] else None}

    pooled = calibration["pooled"]
    return {
        "cells": [cell(x) for x in calibration["cells"]],
        "pooled": None if pooled is None else cell(pooled),
        "weighted": calibration["weighted"],
        "label_weights": calibration["label_weights"],
    }


def _bytes(name: str, file: Mapping[str, str]) -> bytes:
    try:
        data = base64.b64decode(file["base64"], validate=True)
    except binascii.Error:
        raise InputError(f"its copy of {name!r} is damaged; save it again") from None
    if hashlib.sha256(data).hexdigest() != file["sha256"]:
        raise InputError(f"its copy of {name!r} was changed; save it again")
    return data
