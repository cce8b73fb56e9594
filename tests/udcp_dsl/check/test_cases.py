"""Cases beside a spec: read, written, tried, and run by `udcp validate` and `pytest --udcp`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.check.cases import check_case
from udcp_dsl.check.run import validate
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import Source, SpecError
from udcp_dsl.fit.cases import Case, CostCase, RowCase, case_text, cases_beside, cases_of, parse_cases

SPEC = """
labels { cat, dog, wolf, "big bear" }
category wild { wolf, "big bear" }
param w = 5 in [0, 10]
loss plain = size
loss care = size + w * any(wild)
"""
CASES = """
# What pets.loss should say.
case "wild is dear": cost { wolf } > cost { cat, dog }
case of plain: cost { wolf } == 1
case "mild" with w = 0: cost { "big bear" } <= cost { cat }
case "sure of it": row { cat: 0.7, dog: 0.3 } by lac at -0.25 holds { cat, dog }
case "not the wolf": row { cat: 0.7, dog: 0.2, wolf: 0.1 } by price at 20 lacks { wolf }
"""
LOSS = udcp.loads(SPEC)


def case(text: str) -> Case:
    (found,) = parse_cases(Source("t.cases", text))
    return found


def test_cases_are_read_tried_and_written_as_they_were() -> None:
    cases = parse_cases(Source("pets.cases", CASES))
    assert [c.name for c in cases] == ["wild is dear", "line 4", "mild", "sure of it", "not the wolf"]
    assert (cases[1].loss, cases[2].params) == ("plain", {"w": 0.0})
    assert [check_case(LOSS, c).holds for c in cases_of(LOSS, cases)] == [True] * 4
    assert [c.name for c in cases_of(udcp.loads(SPEC, loss="plain"), cases)] == ["line 4"]
    assert parse_cases(Source("again", "\n".join(map(case_text, cases)))) == cases


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cost { wolf } < cost { cat }", "{ wolf } costs 6, and { cat } costs 1"),
        ("cost { wolf } == 5", "{ wolf } costs 6: that is not == 5"),
        ("cost { wolff } == 5", "unknown label 'wolff'; did you mean 'wolf'"),
        (
            "row { cat: 0.9, dog: 0.1 } by lac at -0.5 holds { dog, cat }",
            "the set of the row is { cat }: it lacks { dog }",
        ),
        ("row { cat: 0.9, dog: 0.1 } by lac at -0.5 lacks { cat }", "the set of the row is { cat }: it holds { cat }"),
        ("row { cat: 0.9 } by lac at -0.5 holds { cat }", "sums to 0.9"),
        ("row { cat: 1 } by ratio at 2 holds { cat }", "separable"),
        ("row { cat: 1 } by penalized at 2 holds { cat }", "penalized { lam: 0.1 }"),
        ("row { cat: 1 } by nobody at 2 holds { cat }", "there is no oracle 'nobody'"),
        ("row { cat: 1 } by lac at -1 holds { bat }", "unknown label 'bat'"),
    ],
)
def test_a_case_that_fails_says_why(text: str, why: str) -> None:
    verdict = check_case(LOSS, case(f"case: {text}"))
    assert verdict.holds is False
    assert verdict.counter_example is not None
    assert why in verdict.counter_example.text


def test_costs_are_compared_as_the_language_does() -> None:
    loss = udcp.loads("labels { a, b, c }  loss l = 0.1 * size")
    assert check_case(loss, case("case: cost { a, b, c } == 0.3")).holds  # 0.30000000000000004
    assert not check_case(loss, case("case: cost { a, b, c } > 0.3")).holds
    assert check_case(loss, case("case: cost { } <= cost { a }")).holds


def test_a_case_holds_under_the_parameters_it_was_made_with() -> None:
    made = case('case "x" with w = 1: cost { wolf } == 2')
    assert check_case(LOSS, made).holds
    assert check_case(udcp.loads(SPEC, params={"w": 9}), made).holds
    assert not check_case(LOSS, case('case "x" with v = 1: cost { wolf } == 2')).holds


@pytest.mark.parametrize(
    "text",
    [
        *("cost { a } > 1", "case", "case:", 'case "x" cost { a } > 1', "case: cost a > 1", "case: cost { a } ! 1"),
        *("case: cost { a } = 1", "case: cost { a } > ", "case: cost { a > 1", "case with w: cost { a } > 1"),
        *('case "\\x": cost { a } > 1', 'case "open: cost { a } > 1', "case: cost { a } > 1 2"),
        "case: row { a 1 } by lac at 1 holds { a }",
        "case: row { a: x } by lac at 1 holds { a }",
        "case: row { a: 1 } at 1 holds { a }",
        "case: row { a: 1, a: 0 } by lac at 1 holds { a }",
        "case: row { a: 1e999 } by lac at 1 holds { a }",
        "case: row { a: 1 } by lac at 1 contains { a }",
    ],
)
def test_what_is_no_case_is_told_with_its_place(text: str) -> None:
    with pytest.raises(SpecError) as told:
        parse_cases(Source("t.cases", text))
    (fault,) = told.value.diagnostics
    assert fault.code in ("E701", "E702", "E703", "E704")
    assert str(told.value).startswith("t.cases:1:")


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
sets = st.lists(names, max_size=3).map(tuple)
claims = st.one_of(
    st.builds(CostCase, sets, st.sampled_from([">", ">=", "<", "<=", "=="]), sets | numbers),
    st.builds(
        RowCase,
        st.dictionaries(names, numbers, max_size=3),
        names,
        st.dictionaries(names, st.booleans() | numbers | names, max_size=2),
        numbers,
        sets,
        st.booleans(),
    ),
)


@given(
    st.lists(st.builds(Case, names, claims, st.none() | names, st.dictionaries(names, numbers, max_size=2)), max_size=3)
)
def test_whatever_is_written_is_read_back(cases: list[Case]) -> None:
    assert list(parse_cases(Source("t", "\n".join(map(case_text, cases))))) == cases


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from('case row cost by at { } : , > "a" 1 holds # \n'.split(" "))).map(" ".join)
)
def test_no_text_makes_the_reader_stumble(text: str) -> None:
    with suppress(SpecError):
        parse_cases(Source("t", text))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pets.loss").write_text(SPEC)
    (tmp_path / "pets.cases").write_text(CASES)
    return tmp_path


def test_validate_tries_them_first(folder: Path) -> None:
    loss = udcp.load(folder / "pets.loss")
    done = validate(loss, oracles=["lac"], cases=1, own_cases=cases_beside(folder / "pets.loss"))
    assert (done.ok, done.stages[0].name, len(done.stages[0].verdicts)) == (True, "cases", 4)
    assert cases_beside(folder / "other.loss") == ()


def test_the_command_fails_where_a_case_does(folder: Path) -> None:
    arguments = ["validate", str(folder / "pets.loss"), "--oracle", "lac", "--cases", "1"]
    assert CliRunner().invoke(main, [*arguments, "--json"]).exit_code == 0
    (folder / "pets.cases").write_text('case "cats are dear": cost { cat } > 3')
    done = CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code == 1
    stage = json.loads(done.stdout)["stages"][0]
    assert (stage["name"], stage["holds"]) == ("cases", False)
    assert stage["verdicts"][0]["counter_example"]["text"] == "{ cat } costs 1: that is not > 3"
    (folder / "pets.cases").write_text("case: nonsense")
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2


def test_pytest_runs_each_as_a_test(folder: Path) -> None:
    """One process for cases by themselves, those beside a spec, whose losses are not chosen, and what is no case."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--udcp", "-v", "-k", "case"]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "udcp_dsl.check.plugin"}
    (folder / "pets.cases").write_text(CASES + 'case "cats are dear": cost { cat } > 3\n')
    (folder / "beside.loss").write_text(SPEC)
    (folder / "beside.cases").write_text(CASES)
    (folder / "odd.loss").write_text(SPEC)
    (folder / "odd.cases").write_text("case: nonsense")
    command += ["pets.cases", "beside.loss", "odd.cases"]
    told = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False).stdout
    assert "pets.cases::case wild is dear PASSED" in told
    assert "pets.cases::case cats are dear FAILED" in told
    assert "pets.cases:8:1: case cats are dear fails" in told
    assert "{ cat } costs 1: that is not > 3" in told
    assert "beside.loss::case mild PASSED" in told
    assert "odd.cases::cases FAILED" in told
    assert "cost or row is expected" in told
    assert "2 failed, 10 passed, 2 deselected" in told  # the two losses of beside.loss
    assert "Traceback" not in told


def test_the_page_about_cases_is_right() -> None:
    """Its example is read, and what it says of the language's labels holds."""
    text = (Path(__file__).parents[3] / "docs" / "cases.md").read_text(encoding="utf-8")
    cases = parse_cases(Source("cases.md", text.split("```")[1]))
    assert [type(c.claim) for c in cases] == [CostCase, CostCase, CostCase, RowCase, RowCase]
    assert (cases[2].loss, cases[2].params) == ("triage", {"coherence": 3.0})


def test_with_sets_the_inputs_of_a_row() -> None:
    declared = "labels { a, b }  param k = 2  input km in [0, 9]  costs fee per row in [1, 5]"
    loss = udcp.loads(f"{declared}  loss l = sum(fee) + k * km * size")
    for text, holds in (
        ('case "near" with km = 1, fee = 2: cost { a } == 4', True),
        ('case "far" with km = 9, fee = 2: cost { a } == 20', True),
        ('case "both" with k = 3, km = 9, fee = 2: cost { a } == 29', True),
        ('case "not so" with km = 9, fee = 2: cost { a } < 20', False),
    ):
        assert check_case(loss, case(text)).holds is holds
    for text, says in (
        ('case "which" with km = 9: cost { a } > 1', "give it, such as `with fee = 1`"),
        ('case "outside" with km = 10, fee = 2: cost { a } > 1', "input 'km' is 10, outside [0, 9]"),
    ):
        verdict = check_case(loss, case(text))
        assert not verdict.holds
        assert says in str(verdict.counter_example)
