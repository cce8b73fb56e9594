"""`udcp warm SPEC|SAVED`: compile and cache everything that it needs, for container images and fast first requests."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import FAILED, finish
from udcp_dsl.cli.progress import waiting
from udcp_dsl.cli.spec import reads_spec_or_saved
from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.showing import Column, Description, Styled, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.predictor import SetPredictor

_FLOATS = ("float32", "float64")
_KINDS = ("calibrated", "overconfident", "ignorant", "certain", "saturated")  # classifiers whose rows are scored
_ROWS = 8  # rows of each kind
# All ways to calibrate: they differ in the shape of thresholds, and in labels that are forced into sets.
_WAYS: tuple[Mapping[str, Any], ...] = (
    {},
    {"nonempty": True},
    {"randomize": True},
    {"conditional": "group", "pool": True},
    {"conditional": "class", "pool": True},
    {"conditional": "class", "pool": True, "randomize": True},
)


@click.command("warm", epilog="Example:  udcp warm pets.loss --oracle price && udcp warm pets.json")
@reads_spec_or_saved
@click.option(
    "--oracle",
    "oracles",
    multiple=True,
    metavar="NAME",
    help="Oracle to compile; may be repeated (default: all that apply except ilp).",
)
def command(loss: Loss, predictor: SetPredictor | None, oracles: tuple[str, ...]) -> int:
    """Compile everything that a spec or a saved predictor needs, for float32 and float64.

    Calibration and prediction then start at once, in any process. The compiled code is kept beside the installed
    package if that folder is writable, else in the user's cache folder, or where NUMBA_CACHE_DIR points; see
    docs/containers.md for images. Exit status 1 if an oracle fails.
    """
    from udcp_dsl.cli.compiling import side_by_side

    if predictor is not None and oracles:
        raise InputError("--oracle is for specs: a saved predictor has its own")
    if predictor is not None:
        wanted: dict[str, Mapping[str, object]] = {predictor.oracle.name: predictor.oracle.options}
        left_out: dict[str, str] = {}
    else:
        wanted, left_out = _applicable(loss, oracles)
    with waiting(f"compiling for {', '.join(wanted)}"):
        tasks = [(loss, name, options) for name, options in wanted.items()]
        found = side_by_side(warm_up, tasks)
        if len(tasks) > 1:  # if two processes cache the same kernel at once, one is lost: this pass is alone
            side_by_side(_warm_up_in_turn, [(tasks,)])
    took = [{"name": name, "seconds": x} for name, x in zip(wanted, found, strict=True) if isinstance(x, float)]
    failed = {name: str(why) for name, why in zip(wanted, found, strict=True) if not isinstance(why, float)}
    described = Description(
        title=(Styled(loss.name, "bold"), f": compiled and cached for {' and '.join(_FLOATS)}"),
        tables=(Table((Column("oracle", "name"), Column("seconds", "seconds", ".1f")), took, key="oracles"),),
        notes=(
            *(Styled(f"{name} fails: {why}", "bad") for name, why in failed.items()),
            *(Styled(f"{name} is left out: {why}", "dim") for name, why in left_out.items()),
        ),
        data={"loss": loss.name, "floats": _FLOATS, "failed": failed, "left_out": left_out},
    )
    return finish(described, {"diagnostics": loss.warnings}, status=FAILED if failed else 0)


def _applicable(loss: Loss, names: tuple[str, ...]) -> tuple[dict[str, Mapping[str, object]], dict[str, str]]:
    """The named oracles, or all that apply and solve no programs; and why the others are left out."""
    from udcp_dsl.predict.oracle import declaration_of, make_oracle, oracle_names

    wanted: dict[str, Mapping[str, object]] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(names) or oracle_names():
        try:
            declaration = declaration_of(name)
            if not names and declaration is not None and declaration.solves:
                left_out[name] = "it solves a program for each row: name it with --oracle"
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # shown when it is used
                wanted[name] = make_oracle(name, loss).options
        except OracleError as error:
            if names:
                raise
            left_out[name] = str(error)
    return wanted, left_out


def _warm_up_in_turn(tasks: Sequence[tuple[Loss, str, Mapping[str, object]]]) -> None:
    for task in tasks:
        try:
            warm_up(*task)
        except Exception:  # reported by the first pass
            continue


def warm_up(loss: Loss, name: str, options: Mapping[str, object]) -> float:
    """Calibrate on a few rows and predict them, in every way and in both float types; returns the seconds it took."""
    import numpy as np

    from udcp_dsl.check.coverage import Problem
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.predict.stages.stage import LimitError

    began = time.monotonic()
    rng = np.random.default_rng(0)
    drawn = [Problem.generated(loss.K, rng, kind=kind).draw(_ROWS, rng) for kind in _KINDS]
    P, y = (np.concatenate(part) for part in zip(*drawn, strict=True))
    truth = [loss.labels[position] for position in y]
    groups = ["a", "b"] * (len(P) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows, and the oracle's warnings about the loss
        for dtype in _FLOATS:
            rows = P.astype(dtype)
            for way in _WAYS:
                by_group = groups if way.get("conditional") == "group" else None
                try:
                    predictor = SetPredictor(loss, name, options=options, alpha="0.2", **way)
                    predictor.calibrate(rows, truth, groups=by_group)
                except LimitError:  # so few rows cannot keep a limit, but their kernels are compiled
                    continue
                # A single row is compiled separately: its threshold is a read-only array.
                for many in (len(rows), 1):
                    predictor.predict_set(rows[:many], groups=None if by_group is None else by_group[:many])
            predictor.oracle.scores(rows)
            explain = getattr(predictor.oracle, "explain", None)
            if explain is not None:
                explain(rows[0])
    return time.monotonic() - began
