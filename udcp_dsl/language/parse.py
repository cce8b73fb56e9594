"""Parse a spec: text to syntax tree, one statement at a time, so that one run reports every syntax error.

`scan` splits the text into statements, lark parses each by the grammar in `udcp_grammars`, `_Builder` turns lark's
trees into `ast` nodes, and `syntax_faults` explains why a statement does not parse. Only this module imports lark.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import hashlib
import json
import math
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lark
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.grammar import Rule
from lark.lexer import TerminalDef
from lark.visitors import Transformer_NonRecursive

from udcp_dsl.diagnostics import Diagnostic, Fix, Related, Source, Span, SpecError, nearest
from udcp_dsl.language import ast
from udcp_dsl.language.scan import Token, scan, too_long
from udcp_dsl.language.syntax_faults import CLAUSES, Stop, explain
from udcp_dsl.language.words import CALLED, RESERVED, WORD

_LONGEST_RANGE = 1_000_000
_LONGEST_RANGES = 2_000_000  # over all ranges of a spec: each label becomes a string
_MOST_PASSED_OVER = 20  # unknown functions per statement: each costs another parse
_KEY = rf'"[^"\\]*(?:\\.[^"\\]*)*"|[{WORD}]+'
_IN_LABEL_RUN = re.compile(_KEY)
_IN_COST_RUN = re.compile(rf"({_KEY})\s*:\s*([^\s,]+)")

_DATA = (".npy", ".npz", ".csv", ".parquet", ".arrow", ".feather", ".json", ".jsonl")

# Largest spec file that is read; a larger one would take too long to check.
_MOST_BYTES = 4_000_000


def _near_path(name: str) -> str:
    """The hint for an unreadable path: a spec inside it if it is a folder, else the spec with the nearest name."""
    try:
        if Path(name).is_dir():
            inside = min((path for path in Path(name).iterdir() if path.suffix == ".loss"), default=None)
            return "it contains no .loss file" if inside is None else f"give a file, such as {str(inside)!r}"
        folder = Path(name).parent
        close = nearest(Path(name).name, (entry.name for entry in folder.iterdir() if entry.suffix == ".loss"))
    except (OSError, ValueError):
        close = []
    return f"did you mean {str(folder / close[0])!r}?" if close else "check the path"


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read a spec file, without its byte-order mark; SpecError if it cannot be read or is not UTF-8 text."""
    name = os.fspath(path)

    def unreadable(message: str, way_out: str) -> SpecError:
        return SpecError([Diagnostic("E100", Span(Source(name, ""), 0, 0), message, way_out)])

    if Path(path).suffix.lower() in _DATA and Path(path).is_file():
        raise unreadable(f"{name} is data or a saved predictor, not a spec", "give a .loss file")
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise unreadable(f"cannot read {name}: {reason}", _near_path(name)) from None
    if len(data) > _MOST_BYTES:
        message = f"cannot read {name}: it has {len(data) / 1e6:.1f} MB, more than {_MOST_BYTES / 1e6:g}"
        way_out = "put labels, costs and distances into data files beside the spec"
        raise unreadable(message, way_out)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        source = Source(name, data.decode("utf-8-sig", errors="replace"))
        place = len(data[: error.start].decode("utf-8-sig"))
        span = Span(source, place, min(place + 1, len(source.text)))
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise SpecError([Diagnostic("E101", span, message, "save the file with the encoding UTF-8")]) from None
    source = Source(name, text)
    if "\0" in text:
        place = text.index("\0")
        message, way_out = "the file contains a NUL character", "is it a text file? remove the character"
        raise SpecError([Diagnostic("E102", Span(source, place, place + 1), message, way_out)])
    return source


def parse(source: Source) -> tuple[ast.Spec, list[Diagnostic]]:
    """Return the declarations that parse, in order, and every syntax error of the source. Never raises.

    >>> spec, faults = parse(Source("example", "labels { a, b }  loss l = size +"))
    >>> [type(d).__name__ for d in spec.declarations], [f.message for f in faults]
    (['Labels'], ["expected an expression after '+'"])
    """
    statements, whole = scan(source), Span(source, 0, len(source.text))
    if (fault := too_long(source, statements)) is not None:
        return ast.Spec((), frozenset(("labels",)), span=whole), [fault]
    declarations: list[ast.Declaration] = []
    faults: list[Diagnostic] = []
    unread: set[str] = set()
    booleans: list[ast.Name] = []
    ranged = 0
    for statement in statements:
        faults.extend(statement.faults)
        builder = _Builder(source, statement.tokens, ranged)
        declaration = None if statement.faults else _declaration(builder, statement.tokens)
        faults.extend(builder.faults)
        booleans.extend(builder.booleans)
        ranged = builder.ranged
        if ranged > _LONGEST_RANGES:
            return ast.Spec((), frozenset(("labels",)), span=whole), faults  # compile none of it
        # With E113 or E121 the declaration is kept: one is about what follows it, the other about one unknown function.
        strays = [fault.span.start for fault in builder.faults if fault.code == "E113"]
        unread |= builder.unknown_calls
        if declaration is not None and all(fault.code in ("E113", "E121") for fault in builder.faults):
            declarations.append(declaration)
        else:
            strays.append(statement.tokens[0].start)
        for start in strays:
            unread.update([token.text for token in statement.tokens if token.start >= start][:2])
    declared = {d.name.text for d in declarations if not isinstance(d, ast.Labels)}
    faults.extend(_boolean_fault(name) for name in booleans if name.text not in declared)
    faults.sort(key=lambda fault: fault.span.start)
    return ast.Spec(tuple(declarations), frozenset(unread), span=whole), faults


def _declaration(builder: _Builder, tokens: list[Token]) -> ast.Declaration | None:
    """Parse one statement; None if that fails. Errors go to `builder.faults`.

    The arguments of an unknown function are blanked out, so that errors in the rest are found too.
    """
    start = tokens[0].start
    text = builder.source.text[start : tokens[-1].end]
    while True:
        try:
            return builder.transform(_parser().parse(text))
        except UnexpectedInput as error:
            at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
            offset = start + len(text) if at_end else start + (error.pos_in_stream or 0)
        index = len(tokens) if at_end else bisect.bisect_right([t.start for t in tokens], offset) - 1
        stop = Stop(builder.source, tokens, index, offset, _expected_after(text[: offset - start]))
        fault = explain(stop)
        builder.faults.append(fault)
        if fault.code == "E113" and index > 0:  # a complete statement, followed by something that is none
            tokens = tokens[:index]
            text = text[: tokens[-1].end - start]
        elif fault.code == "E121" and stop.found == "(" and len(builder.faults) < _MOST_PASSED_OVER:
            close = _closing(tokens, index)
            builder.unknown_calls.add(stop.before)
            first, last = tokens[index].start - start, tokens[close].end - start
            text = text[:first] + " " * (last - first) + text[last:]
            tokens = tokens[:index] + tokens[close + 1 :]
        else:
            return None


def _closing(tokens: list[Token], index: int) -> int:
    """The index of the bracket that closes the one at `index`; `scan` has checked that brackets match."""
    depth = 0
    for i in range(index, len(tokens)):
        depth += (tokens[i].kind == "open") - (tokens[i].kind == "close")
        if depth == 0:
            return i
    raise AssertionError("a bracket that is never closed")


def _expected_after(text: str) -> frozenset[str]:
    """The terminals that may follow the text. (The parser's own error lists fewer: LALR has reduced some away.)"""
    stopped = _parser().parse_interactive(text)
    stopped.exhaust_lexer()
    return frozenset(stopped.accepts())  # type: ignore[no-untyped-call]


def expected_after(text: str) -> frozenset[str]:
    """The terminals of the grammar that may follow the beginning of a statement; none if it has a syntax error.

    >>> sorted(expected_after("param k = 2"))
    ['$END', '_IN']
    """
    try:
        return _expected_after(text)
    except UnexpectedInput:
        return frozenset()


def _boolean_fault(name: ast.Name) -> Diagnostic:
    way_out = "an indicator is a comparison or an atom such as any(C); one that always holds is 0 == 0"
    return Diagnostic("E124", name.span, f"there is no '{name.text}' in this language", way_out)


# The parser ----------------------------------------------------------------------------------------------------------


def _packaged(name: str) -> str:
    data = pkgutil.get_data("udcp_grammars", name)
    assert data is not None, f"udcp_grammars is installed without {name}"
    return data.decode("utf-8")


@functools.cache
def _parser() -> lark.Lark:
    """The parser of one statement, from tables built in advance: building them takes longer than the rest of a check.

    Tables of another grammar, or of another version of lark, are not used. A new atom needs no new tables: they have
    placeholders for the lists of words.
    """
    tables = json.loads(_with_words(_packaged("loss.json"), WORD.replace("\\", r"\\")), object_hook=_with_integer_keys)
    if tables["made_from"] == _made_from():
        return lark.Lark._load_from_dict(tables["data"], tables["memo"])  # type: ignore[no-any-return, no-untyped-call]
    return _build(_with_words(_packaged("loss.lark"), WORD))


def _build(grammar: str) -> lark.Lark:
    return lark.Lark(grammar, parser="lalr", lexer="contextual")


def _with_words(text: str, word: str) -> str:
    """Fill the placeholders of the grammar or its tables: the lists of words, and the characters of a word."""
    lists = {"<called>": "|".join(CALLED), "<reserved>": "|".join(sorted(RESERVED)), "<word>": word}
    for open_list, content in lists.items():
        text = text.replace(open_list, content)
    return text


def _made_from() -> str:
    return f"lark {lark.__version__}, loss.lark {hashlib.sha256(_packaged('loss.lark').encode()).hexdigest()}"


def _with_integer_keys(data: dict[str, Any]) -> dict[Any, Any]:
    """JSON has no integer keys; lark's tables have them."""
    return {int(key): value for key, value in data.items()} if next(iter(data), "").isdecimal() else data


def make_tables() -> str:
    """The content of `loss.json`; run `python -m udcp_dsl.language.parse` to rewrite it when the grammar changes."""
    data, memo = _build(_packaged("loss.lark")).memo_serialize([TerminalDef, Rule])
    return json.dumps({"made_from": _made_from(), "data": data, "memo": memo}, separators=(",", ":")) + "\n"


# From lark's trees to ours -------------------------------------------------------------------------------------------


class _Builder(Transformer_NonRecursive[lark.Token, ast.Declaration]):
    """Builds a statement bottom-up, one method per grammar rule; children are tokens of lark and nodes of `ast`."""

    def __init__(self, source: Source, tokens: list[Token], ranged: int) -> None:
        super().__init__(visit_tokens=False)
        self.ranged = ranged  # labels in all ranges of the spec so far
        self._ranged_before = ranged
        self.source = source
        self.faults: list[Diagnostic] = []
        self.booleans: list[ast.Name] = []
        self.unknown_calls: set[str] = set()
        self._start = tokens[0].start
        self._keyword = tokens[0].text

    def _span_of(self, child: Any) -> Span:
        if isinstance(child, lark.Token):
            return Span(self.source, self._start + (child.start_pos or 0), self._start + (child.end_pos or 0))
        span: Span = child.span
        return span

    def _span(self, children: list[Any]) -> Span:
        """The span from the first child to the last that is not None."""
        last = next(child for child in reversed(children) if child is not None)
        return self._span_of(children[0]).to(self._span_of(last))

    def _fault(
        self, code: str, span: Span, message: str, way_out: str, fixes: tuple[Fix, ...] = (), **more: Any
    ) -> None:
        self.faults.append(Diagnostic(code, span, message, way_out, fixes=fixes, **more))

    def _name(self, token: lark.Token) -> ast.Name:
        return ast.Name(_unquoted(str(token)), span=self._span_of(token))

    def _items(self, children: list[Any]) -> tuple[Any, ...]:
        """The entries of a list: tokens become names, the closing brace is dropped."""
        return tuple(item for child in children for item in self._items_of(child))

    def _items_of(self, child: Any) -> Iterator[Any]:
        if not isinstance(child, lark.Token):
            yield child
        elif child.type == "LABEL_RUN":
            start = self._start + (child.start_pos or 0)
            for match in _IN_LABEL_RUN.finditer(child):
                span = Span(self.source, start + match.start(), start + match.end())
                yield ast.Name(_unquoted(match[0]), span=span)
        elif child.type == "COST_RUN":
            start = self._start + (child.start_pos or 0)
            for match in _IN_COST_RUN.finditer(child):
                whole, of_key, of_value = (
                    Span(self.source, start + match.start(i), start + match.end(i)) for i in range(3)
                )
                value = ast.Signed(self._value(match[2], of_value), span=of_value)
                yield ast.CostEntry(ast.Name(_unquoted(match[1]), span=of_key), value, span=whole)
        elif child.type != "RBRACE":
            yield self._name(child)

    def _body(self, children: list[Any]) -> Any:
        return children[0] if isinstance(children[0], ast.File | ast.Path | ast.PerRow) else self._items(children)

    def _value(self, text: str, span: Span) -> float:
        value = float(text)
        if math.isinf(value):
            self._fault("E110", span, f"{_cut(text)} is too large for a number", "the largest is about 1.8e308")
        elif value == 0 and text.lower().partition("e")[0].strip("-0."):
            way_out = "the smallest is about 5e-324; or write 0"
            self._fault("E110", span, f"{_cut(text)} is too small for a number", way_out, (Fix.write(span, "0"),))
        return value + 0.0  # never minus zero

    # Declarations

    def labels(self, children: list[Any]) -> ast.Labels:
        span = self._span(children)
        if self.ranged - self._ranged_before > _LONGEST_RANGE and not self.faults:
            way_out = f"at most {_LONGEST_RANGE:,} are allowed; use a file for more"
            self._fault("E125", span, f"these ranges have {self.ranged - self._ranged_before:,} labels", way_out)
        return ast.Labels(self._body(children[1:]), span=span)

    def hierarchy(self, children: list[Any]) -> ast.Hierarchy:
        return ast.Hierarchy(self._name(children[1]), self._body(children[2:]), span=self._span(children))

    def branch(self, children: list[Any]) -> ast.Branch:
        return ast.Branch(self._name(children[0]), self._items(children[1:]), span=self._span(children))

    def costs(self, children: list[Any]) -> ast.Costs:
        body, default = self._body(children[3:]), None
        if not isinstance(body, ast.File | ast.PerRow):
            defaults = [entry for entry in body if isinstance(entry, tuple)]
            body = tuple(entry for entry in body if not isinstance(entry, tuple))
            default = defaults[0][1] if defaults else None
            for word, _ in defaults[1:]:
                first = Related(self._span_of(defaults[0][0]), "the first default")
                self._fault("E126", self._span_of(word), "a second default", "keep one of them", related=(first,))
        return ast.Costs(self._name(children[1]), children[2], body, default, span=self._span(children))

    def entry(self, children: list[Any]) -> ast.CostEntry:
        key, value = children
        key = self._name(key) if isinstance(key, lark.Token) else key
        return ast.CostEntry(key, value, span=self._span(children))

    def default(self, children: list[Any]) -> tuple[lark.Token, ast.Signed]:
        return children[0], children[1]

    def distance(self, children: list[Any]) -> ast.Distance:
        of = children[2] if isinstance(children[2], ast.Ref) else None  # `= path(h)` has no `of`
        return ast.Distance(self._name(children[1]), of, children[-1], span=self._span(children))

    def path(self, children: list[Any]) -> ast.Path:
        return ast.Path(self._name(children[1]), children[2], span=self._span(children))

    def category(self, children: list[Any]) -> ast.Category:
        return ast.Category(self._name(children[1]), self._body(children[2:]), span=self._span(children))

    def categories(self, children: list[Any]) -> ast.Categories:
        return ast.Categories(self._name(children[1]), self._body(children[2:]), span=self._span(children))

    def member(self, children: list[Any]) -> ast.Member:
        return ast.Member(self._name(children[0]), self._items(children[1:]), span=self._span(children))

    def actions(self, children: list[Any]) -> ast.Actions:
        return ast.Actions(self._name(children[1]), children[2], span=self._span(children))

    def param(self, children: list[Any]) -> ast.Param:
        _, name, value, low, high, _ = (*children, None)[:6]
        return ast.Param(self._name(name), value, low, high, span=self._span(children))

    def input(self, children: list[Any]) -> ast.Input:
        _, name, low, high, _ = children
        return ast.Input(self._name(name), low, high, span=self._span(children))

    def per_row(self, children: list[Any]) -> ast.PerRow:
        return ast.PerRow(children[1], children[2], span=self._span(children))

    def limit(self, children: list[Any]) -> ast.Limit:
        return ast.Limit(self._name(children[1]), children[2], span=self._span(children))

    def let(self, children: list[Any]) -> ast.Let:
        return ast.Let(self._name(children[1]), children[2], span=self._span(children))

    def loss(self, children: list[Any]) -> ast.LossDecl:
        _, name, unit, body = children
        if unit is not None:
            unit = self._name(unit)
            if not unit.text.strip():
                self._fault("E128", unit.span, "the unit is empty", "write `loss l in hours = size`, or leave it out")
        return ast.LossDecl(self._name(name), body, unit, span=self._span(children))

    # Labels, files, numbers

    def range(self, children: list[Any]) -> ast.Range:
        # Very long ends are cut, because int() refuses them; the range is reported as too long in any case.
        first, last = (int(end[:20]) for end in children)
        span = self._span(children)
        if last - first >= _LONGEST_RANGE or any(len(end) > 18 for end in children):
            way_out = f"a range contains at most {_LONGEST_RANGE:,} labels"
            self._fault("E125", span, f"the range {span.text} is too long", way_out)
        elif first > last:
            message, way_out = f"the range {span.text} runs backwards", "write the smaller number first"
            fixes = (Fix.write(span, f"{last}..{first}"),) if first - last < _LONGEST_RANGE else ()
            self._fault("E125", span, message, way_out, fixes)
        else:
            before, self.ranged = self.ranged, self.ranged + last - first + 1
            if before <= _LONGEST_RANGES < self.ranged:
                way_out = (
                    f"all ranges of a spec together contain at most {_LONGEST_RANGES:,} labels: read them from files"
                )
                self._fault("E125", span, f"with the range {span.text}, the ranges of the spec are too long", way_out)
        return ast.Range(first, last, span=span)

    def file(self, children: list[Any]) -> ast.File:
        clauses: dict[str, Any] = {}
        allowed = CLAUSES[self._keyword]
        for word, value in children[2:]:
            if word not in allowed:
                takes = " and ".join(f"'{clause}'" for clause in allowed)
                way_out = f"it takes {takes}" if takes else "the file is read whole"
                self._fault("E119", self._span_of(word), f"'{self._keyword}' from a file takes no '{word}'", way_out)
            elif word in clauses:
                self._fault("E119", self._span_of(word), f"a second '{word}'", "keep one of them")
            else:
                clauses[str(word)] = value
        last = children[-1] if len(children) == 2 else children[-1][1]
        end = last[-1] if isinstance(last, tuple) else last
        path = self._name(children[1])
        span = self._span_of(children[0]).to(self._span_of(end))
        return ast.File(path.text, **clauses, path_span=path.span, span=span)

    def column(self, children: list[Any]) -> tuple[lark.Token, ast.Name]:
        return children[0], self._name(children[1])

    by = column

    def levels(self, children: list[Any]) -> tuple[lark.Token, tuple[ast.Name, ...]]:
        return children[0], tuple(self._name(child) for child in children[1:])

    def signed(self, children: list[Any]) -> ast.Signed:
        span = self._span(children)
        return ast.Signed(self._value("".join(children), span), span=span)

    # Expressions

    def expr(self, children: list[Any]) -> ast.Or:
        return ast.Or(tuple(children), span=self._span(children))

    def conjunction(self, children: list[Any]) -> ast.And:
        return ast.And(tuple(children), span=self._span(children))

    def not_(self, children: list[Any]) -> ast.Not:
        return ast.Not(children[1], span=self._span(children))

    def comparison(self, children: list[Any]) -> ast.Comparison:
        left, operator, right = children
        return ast.Comparison(str(operator), left, right, span=self._span(children))

    def sum(self, children: list[Any]) -> ast.Sum:
        signs = [1] + [1 if sign.type == "PLUS" else -1 for sign in children[1::2]]
        return ast.Sum(tuple(zip(signs, children[::2], strict=True)), span=self._span(children))

    def product(self, children: list[Any]) -> ast.Product:
        operators = ["*", *map(str, children[1::2])]
        return ast.Product(tuple(zip(operators, children[::2], strict=True)), span=self._span(children))

    def negative(self, children: list[Any]) -> ast.Negative:
        return ast.Negative(children[1], span=self._span(children))

    def power(self, children: list[Any]) -> ast.Power:
        return ast.Power(children[0], children[1], span=self._span(children))

    def number(self, children: list[Any]) -> ast.Number:
        span = self._span(children)
        return ast.Number(self._value(children[0], span), span=span)

    def call(self, children: list[Any]) -> ast.Call:
        arguments = tuple(children[1:-1]) if len(children) > 1 else None
        return ast.Call(str(children[0]), arguments, span=self._span(children))

    def parentheses(self, children: list[Any]) -> Any:
        # The span includes the parentheses, so that an error underlines them too.
        return dataclasses.replace(children[1], span=self._span(children))

    def if_(self, children: list[Any]) -> ast.If:
        _, condition, then, otherwise = children
        return ast.If(condition, then, otherwise, span=self._span(children))

    def set(self, children: list[Any]) -> ast.SetLiteral:
        return ast.SetLiteral(self._items(children[1:]), span=self._span(children))

    def ref(self, children: list[Any]) -> ast.Ref:
        head, *parts = (self._name(child) if isinstance(child, lark.Token) else child for child in children)
        if not parts and head.text.lower() in ("true", "false"):
            self.booleans.append(head)
        return ast.Ref(head, tuple(parts), span=self._span(children))

    def indexed(self, children: list[Any]) -> ast.Indexed:
        kind, argument, _ = children
        if kind not in ("node", "level"):
            message = f"'{kind}(...)' is not a part of a reference"
            way_out = "write h.node(n) for a node, h.level(d) for a level by its depth"
            self._fault("E123", self._span_of(kind), message, way_out)
        return ast.Indexed(str(kind), self._name(argument), span=self._span(children))


if __name__ == "__main__":
    import udcp_grammars

    Path(udcp_grammars.__path__[0], "loss.json").write_text(make_tables(), encoding="utf-8")


def _unquoted(name: str) -> str:
    """The text of a word or a string."""
    return str(json.loads(name)) if name.startswith('"') else name


def _cut(text: str, most: int = 60) -> str:
    """A number as written, for a message; only its beginning if it is long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} digits)"
