"""`udcp fit SPEC`: the parameters of a spec from comparisons of sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import FAILED, finish
from udcp_dsl.cli.spec import reads_spec

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # the byte-order mark of UTF-8, with which a file may begin


@click.command("fit", epilog="Example:  udcp fit pets.loss --cases pets.cases --write")
@reads_spec
@click.option("--cases", "cases_file", metavar="FILE", help="File of cases (default: NAME.cases beside the spec).")
@click.option("--write", is_flag=True, help="Write the fitted values into the spec, keeping its comments.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed for the suggestion."
)
def command(loss: Loss, cases_file: str | None, write: bool, seed: int) -> int:
    """Fit the parameters of a spec to cases that compare costs: cost { a } > cost { b, c }.

    Parameters with a range get the values that satisfy all comparisons with the largest relative margin. If no values
    do, the contradicting cases are listed, nothing is written, and the exit status is 1.
    """
    from udcp_dsl.fit import fit_params

    fit = fit_params(loss, cases_file, seed=seed)

    def written() -> list[str]:
        if not write or not fit.ok:
            return []
        from udcp_dsl.files import atomic_write
        from udcp_dsl.fit.result import check_text

        text = fit.spec_text()
        check_text(fit, text)
        path = Path(loss.source.name)
        mark = _BYTE_ORDER_MARK if path.read_bytes().startswith(_BYTE_ORDER_MARK) else b""
        with atomic_write(path) as temporary:
            temporary.write_bytes(mark + text.encode())
        return [str(path)]

    fields = {"diagnostics": loss.warnings, "file": loss.source.name}
    return finish(fit, fields, status=0 if fit.ok else FAILED, write=written, key="written")
