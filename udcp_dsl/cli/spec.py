"""The argument and options of every command that reads a spec, and the loss that they select."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from udcp_dsl.cli.ending import json_option, wants_json
from udcp_dsl.cli.terminal import show_diagnostics
from udcp_dsl.diagnostics import Diagnostic, InputError, OracleError, SpecWarning, keeping_warnings

if TYPE_CHECKING:
    from udcp_dsl.expression.inputs import RowInput
    from udcp_dsl.loss import Loss

F = TypeVar("F", bound=Callable[..., Any])

_RANGE = re.compile(r"(0|[1-9][0-9]*)\.\.(0|[1-9][0-9]*)", re.ASCII)
_FILES = (".txt", ".csv", ".json")
_LONGEST_RANGE = 1_000_000

_READ = "udcp_dsl.cli.read"  # the key of a command's context under which `files_read` are kept


def reads_spec(verb: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command SPEC and its options, and call it with the compiled `loss`.

    Warnings of the spec are shown on stderr; with --json the command prints them (`loss.warnings`).
    """

    @click.argument("spec", type=click.Path())
    @_PARAM
    @_LOSS
    @_LABELS
    @_ALLOW_OUTSIDE
    @json_option
    @functools.wraps(verb)
    def command(spec: str, name: str | None, **rest: Any) -> int | None:
        loss = _loaded(spec, name, rest)
        return verb(loss, **_without_settings(rest))

    return command


def reads_spec_or_saved(verb: Callable[..., int | None]) -> Callable[..., int | None]:
    """Like `reads_spec`, if the command also takes a saved predictor: called with `loss` and the predictor or None."""

    @click.argument("file", metavar="SPEC|SAVED", type=click.Path())
    @_PARAM
    @_LOSS
    @_LABELS
    @_ALLOW_OUTSIDE
    @json_option
    @functools.wraps(verb)
    def command(file: str, name: str | None, **rest: Any) -> int | None:
        predictor = None
        if Path(file).suffix.lower() == ".json":
            from udcp_dsl.predict.predictor import SetPredictor

            if name is not None or any(rest[key] for key in _SETTINGS):
                raise InputError(
                    "--param, --loss, --labels and --allow-outside are for specs: a saved predictor has its own"
                )
            predictor = SetPredictor.load(file)
        loss = _loaded(file, name, rest) if predictor is None else predictor.loss
        return verb(loss, predictor, **_without_settings(rest))

    return command


def reads_specs(verb: Callable[..., int | None]) -> Callable[..., int | None]:
    """Like `reads_spec`, for a command that takes several specs and the named losses of each: called with `losses`.

    Parameters may have lists of values, which the command gets as `swept`; the losses have the first value of each.
    """

    @click.argument("specs", metavar="SPEC...", type=click.Path(), nargs=-1, required=True)
    @_PARAMS_OR_LISTS
    @click.option(
        "--loss",
        "names",
        multiple=True,
        metavar="NAME",
        help="Loss of each spec to use; may be repeated (default: the last).",
    )
    @_LABELS
    @_ALLOW_OUTSIDE
    @json_option
    @functools.wraps(verb)
    def command(specs: tuple[str, ...], names: tuple[str, ...], **rest: Any) -> int | None:
        lists: dict[str, list[float]] = rest["params"]
        swept = {name: values for name, values in lists.items() if len(values) > 1}
        rest["params"] = {name: values[0] for name, values in lists.items()}
        losses = [_loaded(spec, name, rest) for spec in specs for name in names or (None,)]
        return verb(losses, swept=swept, **_without_settings(rest))

    return command


def _loaded(spec: str, name: str | None, settings: Mapping[str, Any]) -> Loss:
    from udcp_dsl.loss import load

    with keeping_warnings(SpecWarning):  # shown below as diagnostics
        loss = load(spec, loss=name, **{key: settings[key] for key in _SETTINGS})
    files_read(click.get_current_context()).extend(Path(spec).parent / file for file in loss.files)
    if not wants_json():
        show_diagnostics(loss.warnings)
    return loss


def diagnostics_of(loss: Loss, oracles: Iterable[str]) -> list[Diagnostic]:
    """The diagnostics of the spec, for a command that scores with these oracles.

    If an oracle depends on cost, they include labels that cost nothing (W601), shown here, before the work, unless with
    --json.
    """
    from udcp_dsl.expression.explain import free_labels_warning
    from udcp_dsl.predict.oracle import declaration_of

    def led_by_cost(name: str) -> bool:
        try:
            declaration = declaration_of(name)
        except OracleError:  # raised again when it is used
            return False
        return declaration is None or declaration.by_cost

    free = free_labels_warning(loss) if any(map(led_by_cost, oracles)) else None
    found = [*loss.warnings, *([free] if free is not None else [])]
    if not wants_json():
        show_diagnostics(found[len(loss.warnings) :])
    return found


# `--input km=12`: the inputs of one row.


def takes_inputs(verb: F) -> F:
    """Give a command --input."""
    return click.option(
        "--input",
        "inputs",
        multiple=True,
        callback=_inputs,
        metavar="NAME=VALUE",
        help="Input of the row: km=12; for costs per row fee=1,2,3 in order or fee=cat:1,dog:2 by name.",
    )(verb)


def wanted(inputs: Mapping[str, RowInput]) -> str:
    """The options that give these inputs."""
    by_name = {name: f"{x.entries[0]}:NUMBER,..." if x.entries else "NUMBER" for name, x in inputs.items()}
    return " ".join(f"--input {name}={value}" for name, value in by_name.items())


def _inputs(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any] | None:
    return {name: _input_value(name, text) for name, text in settings_of(ctx, parameter, texts).items()} or None


def _input_value(name: str, text: str) -> Any:
    parts = [part.strip() for part in text.split(",")]
    if any(":" in part for part in parts):
        pairs = [part.rpartition(":") for part in parts]
        entries = [key.strip().strip('"') for key, _, _ in pairs]
        twice = next((entry for entry in entries if entries.count(entry) > 1), None)
        if twice is not None:
            raise InputError(f"--input {name}: {twice!r} is given twice: give each entry once")
        return {entry: _number(name, number) for entry, (_, _, number) in zip(entries, pairs, strict=True)}
    numbers = [_number(name, part) for part in parts]
    return numbers if len(numbers) > 1 else numbers[0]


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--input {name}: {text!r} is not a number") from None


def files_read(ctx: click.Context) -> list[Path]:
    """The files that a command has read and that are not literally among its arguments: no output may replace them."""
    read: list[Path] = ctx.meta.setdefault(_READ, [])
    return read


def _without_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in _SETTINGS}


def parse_labels(ctx: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
    """The value of --labels as a list of names."""
    if text is None:
        return None
    path = Path(text)
    if "," not in text and path.suffix.lower() in _FILES:
        files_read(ctx).append(path)
        names = _labels_of(path)
    else:
        names = []
        for item in text.split(","):
            names.extend(_expanded(item.strip()))
            if len(names) > _LONGEST_RANGE:
                raise click.BadParameter(f"these are more than {_LONGEST_RANGE:,} labels", ctx, parameter)
    if not all(names):
        raise click.BadParameter(f"label number {names.index('') + 1} is empty", ctx, parameter)
    if len(set(names)) < len(names):
        twice = next(name for name, many in Counter(names).items() if many > 1)
        raise click.BadParameter(f"label {twice!r} is listed twice", ctx, parameter)
    return names


def _expanded(item: str) -> Iterator[str]:
    match = _RANGE.fullmatch(item)
    if match is None:
        yield item
        return
    first, last = int(match[1]), int(match[2])
    if not 0 <= last - first < _LONGEST_RANGE:
        raise click.BadParameter(f"the range {item} is {'empty' if last < first else 'too long'}")
    yield from map(str, range(first, last + 1))


def _labels_of(path: Path) -> list[str]:
    from udcp_dsl.compile.sources import FileFault, decode, read_csv, read_json

    data = path.read_bytes()
    try:
        if path.suffix.lower() == ".csv":
            table = read_csv(str(path), data)
            if table.starts_with_index:
                raise InputError(
                    f"{path}: the first column is an index of the rows ({table.rows[0][0]}, ...) without a name: save "
                    "the file without it (in pandas: index=False), or write the labels into a .txt, one per line"
                )
            return [row[0] for row in table.rows]
        if path.suffix.lower() == ".txt":
            return [line.strip() for line in decode(str(path), data).splitlines() if line.strip()]
        names = read_json(str(path), data)
    except FileFault as fault:
        raise InputError(fault.message + (f"; {fault.help}" if fault.help else "")) from None
    if not isinstance(names, list) or not all(isinstance(x, str | int) and not isinstance(x, bool) for x in names):
        raise InputError(f"{path}: labels are an array of strings")
    return [str(name) for name in names]


def settings_of(ctx: click.Context, parameter: click.Parameter, settings: tuple[str, ...]) -> dict[str, str]:
    """The texts of settings name=value, each name once."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not name or not equals:
            raise click.BadParameter(f"{setting!r} is not of the form name=value", ctx, parameter)
        if name in found:
            raise click.BadParameter(f"{name!r} is set twice", ctx, parameter)
        found[name] = text
    return found


def _params(ctx: click.Context, parameter: click.Parameter, settings: tuple[str, ...]) -> dict[str, float]:
    return {name: values[0] for name, values in _lists(ctx, parameter, settings, several=False).items()}


def _lists(
    ctx: click.Context, parameter: click.Parameter, settings: tuple[str, ...], several: bool = True
) -> dict[str, list[float]]:
    params: dict[str, list[float]] = {}
    for name, text in settings_of(ctx, parameter, settings).items():
        params[name] = []
        for value in text.split(",") if several else [text]:
            try:
                params[name].append(float(value))
            except ValueError:
                raise click.BadParameter(f"{name}: {value!r} is not a number", ctx, parameter) from None
    return params


_LOSS = click.option("--loss", "name", metavar="NAME", help="Loss to use, if the spec has several (default: the last).")
_PARAM = click.option(
    "--param",
    "params",
    multiple=True,
    callback=_params,
    metavar="NAME=VALUE",
    help="Value of a parameter; may be repeated.",
)
_PARAMS_OR_LISTS = click.option(
    "--param",
    "params",
    multiple=True,
    callback=_lists,
    metavar="NAME=VALUE[,VALUE...]",
    help="Value of a parameter; several values are compared with each other.",
)
_LABELS = click.option(
    "--labels",
    callback=parse_labels,
    metavar="LIST|FILE",
    help="Labels, if the spec has none: a,b,c or 0..9, or a .txt (one per line), .csv (first column) or .json.",
)
_ALLOW_OUTSIDE = click.option("--allow-outside", is_flag=True, help="Let the spec read files outside its folder.")
_SETTINGS = ("params", "labels", "allow_outside")  # the parameters of these options
