"""The documentation site: what its pages run runs, and their links lead somewhere; the whole is built by `-m slow`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "extensions"))

import adopted  # noqa: E402, an extension of the site
import executed  # noqa: E402, likewise

PAGES = sorted(path for path in DOCS.rglob("*.md") if "made" not in path.relative_to(DOCS).parts)
RUN = [page for page in PAGES if executed.blocks_of(page)]
# Of rows as few as will do; the site is built with all of them.
SMALLER = {
    "start": {"3000": "400", "1500": "200"},
    "streams": {"2000": "600", "3000": "500"},
    "triage": {"4000": "600", "2000": "300"},
}


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_what_a_page_runs_runs(page: Path) -> None:
    for package in ("pyarrow", "matplotlib"):
        pytest.importorskip(package)
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": page.stem}
    blocks = executed.blocks_of(page)
    for many, few in SMALLER.get(page.stem, {}).items():
        assert any(many in code for code in blocks)
        blocks = [code.replace(many, few) for code in blocks]
    for i, code in enumerate(blocks):
        _, figures = executed.run(code, f"{page.name}, block {i}", names)
        if figures:
            from matplotlib import pyplot

            pyplot.close("all")


def test_a_block_that_fails_is_not_passed_over() -> None:
    with pytest.raises(ZeroDivisionError):
        executed.run("1 / 0", "page", {})
    assert executed.run("print(1)\n2", "page", {}) == ("1\n", [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    if "made/" not in page.read_text(encoding="utf-8"):  # made when the site is built, which checks those links
        docname = page.relative_to(DOCS).with_suffix("").as_posix()
        adopted.turned(page.read_text(encoding="utf-8"), docname, f"docs/{docname}.md")


def test_code_of_the_pages_is_no_wider_than_88() -> None:
    """So that it is read without scrolling; the set-up commands of the README are one line each."""
    wide = []
    for page in [ROOT / "README.md", *PAGES]:
        for kind, code in re.findall(
            r"^```(\{run\}|python|sh)\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M
        ):
            one_line = "python3 -m venv" if page.name == "README.md" else "-"
            lines = [line for line in code.splitlines() if len(line) > 88 and not line.startswith(one_line)]
            wide += [f"{page.relative_to(ROOT)} ({kind}): {line}" for line in lines]
    assert not wide


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("README.md", "index"),
        ("docs/mass.md", "mass"),
        ("specs/reference/diameter.md", "made/language/diameter"),
        ("specs/reference/", "made/language/index"),
        ("specs/tickets/", "made/gallery/tickets"),
        ("specs/README.md", "made/gallery/index"),
        ("benchmarks/floors.py", None),
    ],
)
def test_where_a_file_is_shown(path: str, page: str | None) -> None:
    assert adopted.page_of(path) == page


def test_a_link_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(SystemExit, match="leads nowhere"):
        adopted.turned("see [this](nothing.md)", "index", "docs/index.md")


WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] == "torch" else found(name, *rest)
sys.path[:0] = sys.argv[1:]
import conf, python_pages
from sphinx.ext.autodoc.mock import mock

with mock(conf.autodoc_mock_imports):
    print(python_pages.public()["udcp_dsl.torch:load_weights"].__doc__)
"""


def test_pages_of_functions_that_need_torch_are_made_without_it() -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-c", WITHOUT_TORCH, str(DOCS), str(DOCS / "extensions")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Load saved weights into a model" in done.stdout, done.stderr


def test_the_extra_docs_installs_no_torch() -> None:
    """Without a pinned version, gigabytes of builds for GPUs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    waiting, seen = ["docs"], set[str]()
    while waiting:
        extra = waiting.pop()
        seen.add(extra)
        for package in extras[extra]:
            own = re.fullmatch(r"udcp_dsl\[(.*)\]", package)
            waiting += [] if own is None else own[1].split(",")
            assert not package.startswith("torch"), extra
    assert "tables" in seen


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    pytest.importorskip("sphinx")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return site


@pytest.mark.slow
def test_the_site_is_whole(built: Path) -> None:
    assert (built / "made" / "gallery" / "tickets.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["index", "start", "made/language/index", "made/gallery/tickets", "guarantees", "made/python/index"]
)
def test_axe_finds_nothing_serious(page: str, built: Path, judged: Callable[..., Any]) -> None:
    file = built / f"{page}.html"
    assert judged(file.read_text(encoding="utf-8"), file.with_name("judged.html")) == []
