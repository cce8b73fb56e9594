"""One rule for groups, true labels, ids and levels: the same value has the same answer, whichever way it comes in.

A door takes a column (or a level) and gives what became of it, or the sentence with which it was refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.check.run import validate
from udcp_dsl.cli import main

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")

from sklearn.naive_bayes import GaussianNB  # noqa: E402

from udcp_dsl.sklearn import UtilitySetClassifier  # noqa: E402

LABELS = ["a", "b", "c"]
SPEC = "labels { a, b, c }\nloss l = size\n"
N = 60
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), N)
Y = [LABELS[i] for i in np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)]
LOSS = udcp.loads(SPEC)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("l.loss").write_text(SPEC)
    np.save("p.npy", P)
    Path("y.json").write_text(json.dumps(Y))


def by_group() -> udcp.SetPredictor:
    return udcp.SetPredictor(LOSS, "lac", alpha=0.2, conditional="group", pool=True)


def run(*arguments: str) -> str:
    """The output of a command that is done; what one says that is not becomes the error that it would be."""
    result = CliRunner().invoke(main, [*arguments, "--json"])
    if result.exit_code:
        raise udcp.InputError(json.loads(result.stdout)["diagnostics"][0]["message"])
    return result.stdout


def written(values: Any, name: str) -> str:
    """The column in a file of its own."""
    column = pd.Series(values, name="x")
    if name.endswith(".csv"):
        column.to_csv(name, index=False)
    elif name.endswith(".parquet"):
        column.to_frame().to_parquet(name)
    elif name.endswith(".json"):
        Path(name).write_text(json.dumps(column.tolist()))
    elif None in list(values):
        pytest.skip("numpy holds these as Python objects, which are never read")
    else:
        np.save(name, np.asarray(values))
    return name


def calibrated_by_command(source: str) -> list[str]:
    rows = ["--probs", "p.npy", "--truth", "y.json", "--group", source]
    run("calibrate", "l.loss", *rows, "--oracle", "lac", "-o", "o.json")
    return list(udcp.SetPredictor.load("o.json").fitted.context.strata.names)


def compared_by_command(source: str) -> list[str]:
    rows = ["--probs", "p.npy", "--truth", "y.json", "--group", source]
    found = json.loads(run("compare", "l.loss", *rows, "--oracle", "lac", "--splits", "3"))
    return sorted({name for each in found["summaries"] for name in each["by_group"]})


def predicted(values: Any) -> list[str]:
    names = by_group().calibrate(P, Y, groups=values)
    names.predict_set(P, groups=values)  # pooled: a group that was not known would pass unseen, so it is looked up
    strata = names.fitted.context.strata
    strata.codes_of_groups(values, unseen=False)
    return list(strata.names)


def evaluated(values: Any) -> list[str]:
    marginal = udcp.SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P, Y)
    return [stratum.name for stratum in udcp.evaluate(marginal, P, Y, groups=values).by_group]


def compared(values: Any) -> list[str]:
    found = udcp.compare(LOSS, P, Y, groups=values, oracles=["lac"], splits=3)
    return sorted({stratum.name for each in found.runs for stratum in each.evaluation.by_group})


def by_scikit_learn(values: Any) -> list[str]:
    model = GaussianNB().fit(P, Y)
    made = UtilitySetClassifier(model, LOSS, oracle="lac", conditional="group", pool=True)
    return list(made.calibrate(P, Y, groups=values).predictor_.fitted.context.strata.names)


GROUP_DOORS: dict[str, Callable[[Any], list[str]]] = {
    "predictor, list": lambda v: predicted(list(v)),
    "predictor, numpy": lambda v: predicted(np.array(v, dtype=getattr(v, "dtype", object))),
    "predictor, pandas": lambda v: predicted(pd.Series(v)),
    "predictor, polars": lambda v: predicted(pl.Series(v, strict=False)),
    "evaluate": evaluated,
    "compare": compared,
    "scikit-learn": by_scikit_learn,
    "udcp calibrate, .csv": lambda v: calibrated_by_command(written(v, "g.csv")),
    "udcp calibrate, .npy": lambda v: calibrated_by_command(written(v, "g.npy")),
    "udcp calibrate, .parquet": lambda v: calibrated_by_command(written(v, "g.parquet")),
    "udcp compare, .json": lambda v: compared_by_command(written(v, "g.json")),
}

GROUPS: dict[str, tuple[Any, list[str]]] = {
    "whole numbers": ([7, 8], ["7", "8"]),
    "whole floats": ([7.0, 8.0], ["7", "8"]),
    "text of whole numbers": (["7", "8"], ["7", "8"]),
    "text of whole floats": (["7.0", "8.0"], ["7", "8"]),
    "fractions": ([1.5, 2.5], ["1.5", "2.5"]),
    "text of fractions": (["1.5", "2.5"], ["1.5", "2.5"]),
    "fractions in single precision": (np.array([0.1, 0.2], np.float32), ["0.1", "0.2"]),
    "truth values": ([True, False], ["False", "True"]),
    "names": (["north", "x y"], ["north", "x y"]),
    "leading zeros": (["007", "7th"], ["007", "7th"]),
    "versions": (["3.9", "3.10"], ["3.10", "3.9"]),
}


@pytest.mark.parametrize("door", GROUP_DOORS)
@pytest.mark.parametrize("kind", GROUPS)
def test_a_group_has_one_name(kind: str, door: str) -> None:
    values, names = GROUPS[kind]
    column = np.tile(values, N // 2) if isinstance(values, np.ndarray) else values * (N // 2)
    assert GROUP_DOORS[door](column) == names


NO_GROUPS: dict[str, tuple[list[Any], str]] = {
    "missing": (["x", None] * (N // 2), "groups: row 1 (counted from 0) is missing"),
    "missing number": ([7.0, np.nan] * (N // 2), "groups: row 1 (counted from 0) is missing"),
    "empty text": (["x", ""] * (N // 2), "groups: row 1 (counted from 0) is missing"),
    "too few": (["x"] * (N - 1), f"groups: {N - 1} entries for {N} rows"),
}


@pytest.mark.parametrize("door", GROUP_DOORS)
@pytest.mark.parametrize("kind", NO_GROUPS)
def test_what_is_no_group_is_refused_in_one_sentence(kind: str, door: str) -> None:
    if door == "scikit-learn" and kind == "too few":
        pytest.skip("scikit-learn has a sentence of its own for rows that do not match")
    values, message = NO_GROUPS[kind]
    with pytest.raises(udcp.InputError) as caught:
        GROUP_DOORS[door](values)
    assert message in str(caught.value)


# True labels and ids


def by_command(verb: str, option: str, values: list[Any]) -> None:
    Path("column.json").write_text(json.dumps(values))
    rows = {"--probs": "p.npy", "--truth": "y.json", option: "column.json"}
    end = {"calibrate": ["-o", "o.json"], "compare": ["--oracle", "lac", "--splits", "3"]}
    end["validate"] = ["--oracle", "lac", "--cases", "1"]
    run(verb, "l.loss", *(text for pair in rows.items() for text in pair), *end[verb])


def fitted() -> udcp.SetPredictor:
    return udcp.SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P, Y)


TRUTH_DOORS: dict[str, Callable[[list[Any]], object]] = {
    "calibrate": lambda y: udcp.SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P, y),
    "evaluate": lambda y: udcp.evaluate(fitted(), P, y),
    "compare": lambda y: udcp.compare(LOSS, P, y, oracles=["lac"]),
    "validate": lambda y: validate(LOSS, probs=P, y=y, oracles=["lac"], cases=1),
    "udcp calibrate": lambda y: by_command("calibrate", "--truth", y),
    "udcp compare": lambda y: by_command("compare", "--truth", y),
    "udcp validate": lambda y: by_command("validate", "--truth", y),
}
NO_TRUTH: dict[str, tuple[Any, str]] = {
    "unknown": ("B", "true labels: row 1 (counted from 0) is 'B', which is not a label; did you mean 'b'?"),
    "position as text": ("1", "true labels: row 1 (counted from 0) is the string '1', which is not a label"),
    "float": (1.5, "true labels: row 1 (counted from 0) is 1.5, a float; pass names"),
    "truth value": (True, "true labels: row 1 (counted from 0) is True, a truth value"),
    "missing": (None, "true labels: row 1 (counted from 0) is missing"),
    "out of range": (3, "true labels: row 1 (counted from 0) is 3, which is out of range; positions run from 0 to 2"),
}


@pytest.mark.parametrize("door", TRUTH_DOORS)
@pytest.mark.parametrize("kind", NO_TRUTH)
def test_what_is_no_true_label_is_refused_in_one_sentence(kind: str, door: str) -> None:
    wrong, message = NO_TRUTH[kind]
    with pytest.raises(udcp.InputError) as caught:
        TRUTH_DOORS[door]([Y[0], wrong, *Y[2:]])
    assert message in str(caught.value)


ID_DOORS: dict[str, Callable[[list[Any]], object]] = {
    "predict_set": lambda ids: fitted().predict_set(P, ids=ids),
    "compare": lambda ids: udcp.compare(LOSS, P, Y, ids=ids, oracles=["lac"]),
    "udcp calibrate": lambda ids: by_command("calibrate", "--id", ids),
    "udcp compare": lambda ids: by_command("compare", "--id", ids),
}


@pytest.mark.parametrize("door", ID_DOORS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "sample ids: row 1 (counted from 0) is missing"),
        ("", "sample ids: row 1 (counted from 0) is missing"),
        (["x"], "sample ids: row 1 (counted from 0) is a list, not a single value"),
    ],
)
def test_what_is_no_id_is_refused_in_one_sentence(wrong: Any, message: str, door: str) -> None:
    with pytest.raises(udcp.InputError) as caught:
        ID_DOORS[door](["a", wrong, *map(str, range(2, N))])
    assert message in str(caught.value)


@pytest.mark.parametrize("door", ["predict_set", "compare"])
def test_ids_that_repeat_are_warned_of(door: str) -> None:
    with pytest.warns(UserWarning, match=r"sample ids: 'x' is the id of rows 0 and 1 \(counted from 0\), and 60 of 60"):
        ID_DOORS[door](["x"] * N)


# Levels


def with_alphas(verb: str, alphas: list[Any]) -> None:
    rows = [] if verb == "validate" else ["--probs", "p.npy", "--truth", "y.json"]
    end = ["-o", "o.json"] if verb == "calibrate" else ["--oracle", "lac"]
    run(verb, *(["l.loss"] if verb != "demo" else []), *rows, *(x for a in alphas for x in ("--alpha", str(a))), *end)


LEVEL_DOORS: dict[str, Callable[[list[Any]], object]] = {
    "predictor": lambda alphas: udcp.SetPredictor(LOSS, "lac", alpha=alphas),
    "compare": lambda alphas: udcp.compare(LOSS, P, Y, alphas=alphas),
    "validate": lambda alphas: validate(LOSS, alphas=alphas),
    "scikit-learn": lambda alphas: UtilitySetClassifier(GaussianNB().fit(P, Y), LOSS, alpha=alphas).calibrate(P, Y),
    "udcp calibrate": lambda alphas: with_alphas("calibrate", alphas),
    "udcp compare": lambda alphas: with_alphas("compare", alphas),
    "udcp validate": lambda alphas: with_alphas("validate", alphas),
}


@pytest.mark.parametrize("door", LEVEL_DOORS)
@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        (["1.5"], "alpha is '1.5': give a number strictly between 0 and 1, such as 0.1 or 1/10"),
        (["0.1", "ten"], "alpha is 'ten': give a number strictly between 0 and 1, such as 0.1 or 1/10"),
        (["0.1", "1/10"], "alpha is 0.1, 0.1: give at least one level, each once"),
    ],
)
def test_what_is_no_level_is_refused_in_one_sentence(alphas: list[str], message: str, door: str) -> None:
    with pytest.raises(udcp.InputError) as caught:
        LEVEL_DOORS[door](alphas)
    assert message in str(caught.value)


def test_a_wrong_level_is_told_before_any_file_is_read() -> None:
    with pytest.raises(udcp.InputError, match="alpha is '2'"):
        run("calibrate", "l.loss", "--probs", "absent.npy", "--truth", "absent.json", "--alpha", "2", "-o", "o.json")
