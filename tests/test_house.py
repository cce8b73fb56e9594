"""The house stays in order: short functions, few imports, rooms that do not grow, one number for the version."""

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
# Modules that import more than `MOST_IMPORTED` of ours, and how many: where everything meets, the edges, and the passes
# of the compiler. They may come to need fewer.
MANY_IMPORTS: dict[str, int] = {
    "udcp_dsl.check.promises": 17,
    "udcp_dsl.check.run": 17,
    "udcp_dsl.cluster.streams": 19,
    "udcp_dsl.compile.type_checker": 14,
    "udcp_dsl.loss": 13,
    "udcp_dsl.measure.compare": 17,
    "udcp_dsl.measure.comparison": 15,
    "udcp_dsl.measure.evaluate": 14,
    "udcp_dsl.predict.predictor": 16,
    "udcp_dsl.rows.source": 14,
    "udcp_dsl.sklearn": 20,
    "udcp_dsl.studio.studio": 14,
}
MOST_IMPORTED = 12
# Lines of code per room, without blank lines, comments and docstrings. A feature that needs more says so here.
LINES_OF_CODE: dict[str, int] = {
    "udcp_dsl": 2060,
    "udcp_dsl.check": 3580,
    "udcp_dsl.cli": 2590,
    "udcp_dsl.cluster": 640,
    "udcp_dsl.compile": 2320,
    "udcp_dsl.datasets": 610,
    "udcp_dsl.expression": 4100,
    "udcp_dsl.fit": 980,
    "udcp_dsl.language": 1830,
    "udcp_dsl.lsp": 1320,
    "udcp_dsl.measure": 2530,
    "udcp_dsl.predict": 6710,
    "udcp_dsl.report": 1790,
    "udcp_dsl.rows": 2240,
    "udcp_dsl.showing": 300,
    "udcp_dsl.studio": 1780,
    "udcp_dsl.torch": 500,
    "udcp_solvers": 1080,
    "udcp_solvers.greedy_orders": 820,
    "udcp_solvers.numeric": 1080,
    "udcp_solvers.prices": 2170,
    "udcp_solvers.programs": 940,
    "udcp_solvers.search": 3740,
}


def our_modules() -> dict[str, Path]:
    """The path of each of our modules, by its dotted name."""
    found = {}
    for root, package in ((ROOT, "udcp_dsl"), (SOLVERS, "udcp_solvers"), (ROOT / "grammars", "udcp_grammars")):
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_at_top(path: Path, ours: dict[str, Path]) -> set[str]:
    """Our modules that a module imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            of = name if name in ours else name.rpartition(".")[0]
            found |= {of} & ours.keys()
    return found


def test_a_module_imports_few_of_ours() -> None:
    """At its top: what it needs to be read. Those that are listed may not come to need more."""
    ours = our_modules()
    many = {name: len(imported_at_top(path, ours) - {name}) for name, path in ours.items()}
    assert len(many) > 300
    beyond = {name: n for name, n in many.items() if n > max(MANY_IMPORTS.get(name, 0), MOST_IMPORTED)}
    assert not beyond


def test_rooms_do_not_grow() -> None:
    """Lines of code, without blank lines, comments and docstrings; a feature that needs more says so here."""
    lines = dict.fromkeys(LINES_OF_CODE, 0)
    for name, path in our_modules().items():
        room = ".".join(name.split(".")[:2])
        room = room if room in lines else name.split(".")[0]
        lines[room] = lines.get(room, 0) + lines_of_code(path)
    grown = {room: (n, LINES_OF_CODE.get(room, 0)) for room, n in lines.items() if n > LINES_OF_CODE.get(room, 0)}
    assert not grown


def lines_of_code(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    docs = set()
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in docs for i, line in lines)


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
