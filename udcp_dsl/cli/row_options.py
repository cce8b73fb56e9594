"""The options of every command that reads rows of probabilities, and of those that choose an oracle."""

from __future__ import annotations

import csv
import functools
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from udcp_dsl.cli.ending import wants_json
from udcp_dsl.cli.spec import files_read, parse_labels, settings_of
from udcp_dsl.cli.terminal import STDOUT, tell
from udcp_dsl.diagnostics import InputError, SpecWarning, naming_options
from udcp_dsl.files import check_writable
from udcp_dsl.rows.roles import INPUT, ROLES, Columns

if TYPE_CHECKING:
    from fractions import Fraction

    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.rows.rows import Rows
    from udcp_dsl.rows.source import Source

F = TypeVar("F", bound=Callable[..., Any])

_FILE = re.compile(r"\.(npy|npz|csv|parquet|arrow|feather|txt|json)(:.*)?", re.IGNORECASE | re.DOTALL)

_ARRAY = re.compile(r"\.np[yz](:.*)?$", re.IGNORECASE | re.DOTALL)


def _levels(ctx: click.Context, parameter: click.Parameter, alphas: tuple[str, ...]) -> tuple[Fraction, ...]:
    from udcp_dsl.predict.calibrate import levels_of

    return levels_of(alphas or None)


alpha_option = click.option(
    "--alpha",
    "alphas",
    multiple=True,
    callback=_levels,
    metavar="LEVEL",
    help="Share of true labels that sets may miss (default 0.1); may be repeated.",
)


def _label_names(ctx: click.Context, parameter: click.Parameter, file: str | None) -> dict[str, str] | None:
    if file is None:
        return None
    from udcp_dsl.compile.sources import FileFault, read_csv

    files_read(ctx).append(Path(file))
    try:
        table = read_csv(file, Path(file).read_bytes())
    except FileFault as fault:
        raise InputError(fault.message + (f"; {fault.help}" if fault.help else "")) from None
    missing = [column for column in ("label", "name") if column not in table.header]
    if missing:
        raise InputError(f"{file}: there is no column {missing[0]!r}: give it the columns label and name")
    places = [table.header.index(column) for column in ("label", "name")]
    pairs = [(row[places[0]], row[places[1]]) for row in table.rows]
    names = {label: name for label, name in pairs if name}
    if len({label for label, _ in pairs}) < len(pairs):
        twice = next(label for label, many in Counter(label for label, _ in pairs).items() if many > 1)
        raise InputError(f"{file}: label {twice!r} is named twice")
    return names


names_option = click.option(
    "--names",
    "label_names",
    callback=_label_names,
    metavar="FILE",
    help="Display names, if labels are codes: a .csv with the columns label and name.",
)


@dataclass(frozen=True)
class RowOptions:
    """The rows of a command: where they are, in which columns, and the separate files, by role."""

    file: str
    columns: Columns
    files: Mapping[str, str]
    class_names: Sequence[str] | None = None
    logits: bool = False
    normalize: bool = False
    inputs_file: str | None = None
    inputs_given: frozenset[str] = frozenset()  # inputs given by --input, and so not read

    @property
    def of_arrays(self) -> bool:
        """Whether the rows are arrays, which have no columns beside the labels."""
        return _ARRAY.search(self.file) is not None or any(Path(self.file).glob("*.np[yz]"))

    @property
    def by_group(self) -> bool:
        """Whether the group of each row is given."""
        return self.columns.group_column is not None or "groups" in self.files

    def source(self, loss: Loss | Sequence[str], *others: Loss) -> Source:
        """The rows for one loss or several, to be read in batches; separate files are read at once."""
        from udcp_dsl.rows.source import open_rows, read_column, read_input

        losses = () if isinstance(loss, Sequence) else (loss, *others)
        labels = loss if isinstance(loss, Sequence) else loss.labels
        inputs = {n: x for one in losses for n, x in one.inputs.items() if n not in self.inputs_given}
        declared = {name: x for one in losses for name, x in one.declared_inputs.items()}
        apart = {} if self.inputs_file is None else {f"{INPUT}{name}": x for name, x in inputs.items()}
        how: dict[str, Any] = {"logits": self.logits, "normalize": self.normalize, "inputs": inputs, "beside": apart}
        source = open_rows(self.file, labels, self.columns, class_names=self.class_names, unread=declared, **how)
        _ = (
            None if source.parts[0].stream else source.parts[0].identity
        )  # a missing file is reported before separate ones
        beside = {role: read_column(file) for role, file in self.files.items()}
        if self.inputs_file is not None and not inputs:
            raise InputError(f"--inputs {self.inputs_file}: the loss reads no inputs: leave it out")
        read = {role: read_input(self.inputs_file or "", x, len(inputs) == 1) for role, x in apart.items()}
        return replace(source, beside=beside | read, beside_in=self.files)

    def source_for(self, predictor: SetPredictor) -> Source:
        """The same for a saved predictor, which knows whether its numbers are logits or need normalising."""
        names = self.class_names or predictor.class_names
        own = replace(self, class_names=names, logits=predictor.logits, normalize=predictor.normalize)
        return own.source(predictor.promise.reads(predictor.loss))

    def read(self, loss: Loss | Sequence[str], row: int | None = None) -> Rows:
        """All rows, or one of them, at once."""
        source = self.source(loss)
        return source.whole() if row is None else source.one(row)


def reads_rows(
    *columns: str, numbers: bool = False, optional: str | None = None, truth: bool = True
) -> Callable[[F], F]:
    """Give a command --probs, --class-names, --ignore and the options of these columns (`column_roles.ROLES`); with
    `numbers`, --logits and --normalize. It is called with all of them as one `row_options`.

    `optional` is the help of --probs for a command that can do without rows: it is then called with None. `truth`:
    whether --truth, if it is among the columns, is required.
    """
    options = [_PROBS if optional is None else click.option("--probs", "probs_file", metavar="FILE", help=optional)]
    options += [
        _CLASS_NAMES,
        _INPUTS,
        *(_column_option(keyword, truth and optional is None) for keyword in (*_ALWAYS, *columns)),
    ]
    options += _NUMBERS if numbers else []

    def decorate(verb: F) -> F:
        @functools.wraps(verb)
        def command(*loss: Any, probs_file: str | None, class_names: list[str] | None, **rest: Any) -> Any:
            inputs_file = rest.pop("inputs_file")
            given = {keyword: rest.pop(keyword) for keyword in (*_ALWAYS, *columns)}
            what = {name: rest.pop(name) for name in ("logits", "normalize") if numbers}
            if optional is not None and (probs_file is None) != (given["truth_column"] is None):
                raise InputError("--probs and --truth belong together: give both, or neither")
            of_rows = None if probs_file is None else _row_options(probs_file, given, class_names, **what)
            of_rows = None if of_rows is None else replace(of_rows, inputs_file=inputs_file)
            return verb(*loss, row_options=of_rows, **rest)

        wrapped: Any = command
        for option in reversed(options):
            wrapped = option(wrapped)
        return cast(F, wrapped)

    return decorate


def _row_options(file: str, given: Mapping[str, Any], class_names: list[str] | None, **what: Any) -> RowOptions:
    elsewhere = [key for key, source in given.items() if ROLES[key].entry and source is not None and _is_file(source)]
    columns = Columns(**{keyword: source for keyword, source in given.items() if keyword not in elsewhere})
    return RowOptions(file, columns, {ROLES[key].called: given[key] for key in elsewhere}, class_names, **what)


def _listed(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The names in lists a,b,c; a name with a comma is quoted, as in a CSV."""
    return tuple(name for names in csv.reader(texts, skipinitialspace=True) for name in names)


def _column_option(keyword: str, required: bool) -> Callable[[Any], Any]:
    role = ROLES[keyword]
    if role.flag:
        return click.option(role.option, keyword, is_flag=True, help=role.help)
    return click.option(
        role.option,
        keyword,
        multiple=role.several,
        callback=_listed if role.several else None,
        required=required and keyword == "truth_column",
        metavar=role.metavar,
        help=role.help,
    )


_ALWAYS = ("ignore", "only_labels")
_PROBS = click.option(
    "--probs",
    "probs_file",
    required=True,
    metavar="FILE",
    help="Probabilities, one row per instance: .npy, .npz:KEY, or a .csv, .parquet, .arrow or .jsonl with one column "
    "per label or (not .csv) one column of lists; a folder or a pattern of such files; - for standard input.",
)
_CLASS_NAMES = click.option(
    "--class-names",
    callback=parse_labels,
    metavar="LIST|FILE",
    help="Names of the columns of an array, if they are not in the order of the spec.",
)
_INPUTS = click.option(
    "--inputs",
    "inputs_file",
    metavar="FILE",
    help="Inputs per row that the loss reads, one column or key each, if they are not columns of --probs.",
)
_NUMBERS = [
    click.option("--logits", is_flag=True, help="Read the numbers as logits."),
    click.option("--normalize", is_flag=True, help="Divide each row by its sum, for rows that do not sum to 1."),
]


def chooses_oracle(verb: F) -> F:
    """Give a command --oracle and --option."""
    verb = click.option(
        "--option",
        "options",
        multiple=True,
        callback=_options,
        metavar="NAME=VALUE",
        help="Option of the oracle, such as lam=0.1 for raps; may be repeated.",
    )(verb)
    return click.option("--oracle", default="price", show_default=True, metavar="NAME", help="Oracle to use.")(verb)


def check_output(path: str, *endings: str) -> None:
    """Refuse, before any work is done, a path that cannot or should not be written to.

    `endings` are the extensions for the output, if there is only one kind of file to write.
    """
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, not a file")
    if endings and Path(path).suffix.lower() not in endings:
        raise InputError(f"{path}: the output is {endings[0][1:].upper()}: give a name that ends in {endings[0]}")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(Path(path).parent)!r} to write it to")
    ctx = click.get_current_context()
    own_name = "and would be overwritten: choose another name for the output"
    if sum(_is_same_file(path, name) for name in _names(ctx)) > 1:
        raise InputError(f"{path}: is named twice, {own_name}")
    if any(_is_same_file(path, file) for file in files_read(ctx)):
        raise InputError(f"{path}: is read by this command, {own_name}")
    check_writable(path)


def check_table(path: str, ending: Callable[[str], str]) -> None:
    """The same for a table, whose ending is also checked; it may go to standard output, if nothing else does."""
    if path != STDOUT:
        check_output(path)
        ending(path)
    elif wants_json():
        raise InputError("a table written to - and --json both go to standard output: choose one of them")


def check_folder(path: str) -> None:
    """The same for a folder, which is created if it does not exist."""
    if Path(path).exists() and not Path(path).is_dir():
        raise InputError(f"{path}: is a file, not a folder")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(Path(path).parent)!r} to create it in")
    check_writable(Path(path) / "figure" if Path(path).is_dir() else path)


def _names(ctx: click.Context) -> Iterator[str]:
    """All texts among the arguments of the command, which include its files; for file.npz:KEY, also the file."""
    for value in ctx.params.values():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                yield text
                yield from [text.rpartition(":")[0]] if ":" in text else []


def _is_same_file(path: str, name: str | Path) -> bool:
    from udcp_dsl.compile.sources import resolved

    try:
        return bool(name) and resolved(Path(path)) == resolved(Path(name))
    except OSError:  # a link to itself is no file; whoever opens it says so
        return Path(path).absolute() == Path(name).absolute()


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Print each warning on stderr once, when it is raised; with --json, leave them to the command to print.

    Messages name command-line options here.
    """
    messages: list[str] = []
    silent = wants_json()

    def show(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
        text = str(message)
        if text not in messages:
            messages.append(text)
            if not silent:
                tell("warning:", "yellow", text)

    with warnings.catch_warnings(), naming_options():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", SpecWarning)  # commands show them as diagnostics
        warnings.showwarning = show
        yield messages


def _is_file(source: str) -> bool:
    return _FILE.search(source) is not None or Path(source).is_file()


def _options(ctx: click.Context, parameter: click.Parameter, settings: tuple[str, ...]) -> dict[str, object]:
    return {name: _value(text) for name, text in settings_of(ctx, parameter, settings).items()}


def _value(text: str) -> object:
    """The value of an option: a number, true or false as in JSON or Python; anything else is text."""
    try:
        value: object = json.loads({"True": "true", "False": "false"}.get(text, text), parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, int | float | str) else text
