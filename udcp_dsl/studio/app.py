"""The answers of a studio, as a Starlette application. Bodies are JSON; a mistake gets status 400 and a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.loss import Loss, load
from udcp_dsl.report.browser import as_script
from udcp_dsl.report.look import colour_rules, head
from udcp_dsl.studio.cases import ask_pair, save_case
from udcp_dsl.studio.guard import App, Guard
from udcp_dsl.studio.instances import load_rows
from udcp_dsl.studio.spec_folder import example
from udcp_dsl.studio.studio import Studio

_TITLE = "udcp studio"
_EMPTY = '<div id="studio"><p class="loading">The studio opens here; it needs JavaScript.</p></div>'
_SINGLES = 48  # labels of an example whose costs are drawn
_PATIENCE = 20.0  # seconds that a page waits for news before it asks again

Answer = Callable[[Studio, Any], Any]


def application(studio: Studio, token: str, port: int) -> App:
    """The studio behind its guard."""

    async def views(request: Request) -> Response:
        since = request.query_params.get("since", "0")
        if not since.isdecimal() or len(since) > 15:
            return _json({"error": "since is a whole number"}, 400)
        version, found = await studio.board.news(int(since), _PATIENCE)
        return _json({"version": version, "views": found})

    async def export(request: Request) -> Response:
        text = exported(studio.board.since(0)[1])
        headers = {"content-disposition": f'attachment; filename="{_ascii(studio.state.place.stem)}-studio.html"'}
        return Response(text, media_type="text/html", headers=headers)

    routes = [
        Route("/", _text(served, "text/html")),
        Route("/studio.js", _text(script, "text/javascript")),
        Route("/studio.css", _text(styles, "text/css")),
        Route("/api/views", views),
        Route("/api/gallery", _asked(studio, lambda studio, _: _gallery()), methods=["POST"]),
        Route("/export", export),
        *(Route(f"/api/{name}", _asked(studio, answer), methods=["POST"]) for name, answer in _ANSWERS.items()),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _change(studio: Studio, body: Any) -> Any:
    studio.change(body)
    return {"version": studio.board.since(0)[0]}


def _save(studio: Studio, body: Any) -> Any:
    with studio.writing:
        state = studio.state
        place, written = state.place.save(state.text)
        studio.saved_to(place, state.text)
    return {"written": written, "place": place.shown}


def _open(studio: Studio, body: Any) -> None:
    from udcp_dsl.datasets.kept_rows import example_specs

    specs, name = example_specs(), body.get("example") if isinstance(body, dict) else None
    if not isinstance(name, str) or name not in specs:
        raise InputError(f"there is no example {str(name)[:80]!r}: there are {', '.join(specs)}")
    place = studio.state.place
    studio.open(*example(specs[name], place.folder))


_ANSWERS: dict[str, Answer] = {
    "change": _change,
    "save": _save,
    "case": save_case,
    "question": ask_pair,
    "open": _open,
    "complete": lambda studio, body: studio.assistant.complete(body, studio.state.place),
    "hover": lambda studio, body: studio.assistant.hover(body, studio.state.place),
    "fixes": lambda studio, body: studio.assistant.fixes(body, studio.state.place),
    "rows": load_rows,
    "stop": lambda studio, body: studio.stop(),
    "again": lambda studio, body: studio.again(),
}


def _gallery() -> Any:
    """The examples that come with the package, from easy to hard: what each is about, its labels, the terms it uses."""
    from udcp_dsl.datasets.kept_rows import example_specs

    found: list[dict[str, Any]] = []
    for name, path in example_specs().items():
        lines = path.read_text(encoding="utf-8").splitlines()
        lead = lines[: next((i for i, line in enumerate(lines) if line[:1] != "#"), 0)]
        title, about = _titled(" ".join(line.lstrip("# ") for line in lead)) if lead else (name, "")
        loss = load(path).example
        losses = len(loss.losses)
        found.append(
            {
                "name": name,
                "title": title,
                "about": about,
                "figure": _single_costs(loss),
                "labels": loss.K,
                "losses": losses,
                "terms": list(loss.terms(())),
                "hardness": losses + len(loss.terms(())) + len(lines) / 20,
            }
        )
    return {"examples": sorted(found, key=lambda one: one["hardness"])}


def _titled(text: str) -> tuple[str, str]:
    """The first words of a spec's comment as a title, and the rest.

    >>> _titled("Triage: prefer sets to act on. And so on.")
    ('Triage', 'Prefer sets to act on. And so on.')
    """
    title, end, rest = min((text.partition(end) for end in (": ", ". ", "? ")), key=lambda parts: len(parts[0]))
    return title.rstrip(".") + "?" * (end == "? "), rest[:1].upper() + rest[1:]


def _single_costs(loss: Loss) -> list[float] | None:
    """The costs of single labels, or of some if there are many, in ascending order; None if they depend on the row."""
    if loss.inputs:
        return None
    chosen = np.unique(np.linspace(0, loss.K - 1, min(loss.K, _SINGLES)).astype(int))
    masks = np.zeros((len(chosen), loss.K), dtype=bool)
    masks[np.arange(len(chosen)), chosen] = True
    return sorted(float(f"{cost:.4g}") for cost in loss.batch(masks).tolist())


def _asked(studio: Studio, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _json({"error": "the body is JSON, and the content type says so"}, 415)
        try:
            body = json.loads(await request.body(), parse_constant=_refuse_constant)
            json.dumps(body, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            return _json({"error": "the body holds half a character, which is no text"}, 400)
        except (ValueError, RecursionError):
            return _json({"error": "the body is no JSON"}, 400)
        try:
            return _json(await run_in_threadpool(answer, studio, body) or {})
        except (InputError, SpecError, OSError) as error:
            return _json({"error": _message(error)}, 400)

    return endpoint


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _text(content: Callable[[], str], kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return Response(content(), media_type=kind)

    return endpoint


def _json(data: Any, status: int = 200) -> Response:
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "backslashreplace"), status, media_type="application/json")


def _ascii(name: str) -> str:
    return "".join(ch if ch.isascii() and (ch.isalnum() or ch in "-_") else "_" for ch in name)


def _message(error: Exception) -> str:
    """The text of an error, without the temporary folder that the files were read from."""
    return re.sub(r"[^\s'\"]*udcp-studio-[^/\s]*/", "", str(error))


# The page: as a studio serves it, and as one file with all that it shows, which opens offline.


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
