"""Saved predictors: the same sets to the last bit wherever they are loaded, and no file that was tampered with."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
import udcp_dsl.predict.saved as saved
from udcp_dsl import InputError, SetPredictor
from udcp_dsl.predict.calibrate import Tuning
from udcp_dsl.predict.oracle import Oracle
from udcp_dsl.rows.columns import NamedPositions

ORACLES = udcp.oracle_names()
CSV = "name,price\ncat,1\ndog,1.5\nwolf,3\nlynx,0.1\n"
SPEC = """
labels from "animals.csv" column name
costs c from "animals.csv" column price
param weight = 0.1 in [0, 1]
loss size_alone = size
loss l = sum(c) + weight * size
"""
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 120)
Y = NamedPositions.of(np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1), ["cat", "dog", "wolf", "lynx"])
NEW = rng.dirichlet(np.ones(4), 50).astype(np.float32)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "animals.csv").write_text(CSV, encoding="utf-8")
    (folder / "animals.loss").write_text(SPEC, encoding="utf-8")
    return folder / "animals.loss"


SETTINGS: list[dict[str, Any]] = [
    {"alpha": 0.2},
    {"alpha": [0.3, "1/7"]},
    {"alpha": 0.2, "conditional": "class", "class_names": ["wolf", "lynx", "dog", "cat"]},
    {"alpha": 0.2, "conditional": "group", "pool": True},
    {"alpha": 0.2, "nonempty": True},
    {"alpha": 0.2, "randomize": True, "seed": 5},
    {"alpha": 0.001},  # an infinite threshold
]


def calibrated(loss: udcp.Loss, oracle: str, **settings: Any) -> SetPredictor:
    if oracle == "penalized" and isinstance(settings.get("alpha"), list):
        settings["options"] = {"lam": 0.1}
    predictor = SetPredictor(loss, oracle, **settings)
    groups = np.arange(len(P)) % 2 if predictor.conditional == "group" else None
    return predictor.calibrate(P, Y, groups=groups)


def masks(predictor: SetPredictor) -> list[Any]:
    groups = ["0"] * 25 + ["1"] * 25 if predictor.conditional == "group" else None
    return [predictor.predict_set(NEW, alpha=alpha, groups=groups).mask for alpha in predictor.alphas]


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")  # few points, and positions beside class_names
def test_a_loaded_predictor_gives_the_same_sets(spec: Path, oracle: str, settings: dict[str, Any]) -> None:
    predictor = calibrated(udcp.load(spec, params={"weight": 0.7}), oracle, **settings)
    file = spec.parent.parent / "saved.json"
    predictor.save(file)
    shutil.rmtree(spec.parent)  # the spec and its data are in the file
    loaded = SetPredictor.load(file)
    assert all(np.array_equal(a, b) for a, b in zip(masks(predictor), masks(loaded), strict=True))
    assert repr(loaded) == repr(predictor)
    assert (loaded.loss.params, loaded.loss.name, loaded.tuning) == ({"weight": 0.7}, "l", predictor.tuning)
    assert loaded.calibrated.as_dict() == predictor.calibrated.as_dict()
    again = file.with_name("again.json")
    loaded.save(again)
    assert again.read_bytes() == file.read_bytes()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_in_a_fresh_process_and_another_folder(spec: Path, tmp_path: Path) -> None:
    predictors = {oracle: calibrated(udcp.load(spec), oracle, alpha=0.2, randomize=True) for oracle in ORACLES}
    for oracle, predictor in predictors.items():
        predictor.save(tmp_path / f"{oracle}.json")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for oracle in ORACLES:
        (tmp_path / f"{oracle}.json").rename(elsewhere / f"{oracle}.json")
    np.save(elsewhere / "new.npy", NEW)
    shutil.rmtree(spec.parent)
    code = """
import sys, numpy as np, udcp_dsl as udcp
new = np.load("new.npy")
for oracle in sys.argv[1:]:
    np.save(oracle + ".npy", udcp.SetPredictor.load(oracle + ".json").predict_set(new).mask)
"""
    path = [str(Path(saved.__file__).parents[2] / part) for part in (".", "solvers", "grammars")]
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}", *ORACLES], cwd=elsewhere, check=True
    )
    for oracle, predictor in predictors.items():
        assert np.array_equal(np.load(elsewhere / f"{oracle}.npy"), masks(predictor)[0])


def test_a_tuned_lambda_is_kept_and_tuned_anew_when_calibrated_again(spec: Path, tmp_path: Path) -> None:
    predictor = calibrated(udcp.load(spec), "penalized", alpha=0.2)
    predictor.save(tmp_path / "saved.json")
    loaded = SetPredictor.load(tmp_path / "saved.json")
    assert loaded.tuning is not None
    assert loaded.tuning == predictor.tuning
    assert loaded.oracle.options["lam"] == loaded.tuning.best
    assert loaded.calibrate(P, Y).calibrated.n == 40


@pytest.fixture
def file(spec: Path, tmp_path: Path) -> Path:
    path = tmp_path / "saved.json"
    calibrated(udcp.load(spec), "raps", alpha=0.2).save(path)
    return path


def rewrite(file: Path, change: Any, *, forge: bool = False) -> None:
    """Change the content of a file; `forge` gives it the hash that it would have had."""
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    if forge:
        content["sha256"] = saved._hash(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def places(thing: Any) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to everything inside, at any depth."""
    items = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for key, value in items:
        yield (key,)
        yield from ((key, *rest) for rest in places(value))


def altered(value: Any) -> Any:
    if isinstance(value, dict):
        return {**value, "more": 1}
    if isinstance(value, list):
        return [*value, "more"]
    if isinstance(value, str):
        return value + "0"
    return not value if value is None or isinstance(value, bool) else value + 1


def test_every_change_is_noticed(file: Path) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    assert set(content) == {
        "format", "format_version", "version", "spec", "oracle", "promise",
        "class_names", "columns", "given_labels", "logits", "normalize", "stages", "strata", "fits", "scores", "sha256",
    }  # fmt: skip
    assert len(list(places(content))) > 40
    for *above, key in places(content):
        changed = json.loads(json.dumps(content))
        place = changed
        for step in above:
            place = place[step]
        place[key] = altered(place[key])
        file.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(InputError):
            SetPredictor.load(file)
    for key in content:
        file.write_text(json.dumps({k: v for k, v in content.items() if k != key}), encoding="utf-8")
        with pytest.raises(InputError):
            SetPredictor.load(file)
    file.write_text(json.dumps({**content, "more": 1}), encoding="utf-8")
    with pytest.raises(InputError, match="was changed after it was saved"):
        SetPredictor.load(file)
    file.write_text(json.dumps(content, indent=7), encoding="utf-8")  # other blanks are no change
    SetPredictor.load(file)


def test_a_cut_file_is_refused(file: Path) -> None:
    data = file.read_bytes()
    for length in {0, 1, len(data) // 3, len(data) // 2, len(data) - 3}:
        file.write_bytes(data[:length])
        with pytest.raises(InputError, match="is not a saved predictor: it is not JSON, or cut short"):
            SetPredictor.load(file)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"[1, 2]", b"null", b'"text"', b"{}", b"[" * 100_000, b"1e999"])
def test_what_is_no_saved_predictor_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(data)
    with pytest.raises(InputError, match="is not a saved predictor"):
        SetPredictor.load(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        SetPredictor.load(tmp_path / "absent.json")
    with pytest.raises(InputError, match="cannot read"):
        SetPredictor.load(tmp_path)


def test_a_newer_format_is_refused_before_anything_else(file: Path) -> None:
    rewrite(file, lambda c: c.update(format_version=5, version="9.0", spec=None))
    with pytest.raises(InputError, match=r"is of format 5, saved by udcp_dsl 9\.0; .* upgrade udcp_dsl"):
        SetPredictor.load(file)
    for version in (0, "1", None, True, 1.5):
        rewrite(file, lambda c, v=version: c.update(format_version=v))
        with pytest.raises(InputError, match="has no format version"):
            SetPredictor.load(file)


def embed(content: Any, text: str) -> None:
    data = text.encode()
    content["spec"]["files"]["animals.csv"] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "base64": base64.b64encode(data).decode(),
    }


def thresholds(content: Any) -> Any:
    return content["fits"][0]["calibration"]


FORGERIES: dict[str, tuple[Any, str]] = {
    "base64": (lambda c: c["spec"]["files"]["animals.csv"].update(base64="%%%"), "copy of 'animals.csv' is damaged"),
    "file": (
        lambda c: c["spec"]["files"]["animals.csv"].update(base64=base64.b64encode(b"?").decode()),
        "copy of 'animals.csv' was changed",
    ),
    "labels": (lambda c: embed(c, CSV.replace("lynx", "link")), "labels that were passed differ"),
    "no file": (lambda c: c["spec"].update(files={}), "not among the spec's files"),
    "spec": (lambda c: c["spec"].update(text="loss"), "cannot be loaded"),
    "param": (lambda c: c["spec"].update(params={"weight": 7}), "weight"),
    "no oracle": (lambda c: c["oracle"].update(name="none"), "there is no oracle 'none'"),
    "option": (lambda c: c["oracle"].update(options={"lambda": 1}), "no option 'lambda'"),
    "class names": (lambda c: c.update(class_names="cat"), "class_names: expected a sequence, not str"),
    "alphas": (lambda c: c["promise"].update(alpha=["1/2"]), "thresholds do not match its alphas"),
    "conditional": (lambda c: c["promise"].update(conditional="class"), "its cells do not fit its strata"),
    "randomize": (lambda c: c["promise"].update(randomize=True), "scores: expected a list of numbers"),
    "flag": (lambda c: c.update(logits=1), "neither true nor false"),
    "seed": (lambda c: c["promise"].update(seed="x"), "seed is 'x'"),
    "threshold": (lambda c: thresholds(c)["cells"][0].update(threshold="nan"), "threshold"),
    "cells": (lambda c: thresholds(c).update(cells=[]), "cells"),
    "tuning": (
        lambda c: c["stages"].insert(
            0, {"stage": "lambda", "tuning": Tuning((1.0,), (1.0,), (1.0,), 9, 0.0, 9.0).as_dict(), "rows": 9}
        ),
        "its lambda is not the one that was tuned",
    ),
    "no spec": (lambda c: c.pop("spec"), "KeyError"),
    "a list": (lambda c: c.update(spec=[1]), "TypeError"),
    "no promise": (lambda c: c.update(promise=None), "TypeError"),
    "an unknown promise": (lambda c: c["promise"].update(luck=1), "its option 'luck' is unknown"),
    "no fits": (lambda c: c.update(fits=[]), "thresholds do not match its alphas"),
    "scores of another": (lambda c: c["fits"][0].update(scores=7), "its calibration scores are damaged"),
    "strata": (lambda c: c["strata"].update(names=["a"]), "do not match its groups"),
    "an unknown stage": (lambda c: c["stages"].insert(0, {"stage": "luck"}), "a stage 'luck', which is not known here"),
    "the order of stages": (
        lambda c: c["stages"].extend(
            [
                {"stage": "temperature", "temperature": 2.0},
                {"stage": "repair", "repair": udcp.Repair(2.0).as_dict(), "total": 0},
            ]
        ),
        "stages are in the wrong order",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_checked_all_the_same(file: Path, name: str) -> None:
    change, message = FORGERIES[name]
    rewrite(file, change, forge=True)
    with pytest.raises(InputError, match=message):
        SetPredictor.load(file)


def test_classes_of_a_forged_file(spec: Path, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    calibrated(udcp.load(spec), "lac", alpha=0.2, conditional="class").save(file)
    rewrite(file, lambda c: thresholds(c)["cells"].pop(), forge=True)
    with pytest.raises(InputError, match="its cells do not fit its strata"):
        SetPredictor.load(file)


@pytest.mark.parametrize("oracle", ["ilp", "lac"])
@pytest.mark.parametrize("option", ["workers", "checkpoint"])
def test_a_forged_file_starts_no_process_and_writes_no_file(
    spec: Path, tmp_path: Path, oracle: str, option: str
) -> None:
    """Whoever loads a file says where and how fast to solve, not the file."""
    file, kept = tmp_path / "saved.json", tmp_path / "kept.sqlite"
    with pytest.warns(UserWarning, match="too few calibration rows"):
        SetPredictor(udcp.load(spec), oracle, alpha=0.01).calibrate(P[:4], Y[:4]).save(file)
    value = 3 if option == "workers" else str(kept)
    rewrite(file, lambda c: c["oracle"]["options"].update({option: value}), forge=True)
    with pytest.raises(InputError, match=f"its oracle has the option '{option}', which starts processes or writes"):
        SetPredictor.load(file)
    assert not kept.exists()


def test_where_and_how_fast_to_solve_is_not_saved(spec: Path, tmp_path: Path) -> None:
    options = {"workers": 1, "checkpoint": tmp_path / "kept.sqlite"}
    with pytest.warns(UserWarning, match="too few calibration rows"):
        SetPredictor(udcp.load(spec), "ilp", alpha=0.01, options=options).calibrate(P[:4], Y[:4]).save(
            tmp_path / "saved.json"
        )
    odd = udcp.make_oracle("lac", udcp.load(spec))
    odd.options.update(workers=2)  # as a stranger's oracle may have it
    SetPredictor(odd.loss, odd, alpha=0.2).calibrate(P, Y).save(tmp_path / "odd.json")
    for name in ("saved.json", "odd.json"):
        saved_options = json.loads((tmp_path / name).read_text(encoding="utf-8"))["oracle"]["options"]
        assert not {"workers", "checkpoint"} & set(saved_options)
        SetPredictor.load(tmp_path / name)


def test_saving_is_all_or_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = SetPredictor.load(file)
    before = file.read_bytes()

    def full(self: Path, *arguments: Any, **options: Any) -> int:
        with self.open("w", encoding="utf-8") as out:
            out.write("half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        predictor.save(file)
    with pytest.raises(InputError, match="cannot be written"):
        predictor.save(file.with_name("new.json"))
    assert file.read_bytes() == before
    assert sorted(p.name for p in file.parent.iterdir()) == ["home", "saved.json"]


def test_a_folder_that_is_not_there(file: Path) -> None:
    with pytest.raises(InputError, match=r"absent/saved\.json: cannot be written: No such file"):
        SetPredictor.load(file).save(file.parent / "absent" / "saved.json")


class Homemade(Oracle):
    name = "homemade"

    def _scores(self, P: Any) -> Any:
        return -P.astype(float)


def test_what_cannot_be_found_or_written_again_is_not_saved(spec: Path, tmp_path: Path) -> None:
    loss = udcp.load(spec)
    predictor = SetPredictor(loss, Homemade(loss), alpha=0.2).calibrate(P, Y)
    with pytest.raises(InputError, match="oracle 'homemade' has no entry point"):
        predictor.save(tmp_path / "saved.json")
    for option in ({1, 2}, float("nan")):
        odd = udcp.make_oracle("lac", loss)
        odd.options["what"] = option
        predictor = SetPredictor(loss, odd, alpha=0.2).calibrate(P, Y)
        with pytest.raises(InputError, match="options of oracle 'lac' cannot be written as JSON"):
            predictor.save(tmp_path / "saved.json")
    assert not (tmp_path / "saved.json").exists()


def test_data_from_outside_the_folder_is_carried_along(spec: Path, tmp_path: Path) -> None:
    below = spec.parent / "deeper"
    below.mkdir()
    (below / "animals.loss").write_text(SPEC.replace("animals.csv", "../animals.csv"), encoding="utf-8")
    predictor = calibrated(udcp.load(below / "animals.loss", allow_outside=True), "lac", alpha=0.2)
    predictor.save(tmp_path / "saved.json")
    shutil.rmtree(spec.parent)
    assert np.array_equal(masks(SetPredictor.load(tmp_path / "saved.json"))[0], masks(predictor)[0])


def test_labels_from_outside_the_spec(tmp_path: Path) -> None:
    loss = udcp.loads("loss l = size", labels=["a", "b", "c", "d"])
    SetPredictor(loss, "lac", alpha=0.2).calibrate(P, [loss.labels[k] for k in Y]).save(tmp_path / "saved.json")
    assert SetPredictor.load(tmp_path / "saved.json").loss.labels == ("a", "b", "c", "d")


def test_a_predictor_is_told_from_others_by_its_file_until_it_is_calibrated_anew(spec: Path, tmp_path: Path) -> None:
    predictor = calibrated(udcp.load(spec), "lac", alpha=0.2)
    predictor.save(tmp_path / "one.json")
    loaded = SetPredictor.load(tmp_path / "one.json")
    assert saved.digest(loaded) == saved.digest(predictor) == json.loads((tmp_path / "one.json").read_text())["sha256"]
    loaded.calibrate(P[:100], Y[:100])
    assert saved.digest(loaded) == saved.digest(
        calibrated(udcp.load(spec), "lac", alpha=0.2).calibrate(P[:100], Y[:100])
    )
    assert saved.digest(loaded) != saved.digest(predictor)


ONE_ROW = """
labels { cat, dog, wolf, lynx }
input km in [0, 9]
input unread in [0, 1]
costs fee per row in [0, 9]
loss l = sum(fee) + km * any({ wolf })
"""
ROW = {"km": 0.1, "fee": {"cat": 1, "dog": 9, "wolf": 1 / 3, "lynx": 2}}


@pytest.mark.parametrize("settings", [{}, {"risk": "fee"}], ids=str)
def test_the_loss_of_one_row_is_saved_with_its_inputs(settings: dict[str, Any], tmp_path: Path) -> None:
    loss = udcp.loads(ONE_ROW).at(ROW)
    predictor = calibrated(loss, "price", alpha=0.2, **settings)
    predictor.save(tmp_path / "saved.json")
    loaded = SetPredictor.load(tmp_path / "saved.json")
    assert not loaded.loss.inputs
    np.testing.assert_array_equal(loaded.predict_set(NEW).mask, predictor.predict_set(NEW).mask)
    np.testing.assert_array_equal(loaded.predict_set(NEW).costs, predictor.predict_set(NEW).costs)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "saved.json").read_bytes()
    elsewhere = calibrated(loss.at(), "price", alpha=0.2, **settings)
    assert saved.digest(elsewhere) == saved.digest(loaded)


def test_an_input_that_only_the_harm_reads_is_saved_for_one_row(tmp_path: Path) -> None:
    loss = udcp.loads(ONE_ROW.replace("sum(fee)", "size")).reading("fee").at(ROW)
    predictor = calibrated(loss, "price", alpha=0.2, risk="fee")
    predictor.save(tmp_path / "saved.json")
    loaded = SetPredictor.load(tmp_path / "saved.json")
    np.testing.assert_array_equal(loaded.predict_set(NEW).mask, predictor.predict_set(NEW).mask)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"km": 10, "fee": [1, 1, 1, 1]}, r"'km' is 10, outside \[0, 9\]"),
        ({"km": 1, "fee": [1, 1, 1]}, r"input 'fee' has shape \(1, 3\)"),
        ({"km": 1}, "input 'fee' is missing"),
        ({"km": 1, "fee": [1, 1, 1, 1], "kn": 2}, "no input 'kn'"),
        ([1], "inputs are a list"),
        (None, "TypeError"),
    ],
)
def test_the_inputs_of_one_row_are_checked_in_a_forged_file(inputs: Any, says: str, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    calibrated(udcp.loads(ONE_ROW).at(ROW), "lac", alpha=0.2).save(file)
    rewrite(file, lambda c: c["spec"].update(inputs=inputs), forge=True)
    with pytest.raises(InputError, match=says):
        SetPredictor.load(file)


def test_a_loss_with_multipliers_of_its_own_is_not_saved(tmp_path: Path) -> None:
    """It would be loaded as the loss of the spec, which is another one."""
    spec = "labels { cat, dog, wolf, lynx }  limit rare: any({ wolf }) <= 0.3  loss l = size"
    predictor = calibrated(udcp.loads(spec).with_multipliers([3]), "greedy", alpha=0.2)
    with pytest.raises(
        InputError, match="has multipliers, which a saved file does not hold: give the predictor the loss"
    ):
        predictor.save(tmp_path / "saved.json")
