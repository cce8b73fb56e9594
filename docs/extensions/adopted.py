"""Pages of the repository that the site takes over: copied into docs/made at each build, never edited there.

A link that leaves the folder of its page is turned to where the site has the file; one to a file that the site does not
have becomes its path, as text.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = DOCS / "made"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
# Files of the repository by the page that shows them; folders of specs are added by the gallery's own pages.
PAGES = {
    "README.md": "index",
    "CONTRIBUTING.md": "made/contributing",
    "CODE_OF_CONDUCT.md": "made/conduct",
    "CHANGELOG.md": "made/changelog",
    "editors/README.md": "made/editors",
}
# Kinds of blocks in the manual that are not languages.
PLAIN = ("values", "terms", "facts", "error", "warning", "bytes", "npy")


def adopt() -> dict[str, str]:
    """Copy the pages; gives the origin of each by the name of its page."""
    shutil.rmtree(MADE, ignore_errors=True)
    origins = {}
    for source in sorted((ROOT / "specs" / "reference").glob("*.md")):
        name = "index" if source.stem == "README" else source.stem
        origins[f"made/language/{name}"] = source.relative_to(ROOT).as_posix()
    for source, name in PAGES.items():
        if name.startswith("made/"):
            origins[name] = source
    for name, source in origins.items():
        page = DOCS / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / source).read_text(encoding="utf-8")
        if name == "made/language/index":
            others = sorted(n.rpartition("/")[2] for n in origins if n.startswith("made/language/") and n != name)
            text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(others) + "\n```\n"
        page.write_text(text, encoding="utf-8")
    (MADE / "options.md").write_text(options_page(), encoding="utf-8")
    return origins


def options_page() -> str:
    """The options of a predictor, from their declarations."""
    from udcp_dsl.predict.promise import OPTIONS, reference_table

    return (
        "# Options of a predictor\n\n"
        "Keywords of `SetPredictor`, `UtilitySetClassifier` (with `random_state` for `seed`) and `udcp.Promise`, and\n"
        "options of `udcp calibrate`. Those that exclude each other are refused, with the reason.\n\n"
        + reference_table(OPTIONS)
    )


def page_of(path: str) -> str | None:
    """The page that shows a file or folder of the repository, without its ending."""
    path = path.rstrip("/")
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path[len("docs/") : -len(".md")]
    parts = PurePosixPath(path).parts
    if parts[:2] == ("specs", "reference"):
        name = PurePosixPath(path).stem if path.endswith(".md") else "index"
        return "made/language/" + ("index" if name == "README" else name)
    if parts[:1] == ("specs",):
        return "made/gallery/" + (parts[1] if len(parts) > 1 and not parts[1].endswith(".md") else "index")
    return None


def turned(text: str, docname: str, origin: str) -> str:
    """The text of a page with its links turned to the site's."""
    up = "../" * docname.count("/")

    def turn(match: re.Match[str]) -> str:
        picture, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target or "://" in target or target.startswith("mailto:") or "made/figures/" in target:
            return match[0]  # figures of a page are made when its blocks are run
        there = (ROOT / origin).parent.joinpath(target).resolve()
        if not there.is_relative_to(ROOT) or not there.exists():
            raise SystemExit(f"{origin}: the link to {target} leads nowhere")
        path = there.relative_to(ROOT).as_posix()
        if picture or (path.startswith("docs/") and not path.endswith(".md")):
            return f"{picture}[{words}]({up}{'' if path.startswith('docs/') else '../'}{path.removeprefix('docs/')})"
        page = page_of(path)
        return f"{words} (`{path}`)" if page is None else f"[{words}]({up}{page}.md{anchor})"

    fences = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else LINK.sub(turn, part) for part in fences)


def setup(app: Any) -> dict[str, Any]:
    from pygments.lexers.special import TextLexer

    from udcp_dsl.language.lexer import LossLexer

    origins: dict[str, str] = {}

    def begin(app: Any) -> None:
        origins.update(adopt())
        app.add_lexer("loss", LossLexer)  # as the entry point does, where the package is installed
        for name in PLAIN:
            app.add_lexer(name, TextLexer)

    def read(app: Any, docname: str, source: list[str]) -> None:
        if not docname.startswith("made/gallery/"):
            source[0] = turned(source[0], docname, origins.get(docname, f"docs/{docname}.md"))

    app.connect("builder-inited", begin, priority=100)
    app.connect("source-read", read)
    return {"parallel_read_safe": False}
