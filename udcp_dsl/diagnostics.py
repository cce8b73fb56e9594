"""Diagnostics: where an error is, what it is, and how to fix it.

A `Diagnostic` points at a `Span` of a `Source`. It has the edits that correct the error (`fixes`) and other places that
are involved (`related`). A `SpecError` has all diagnostics of one run. This module imports nothing of the package, so
that every other module can report through it.
"""

from __future__ import annotations

import bisect
import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from types import FrameType
from typing import Literal

OWN_PACKAGES = ("udcp_dsl", "udcp_solvers", "udcp_grammars")

# Most names that a misspelt name is compared with, letter by letter, at about 10 microseconds each.
_MAX_COMPARED = 20_000
# Most diagnostics rendered per run; and characters of a line that an excerpt shows.
_MAX_RENDERED = 50
_EXCERPT = 120
_MAX_MESSAGE = 500  # characters: a name in it may have millions
# A string (kept, whatever it holds) or a comment.
_COMMENT = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|#[^\n]*')
_NAMES_OPTIONS = "UDCP_NAMES_OPTIONS"  # the environment variable that is set in `naming_options`
# The `keeping_warnings` blocks of this thread, innermost last: the category, and the list for its messages.
_KEEPERS: ContextVar[tuple[tuple[type[Warning], list[str]], ...]] = ContextVar("keepers", default=())


@dataclass(frozen=True, eq=False)
class Source:
    """A text with a name, and the positions of its lines."""

    name: str
    text: str
    _starts: tuple[int, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(i + 1 for i, ch in enumerate(self.text) if ch == "\n")
        object.__setattr__(self, "_starts", tuple(starts))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect.bisect_right(self._starts, offset) - 1
        return line + 1, offset - self._starts[line] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its line break."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """The characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> str:
        """The text on one line, without comments."""
        return " ".join(_COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else "", self.text).split())

    def to(self, other: Span) -> Span:
        """From the start of this span to the end of another."""
        return Span(self.source, self.start, max(self.end, other.end))

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


@dataclass(frozen=True)
class Edit:
    """Text that replaces a span; with an empty span, it is inserted."""

    span: Span
    text: str


@dataclass(frozen=True)
class Fix:
    """Edits that correct an error, and a title for them. The edits do not overlap."""

    title: str
    edits: tuple[Edit, ...]

    @classmethod
    def write(cls, span: Span, text: str) -> Fix:
        """Replace a span by a text; an empty text removes the span."""
        return cls(f"Write {text.strip()}" if text else f"Remove {span.text}", (Edit(span, text),))

    @classmethod
    def add(cls, source: Source, offset: int, text: str) -> Fix:
        """Insert a text."""
        return cls(f"Add {text.strip(' ,') or text.strip()}", (Edit(Span(source, offset, offset), text),))

    def applied(self, text: str) -> str:
        """The text, which the spans refer to, after the edits.

        >>> source = Source("example", "loss l = sizee")
        >>> Fix.write(Span(source, 9, 14), "size").applied(source.text)
        'loss l = size'
        """
        for edit in sorted(self.edits, key=lambda edit: edit.span.start, reverse=True):
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
        return text


@dataclass(frozen=True)
class Related:
    """Another place that an error is about, such as the first declaration of a name."""

    span: Span
    message: str


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning: a stable code, the place, what is wrong, and how to fix it.

    `fixes` are the corrections that an editor can apply by itself.
    """

    code: str
    span: Span
    message: str
    help: str = ""
    severity: Literal["error", "warning"] = "error"
    fixes: tuple[Fix, ...] = ()
    related: tuple[Related, ...] = ()

    def render(self, width: int = _EXCERPT) -> str:
        """The diagnostic as a compiler prints it: place, line (cut to `width` if it is longer), underline, help."""
        line_number, column = self.span.source.position(self.span.start)
        line = self.span.source.line(line_number)
        marked = max(1, min(self.span.end - self.span.start, len(line) - column + 1))
        line, column, marked = _excerpt(line, column, marked, width)
        lead = "".join("\t" if ch == "\t" else " " for ch in line[: column - 1])
        gutter = " " * len(str(line_number))
        rows = [f"{self.span}: {self.severity}[{self.code}]: {_shortened(self.message)}"]
        if self.span.source.text:  # a file that is absent or empty has no line to show
            rows += [f" {gutter} |", f" {line_number} | {line}", f" {gutter} | {lead}{'^' * marked}"]
        if self.help:
            rows.append(f" {gutter} = help: {_shortened(self.help)}")
        return "\n".join(rows)

    def moved(self, source: Source, by: int) -> Diagnostic:
        """The same diagnostic for `source`, in which its text stands `by` characters later."""

        def there(span: Span) -> Span:
            return Span(source, span.start + by, span.end + by)

        fixes = [replace(fix, edits=tuple(Edit(there(e.span), e.text) for e in fix.edits)) for fix in self.fixes]
        related = [Related(there(other.span), other.message) for other in self.related]
        return replace(self, span=there(self.span), fixes=tuple(fixes), related=tuple(related))

    def as_dict(self) -> dict[str, object]:
        """Plain data for `--json`."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": self.span.source.name,
            **_place(self.span),
            "message": self.message,
            "help": self.help,
            "fixes": [
                {"title": fix.title, "edits": [{**_place(edit.span), "text": edit.text} for edit in fix.edits]}
                for fix in self.fixes
            ],
            "related": [{**_place(other.span), "message": other.message} for other in self.related],
        }


def _place(span: Span) -> dict[str, int]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _excerpt(line: str, column: int, marked: int, width: int) -> tuple[str, int, int]:
    """The part of a long line around the marked text, with the column and the length of the mark in it."""
    if len(line) <= width:
        return line, column, marked
    start = max(0, min(column - 1 - width // 3, len(line) - width))
    before, after = "..." * (start > 0), "..." * (start + width < len(line))
    kept = line[start + len(before) : start + width - len(after)]
    column -= start
    return f"{before}{kept}{after}", column, min(marked, width - column + 1)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "..."


def shown_of(diagnostics: Sequence[Diagnostic]) -> tuple[Sequence[Diagnostic], str]:
    """The diagnostics to render, and a line that says how many more there are; empty if there are none."""
    more = len(diagnostics) - _MAX_RENDERED
    return diagnostics[:_MAX_RENDERED], f"... and {more:,} more" if more > 0 else ""


class SpecError(ValueError):
    """A spec that does not compile.

    Parameters
    ----------
    diagnostics : iterable of Diagnostic
        All errors that were found, each with a code, a place, a message and a suggested fix.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        rendered, more = shown_of(self.diagnostics)
        super().__init__("\n\n".join([*(d.render() for d in rendered), *filter(None, [more])]))


class SpecWarning(UserWarning):
    """Something in a spec or in data that is valid but probably not meant."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line that led here: the nearest one outside this project and the standard library.

    A fixed `stacklevel` could point into the project, since a warning may be reached by several call paths. A thread
    that the project started has no line of the user: there, the warning points to the place where it is made.
    """
    for kind, kept in reversed(_KEEPERS.get()):
        if issubclass(category, kind):
            kept.append(message)
            return
    made = sys._getframe(1)
    frame: FrameType | None = made
    while frame is not None and _not_the_users(frame):
        frame = frame.f_back
    place = made if frame is None else frame
    names = place.f_globals
    registry = names.setdefault("__warningregistry__", {})  # where Python records the warnings shown at a line
    module = names.get("__name__", "<unknown>")
    warnings.warn_explicit(message, category, place.f_code.co_filename, place.f_lineno, module, registry)


@contextmanager
def keeping_warnings(category: type[Warning] = UserWarning) -> Iterator[list[str]]:
    """Collect the project's own warnings of a category instead of showing them.

    Only in this thread: `warnings.catch_warnings` affects all threads, and if two such blocks overlap, the filters of
    one of them remain.

    >>> with keeping_warnings() as kept:
    ...     warn("few rows")
    >>> kept
    ['few rows']
    """
    kept: list[str] = []
    token = _KEEPERS.set((*_KEEPERS.get(), (category, kept)))
    try:
        yield kept
    finally:
        _KEEPERS.reset(token)


def _not_the_users(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in OWN_PACKAGES or package in sys.stdlib_module_names


@contextmanager
def naming_options() -> Iterator[None]:
    """In this block messages name the options of the command line.

    An environment variable says so, since messages are made in other threads and in worker processes, too.
    """
    before = os.environ.get(_NAMES_OPTIONS)
    os.environ[_NAMES_OPTIONS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NAMES_OPTIONS]


def worded(python: str, option: str) -> str:
    """The part of a message that names an argument: as in Python or, in `naming_options`, as an option.

    >>> worded("pool=True", "--pool")
    'pool=True'
    """
    return option if _NAMES_OPTIONS in os.environ else python


class InputError(ValueError):
    """Data or options that cannot be used: probabilities, labels, sets, files. The message names the row."""


class RowFault(InputError):
    """An error about one row, as the texts before and after the row's number.

    If rows come in batches, `moved` numbers the row among all rows; `moved_after` replaces a text `after` that is about
    the whole batch.

    >>> fault = RowFault(3, "groups: ", " is missing")
    >>> str(fault), str(fault.moved(40))
    ('groups: row 3 is missing', 'groups: row 43 is missing')
    """

    def __init__(self, row: int, before: str, after: str, *, moved_after: str | None = None) -> None:
        self._row, self._before, self._moved_after = row, before, after if moved_after is None else moved_after
        super().__init__(f"{before}row {row}{after}")

    def moved(self, by: int) -> RowFault:
        """The same error with `by` added to the row's number; unchanged if `by` is 0."""
        return RowFault(self._row + by, self._before, self._moved_after) if by else self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as an InputError with the same message."""
        return InputError, (str(self),)


class OracleError(ValueError):
    """An oracle that does not exist, does not apply to a loss, or was given invalid options."""


def install_hint(extra: str) -> str:
    """How to install the packages of an optional extra.

    >>> install_hint("report")
    "pip install 'udcp_dsl[report]' (in a clone of the repository: pip install '.[report]')"
    """
    return f"pip install 'udcp_dsl[{extra}]' (in a clone of the repository: pip install '.[{extra}]')"


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that `name` is probably a misspelling of, likeliest first; none if it is a number.

    A name is near if there is at most one slip per three letters (one in a shorter name), or if one of the two begins
    or ends with the other. Of very many names, only those with the same first or last two letters are compared.
    """
    if name.isdigit():
        return []
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    written = name.casefold()
    if len(folded) > _MAX_COMPARED:
        start, end = written[:2], written[-2:]
        folded = {c: candidate for c, candidate in folded.items() if c.startswith(start) or c.endswith(end)}
    similar = difflib.get_close_matches(written, folded, n=4 * most, cutoff=0.5)  # quick, but too generous
    return [folded[c] for c in similar if _is_similar(written, c)][:most]


def _is_similar(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    cut = len(short) > 2 and (long.startswith(short) or long.endswith(short))
    return cut or _edit_distance(one, other) <= max(1, len(long) // 3)


def _edit_distance(one: str, other: str) -> int:
    """Edit distance: how many letters to insert, delete, replace or swap with their neighbour."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, a in enumerate(one):
        last, before, row = before, row, [i + 1]
        for j, b in enumerate(other):
            least = min(before[j] + (a != b), before[j + 1] + 1, row[j] + 1)
            if i and j and (a, one[i - 1]) == (other[j - 1], b):
                least = min(least, last[j - 1] + 1)
            row.append(least)
    return row[-1]


@dataclass(frozen=True)
class Suggestion:
    """Suggestions for an unknown name: a help text, and the names that it offers."""

    help: str
    names: tuple[str, ...] = ()

    def fixes(
        self, span: Span, written: Callable[[str], str] = str, only: Callable[[str], bool] = lambda name: True
    ) -> tuple[Fix, ...]:
        """One fix per name that `only` accepts: it replaces the unknown name by `written(name)`."""
        return tuple(Fix.write(span, written(name)) for name in self.names if only(name))


def suggest(name: str, known: Iterable[str]) -> Suggestion:
    """The nearest known names or, if none is near, a list of the first known names."""
    candidates = dict.fromkeys(known)
    close = nearest(name, candidates)
    if not close:
        return Suggestion(known_names(candidates))
    return Suggestion("did you mean " + " or ".join(repr(c) for c in close) + "?", tuple(close))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A help text that offers the nearest known names or, if none is near, lists the first known names."""
    return suggest(name, known).help


def known_names(known: Collection[str]) -> str:
    """A help text that lists the first of the known names, if there are any."""
    if not known:
        return ""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in islice(known, 8))
    return f"known: {shown}" + (f", ... ({len(known)} in all)" if len(known) > 8 else "")
