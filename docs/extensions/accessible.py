"""What the theme leaves out for keyboards and screen readers: levels of headings in its menu, focus on code."""

from __future__ import annotations

from typing import Any


def mended(app: object, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Change what a page is made of, after the theme has."""
    for part in ("furo_navigation_tree", "body"):
        if context.get(part):
            levelled = context[part].replace('role="heading">', 'role="heading" aria-level="2">')
            context[part] = levelled.replace("<pre>", '<pre tabindex="0">')


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", mended, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
