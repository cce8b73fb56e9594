"""`udcp lsp`: the language server, for editors."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec

import click

from udcp_dsl.diagnostics import InputError


@click.command("lsp", epilog="Example:  udcp lsp --tcp 2087    (editors start `udcp lsp` themselves, over stdio)")
@click.option("--stdio", is_flag=True, help="Communicate over stdin and stdout (the default).")
@click.option("--tcp", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Communicate over this TCP port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on, with --tcp.")
def command(stdio: bool, port: int | None, host: str) -> None:
    """Run the language server: errors as you type, hover, completion, rename and more; see editors/README.md.

    Needs the extra `lsp`. It reads data files below the folder of each spec and writes nothing. The protocol itself is
    JSON, so there is no --json.
    """
    if stdio and port is not None:
        raise click.UsageError("--stdio and --tcp exclude each other")
    if find_spec("pygls") is None:
        raise InputError("the language server needs pygls: pip install 'udcp_dsl[lsp]'")
    from udcp_dsl.lsp.server import make_server

    server = make_server()
    if port is None:
        # Copies, as the server closes them; other output must not mix with its messages.
        with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers, redirect_stdout(sys.stderr):
            server.start_io(requests, answers)
    else:
        server.start_tcp(host, port)
