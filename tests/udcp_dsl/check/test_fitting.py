"""Parameters from comparisons: largest margin by brute force, ranges, contradictions, suggestions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.check import fit_trials as fit_trials
from udcp_dsl.check.cases import check_case
from udcp_dsl.check.run import validate
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import Source
from udcp_dsl.fit.cases import parse_cases
from udcp_dsl.fit.comparisons import not_affine
from udcp_dsl.fit.suggestions import candidate_sets

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


def margins(fear: np.ndarray | float, bulk: np.ndarray | float) -> np.ndarray:
    """By the formula, from costs worked out by hand: the smaller of the two strict cases, -1 where another fails."""

    def cost(care: float, wild: int, big: int) -> np.ndarray:
        return np.asarray(care + fear * np.float64(wild) + bulk * np.float64(big))

    wolf, cat_dog, every, dog_bear = cost(2.1, 1, 1), cost(2.0, 0, 1), cost(7.5, 1, 3), cost(4.7, 1, 2)
    found = [(a - b) / (np.abs(a + b) / 2) for a, b in ((wolf, cat_dog), (every, dog_bear))]
    weak = (cost(1.3, 0, 1) >= 0.7 - 1e-9) & (cost(3.4, 1, 1) <= 9 + 1e-9)
    return np.where(weak, np.minimum(*found), -1.0)


def test_the_largest_margin_against_brute_force() -> None:
    fit = udcp.fit_params(LOSS, CASES)
    assert fit.ok
    assert fit.exact
    assert fit.margin is not None
    assert fit.margin == pytest.approx(float(margins(**fit.values)))
    fear, bulk = np.meshgrid(np.linspace(0, 10, 1001), np.linspace(-1, 5, 601))
    assert fit.margin >= 0.998 * margins(fear, bulk).max()
    assert LOSS.with_params(fear=3, bulk=2)({"cat", "dog", "wolf", "bear"}) == pytest.approx(7.5 + 3 + 6)
    assert all(case.holds for case in fit.cases)


def test_ranges_hold_all_solutions_and_are_reached() -> None:
    fit = udcp.fit_params(LOSS, CASES)
    fear, bulk = np.meshgrid(np.linspace(0, 10, 101), np.linspace(-1, 5, 61))
    solutions = np.stack([fear, bulk], axis=-1)[margins(fear, bulk) > 0]
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


def test_a_value_at_the_end_of_its_range_is_named() -> None:
    loss = udcp.loads("labels {a, b}  param x = 1 in [0, 9]  param y = 1 in [0, 9]  loss l = x * size + y * any({a})")
    fit = udcp.fit_params(loss, [({"a"}, ">", {"b"})])
    assert fit.values["x"] == 0
    assert "At the end of the range: x = 0 (no effect)" in str(fit)
    inner = udcp.fit_params(loss, [({"b"}, "==", 2.0), ({"a"}, "==", 3.0)])
    assert "At the end" not in str(inner)


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
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", [({"a"}, "!=", 0)], "'!=' is not a comparison"),
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", ["a"], "give \\(set, sign, set\\)"),
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", 5, "cases is 5: give a list of comparisons"),
        ("labels {a}  param k = 1 in [0, 2]  loss l = k * size", [(5, ">", {"a"})], "comparison 0 .* in this order"),
    ],
)
def test_wrong_input(text: str, cases: Any, message: str) -> None:
    with pytest.raises(udcp.InputError, match=message):
        udcp.fit_params(udcp.loads(text), cases)


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


def test_inputs_are_given_by_the_case() -> None:
    text = "labels {a, b, c}  input km in [0, 10]  param w = 1 in [0, 5]  loss l = size + w * km * any({c})"
    loss = udcp.loads(text)
    cases = 'case "far" with km = 5: cost { c } > cost { a, b }\ncase "near" with km = 1: cost { c } < cost { a, b }'
    far, near = parse_cases(Source("t.cases", cases))
    fit = udcp.fit_params(loss, [far, near])
    (w,) = fit.params
    assert fit.ok
    assert w.solutions == pytest.approx((0.2, 1.0))
    assert fit.loss({"c"}, inputs={"km": 5}) > 2 > fit.loss({"c"}, inputs={"km": 1})
    assert check_case(fit.loss, far).holds
    assert not check_case(loss.with_params(w=0.1), far).holds
    more = "param v = 1 in [0, 5]  loss m = l + v * any({b})"
    asked = udcp.fit_params(udcp.loads(f"{text}  {more}"), parse_cases(Source("", "case with km = 5: cost { c } > 2")))
    assert asked.suggestion is not None
    assert asked.suggestion.inputs == {"km": 5.0}
    assert asked.suggestion.question.endswith("with km = 5?")
    for wrong, message in (
        ("", "give it, such as `with km = 5`"),
        (" with km = 11", "outside"),
        (" with ml = 1", "'ml'"),
    ):
        bad = parse_cases(Source("t.cases", f'case "x"{wrong}: cost {{ c }} > cost {{ a }}'))
        with pytest.raises(udcp.InputError, match="case 'x'") as error:
            udcp.fit_params(loss, bad)
        assert message in str(error.value)
        assert not check_case(loss, bad[0]).holds
    per_row = udcp.loads(
        "labels {a, b}  costs fee per row in [0, 9]  param w = 1 in [0, 5]  loss l = w * size + sum(fee)"
    )
    with pytest.raises(udcp.InputError, match="reads the input 'fee'"):
        udcp.fit_params(per_row, [({"a"}, ">", {"b"})])


def test_only_parameters_that_the_loss_reads_are_fitted() -> None:
    text = HEAD + "loss other = bulk * size\nlet scared = fear * any(wild)\nloss l = sum(care) + scared"
    fit = udcp.fit_params(udcp.loads(text), [({"wolf"}, ">", {"cat", "dog"})])
    assert list(fit.values) == ["fear"]
    assert fit.held == {}
    other = udcp.fit_params(udcp.loads(text, loss="other"), [({"wolf"}, ">", 2)])  # a loss that is not the last
    assert list(other.values) == ["bulk"]
    plain = udcp.loads(text + "\nloss plain = size")
    with pytest.raises(udcp.InputError, match="the loss 'plain' reads no parameters to fit"):
        udcp.fit_params(plain, [({"wolf"}, ">", 0)])


def test_a_case_beyond_the_range_of_a_parameter_is_named() -> None:
    cases = parse_cases(Source("t.cases", 'case "x" with fear = 11: cost { wolf } > 15'))
    with pytest.raises(udcp.InputError, match=r"case 'x' \(t.cases:1\): parameter fear = 11 is outside \[0, 10\]"):
        udcp.fit_params(LOSS, cases)


def test_line_ends_and_comments_are_kept(tmp_path: Path) -> None:
    spec = tmp_path / "t.loss"
    text = "labels {a, b, c}\r\nparam w = 1 in [0, 5]  # weight\r\nloss l = size + w * any({c})\r\n"
    spec.write_bytes(text.encode())
    (tmp_path / "t.cases").write_text('case "x": cost { c } == 3.5\n')
    assert CliRunner().invoke(main, ["fit", str(spec), "--write"]).exit_code == 0
    assert spec.read_bytes().decode() == text.replace("w = 1", "w = 2.5")


def test_validation_tries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        (verdict,) = fit_trials.fits(LOSS, seed)
        assert verdict.holds
        assert verdict.cases > 5
    assert fit_trials.fits(udcp.loads("labels {a}  loss l = size"), 0) == []
    (searched,) = fit_trials.fits(udcp.loads(HEAD + "loss l = min(sum(care), fear)"), 0)
    assert (searched.holds, searched.applies) == (None, False)
    found = validate(LOSS, oracles=["lac"], cases=1)
    assert "fit agrees" in str(found)
    honest = fit_trials.fit_params

    def wrong(loss: udcp.Loss, claims: object, **how: object) -> udcp.Fit:
        """Answers the wrong way round."""
        turned = [(a, "<" if sign == ">" else ">", b) for a, sign, b in claims]  # type: ignore[attr-defined]
        return honest(loss, turned, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(fit_trials, "fit_params", wrong)
    assert not fit_trials.fits(LOSS, 0)[0].holds


def test_a_tie_is_no_question() -> None:
    """{ a, b } and { c, d } cost the same whatever k is, but for rounding; sets of other sizes never change places."""
    text = "labels {a, b, c, d}  costs c {a: 0.1, b: 0.2, c: 0.3, d: 0}  param k = 1 in [0.1, 3]"
    loss = udcp.loads(f"{text}  loss l = k * sum(c) + size")
    at = [loss.with_params(k=k) for k in (0.1, 3.0)]
    assert len({one({"a", "b"}) > one({"c", "d"}) for one in at}) == 2, "rounding tells them apart, or not"
    for seed in range(5):
        assert udcp.fit_params(loss, [({"a"}, ">=", 0)], seed=seed).suggestion is None
