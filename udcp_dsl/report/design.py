"""The design of our pages: their head, with the colours in light and dark and one style sheet."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

from udcp_dsl.report.palette import variables
from udcp_dsl.report.wording import shown


def head(title: str, script: str | None = None) -> str:
    """The page up to its content. A content security policy forbids everything but the styles and this script."""
    run = ""
    if script is not None:
        run = f" script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}';"
    policy = f"default-src 'none'; style-src 'unsafe-inline';{run} img-src data:"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(shown(title))}</title>
<style>
:root {{ {variables(dark=False)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(dark=True)} }} }}
{packaged("page.css")}</style>
</head>
<body>"""


@cache
def packaged(name: str) -> str:
    """A file of this package, as text."""
    return (files("udcp_dsl.report") / name).read_text(encoding="utf-8")
