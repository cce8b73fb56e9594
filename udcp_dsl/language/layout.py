"""Format a spec: canonical text with the comments of the source and the blank lines between its groups.

A comment on a line of its own stays above the same item. A trailing comment stays behind its item; those of consecutive
lines are aligned. Lists and sums that contain comments, or were written on several lines, keep their lines. A comment
inside a head, a clause or a term moves to a line above it.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from udcp_dsl.diagnostics import Source, Span
from udcp_dsl.language import ast
from udcp_dsl.language.scan import Token, comments, scan
from udcp_dsl.language.unparse import (
    INDENT,
    WIDTH,
    Entry,
    broken,
    declaration_text,
    entries,
    entry_head,
    entry_text,
    expression,
    head,
)

_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANK = re.compile(r"[ \t\f\ufeff]*")
_ALIGNED = 64  # trailing comments of longer lines are not aligned with the others


def formatted(source: Source, spec: ast.Spec) -> str:
    """Format a spec without syntax errors; the result parses to the same tree.

    >>> from udcp_dsl.language.parse import parse
    >>> source = Source("a.loss", "labels {a,b} # two\\n\\n\\n# why\\nloss l=(size)")
    >>> print(formatted(source, parse(source)[0]), end="")
    labels { a, b }  # two
    <BLANKLINE>
    # why
    loss l = size
    """
    return _Layout(source, spec).text()


@dataclass(frozen=True)
class _Comment:
    text: str
    start: int
    line: int
    column: int
    own_line: bool
    after_blank: bool  # a blank line precedes it

    def continues(self, other: _Comment) -> bool:
        """Whether it continues the trailing comment `other`, on the next line and in the same column."""
        return self.own_line and (self.line, self.column) == (other.line + 1, other.column)


@dataclass
class _Line:
    """A line of the result with its trailing comments; all but the first get lines of their own below."""

    code: str
    behind: list[_Comment] = field(default_factory=list)
    opens: bool = False  # the next lines are part of it


@dataclass
class _Attached:
    """The comments of consecutive parts: behind the opening, above and behind each part, and above the end."""

    opening: list[_Comment]
    above: list[list[_Comment]]
    behind: list[list[_Comment]]
    last: list[_Comment]


class _Tokens:
    """The tokens of a statement, looked up by offset."""

    def __init__(self, tokens: list[Token]) -> None:
        self.start, self.end = tokens[0].start, tokens[-1].end
        self.all = tokens
        self._starts = [token.start for token in tokens]

    def span(self, entry: Entry) -> tuple[int, int]:
        """Start and end of a list entry, key included."""
        if isinstance(entry, ast.Signed):  # the number of `default: 0`
            return self.all[bisect.bisect_left(self._starts, entry.span.start) - 2].start, entry.span.end
        return entry.span.start, entry.span.end

    def before(self, offset: int) -> int:
        """Start of the token before the one at `offset`."""
        return self._starts[bisect.bisect_left(self._starts, offset) - 1]

    def brace(self, offset: int) -> int:
        """End of the first opening brace at or after `offset`."""
        at = bisect.bisect_left(self._starts, offset)
        while self.all[at].text != "{":
            at += 1
        return self.all[at].end


class _Layout:
    def __init__(self, source: Source, spec: ast.Spec) -> None:
        self._text = source.text
        ends = list(_LINE_END.finditer(source.text))
        self._starts = [0, *(end.end() for end in ends)]
        self._lines = _LINE_END.split(source.text)
        self._comments = [self._comment(span) for span in comments(source)]
        self._places = [c.start for c in self._comments]
        self._statements = list(zip(spec.declarations, (_Tokens(s.tokens) for s in scan(source)), strict=True))

    # Places in the source

    def _line(self, offset: int) -> int:
        return bisect.bisect_right(self._starts, offset) - 1

    def _starts_line(self, offset: int) -> bool:
        return _BLANK.fullmatch(self._text, self._starts[self._line(offset)], offset) is not None

    def _after_blank(self, offset: int) -> bool:
        line = self._line(offset)
        return line > 0 and self._starts_line(offset) and _BLANK.fullmatch(self._lines[line - 1]) is not None

    def _comment(self, span: Span) -> _Comment:
        line = self._line(span.start)
        own_line, after_blank = self._starts_line(span.start), self._after_blank(span.start)
        return _Comment(span.text.rstrip(), span.start, line, span.start - self._starts[line], own_line, after_blank)

    def _between(self, start: int, end: int) -> list[_Comment]:
        return self._comments[bisect.bisect_left(self._places, start) : bisect.bisect_left(self._places, end)]

    def _attach(self, found: Iterable[_Comment], parts: Sequence[tuple[int, int]]) -> _Attached:
        """Assign each comment to one of the parts, which are (start, end) in the order of the source."""
        attached = _Attached([], [[] for _ in parts], [[] for _ in parts], [])
        starts = [start for start, _ in parts]
        put: list[_Comment] = attached.last  # where the previous comment went
        for comment in found:
            i = bisect.bisect_right(starts, comment.start) - 1  # the part that precedes or contains it
            behind = put and put is not attached.last and not any(put is above for above in attached.above)
            if i >= 0 and comment.start < parts[i][1]:
                put = attached.above[i]
            elif not comment.own_line:
                put = attached.behind[i] if i >= 0 else attached.opening
            elif not (behind and comment.continues(put[-1])):
                put = attached.above[i + 1] if i + 1 < len(parts) else attached.last
            put.append(comment)
        return attached

    # Statements

    def text(self) -> str:
        spans = [(tokens.start, tokens.end) for _, tokens in self._statements]
        inside = {id(c) for start, end in spans for c in self._between(start, end)}
        attached = self._attach((c for c in self._comments if id(c) not in inside), spans)
        lines: list[_Line] = []
        for i, (declaration, tokens) in enumerate(self._statements):
            start = tokens.start
            statement, hoisted = self._statement(declaration, tokens)
            self._add_above(lines, attached.above[i], "")
            same_line = i > 0 and self._line(spans[i - 1][1]) == self._line(start)
            another_kind = i > 0 and type(self._statements[i - 1][0]) is not type(declaration)
            if self._after_blank(start) or (same_line and another_kind):
                _add_blank(lines)
            lines += [_Line(c.text) for c in hoisted]
            statement[-1].behind += attached.behind[i]
            lines += statement
        self._add_above(lines, [*attached.opening, *attached.last], "")
        return _rendered(lines)

    def _add_above(self, lines: list[_Line], above: list[_Comment], margin: str) -> None:
        for comment in above:
            if comment.after_blank:
                _add_blank(lines)
            lines.append(_Line(margin + comment.text))

    def _statement(self, x: ast.Declaration, tokens: _Tokens) -> tuple[list[_Line], list[_Comment]]:
        """The lines of a statement, and the comments inside its head or clauses, which go above it."""
        start, end = tokens.start, tokens.end
        if isinstance(x, ast.Let | ast.LossDecl):
            unit = isinstance(x, ast.LossDecl) and x.unit is not None
            body = tokens.all[4 if unit else 2].end  # the end of `loss l =` or `loss l in hours =`
            return self._definition(x, tokens, body), self._between(start, body)
        if entries(x) and tokens.all[-1].text == "}":
            opening = tokens.brace(start)
            if self._keeps_lines(entries(x), tokens, opening, end):
                return self._list(head(x), entries(x), tokens, opening, end, ""), self._between(start, opening)
        return [_Line(line) for line in declaration_text(x).split("\n")], self._between(start, end)

    def _definition(self, x: ast.Let | ast.LossDecl, tokens: _Tokens, start: int) -> list[_Line]:
        line = f"{head(x)} = {expression(x.body)}"
        parts = broken(x.body)
        spans = [(e.span.start, e.span.end) for e, _ in parts]
        found = self._between(start, tokens.end)
        on_lines = self._line(spans[0][0]) < self._line(spans[-1][0])
        if not found and (len(parts) == 1 or (len(line) <= WIDTH and not on_lines)):
            return [_Line(line)]
        attached = self._attach(found, spans)
        lines = [_Line(f"{head(x)} =", attached.opening, True)]
        for i, (_, text) in enumerate(parts):
            has_word = i > 0 or isinstance(x.body, ast.If)
            operator = tokens.before(spans[i][0]) if has_word else spans[i][0]
            self._add_part(lines, attached.above[i], operator, INDENT)
            lines.append(_Line(text, attached.behind[i]))
        # Comments before the closing parentheses of the whole body.
        lines[-1].behind += attached.last
        return lines

    def _add_part(self, lines: list[_Line], above: list[_Comment], start: int, margin: str) -> None:
        """Add the comments above a part and the blank line before it, except directly after the opening."""
        inner = [c for c in above if c.start > start]
        before = [c for c in above if c.start <= start]
        first = len(lines) == 1
        for comment in before:
            if comment.after_blank and not first:
                _add_blank(lines)
            lines.append(_Line(margin + comment.text))
            first = False
        if self._after_blank(start) and not first:
            _add_blank(lines)
        lines += [_Line(margin + c.text) for c in inner]

    # Lists

    def _keeps_lines(self, inside: Sequence[Entry], tokens: _Tokens, opening: int, end: int) -> bool:
        """Whether a list keeps the lines of the source: it starts on a new line, or has comments or blank lines."""
        first = min(tokens.span(entry)[0] for entry in (inside[0], inside[-1]))
        if self._line(opening) < self._line(first) or self._between(opening, end):
            return True
        if not any(_BLANK.fullmatch(line) for line in self._lines[self._line(opening) + 1 : self._line(end)]):
            return False
        if any(self._after_blank(tokens.span(entry)[0]) for entry in inside[1:]):
            return True
        nested = [entry for entry in inside if isinstance(entry, ast.Branch | ast.Member)]
        return any(self._keeps_lines(entries(e), tokens, tokens.brace(e.name.span.end), e.span.end) for e in nested)

    def _list(
        self, head: str, inside: Sequence[Entry], tokens: _Tokens, opening: int, end: int, margin: str
    ) -> list[_Line]:
        """`head {`, the entries on the lines of the source, and `}`. `opening` and `end` are where its braces end."""
        spans = [tokens.span(entry) for entry in inside]
        order = sorted(range(len(inside)), key=lambda i: spans[i])
        braces = [tokens.brace(e.name.span.end) if isinstance(e, ast.Branch | ast.Member) else None for e in inside]
        nested = [c for i in order if braces[i] is not None for c in self._between(braces[i] or 0, spans[i][1])]
        hidden = {id(c) for c in nested}
        found = [c for c in self._between(opening, end) if id(c) not in hidden]
        attached = self._attach(found, [spans[i] for i in order])
        place = {i: at for at, i in enumerate(order)}
        lines = [_Line(f"{head} {{", attached.opening, True)]
        inner = margin + INDENT
        joins = False  # whether the next entry may go on the same line
        for i, entry in enumerate(inside):
            start, stop = spans[i]
            above, behind = attached.above[place[i]], attached.behind[place[i]]
            made = self._entry(entry, tokens, braces[i], stop, inner)
            same_line = i > 0 and self._line(spans[i - 1][1]) == self._line(start)
            if joins and same_line and not above and len(made) == 1 and braces[i] is None:
                row = f"{lines[-1].code} {made[0].code},"
                if len(row) <= WIDTH:
                    lines[-1].code, lines[-1].behind = row, behind
                    joins = not behind
                    continue
            self._add_part(lines, above, start, inner)
            made[0].code = inner + made[0].code
            made[-1].code += ","
            made[-1].behind += behind
            lines += made
            joins = braces[i] is None and not behind
        self._add_above(lines, attached.last, inner)
        return [*lines, _Line(f"{margin}}}")]

    def _entry(self, entry: Entry, tokens: _Tokens, brace: int | None, end: int, margin: str) -> list[_Line]:
        """The lines of an entry; the first has no margin."""
        if isinstance(entry, ast.Branch | ast.Member) and brace is not None:
            inside = entries(entry)
            if self._keeps_lines(inside, tokens, brace, end):
                return self._list(entry_head(entry), inside, tokens, brace, end, margin)
        return [_Line(line) for line in entry_text(entry, margin)[0].split("\n")]


def _add_blank(lines: list[_Line]) -> None:
    if lines and lines[-1].code:
        lines.append(_Line(""))


def _rendered(lines: list[_Line]) -> str:
    """Join the lines and their trailing comments, which are aligned over consecutive lines that have some."""
    rows: list[str] = []
    at = 0
    while at < len(lines):
        run = [lines[at]]
        while run[-1].behind and not run[-1].opens and at + len(run) < len(lines):
            following = lines[at + len(run)]
            if not following.behind or following.opens:
                break
            run.append(following)
        column = max((len(line.code) for line in run if line.behind and len(line.code) <= _ALIGNED), default=0) + 2
        for line in run:
            if not line.behind:
                rows.append(line.code)
                continue
            own = column if len(line.code) <= _ALIGNED else len(line.code) + 2
            rows.append(f"{line.code:<{own}}{line.behind[0].text}")
            rows += [" " * own + c.text for c in line.behind[1:]]
        at += len(run)
    return "".join(f"{row}\n" for row in rows)
