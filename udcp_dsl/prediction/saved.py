"""A calibrated predictor as one JSON file: the spec with all it read, the oracle, the thresholds. No pickle.

The file carries a hash of its own content, so that a change is noticed; a newer format is refused. Everything is
checked again on loading: the spec is compiled from the text and the data in the file, never from elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from udcp_dsl import __version__
from udcp_dsl.diagnostics import InputError
from udcp_dsl.loss import loads
from udcp_dsl.prediction.anchors import Anchors
from udcp_dsl.prediction.calibrate import Calibration, Tuning
from udcp_dsl.prediction.calibrate.calibration_scores import CalibrationScores
from udcp_dsl.prediction.calibrate.partition import thinned
from udcp_dsl.prediction.files import atomic_write
from udcp_dsl.prediction.oracle import migrate_options, oracle_names
from udcp_dsl.prediction.predictor import SetPredictor
from udcp_dsl.prediction.promises.options import as_temperature, refuse_weights

FORMAT = "udcp_dsl predictor"
FORMAT_VERSION = 2  # 1: udcp_dsl 0.1.0

# Options of oracles that say where and how fast to solve: another's machine is none of a file's business.
_OF_A_MACHINE = ("workers", "checkpoint")

# What could not be asked for up to format 1, and so is not in such a file.
_PROMISES: dict[str, Any] = {
    "bins": None,
    "confidence": None,
    "simultaneous": False,
    "risk": None,
    "temperature": None,
}

_FLAGS = ("nonempty", "randomize", "pool", "logits", "normalize")


def save(predictor: SetPredictor, path: str | Path) -> None:
    """Write the predictor; the file appears whole or not at all."""
    text = json.dumps(_content(predictor), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def digest(predictor: SetPredictor) -> str:
    """What tells a predictor from every other: the hash of what is saved of it, or was when it was loaded."""
    read = predictor.read_as
    if read is not None and read[0] is predictor.calibration:
        return read[1]
    return str(_content(predictor)["sha256"])


def _content(predictor: SetPredictor) -> dict[str, Any]:
    """What is saved of a predictor, and the hash of it."""
    if predictor.calibration is None:
        raise InputError("the predictor is not calibrated, so there is nothing to save: call calibrate first")
    if predictor.oracle.name not in oracle_names():
        raise InputError(
            f"oracle {predictor.oracle.name!r} has no entry point, so a saved file could not find it again"
        )
    loss, promises = predictor.loss, predictor.promises
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
            "files": {
                name: {"sha256": hashlib.sha256(data).hexdigest(), "base64": base64.b64encode(data).decode("ascii")}
                for name, data in loss.files.items()
            },
        },
        "oracle": {
            "name": predictor.oracle.name,
            "options": {name: x for name, x in predictor.oracle.options.items() if name not in _OF_A_MACHINE},
        },
        "options": {
            "alphas": [str(alpha) for alpha in predictor.alphas],
            "conditional": predictor.conditional,
            "bins": promises.bins if predictor.conditional == "difficulty" else None,
            "confidence": None if promises.confidence is None else str(promises.confidence),
            "simultaneous": promises.simultaneous,
            "risk": None if promises.harm is None else promises.harm.name,
            "temperature": promises.temperature,
            "nonempty": predictor.nonempty,
            "randomize": predictor.randomize,
            "seed": predictor.seed,
            "pool": predictor.pool,
            "class_names": None if predictor.class_names is None else list(predictor.class_names),
            "logits": predictor.logits,
            "normalize": predictor.normalize,
        },
        "calibration": predictor.calibration.as_dict(),
        "tuning": None if predictor.tuning is None else predictor.tuning.as_dict(),
        "anchors": None if predictor.anchors is None else predictor.anchors.as_dict(),
        "temperature": predictor.temperature,
        "kept": None if predictor.kept is None else thinned(predictor.kept, predictor.calibration).as_dict(),
    }
    try:
        content["sha256"] = _hash(content)
    except (TypeError, ValueError) as error:  # all else in it is plain data
        raise InputError(
            f"the options of oracle {predictor.oracle.name!r} cannot be written as JSON, so it cannot be saved: {error}"
        ) from error
    return content


def load(path: str | Path) -> SetPredictor:
    """Read a predictor, checking that it is whole and unchanged."""
    content = _read(Path(path))
    where = str(path)
    try:
        predictor = _rebuild(content)
        if (content["version"], content["format_version"]) == (__version__, FORMAT_VERSION):
            predictor.read_as = predictor.calibration, content["sha256"]
        return predictor
    except (KeyError, TypeError, AttributeError, IndexError) as error:
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
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        if path.suffix == ".loss":
            raise InputError(f"{path} is a spec, not a saved predictor: udcp calibrate {path} ... -o FILE") from None
        raise InputError(f"{path} is not a saved predictor: it is not JSON, or cut short") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved predictor")
    version = content.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(f"{path} has no format version; save the predictor again")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} is of format {version}, saved by udcp_dsl {content.get('version')}; this one ({__version__}) "
            f"reads up to format {FORMAT_VERSION}: upgrade udcp_dsl"
        )
    if content.get("sha256") != _hash(content):
        raise InputError(f"{path} was changed after it was saved; calibrate and save again")
    return content


def _hash(content: Mapping[str, Any]) -> str:
    """The hash of everything but the hash, in one canonical form."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _rebuild(content: Mapping[str, Any]) -> SetPredictor:
    spec, options = content["spec"], content["options"]
    if not all(isinstance(options[flag], bool) for flag in _FLAGS):
        raise InputError(f"one of its options {', '.join(_FLAGS)} is neither true nor false; save it again")
    for option in _OF_A_MACHINE:
        if option in content["oracle"]["options"]:
            raise InputError(
                f"its oracle has the option {option!r}, which starts processes or writes files where it is loaded, and "
                "is never saved, so that it was put in afterwards: calibrate and save again"
            )
    loss = loads(
        spec["text"],
        labels=spec["labels"],
        params=spec["params"],
        loss=spec["loss"],
        files={name: _bytes(name, file) for name, file in spec["files"].items()},
        name=spec["name"],
    )
    predictor = SetPredictor(
        loss,
        content["oracle"]["name"],
        options=migrate_options(content["oracle"]["name"], content["format_version"], content["oracle"]["options"]),
        alpha=options["alphas"],
        conditional=options["conditional"],
        **{name: options.get(name, default) for name, default in _PROMISES.items()},
        nonempty=options["nonempty"],
        randomize=options["randomize"],
        seed=options["seed"],
        class_names=options["class_names"],
        pool=options["pool"],
    )
    calibration = Calibration.from_dict(content["calibration"])
    if (calibration.alphas, calibration.conditional, calibration.randomize) != (
        predictor.alphas,
        predictor.conditional,
        predictor.randomize,
    ):
        raise InputError("its thresholds do not belong to its options; save it again")
    if calibration.conditional == "class" and len(calibration.cells) != loss.K:
        raise InputError("its thresholds do not belong to its labels; save it again")
    cells = len(calibration.named_cells)
    asked = predictor.promises
    if calibration.rule != asked.rule(cells) or (calibration.edges and cells != asked.bins):
        raise InputError("its thresholds do not belong to what it promises; save it again")
    if calibration.weighted:
        refuse_weights(asked)
    tuning = None if content["tuning"] is None else Tuning.from_dict(content["tuning"])
    if tuning is not None and tuning.best != predictor.oracle.options.get("lam"):
        raise InputError("its lambda is not the one that was tuned; save it again")
    anchors = content.get("anchors")  # of format 2
    found = None if anchors is None else Anchors.from_dict(anchors)
    if found is not None and (not predictor.oracle.wants_anchor or set(found.overall) != set(predictor.alphas)):
        raise InputError("its anchors do not belong to its oracle and alphas; save it again")
    temperature = as_temperature(content.get("temperature"))
    if temperature == "fit" or predictor.promises.temperature not in ("fit", temperature):
        raise InputError("its temperature is not what was asked for; save it again")
    predictor.restore(
        calibration,
        tuning,
        found,
        logits=options["logits"],
        normalize=options["normalize"],
        temperature=temperature,
        kept=_kept(content.get("kept"), calibration, found is not None),
    )
    return predictor


def _kept(data: object, calibration: Calibration, anchored: bool) -> CalibrationScores | None:
    """The calibration scores, which files of 0.1.0 do not have, and weighted calibrations keep by themselves."""
    if data is None:
        return None
    kept = CalibrationScores.from_dict(data, calibration.alphas)
    numbers = {sum(counts.n for counts in level) for level in kept.cells}
    fits = numbers == {calibration.n} and bool(kept.alphas) == anchored and len(kept.cells[0]) == len(calibration.cells)
    harmed = any((counts.harm is None) != (calibration.rule.most is None) for level in kept.cells for counts in level)
    if not fits or harmed or calibration.weighted:
        raise InputError("its calibration scores do not belong to its thresholds; save it again")
    return kept


def _bytes(name: str, file: Mapping[str, str]) -> bytes:
    try:
        data = base64.b64decode(file["base64"], validate=True)
    except binascii.Error:
        raise InputError(f"its copy of {name!r} is damaged; save it again") from None
    if hashlib.sha256(data).hexdigest() != file["sha256"]:
        raise InputError(f"its copy of {name!r} was changed; save it again")
    return data
