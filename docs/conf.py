"""The documentation site: `python -m sphinx -W -b html docs site`, with the extra `docs`. It needs no network.

Pages that live elsewhere in the repository (the language manual, the examples, contributing, the changelog) are adopted
from there at each build, see `extensions/adopted.py`; blocks marked `{run}` are executed, see `extensions/executed.py`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# The source tree, and the extensions of this site.
sys.path[:0] = [str(ROOT), str(ROOT / "solvers"), str(ROOT / "grammars"), str(HERE / "extensions")]

import udcp_dsl  # noqa: E402, needs the path above

project = "udcp_dsl"
author = "The udcp_dsl authors"
project_copyright = "the udcp_dsl authors"
release = udcp_dsl.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
extensions += ["sphinx_copybutton"]
extensions += ["accessible", "adopted", "executed", "gallery", "mathematics", "python_pages"]  # ours
exclude_patterns = ["extensions", "figures", "*.py"]
html_theme = "furo"
html_title = f"udcp_dsl {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
# Doc strings are plain text in which `names` stand between single backticks.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# The pages of functions that need torch are made from their docstrings alone; the extra `docs` does not install it.
autodoc_mock_imports = [package for package in ("torch",) if find_spec(package) is None]
napoleon_use_ivar = True  # attributes of a class as a list in its text
napoleon_use_rtype = False
python_maximum_signature_line_length = 88
# Blocks of the manual that are no language of their own: values, facts, messages.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app: object) -> None:
    """Texts are written for a terminal: names that end in an underscore are no links, and `*` is a pattern."""
    import re

    def plain(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
        lines[:] = [re.sub(r"(?<![`\w])(\w+)_(?=[\s,:;.)])(?!`)", r"\1\\_", line) for line in lines]

    def patterns(app: object, ctx: object, lines: list[str]) -> None:
        lines[:] = [line.replace("*", "\\*") for line in lines]

    app.connect("autodoc-process-docstring", plain)  # type: ignore[attr-defined]
    for part in ("description", "epilog"):
        app.connect(f"sphinx-click-process-{part}", patterns)  # type: ignore[attr-defined]
