"""A studio on localhost: a free port, a token, an address, and the server until it is interrupted."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable

from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.studio.studio import Studio

PORT = 8765
_TRIED = 100  # ports that are tried
_SILENCE = 10.0  # longest pause within a request, in seconds


def require_studio() -> None:
    """Raise InputError, which says how to install the server, if it is missing."""
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise InputError(f"the studio needs starlette and uvicorn: {install_hint('studio')}") from error
    del starlette, uvicorn


def listening(port: int = PORT) -> socket.socket:
    """A socket on 127.0.0.1 at this port or, if it is in use, at the next free one."""
    for tried in range(port, min(port + _TRIED, 1 << 16)):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.bind(("127.0.0.1", tried))
            made.listen(128)
            return made
        except OSError:
            made.close()
    raise InputError(f"no port from {port} to {port + _TRIED - 1} is free: give another, --port")


def _timeout_protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol, which also ends a connection that is silent in the middle of a request.

    Connections that wait for an answer are left alone; uvicorn itself ends those that idle after one.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimeoutProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._silent = self.loop.call_later(_SILENCE, self._end_if_waiting)

        def data_received(self, data: bytes) -> None:
            self._silent.cancel()
            super().data_received(data)
            self._silent = self.loop.call_later(_SILENCE, self._end_if_waiting)

        def connection_lost(self, exc: Exception | None) -> None:
            self._silent.cancel()
            super().connection_lost(exc)

        def _end_if_waiting(self) -> None:
            begun = self.cycle is not None and not self.cycle.response_complete
            if not (begun and not self.cycle.more_body) and not self.transport.is_closing():
                self.transport.close()

    return TimeoutProtocol


def serve(studio: Studio, opened: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is called with the address, which includes the token."""
    import uvicorn

    from udcp_dsl.studio.app import application

    port, token = opened.getsockname()[1], secrets.token_urlsafe(24)
    config = uvicorn.Config(
        application(studio, token, port),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=400,
        ws="none",
        http=_timeout_protocol(),
    )
    server = uvicorn.Server(config)
    ready(f"http://127.0.0.1:{port}/{token}/")
    try:
        server.run(sockets=[opened])
    finally:
        studio.close()
        opened.close()
