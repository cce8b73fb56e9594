"""Parameters from comparisons: largest margin by brute force, ranges, contradictions, suggestions."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import Source
from udcp_dsl.validation import validate
from udcp_dsl.validation.cases import parse_cases
from udcp_dsl.validation.fitting.affine import not_affine
from udcp_dsl.validation.fitting.suggestions import candidate_sets

HEAD = """
labels { cat, dog, wolf, bear }
category wild { wolf, bear }
category big { dog, wolf, bear }
costs care { cat: 0.7, dog: 1.3, wolf: 2.1, bear: 3.4 }
param fear = 1 in [0, 10]   # of the wild
param bulk = -0.5 in [-1, 5]
"""
LOSS = udcp.loads(HEAD + "loss l = sum(care) + fear * any(wild) + bulk * size(big)")
CASES = [
    ({"wolf"}, ">", {"cat", "dog"}),
    ({"dog", "bear"}, "<", {"cat", "dog", "wolf", "bear"}),
    ({"dog"}, ">=", {"cat"}),
    ({"bear"}, "<=", 9),
]


def margins(loss: udcp.Loss, fear: float, bulk: float) -> list[float]:
    """By the formula, from the costs themselves: of the two strict cases, and -1 where another does not hold."""
    at = loss.with_params(fear=fear, bulk=bulk)
    pairs = [(at({"wolf"}), at({"cat", "dog"})), (at({"cat", "dog", "wolf", "bear"}), at({"dog", "bear"}))]
    found = [(a - b) / (abs(a + b) / 2) for a, b in pairs]
    weak = at({"dog"}) >= at({"cat"}) - 1e-9 and at({"bear"}) <= 9 + 1e-9
    return found if weak else [-1.0]


def test_the_largest_margin_against_brute_force() -> None:
    fit = udcp.fit_params(LOSS, CASES)
    assert fit.ok
    assert fit.exact
    assert fit.margin is not None
    assert fit.margin == pytest.approx(min(margins(LOSS, **fit.values)))
    grid = product(np.linspace(0, 10, 41), np.linspace(-1, 5, 31))
    assert fit.margin >= 0.998 * max(min(margins(LOSS, float(x), float(y))) for x, y in grid)
    assert all(case.holds for case in fit.cases)


def test_ranges_hold_all_solutions_and_are_reached() -> None:
    fit = udcp.fit_params(LOSS, CASES)
    grid = [(float(x), float(y)) for x, y in product(np.linspace(0, 10, 101), np.linspace(-1, 5, 61))]
    solutions = np.array([at for at in grid if min(margins(LOSS, *at)) > 0])
    for i, param in enumerate(fit.params):
        assert param.solutions is not None
        low, high = param.solutions
        assert low <= solutions[:, i].min() + 1e-6
        assert solutions[:, i].max() - 1e-6 <= high
        assert low >= solutions[:, i].min() - 0.11
        assert high <= solutions[:, i].max() + 0.11


def test_among_equals_the_values_nearest_the_spec() -> None:
    fit = udcp.fit_params(LOSS, [({"dog"}, ">=", {"cat"})])
    assert fit.values == {"fear": 1.0, "bulk": -0.5}
    fit = udcp.fit_params(LOSS, [({"dog"}, "==", 3.3)])
    assert fit.values["fear"] == 1.0
    assert fit.values["bulk"] == pytest.approx(2.0)


def test_weights_that_could_all_be_zero_are_not() -> None:
    loss = udcp.loads("labels {a, b}  param x = 1 in [0, 9]  param y = 1 in [0, 9]  loss l = x * size + y * any({a})")
    fit = udcp.fit_params(loss, [({"a"}, ">", {"b"})])
    assert fit.ok
    assert fit.loss({"a"}) > fit.loss({"b"})


def test_contradictions_are_irreducible() -> None:
    cases = [*CASES, ({"bear"}, ">", 9)]
    fit = udcp.fit_params(LOSS, cases)
    assert not fit.ok
    assert fit.margin is None
    (group,) = fit.contradictions
    assert [case.name for case in group] == ["comparison 3", "comparison 4"]
    assert fit.values == {"fear": 1.0, "bulk": -0.5}
    chain = [*CASES, ({"bear"}, "<=", 6), ({"dog"}, ">", 5)]
    (group,) = udcp.fit_params(LOSS, chain).contradictions
    members = [int(case.name.split()[1]) for case in group]
    assert not udcp.fit_params(LOSS, [chain[i] for i in members]).ok
    for left_out in members:
        assert udcp.fit_params(LOSS, [chain[i] for i in members if i != left_out]).ok


def test_a_case_that_no_parameter_touches() -> None:
    fit = udcp.fit_params(LOSS, [({"cat"}, ">", 1), ({"wolf"}, ">", {"cat"})])
    assert [[case.name for case in group] for group in fit.contradictions] == [["comparison 0"]]


@pytest.mark.parametrize(
    ("body", "affine"),
    [
        ("fear * size + bulk", True),
        ("fear * (size + bulk * 2) / 3", False),
        ("fear * (size + 2) / 3 - bulk", True),
        ("if size > 2 then fear else bulk * size", True),
        ("if size > fear then 1 else bulk", False),
        ("min(size, fear)", False),
        ("size / (1 + fear)", False),
        ("fear * bulk * size", False),
        ("-(fear - 2 * i)", True),
        ("(size + 1) ^ 2 * fear", True),
    ],
)
def test_affine_is_decided_by_the_tree(body: str, affine: bool) -> None:
    loss = udcp.loads(f"{HEAD} let i = 3 * bulk + size  loss l = {body}", params={"fear": 1})
    assert (not_affine(loss, ("fear", "bulk")) is None) == affine


def test_a_search_where_it_is_not_affine() -> None:
    loss = udcp.loads(HEAD + "loss l = min(sum(care) + fear * any(wild), 4 * bulk)", params={"bulk": 1})
    fit = udcp.fit_params(loss, [({"wolf"}, ">", {"cat", "dog"}), ({"bear"}, ">", {"wolf"})])
    assert fit.ok
    assert not fit.exact
    assert "min(" in fit.why_not_exact
    assert fit.loss({"wolf"}) > fit.loss({"cat", "dog"})
    assert fit.loss({"bear"}) > fit.loss({"wolf"})
    lost = udcp.fit_params(loss, [({"wolf"}, ">", {"cat", "dog"}), ({"wolf"}, "<", {"cat", "dog"})])
    assert not lost.ok
    assert "search found no values" in str(lost)


def test_forty_suggestions_determine_and_beat_random_pairs() -> None:
    truth = LOSS.with_params(fear=3.1, bulk=1.7)
    labels = np.array(LOSS.labels)
    left = {}
    for suggest in (True, False):
        rng = np.random.default_rng(0)
        pool = candidate_sets(LOSS, rng)
        answers: list[tuple[object, str, object]] = [({"bear"}, "<=", 20)]
        for i in range(12):
            fit = udcp.fit_params(LOSS, answers, suggest=suggest, seed=i)  # type: ignore[arg-type]
            if suggest and fit.suggestion is None:
                break
            if fit.suggestion is not None:
                a, b = fit.suggestion.first, fit.suggestion.second
            else:
                a, b = (tuple(labels[mask].tolist()) for mask in pool[rng.choice(len(pool), 2, replace=False)])
            answers.append((a, ">" if truth(a) > truth(b) else "<", b))
        fit = udcp.fit_params(LOSS, answers, suggest=False)  # type: ignore[arg-type]
        assert all(p.solutions[0] - 1e-6 <= truth.params[p.name] <= p.solutions[1] + 1e-6 for p in fit.params)  # type: ignore[index]
        left[suggest] = sum(param.determined or 0.0 for param in fit.params)
    assert left[True] <= left[False]


def test_cases_may_hold_a_parameter_of_their_own() -> None:
    cases = parse_cases(Source("t.cases", 'case "x" with fear = 10: cost { wolf } > 15'))
    fit = udcp.fit_params(LOSS, cases)
    assert fit.ok
    assert fit.values["fear"] == 1.0
    assert fit.values["bulk"] > 15 - 12.1


@pytest.mark.parametrize(
    ("text", "cases", "message"),
    [
        ("labels {a}  loss l = size", [({"a"}, ">", 0)], "the spec has no parameters to fit"),
        ("labels {a}  param k = 1  loss l = k * size", [({"a"}, ">", 0)], "no parameter has a range"),
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", [], "no case compares costs of the loss 'l'"),
        (
            "labels {apple}  param k = 1 in [0, 2]  loss l = k * size",
            [({"aple"}, ">", 0)],
            "case 'comparison 0': unknown label 'aple'; did you mean 'apple'",
        ),
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", [({"a"}, "!=", 0)], "compares nothing"),
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", ["a"], "give \\(set, sign, set\\)"),
    ],
)
def test_wrong_input(text: str, cases: list[object], message: str) -> None:
    with pytest.raises(udcp.InputError, match=message):
        udcp.fit_params(udcp.loads(text), cases)  # type: ignore[arg-type]


def test_the_command_writes_values_and_keeps_comments(tmp_path: Path) -> None:
    spec = tmp_path / "t.loss"
    text = HEAD + "loss l = sum(care) + fear * any(wild) + bulk * size(big)\n"
    spec.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (tmp_path / "t.cases").write_text('case "w": cost { wolf } > cost { cat, dog }\ncase: cost { dog } == 3.3')
    run = CliRunner()
    result = run.invoke(main, ["fit", str(spec), "--write", "--json"])
    data = json.loads(result.stdout)
    assert (result.exit_code, data["ok"], data["written"]) == (0, True, str(spec))
    written = spec.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf")
    assert b"# of the wild\r\n" in written
    values = {param["name"]: param["value"] for param in data["params"]}
    assert udcp.load(spec).params == values
    again = run.invoke(main, ["fit", str(spec), "--write"])
    assert again.exit_code == 0
    assert spec.read_bytes() == written


def test_contradictions_on_the_command_line_and_in_validate(tmp_path: Path) -> None:
    spec = tmp_path / "t.loss"
    spec.write_text(HEAD + "loss l = sum(care) + fear * any(wild) + bulk * size(big)\n")
    cases = 'case "one": cost { wolf } > cost { bear }\ncase "two": cost { cat } > 0\n'
    (tmp_path / "t.cases").write_text(cases)
    before = spec.read_bytes()
    result = CliRunner().invoke(main, ["fit", str(spec), "--write"])
    assert result.exit_code == 1
    assert spec.read_bytes() == before
    assert "one: cost { wolf } > cost { bear }" in result.stdout
    assert "t.cases:1" in result.stdout
    found = validate(udcp.load(spec), oracles=["lac"], cases=1, own_cases=parse_cases(Source("t.cases", cases)))
    assert "no values of the parameters satisfy" in str(found)
