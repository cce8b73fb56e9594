"""The page: as a studio serves it, and as one file with all that it shows, which opens offline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from udcp_dsl.report.browser import as_script
from udcp_dsl.report.look import colour_rules, head

_TITLE = "udcp studio"
_EMPTY = '<div id="studio"><p class="loading">The studio opens here; it needs JavaScript.</p></div>'


def styles() -> str:
    """The style sheet: the colours of our reports, in light and dark, and the studio's own rules."""
    return f"{colour_rules()}{_packaged('studio.css')}"


def script() -> str:
    """The script that esbuild made from `page/src`."""
    return _packaged("studio.js")


def served() -> str:
    """The page that talks to a studio."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<link rel="stylesheet" href="studio.css">
<script src="studio.js" defer></script>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{_TITLE}</title>
</head>
<body>
{_EMPTY}
</body>
</html>
"""


def exported(views: dict[str, Any]) -> str:
    """The page with what it shows now, as one file that makes no requests."""
    code = script()
    name = str((views.get("state") or {}).get("name", ""))
    return f"""{head(f"{name}, {_TITLE}", code, _packaged("studio.css"))}
{_EMPTY}
<script type="application/json" id="snapshot">{as_script(views)}</script>
<script>{code}</script>
</body>
</html>
"""


@cache
def _packaged(name: str) -> str:
    return (files("udcp_dsl.studio") / "page" / name).read_text(encoding="utf-8")
