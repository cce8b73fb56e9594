"""Who may send requests to a studio: a page that it served itself, and whoever was given its address.

The address holds a secret token. A page of another site can make a browser send requests here, but not with the token.
The browser also says where the page comes from (Origin) or, if a name was rebound to 127.0.0.1, which host it asked for
(Host). Bodies are read up to a limit only.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY = 4 << 20  # bytes
MOST_ROWS = 64 << 20  # bytes of rows that are dropped on the page

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class TooLarge(Exception):
    """A body beyond the limit."""


class Guard:
    """Passes permitted requests to `app`, with the token removed from the path; refuses all others."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: there are none here
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return
        inner = dict(scope)
        inner["path"] = "/" + scope["path"].split("/", 2)[2]
        inner["raw_path"] = inner["path"].encode("utf-8", "replace")
        await self._pass(inner, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = 0
        begun = False
        most = _most(scope["path"])

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise TooLarge
            return message

        async def guarded(message: Message) -> None:
            nonlocal begun
            if read > most and not begun:
                return  # answered below, whatever the application answers
            if message["type"] == "http.response.start":
                begun = True
                own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                known = {name.lower() for name, _ in message.get("headers", [])}
                message["headers"] = [*message.get("headers", []), *(pair for pair in own if pair[0] not in known)]
            await send(message)

        try:
            await self._app(scope, limited, guarded)
        except TooLarge:
            if not begun:
                await _answer(send, 413, f"a request is at most {most >> 20} MiB")

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        host, origin = headers.get(b"host", []), headers.get(b"origin", [])
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return 421, "this is a studio on localhost, and the request is for another host"
        if origin and (len(origin) > 1 or origin[0].lower().removeprefix("http://") not in self._hosts):
            return 403, "the request comes from the page of another site"
        if "cross-site" in headers.get(b"sec-fetch-site", []):
            return 403, "the request comes from the page of another site"
        if not hmac.compare_digest(_first_part(scope["path"]).encode("utf-8", "replace"), self._token.encode()):
            return 403, "the address lacks the token: open the one that `udcp studio` printed"
        if scope["path"].count("/") < 2:
            return 404, "there is nothing here: the address ends in /"
        most = _most("/" + scope["path"].split("/", 2)[2])
        lengths = headers.get(b"content-length", [])
        if any(not length.isdecimal() or int(length[:20]) > most for length in lengths):
            return 413, f"a request is at most {most >> 20} MiB"
        return None


def _most(path: str) -> int:
    """The most bytes that the body of a request may have; `path` is without the token."""
    return MOST_ROWS if path == "/api/rows" else MOST_BODY


def _first_part(path: str) -> str:
    """`a` of `/a/b`; empty if there is none, as in `OPTIONS *`."""
    return [*path.split("/", 2), ""][1]


async def _answer(send: Send, status: int, why: str) -> None:
    body = why.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
    headers.append((b"connection", b"close"))  # the rest of the request is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
