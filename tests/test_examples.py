"""Generated examples are the same in every run, whatever was loaded or run before; and how much is tried is not up to
the tests."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.conftest import Sizes


def drawn() -> list[tuple[int, float, str]]:
    """What a property is tried on."""
    found = []

    @given(st.integers(), st.floats(), st.text())
    def collect(n: int, x: float, text: str) -> None:
        found.append((n, x, text))

    collect()
    return found


@pytest.mark.skipif(not settings.default.derandomize, reason="examples are drawn anew")
def test_no_module_that_is_loaded_changes_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = repr(drawn())  # a NaN is not equal to itself
    path = tmp_path / "words.py"
    path.write_text("\n".join(f"x{i} = {7919 * i}, {i / 7}, 'word {i}'" for i in range(100, 300)))
    spec = importlib.util.spec_from_file_location("words", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "words", module)
    assert repr(drawn()) == before


def test_a_profile_decides_how_much_is_tried(sizes: Sizes) -> None:
    assert len(drawn()) == sizes.examples


MANY = 25  # from so many turns on, how many they are is taken for an amount that is tried
REPEATS = {"repeats", "draws", "runs", "trials"}  # of an argument
DRAWN = re.compile(r"\b(rng|random|default_rng|draw|drawn|seed|trial)\b")
# Long loops whose length is part of the case, so that no profile changes it.
INHERENT = {
    "udcp_dsl/cli/test_solving.py: test_ctrl_c_ends_all_processes_and_keeps_what_was_solved": "waits for a process",
    "udcp_dsl/predict/calibrate/test_levels.py: test_rank_and_points_needed_against_counting": "every case",
    "udcp_dsl/rows/test_damaged_tables.py: test_a_flipped_bit_is_an_input_error_that_names_the_file": "every"
    " byte, but for those at which pyarrow ends the process",
    "udcp_dsl/studio/test_attack.py: test_half_requests_that_go_silent_do_not_keep_others_out": "as many connections as"
    " keep others out",
    "udcp_dsl/test_sklearn.py: test_a_class_without_training_rows_has_probability_0": "ends at the first split that"
    " leaves the class out",
    "udcp_solvers/programs/test_resume.py: test_a_run_that_was_stopped_goes_on_with_the_same_bytes": "waits for a"
    " process",
    "udcp_solvers/test_optimum.py: least_cost": "steps of a bisection, to the last bit",
}


def test_no_test_has_a_size_of_its_own() -> None:
    """No profile reaches programs that tests run in another process: they are not looked at."""
    tests = Path(__file__).parent
    own = re.compile(r"hypothesis import .*\bsettings\b|max_examples|parametrize\(\"seed\"")
    files = {path: path.read_text(encoding="utf-8") for path in tests.rglob("*.py")}
    with_own = {path.name for path, text in files.items() if path.name.startswith("test_") and own.search(text)}
    assert with_own == {Path(__file__).name}
    found = {
        f"{path.relative_to(tests).as_posix()}: {function}"
        for path, text in files.items()
        for function in repetitions(ast.parse(text))
    }
    assert found == set(INHERENT)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("for _ in range(25): pass", True),
        ("n, m = 2, 400\n    for seed in range(m): pass", True),
        ("[rng.random() for i in range(60)]", True),
        ("[1 for _ in range(60)]", True),
        ("coverage_trials(repeats=40)", True),
        ("for _ in range(24): pass", False),
        ("for _ in range(sizes.draws): pass", False),
        ("for start in range(0, 600, 100): pass", False),
        ("[f'label {i}' for i in range(60)]", False),
        ("coverage_trials(repeats=sizes.repeats)", False),
    ],
)
def test_what_is_taken_for_a_size(code: str, found: bool) -> None:
    assert list(repetitions(ast.parse(f"def test():\n    {code}\n"))) == ["test"] * found


def repetitions(tree: ast.Module) -> Iterator[str]:
    """The functions, at the top of a file, that try something a constant number of times, and many times: by a `for`
    over a range, by an expression over a range that draws, or does not use its variable, or by an argument."""
    constants: dict[str, ast.expr] = {}

    def number(node: ast.expr) -> int | None:
        node = constants.get(node.id, node) if isinstance(node, ast.Name) else node
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None

    def long(iterated: ast.expr) -> bool:
        calls = (node for node in ast.walk(iterated) if isinstance(node, ast.Call))
        ranges = [[number(end) for end in call.args] for call in calls if ast.unparse(call.func) == "range"]
        return any(len(range(*ends)) >= MANY for ends in ranges if None not in ends)  # type: ignore[arg-type]

    def repeats(node: ast.AST) -> bool:
        if isinstance(node, ast.For):
            return long(node.iter)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            loops = [loop for loop in node.generators if long(loop.iter)]
            unused = any(ast.unparse(loop.target) == "_" for loop in loops)
            return unused or (bool(loops) and DRAWN.search(ast.unparse(node)) is not None)
        if isinstance(node, ast.Call):
            given = [keyword.value for keyword in node.keywords if keyword.arg in REPEATS]
            names = parameters.get(ast.unparse(node.func), [])
            given += [value for name, value in zip(names, node.args, strict=False) if name in REPEATS]
            return any((number(value) or 0) >= MANY for value in given)
        if isinstance(node, ast.Assign):
            return any(name in REPEATS and (number(value) or 0) >= MANY for name, value in _assigned([node]))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            return any(arg.arg in REPEATS for arg in node.args.args)  # which a decorator gives it
        return False

    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    parameters = {
        function.name: [arg.arg for arg in function.args.args]
        for function in functions
        if isinstance(function, ast.FunctionDef)
    }
    for function in functions:
        constants = dict([*_assigned(tree.body), *_assigned(ast.walk(function))])
        if any(repeats(node) for node in ast.walk(function)):
            yield function.name


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The names that are assigned to, with the values."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            left, right = (x.elts if isinstance(x, ast.Tuple) else [x] for x in (node.targets[0], node.value))
            yield from ((ast.unparse(name), value) for name, value in zip(left, right, strict=False))
