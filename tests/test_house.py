"""The house stays in order: small files, rooms that can be looked over, one number for the version."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import udcp_dsl

ROOT = Path(__file__).parents[1]
SOLVERS = ROOT / "solvers"
ROOTS = [ROOT / "udcp_dsl", SOLVERS, ROOT / "grammars"]
# A public signature: its parameters are the options of the oracle, which users give by name.
LONG_SIGNATURE = "udcp_solvers/ilp.py: Ilp.__init__"
ONE_A_VERB_OR_ATOM = ("udcp_dsl/cli", "udcp_dsl/expression/atoms")
# Folders of tests with a topic of their own.
TOPICS = {"udcp_dsl/inputs": "numbers that come with each row, from the language to validation"}
# Test files that are named after what cuts across the modules of their folder: (folder, what that is, names).
CROSS_CUTTING = (
    (
        "udcp_dsl",
        "several packages",
        "comparison_promises fixes in_notebooks mistakes_in_python one_door orders units warnings",
    ),
    ("udcp_dsl/cli", "several commands, or a part of one", "abandoned_labels check_ilp column_options free_labels"),
    ("udcp_dsl/cli", "several commands", "hostile_labels in_a_terminal limits mistakes mistakes_with_data outputs"),
    ("udcp_dsl/cli", "several commands", "process promises what_is_meant"),
    ("udcp_dsl/compile", "all passes", "small_specs_stay_quick ways_out"),
    ("udcp_dsl/expression", "several atoms", "category_distance members"),
    ("udcp_dsl/lsp", "the whole server", "mutated"),
    ("udcp_dsl/prediction", "predictors, from arguments to files", "arguments decisions hostile_predictors"),
    ("udcp_dsl/prediction", "files of predictors and of sets", "result_folders saved_formats written_ids"),
    ("udcp_dsl/prediction/calibrate", "laws of several calibrators", "coverage label_weighted"),
    ("udcp_dsl/prediction/promises", "several promises at once", "together"),
    ("udcp_dsl/prediction/rows", "tables of all formats", "damaged_tables parquet_files stored tables_in_the_wild"),
    ("udcp_dsl/report", "whole pages", "in_a_browser"),
    ("udcp_dsl/studio", "the studio in use", "as_people_use_it attack command first_minutes in_a_browser inputs"),
    ("udcp_dsl/testing", "what other suites use", "strategies_and_shrinking"),
    ("udcp_dsl/validation", "all stages", "validate"),
    ("udcp_solvers", "several oracles", "mass_oracles optimum"),
    ("udcp_solvers/greedy_orders", "all ways to the same orders", "orders"),
    ("udcp_solvers/numeric", "what numba compiles", "float_types plain_numba"),
    ("udcp_solvers/programs", "all programs", "proofs resume"),
    ("udcp_solvers/search", "the search as a whole", "mass search"),
)


def _lines_of_code(path: Path) -> int:
    """The lines of a file without the docstrings of its functions and classes: these are the API reference."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > 500:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return lines


def test_no_file_is_above_500_lines() -> None:
    files = [path for root in [*ROOTS, ROOT / "tests", ROOT / "benchmarks"] for path in root.rglob("*.py")]
    assert len(files) > 200
    lines = {str(path.relative_to(ROOT)): _lines_of_code(path) for path in files}
    assert not {path: n for path, n in lines.items() if n > 500}


def test_no_room_has_more_than_15_modules() -> None:
    rooms = [path.parent for root in ROOTS for path in root.rglob("__init__.py")]
    assert len(rooms) > 15
    modules = {str(room.relative_to(ROOT)): len(list(room.glob("*.py"))) - 1 for room in rooms}  # __init__ is the door
    assert not {room: n for room, n in modules.items() if n > 15 and room not in ONE_A_VERB_OR_ATOM}


def test_no_function_of_the_solvers_has_above_60_lines_or_8_parameters() -> None:
    found = {
        f"{path.relative_to(SOLVERS)}: {name}": ((node.end_lineno or 0) - node.lineno + 1, _parameters_of(node))
        for path in SOLVERS.rglob("*.py")
        for name, node in _functions_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(found) > 500
    assert [name for name, size in found.items() if size[0] > 60 or size[1] > 8] == [LONG_SIGNATURE]


def _functions_in(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """All functions in a module, class or function, by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        name = f"{prefix}{node.name}." if isinstance(node, ast.FunctionDef | ast.ClassDef) else prefix
        yield from _functions_in(node, name)


def test_no_function_has_a_body_of_above_60_lines() -> None:
    """Without its signature and its docstring, which are the API reference."""
    found = {}
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
                found[f"{path.relative_to(ROOT)}: {node.name}"] = (node.end_lineno or 0) - body[0].lineno + 1
    assert len(found) > 3000
    assert not {name: lines for name, lines in found.items() if lines > 60}


def test_kernels_copy_arrays_by_put_and_fill() -> None:
    """numba's own copy of one array into another compares shapes, with a message that takes 1.7 s to compile."""
    kernels, found = 0, []
    for path in (ROOT / "solvers" / "udcp_solvers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not any("jit" in ast.unparse(by) for by in node.decorator_list):
                continue
            kernels += 1
            for step in ast.walk(node):
                if isinstance(step, ast.Assign) and any(_is_slice(target) for target in step.targets):
                    filled = isinstance(step.value, ast.Constant | ast.UnaryOp) or ast.unparse(step.value) == "np.inf"
                    found += [] if filled else [f"{path.name}:{step.lineno}: {ast.unparse(step)}"]
    assert kernels > 200
    assert not found


def _is_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))


def _parameters_of(function: ast.FunctionDef) -> int:
    of = function.args
    named = [arg.arg for arg in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg) if arg is not None]
    return len([name for name in named if name not in ("self", "cls")])


def test_a_test_file_is_named_after_its_module_or_after_what_cuts_across_modules() -> None:
    tests = ROOT / "tests"
    found = set()
    for path in (path for root in ("udcp_dsl", "udcp_solvers") for path in (tests / root).rglob("test_*.py")):
        folder, name = path.parent.relative_to(tests).as_posix(), path.stem.removeprefix("test_")
        module = (ROOT if folder.startswith("udcp_dsl") else ROOT / "solvers") / folder / name
        if folder not in TOPICS and not module.with_suffix(".py").exists() and not module.is_dir():
            found.add(f"{folder}: {name}")
    assert found == {f"{folder}: {name}" for folder, _, names in CROSS_CUTTING for name in names.split()}
    assert not [folder for folder in TOPICS if (ROOT / folder).exists()]


def test_the_version_is_written_once_and_the_changelog_is_about_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"] == {"path": "udcp_dsl/__init__.py"}
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert udcp_dsl.__version__.removesuffix(".dev0") == newest[1]


def test_every_planted_fault_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text that a fault changes is in its file once; else `tests/mutation/run.py` ends at it, after minutes."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "mutation"))
    faults = importlib.import_module("faults").FAULTS
    assert len(faults) > 60
    found = {fault.name: (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) for fault in faults}
    assert not {name: times for name, times in found.items() if times != 1}


def test_warnings_are_made_in_one_place() -> None:
    """Which finds the line of the user that they point at."""
    found = []
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "warn" in text else ():
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in ("warn", "warn_explicit"):
                of = called.value
                if isinstance(of, ast.Name) and of.id == "warnings":
                    found.append(str(path.relative_to(ROOT)))
            imported = isinstance(node, ast.ImportFrom) and node.module == "warnings"
            assert not (imported and any(name.name.startswith("warn") for name in node.names)), path
    assert sorted(found) == ["udcp_dsl/deprecation.py", "udcp_dsl/diagnostics.py"]
