"""A user's mistake: exit status 2, a message on stderr (or JSON on stdout), never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl.loss

Udcp = Callable[..., Result]

# What is typed, and a part of what is answered.
MISTAKES = [
    ("check", "'SPEC'"),
    ("chek pets.loss", "there is no command 'chek'; did you mean 'check'?"),
    ("frobnicate", "there is no command 'frobnicate'; known: new, check, eval, fit"),
    ("check pets.loss --paran weight=1", "'--paran'. Did you mean '--param'?"),
    ("check pets.loss --model x", "No such option '--model'."),
    ("check nowhere.loss", "cannot read nowhere.loss: No such file or directory"),
    ("check folder", "cannot read folder: Is a directory"),
    ("check pets.loss/inside", "cannot read pets.loss/inside"),
    (f"check {'x' * 300}", "File name too long"),
    ("check bytes.loss", "is not UTF-8"),
    ("check nul.loss", "NUL"),
    ("check empty.loss", "the spec has no loss"),
    ("check syntax.loss", "expected an expression after '+'"),
    ("check names.loss", "did you mean 'size'?"),
    ("check data.loss", "there is no file 'nowhere.csv'"),
    ("check outside.loss", "lies outside the spec's folder"),
    ("check open.loss", "declares no labels"),
    ("check open.loss --labels nowhere.txt", "nowhere.txt"),
    ("check open.loss --labels broken.json", "not JSON"),
    ("check open.loss --labels object.json", "labels are an array of strings"),
    ("check open.loss --labels bytes.txt", "not UTF-8"),
    ("check open.loss --labels folder.csv", "folder.csv"),
    ("check open.loss --labels a,b,a", "label 'a' is listed twice"),
    ("check open.loss --labels a,,b", "label number 2 is empty"),
    ("check open.loss --labels 9..0", "the range 9..0 is empty"),
    ("check open.loss --labels 0..99999999999", "the range 0..99999999999 is too long"),
    ("check pets.loss --labels a,b", "labels that were passed differ"),
    ("check pets.loss --param wieght=1", "no parameter 'wieght'; did you mean 'weight'?"),
    ("check pets.loss --param weight", "is not of the form name=value"),
    ("check pets.loss --param weight=heavy", "weight: 'heavy' is not a number"),
    ("check pets.loss --param weight=nan", "not a finite number"),
    ("check pets.loss --param weight=99", "weight"),
    ("check pets.loss --param weight=1 --param weight=2", "'weight' is set twice"),
    ("check pets.loss --loss pest", "no loss 'pest'; did you mean 'pets'?"),
    ("eval pets.loss wolff", "did you mean 'wolf'?"),
    ("format syntax.loss", "expected an expression after '+'"),
    ("format pets.loss --write --check", "exclude each other"),
    ("new pets.loss", "--force"),
    ("new folder --force", "not a regular file"),
    ("new no/such/folder.loss", "No such file or directory"),
]


@pytest.fixture
def mistaken(folder: Path, udcp: Udcp) -> Udcp:
    (folder / "folder").mkdir()
    (folder / "folder.csv").mkdir()
    (folder / "bytes.loss").write_bytes(b"labels { a }\nloss l = size # \xff")
    (folder / "bytes.txt").write_bytes(b"a\n\xff")
    (folder / "broken.json").write_text('["a", ')
    (folder / "object.json").write_text('{"a": 1}')
    specs = {
        "nul": "labels { a }\0 loss l = size",
        "empty": "",
        "syntax": "labels { a } loss l = size +",
        "names": "labels { a } loss l = sise",
        "data": 'labels from "nowhere.csv" loss l = size',
        "outside": 'labels from "../x.csv" loss l = size',
        "open": "loss l = size",
        "commented": "labels {a}   loss l = size # why",
    }
    for name, text in specs.items():
        (folder / f"{name}.loss").write_text(text)
    return udcp


@pytest.mark.parametrize(("typed", "answered"), MISTAKES, ids=lambda x: x[:40])
def test_a_mistake_is_told(mistaken: Udcp, typed: str, answered: str) -> None:
    result = mistaken(*typed.split())
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert answered in result.stderr
    assert "Traceback" not in result.stderr
    assert "did you mean" in answered.casefold() or "did you mean" not in result.stderr.casefold()


@pytest.mark.parametrize(("typed", "answered"), MISTAKES, ids=lambda x: x[:40])
def test_a_mistake_is_told_as_data(mistaken: Udcp, typed: str, answered: str) -> None:
    result = mistaken(*typed.split(), "--json")
    assert isinstance(result.exception, SystemExit)
    assert (result.exit_code, result.stderr) == (2, "")
    data = json.loads(result.stdout)
    assert list(data) == ["ok", "diagnostics"]
    assert data["ok"] is False
    assert data["diagnostics"]
    for diagnostic in data["diagnostics"]:
        assert set(diagnostic) == {
            "code", "severity", "file", "line", "column", "end_line", "end_column",
            "message", "help", "fixes", "related",
        }  # fmt: skip
    assert any(answered in d["message"] + d["help"] for d in data["diagnostics"]) or "SPEC" in answered


def test_every_fault_of_a_spec_is_told_as_the_compiler_words_it(udcp: Udcp, folder: Path) -> None:
    (folder / "two.loss").write_text("labels { a, b }\nloss l = sise\nloss m = any({ c })\n")
    with pytest.raises(udcp_dsl.SpecError) as caught:
        udcp_dsl.loss.load("two.loss")
    assert len(caught.value.diagnostics) == 2
    result = udcp("check", "two.loss")
    assert result.stderr == "".join(d.render() + "\n\n" for d in caught.value.diagnostics)


def test_an_interrupt_ends_with_130(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(udcp_dsl.loss, "load", interrupted)
    result = udcp("check", "pets.loss")
    assert (result.exit_code, result.stdout) == (130, "")
    assert "Traceback" not in result.stderr


def test_a_file_that_may_not_be_read_or_written(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, *_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    monkeypatch.setattr(Path, "write_text", denied)
    for typed in (("check", "pets.loss"), ("check", "pets.loss", "--labels", "l.txt"), ("new", "start.loss")):
        result = udcp(*typed)
        assert result.exit_code == 2
        assert "Permission denied" in result.stderr


def test_a_fault_of_the_program_is_not_hidden(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(udcp_dsl.loss, "load", broken)
    assert isinstance(udcp("check", "pets.loss").exception, RuntimeError)


@pytest.mark.parametrize("verb", ["new", "check", "format", "eval"])
def test_every_verb_has_help_with_an_example_and_json(udcp: Udcp, verb: str) -> None:
    result = udcp(verb, "--help")
    assert result.exit_code == 0
    assert f"Example:  udcp {verb} " in result.stdout
    assert "--json" in result.stdout


def test_help_and_version(udcp: Udcp) -> None:
    result = udcp("--help")
    assert result.exit_code == 0
    for verb in ("new", "check", "format", "eval"):
        assert f"\n  {verb} " in result.stdout
    assert udcp("--version").stdout == f"udcp, version {udcp_dsl.__version__}\n"
    assert udcp().exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        "calibrate pets.loss --probs p.json --truth y.npy -o p.json",
        "compare pets.loss --probs p.npy --truth y.npy --report ./pets.loss",
        "compare pets.loss --probs p.npy --truth y.npy --out runs.html --report runs.html",
        "predict kept.json --probs p.npz:p -o p.npz",
    ],
)
def test_an_output_never_takes_the_place_of_an_input(udcp: Udcp, folder: Path, arguments: str) -> None:
    for name in ("p.npy", "y.npy", "p.json", "p.npz", "kept.json"):
        (folder / name).write_text("precious")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = udcp(*arguments.split())
    assert result.exit_code == 2
    assert "is named twice, and would be overwritten" in result.stderr or "that ends in .html" in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        "compare data/priced.loss --probs p.npy --truth y.npy --out data/costs.csv",
        "compare pets.loss data/priced.loss --probs p.npy --truth y.npy --out data/../data/costs.csv",
        "calibrate data/priced.loss --probs p.npy --truth y.npy -o data/weights.json",
        "calibrate open.loss --labels names.json --probs p.npy --truth y.npy -o names.json",
        "calibrate pets.loss --class-names names.json --probs p.npy --truth y.npy -o ./names.json",
        "check data/priced.loss --export data/costs.csv",
    ],
)
def test_an_output_never_takes_the_place_of_data_that_were_read(udcp: Udcp, folder: Path, arguments: str) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "costs.csv").write_text("name,price\ncat,1\ndog,2\nwolf,3\nlynx,4\n")
    (folder / "data" / "weights.json").write_text('{"cat": 1, "dog": 2, "wolf": 3, "lynx": 4}')
    (folder / "data" / "priced.loss").write_text(
        'labels { cat, dog, wolf, lynx }  costs price from "costs.csv" column price  costs weight from "weights.json"\n'
        "loss priced = sum(price) + sum(weight)\n"
    )
    (folder / "open.loss").write_text("loss l = size")
    (folder / "names.json").write_text('["cat", "dog", "wolf", "lynx"]')
    np.save(folder / "p.npy", np.full((60, 4), 0.25))
    np.save(folder / "y.npy", np.arange(60) % 4)
    files = [path for path in folder.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    result = udcp(*arguments.split())
    assert result.exit_code == 2
    assert "is read by this command, and would be overwritten" in result.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_columns_in_a_wrong_order_are_called_out(udcp: Udcp, folder: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=300)
    P = np.full((300, 4), 0.05)
    P[np.arange(300), 3 - y] = 0.85
    np.save(folder / "p.npy", P)
    np.save(folder / "y.npy", y)
    result = udcp("calibrate", "pets.loss", "--probs", "p.npy", "--truth", "y.npy", "-o", "out.json")
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert "is right in 0.0% of the rows, and would be in 100.0% with the columns in another order" in said
    assert "in the order of the labels (udcp check lists them; --class-names gives another)" in said
