"""Cut a file into statements: one fast pass over its tokens, before any parsing.

The pass finds errors that would confuse a parser (unclosed strings, characters of other languages, unmatched brackets,
deep nesting) and the beginning of each statement. So statements are parsed one by one, and one run reports all errors
of a file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from udcp_dsl.diagnostics import Diagnostic, Edit, Fix, Source, Span
from udcp_dsl.language.words import FOREIGN_QUOTES, RESERVED, WORD, is_name

MOST_NESTED = 200
# Longest spec, in tokens: a longer one takes more than a few seconds to check. In lists of labels and costs, which are
# read in runs, eight tokens take as long as one elsewhere.
_LONGEST, _IN_RUNS, _RUN = 50_000, frozenset((",", ":", "-")), 8
_MOST_FAULTS = 20  # errors of single characters and strings, per statement
STATEMENTS = ("labels", "hierarchy", "costs", "distance", "category", "categories", "actions", "param", "input",
              "limit", "let", "loss")  # fmt: skip

_CLOSING = {"{": "}", "(": ")", "[": "]"}
# A statement keyword after one of these is a column, level, family or part, not the start of a statement.
_NAMES_FOLLOW = frozenset(("column", "by", "levels", "of", ",", "."))
# What may follow the name in a declaration: `costs w {`, `costs w from`, `costs w of`, `let i =`, `input km in`.
_BODIES_START = frozenset(("=", "{", "from", "of", "in", "per"))
# An operand follows these words, so a minus sign after them is a negation, not a subtraction.
_OPERATOR_WORDS = frozenset(("and", "or", "not", "if", "then", "else"))

# Signs of other languages, and what to write instead.
_FOREIGN = {
    "**": "write '^' for a power",
    "&&": "write 'and'",
    "||": "write 'or'",
    "!=": "write not (a == b) for 'not equal'",
    "<>": "write not (a == b) for 'not equal'",
    "=>": "write '>='",
    "=<": "write '<='",
    ":=": "write '='",
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not'",
    "~": "write 'not'",
    "%": "write 0.05 for five percent",
    "?": "write if i then e else f",
    ";": "leave it out: a statement ends where the next one begins",
    "\u2260": "write not (a == b) for 'not equal'",
    "\u2265": "write '>='",
    "\u2264": "write '<='",
    "\u00d7": "write '*'",
    "\u00b7": "write '*'",
    "\u00f7": "write '/'",
    "\u2212": "write '-', the hyphen of the keyboard",
    "\u2013": "write '-', the hyphen of the keyboard",
    "\u2014": "write '-', the hyphen of the keyboard",
}
# Those that one sign or word of this language can replace, whatever is around them.
_OWN_SIGNS = {
    "**": "^", "&&": "and", "||": "or", "=>": ">=", "=<": "<=", ":=": "=", "&": "and", "|": "or", "!": "not",
    "~": "not", ";": "", "\u2265": ">=", "\u2264": "<=", "\u00d7": "*", "\u00b7": "*", "\u00f7": "/",
    "\u2212": "-", "\u2013": "-", "\u2014": "-",
}  # fmt: skip
_TOKEN = re.compile(
    rf"""(?P<space> (?: [ \t\r\n\f]+ | \#[^\r\n]* | \A\ufeff )+ )
      | (?P<word> (?<!\.)[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![{WORD}]) | [{WORD}]+ )
      | (?P<string> "[^"\\\r\n]*(?: \\[^\r\n] [^"\\\r\n]* )*" )
      | (?P<open> [{{(\[] )
      | (?P<close> [}})\]] )
      | (?P<quoted> [{FOREIGN_QUOTES}](?: [^{FOREIGN_QUOTES}\r\n]*[{FOREIGN_QUOTES}] )? )
      | (?P<comment> //[^\r\n]* | /\*.*?(?:\*/|\Z) )
      | (?P<foreign> {"|".join(map(re.escape, _FOREIGN))} )
      | (?P<sign> \.\. | [<>=]= | [-+*/^,.:<>=] )
      | (?P<unended> "[^\r\n]* )
      | (?P<stray> . )""",
    re.VERBOSE | re.DOTALL,
)

_COMMENT = re.compile(r"#[^\r\n]*")
_WORD = re.compile(rf"[{WORD}]+")
_SOUND = frozenset(("word", "sign", "open", "close"))

_ESCAPE = re.compile(r'\\(?:(?P<known>["\\/bfnrt]|u[0-9a-fA-F]{4})|u?)')
_HALF_PAIR = re.compile(
    r"\\\\|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class Token(NamedTuple):
    """A piece of the text; `kind` is word (numbers too), string, open, close or sign."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Statement:
    """The tokens of one statement, and the faults that were found in them."""

    tokens: list[Token]
    faults: list[Diagnostic]


def scan(source: Source) -> list[Statement]:
    """Cut a source into statements; tokens before the first statement keyword come first, as one more."""
    tokens: list[Token] = []
    faulty = set[int]()  # positions of tokens: of a million strange characters, few are reported
    for match in _TOKEN.finditer(source.text):
        kind = match.lastgroup or ""
        if kind == "space":
            continue
        token = Token(kind, match[0], match.start(), match.end())
        sound = kind in _SOUND and (kind != "word" or token.text.isascii())
        if not sound and (kind not in ("word", "string") or _fault_of(source, token)):
            faulty.add(len(tokens))
        tokens.append(token)
    return list(_StatementSplitter(source, tokens, faulty).statements())


def too_long(source: Source, statements: Iterable[Statement]) -> Diagnostic | None:
    """The error of a spec that is too long to be checked in a few seconds; None for others."""
    eighths, depth, before = 0, 0, 0
    for token in chain.from_iterable(statement.tokens for statement in statements):
        in_run = depth > 0 and (token.kind in ("word", "string") or token.text in _IN_RUNS)
        eighths += 1 if in_run and "#" not in source.text[before : token.start] else _RUN
        before = token.end
        if eighths > _RUN * _LONGEST:
            message = (
                f"the spec is too long: it has more than {_LONGEST:,} words and signs "
                f"({_RUN} in a list of labels or costs count as one)"
            )
            way_out = 'read labels, costs and hierarchies from files: costs c from "labels.csv" column c'
            return Diagnostic("E129", Span(source, token.start, token.end), message, way_out)
        depth += (token.text == "{") - (token.text == "}")
    return None


def comments(source: Source) -> list[Span]:
    """The spans of the comments of a source, in order."""
    found: list[Span] = []
    for match in _TOKEN.finditer(source.text):
        if match.lastgroup == "space" and "#" in match[0]:
            at = match.start()
            found += [Span(source, at + c.start(), at + c.end()) for c in _COMMENT.finditer(match[0])]
    return found


def _fault_of(source: Source, token: Token) -> Diagnostic | None:
    """The error of a single token, if it has one."""
    kind, text = token.kind, token.text
    span = Span(source, token.start, token.end)
    if kind == "word":
        return _fault_of_word(source, token)
    if kind == "string" and ("\\" in text or not text.isprintable()):
        return _fault_of_string(source, token)
    if kind == "unended":
        return Diagnostic("E103", span, "this string has no closing quote", "close it with '\"' on the same line")
    if kind == "quoted":
        inside = text.strip(FOREIGN_QUOTES)
        way_out = f'write "{inside}"' if inside else "write '\"'"
        fixes = (Fix.write(span, f'"{inside}"'),) if inside and not set(inside) & set('"\\') else ()
        return Diagnostic("E106", span, "enclose strings in straight double quotes", way_out, fixes=fixes)
    if kind == "comment":
        message, start = f"'{text[:2]}' does not start a comment here", Span(source, token.start, token.start + 2)
        fixes = (Fix.write(start, "#"),) if start.text == "//" else ()
        return Diagnostic("E106", span, message, "start comments with '#'", fixes=fixes)
    if kind == "foreign":
        return Diagnostic("E106", span, f"'{text}' is not part of this language", _FOREIGN[text], fixes=_own_sign(span))
    if kind == "stray" and text == "\0":
        fixes = (Fix("Remove it", (Edit(span, ""),)),)
        return Diagnostic("E102", span, "this is a NUL character", "remove it; is the file a text file?", fixes=fixes)
    return _stray(span) if kind == "stray" else None


def _stray(span: Span) -> Diagnostic:
    text = span.text
    way_out = "write a plain space" if text.isspace() else "remove it, or quote the label or column that it is in"
    message = f"the character {_character(text)} has no meaning here"
    fix = Fix("Write a plain space" if text.isspace() else "Remove it", (Edit(span, " " * text.isspace()),))
    return Diagnostic("E105", span, message, way_out, fixes=(fix,))


def _own_sign(span: Span) -> tuple[Fix, ...]:
    """The fix that replaces a foreign sign; a word gets spaces around it."""
    own = _OWN_SIGNS.get(span.text)
    if own is None:
        return ()
    before, after = span.source.text[: span.start][-1:], span.source.text[span.end :][:1]
    apart = own.isalpha()
    padded = " " * (apart and not before.isspace()) + own + " " * (apart and not after.isspace())
    return (Fix.write(span, padded),)


def _character(character: str) -> str:
    """A character as messages show it: its code point if it is invisible or a combining mark."""
    alone = character.isprintable() and not unicodedata.category(character).startswith("M")
    return f"'{character}'" if alone else f"U+{ord(character):04X}"


def _fault_of_word(source: Source, token: Token) -> Diagnostic | None:
    """Why a non-ASCII word such as `x²`, `٣` or `ﬁle` is not a name; None if it is one."""
    text = token.text
    for place, character in enumerate(text, start=token.start):
        if not f"_{character}".isidentifier():
            return _stray(Span(source, place, place + 1))
    span = Span(source, token.start, token.end)
    normal = unicodedata.normalize("NFKC", text)
    if normal != text:
        odd = [f"U+{ord(c):04X}" for c in dict.fromkeys(text) if c not in normal and not c.isascii()]
        spelt = f"with {', '.join(odd[:3])}{', ...' * (len(odd) > 3)}" if odd else "with marks in another order"
        message = f"the name '{text}' is spelt {spelt} and looks like another name"
        fixes = (Fix.write(span, normal),) if is_name(normal) else ()
        way_out = (f"write {normal}; " if fixes else "") + "quote a label or column that has this spelling"
        return Diagnostic("E127", span, message, way_out, fixes=fixes)
    if not text.isidentifier() and not text[0].isascii():
        message = f"a name does not start with {_character(text[0])}"
        return Diagnostic("E127", span, message, "start it with a letter, or quote the label or column")
    return None


def _fault_of_string(source: Source, token: Token) -> Diagnostic | None:
    def fault(start: int, length: int, message: str, way_out: str) -> Diagnostic:
        span = Span(source, token.start + start, token.start + start + length)
        return Diagnostic("E104", span, message, way_out)

    for match in _ESCAPE.finditer(token.text):
        if match["known"] is None:
            way_out = "write a backslash as \\\\, and file paths with '/'; escapes are as in JSON"
            found = token.text[match.start() : match.start() + 2]
            return fault(match.start(), 2, f"'{found}' is not an escape", way_out)
    for match in _HALF_PAIR.finditer(token.text):
        if match["half"] is not None:
            message = f"'{match[0]}' is half of a surrogate pair"
            return fault(match.start(), len(match[0]), message, "write both halves, or the character itself")
    for i, character in enumerate(token.text):
        if character < " " or "\ud800" <= character <= "\udfff":
            message = f"a string cannot contain the character U+{ord(character):04X}"
            return fault(i, 1, message, "write a control character as an escape: \\t for a tab, \\u0007 for others")
    return None


class _StatementSplitter:
    """Walks the tokens once and tracks what is open: brackets, and `if`, `not`, `-` and `^`, whose operands follow."""

    def __init__(self, source: Source, tokens: list[Token], faulty: Set[int]) -> None:
        self._source = source
        self._tokens = tokens
        self._faulty = faulty
        self._start(0)

    def _start(self, first: int) -> None:
        self._first = first
        self._faults: list[Diagnostic] = []
        self._open: list[Token] = []

    def statements(self) -> Iterator[Statement]:
        for i, token in enumerate(self._tokens):
            kind = token.kind
            if kind == "word":
                if token.text in STATEMENTS and i > self._first and self._begins_statement(i):
                    yield self._finish(i)
                elif token.text in _OPERATOR_WORDS:
                    self._operator_word(i, token)
            elif kind == "sign":
                self._sign(i, token)
            elif kind == "open":
                self._nest(token)
            elif kind == "close":
                self._close(i, token)
            if i in self._faulty and len(self._faults) < _MOST_FAULTS:
                fault = self._fault_of_label(i) or _fault_of(self._source, token)
                if fault is not None:
                    self._add(fault)
        if self._tokens:
            yield self._finish(len(self._tokens))

    def _fault_of_label(self, i: int) -> Diagnostic | None:
        """`{ Tax & VAT, b }`: between braces, a sign of another language is part of a label, not an operator."""
        tokens = self._tokens
        if tokens[i].kind != "foreign" or not self._open or self._open[-1].text != "{":
            return None
        if tokens[i].text == ";":
            span = Span(self._source, tokens[i].start, tokens[i].end)
            message, comma = "';' is not part of this language", Fix.write(span, ",")
            return Diagnostic("E106", span, message, "write ','", fixes=(comma,))
        first, last = i, i
        while tokens[first - 1].text not in (",", "{", ":") and tokens[first - 1].kind != "string":
            first -= 1
        while (
            last + 1 < len(tokens)
            and tokens[last + 1].text not in (",", "}", ":")
            and tokens[last + 1].kind != "string"
        ):
            last += 1
        span = Span(self._source, tokens[first].start, tokens[last].end)
        if tokens[first - 1].text == ":" or "\n" in span.text:
            return None
        quoted = f'"{span.text}"'
        fixes = (Fix.write(span, quoted),) if "\\" not in span.text else ()
        message = f"a label that contains '{tokens[i].text}' must be quoted"
        return Diagnostic("E111", span, message, f"write {quoted}", fixes=fixes)

    def _add(self, fault: Diagnostic) -> None:
        # The closing quote of a string over several lines looks like another unclosed string. After _MOST_FAULTS
        # strange characters, more messages do not help.
        again = fault.code == "E103" and any(earlier.code == "E103" for earlier in self._faults)
        if not again and len(self._faults) < _MOST_FAULTS:
            self._faults.append(fault)

    def _finish(self, end: int) -> Statement:
        brackets = self._brackets()
        if brackets:
            where = f"before {self._named(self._tokens[end])}" if end < len(self._tokens) else "at the end"
            self._never_closed(brackets[-1], where, self._tokens[end - 1].end)
        statement = Statement(self._tokens[self._first : end], self._faults)
        self._start(end)
        return statement

    def _begins_statement(self, i: int) -> bool:
        """Whether a statement keyword begins a statement here, and is not a label, a column or an invalid name."""
        text, before = self._tokens[i].text, self._tokens[i - 1].text
        after, body = ([t.text for t in self._tokens[i + 1 : i + 3]] + ["", ""])[:2]
        between = self._source.text[self._tokens[i - 1].end : self._tokens[i].start]
        nested = bool(self._brackets())
        names_it = i - 1 == self._first and before in STATEMENTS and before != "labels"
        if text == "labels":
            whole = after == "from" or (not nested and (after == "{" or after[:1].isdecimal()))
            of = before == "of" and self._tokens[i - 2].text not in _NAMES_FOLLOW  # `of` is no column name
            whole = whole and not of and before != "." and not (names_it and "\n" not in between)
        else:
            # A rough test: whether the word is a valid name is checked elsewhere.
            named = _WORD.fullmatch(after) is not None and not after[0].isdecimal() and after not in RESERVED
            whole = named and (body == ":" if text == "limit" else body in _BODIES_START)
        hyphened = before == "-" and not between
        return whole or not (nested or names_it or hyphened or before in _NAMES_FOLLOW)

    def _brackets(self) -> list[Token]:
        return [token for token in self._open if token.kind == "open"]

    def _named(self, token: Token) -> str:
        return f"the '{token.text}' of line {self._source.position(token.start)[0]}"

    def _never_closed(self, bracket: Token, where: str, offset: int) -> None:
        closing = _CLOSING[bracket.text]
        fix = Fix.add(self._source, offset, f" {closing}" if closing == "}" else closing)
        self._add_if_first("E108", bracket, f"'{bracket.text}' is never closed", f"add '{closing}' {where}", fix)

    def _add_if_first(self, code: str, token: Token, message: str, way_out: str, *fixes: Fix) -> None:
        # An earlier error, such as an unclosed string, may have hidden a bracket: only that error is reported.
        if not self._faults:
            span = Span(self._source, token.start, token.end)
            self._faults.append(Diagnostic(code, span, message, way_out, fixes=fixes))

    def _nest(self, token: Token) -> None:
        if len(self._open) < MOST_NESTED:
            self._open.append(token)
        else:
            way_out = "give names to inner parts with 'let'"
            self._add_if_first("E107", token, f"this is nested more than {MOST_NESTED} deep", way_out)

    def _close(self, i: int, token: Token) -> None:
        brackets = self._brackets()
        matching = [bracket for bracket in brackets if _CLOSING[bracket.text] == token.text]
        if not matching:
            way_out = "remove it, or add the bracket that it should close"
            removed = Fix.write(Span(self._source, token.start, token.end), "")
            self._add_if_first("E109", token, f"'{token.text}' closes nothing", way_out, removed)
            return
        if matching[-1] is not brackets[-1]:
            self._never_closed(brackets[-1], f"before {self._named(token)}", self._tokens[i - 1].end)
        while self._open.pop() is not matching[-1]:
            pass

    def _operator_word(self, i: int, token: Token) -> None:
        innermost = next((t.text for t in reversed(self._open) if t.kind == "open"), "")
        if innermost == "{" or (i and self._tokens[i - 1].text == "."):
            return  # a label, or a part of a reference
        if token.text in ("if", "not"):
            self._nest(token)
        elif token.text in ("and", "or"):
            self._unwind("-", "^", "not")
        else:
            # `then` replaces its `if`, and `else` its `then`; whatever they enclosed is closed.
            opener = "if" if token.text == "then" else "then"
            self._unwind(*{"-", "^", "not", "if", "then", "else"} - {opener})
            if self._open and self._open[-1].text == opener:
                self._open[-1] = token

    def _sign(self, i: int, token: Token) -> None:
        if token.text == ",":
            self._unwind("-", "^", "not", "if", "then", "else")
        elif token.text == "^" or (token.text == "-" and self._operand_expected(i)):
            self._nest(token)
        elif token.text not in (".", "..", ":"):
            self._unwind("-", "^")

    def _operand_expected(self, i: int) -> bool:
        if i == 0:
            return True
        before = self._tokens[i - 1]
        if before.kind == "word":
            return before.text in _OPERATOR_WORDS
        return before.kind in ("sign", "open")

    def _unwind(self, *texts: str) -> None:
        while self._open and self._open[-1].text in texts:
            self._open.pop()
