"""The page: as a studio serves it, and as one file with all that it shows, which opens offline."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from udcp_dsl.report.browser import as_script
from udcp_dsl.report.look import shown, variables

_TITLE = "udcp studio"


def styles() -> str:
    """The style sheet: the colours of our reports, in light and dark, and the studio's own rules."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(dark=True)} }} }}"
    return f":root {{ {variables(dark=False)} }}\n{dark}\n{_packaged('studio.css')}"


def script() -> str:
    """The script that esbuild made from `page/src`."""
    return _packaged("studio.js")


def served() -> str:
    """The page that talks to a studio."""
    head = '<link rel="stylesheet" href="studio.css">\n<script src="studio.js" defer></script>'
    return _page(_TITLE, head, "")


def exported(views: dict[str, Any]) -> str:
    """The page with what it shows now, as one file that makes no requests."""
    code = script()
    allowed = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'; img-src data:"
    name = shown(str((views.get("state") or {}).get("name", "")))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{styles()}</style>'
    data = f'<script type="application/json" id="snapshot">{as_script(views)}</script>\n<script>{code}</script>'
    return _page(f"{name}, {_TITLE}", head, data)


def _page(title: str, head: str, end: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
</head>
<body>
<div id="studio"><p class="loading">The studio opens here; it needs JavaScript.</p></div>
{end}
</body>
</html>
"""


@cache
def _packaged(name: str) -> str:
    return (files("udcp_dsl.studio") / "page" / name).read_text(encoding="utf-8")
