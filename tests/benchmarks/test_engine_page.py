"""docs/engine.md: its tables and its figure are those of the code as it is, and the names on it exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "engine.md"
SEARCH = ROOT / "solvers" / "udcp_solvers" / "search"
# Words of the language, which the page writes as the search names what they become.
OF_THE_LANGUAGE = {"and", "any", "pets", "size", "wild", "worst"}


def test_the_page_shows_what_the_search_does() -> None:
    """In another process: the kernels are not compiled there."""
    script = (
        "import engine_page as e; text = e.PAGE.read_text(encoding='utf-8');"
        "print(e.page(text) == text, e.drawn() == e.FIGURE.read_text(encoding='utf-8'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT / "benchmarks", capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr or "run benchmarks/engine_page.py"


def test_every_name_on_the_page_is_one_of_the_search() -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.S | re.M)
    names = {
        name
        for span in re.findall(r"`([^`]+)`", prose)
        if "/" not in span and "=" not in span
        for name in re.findall(r"[A-Za-z_]\w+", span)
    }
    modules = {path.stem for path in SEARCH.glob("*.py")}
    nodes = [node for path in SEARCH.glob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    code = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    code |= {node.id for node in nodes if isinstance(node, ast.Name)}
    code |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert {"best_set", "advance", "fix_between", "SearchPrices"} <= names
    assert names - OF_THE_LANGUAGE <= code | modules | {"price", "ilp"}
