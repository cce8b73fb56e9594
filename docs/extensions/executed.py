"""`{run}`: a block of Python that is executed when the site is built, with what it prints and the figures it leaves.

    ```{run}
    :alt: Coverage by quarter of the rows        what is seen in its figures, for those who cannot see them
    :elsewhere:                                  its figures are saved, and shown by a link of the page itself
    ...
    ```

The blocks of a page share one namespace, as the cells of a notebook do; they run in the root of the repository. One
that raises fails the build. The tests run the same blocks, by `blocks_of` and `run`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import warnings
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def blocks_of(page: Path) -> list[str]:
    """The blocks of a page that are executed, in order."""
    found = re.findall(r"^```\{run\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
    return [re.sub(r"\A(:\w+:.*\n)+", "", code) for code in found]


def run(code: str, where: str, names: dict[str, Any]) -> tuple[str, list[Any]]:
    """Execute a block: what it printed, and its figures (those left open, and the value of its last line)."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out, before, value = io.StringIO(), Path.cwd(), None
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            exec(compile(tree, where, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    finally:
        os.chdir(before)
    plots = sys.modules.get("matplotlib.pyplot")
    figures = [] if plots is None else [plots.figure(number) for number in plots.get_fignums()]
    return out.getvalue(), [*figures, value] if hasattr(value, "savefig") and value not in figures else figures


def setup(app: Any) -> dict[str, Any]:
    import matplotlib
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives

    matplotlib.use("Agg")

    class Run(Directive):
        has_content = True
        option_spec = {"alt": directives.unchanged, "elsewhere": directives.flag}  # noqa: RUF012, as docutils has it

        def run(self) -> list[nodes.Node]:
            from matplotlib import pyplot

            env = self.state.document.settings.env
            kept = env.temp_data.setdefault("executed", {"names": {"__name__": env.docname}, "figures": 0})
            code = "\n".join(self.content)
            block = nodes.literal_block(code, code, language="python")
            try:
                printed, figures = run(code, f"{env.docname}, line {self.lineno}", kept["names"])
            except Exception as error:
                raise self.error(f"the block raised {type(error).__name__}: {error}") from error
            shown: list[nodes.Node] = [block]
            if printed.strip():
                # Wide lines are scrolled, by the keyboard too.
                text = f'<pre class="printed" tabindex="0">{escape(printed.rstrip())}</pre>'
                shown.append(nodes.raw("", text, format="html"))
            for figure in figures:
                kept["figures"] += 1
                name = f"{env.docname.replace('/', '-')}-{kept['figures']}.svg"
                path = Path(app.srcdir) / "made" / "figures" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, bbox_inches="tight")
                pyplot.close(figure)
                if "elsewhere" not in self.options:
                    shown.append(nodes.image(uri=f"/made/figures/{name}", alt=self.options.get("alt", "")))
            return shown

    app.add_directive("run", Run)
    return {"parallel_read_safe": False}
