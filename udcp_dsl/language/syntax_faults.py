"""Error messages for statements that do not parse.

The parser knows where it stopped and which terminals of the grammar it expected. Each rule below recognises one kind of
mistake from that and from the tokens around it; the last rule covers the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from udcp_dsl.diagnostics import Diagnostic, Fix, Source, Span, nearest, suggest
from udcp_dsl.language.scan import STATEMENTS, Token
from udcp_dsl.language.words import ATOM_NAMES, CALLED, KEYWORDS, RESERVED, WORD, is_name

# What may follow `from "file"` in each declaration.
CLAUSES: dict[str, tuple[str, ...]] = {
    "labels": ("column",),
    "hierarchy": ("levels", "by"),
    "costs": ("column", "by"),
    "distance": (),
    "category": ("column", "by"),
    "categories": ("column", "by"),
    "actions": ("by",),
}

_FORMS = {
    "labels": 'labels { a, b }, labels 0..99, or labels from "file.csv" column c',
    "hierarchy": 'hierarchy h { node { a, b }, c }, or hierarchy h from "file.csv" levels kind, family',
    "costs": 'costs c { a: 1, default: 0 }, costs c from "file.csv" column k, costs w of F { d: 1 }, '
    "or costs c per row in [0, 9]",
    "distance": 'distance d from "file.npy", distance d of F from "file.csv", or distance d = path(h, edge: 1)',
    "category": 'category C { a, b }, or category C from "file.csv" column c',
    "categories": 'categories F { c: { a, b }, d: { b } }, or categories F from "file.csv" column c',
    "actions": 'actions u from "file.csv"',
    "param": "param p = 2 in [0, 10]",
    "input": "input km in [0, 200]",
    "limit": "limit m: any(C) <= 0.1",
    "let": "let i = any(C)",
    "loss": "loss l = sum(c) + size",
}

# A terminal, its name in messages, and the terminals that are not mentioned beside it; in the order of the message.
_PHRASES = (
    ("ATOM", "an expression", "NUMBER NAME LPAR MINUS NOT IF LBRACE"),
    ("SLASH", "an operator", "STAR PLUS MINUS _CARET COMPARE _AND _OR _DOT _LPAR"),
    ("NUMBER", "a number", "PLUS MINUS"),
    ("NAME", "a name", ""),
    ("LABEL", "a label", "INT STRING LABEL_RUN COST_RUN"),
    ("CATEGORY_NAME", "a category", "INT STRING"),
    ("COLUMN_NAME", "the name of a column", "INT STRING"),
    ("LEVEL_NAME", "the name of a level", "INT STRING"),
    ("NODE", "a node or a depth", "INT STRING"),
    ("PART", "a category, level or node", "INT STRING"),
    ("UNIT", "a unit (a word or a string)", "STRING"),
    ("STRING", "a file name in double quotes", ""),
    ("DEFAULT", "'default'", ""),
    ("_COMMA", "','", "_DOTS"),
    ("_COLON", "':'", "_DOTS"),
    ("_EQUALS", "'='", "_IN"),
    ("_LBRACE", "'{'", "_DOTS"),
    ("RBRACE", "'}'", "_DOTS"),
    ("_LPAR", "'('", ""),
    ("RPAR", "')'", ""),
    ("_LBRACKET", "'['", ""),
    ("RBRACKET", "']'", ""),
    ("_DOTS", "'..'", ""),
    ("INT", "a whole number", ""),
    ("PATH", "'path(...)'", ""),
    *((word, f"'{word.strip('_').lower()}'", "") for word in ("_EDGE", "_OF", "FROM", "COLUMN", "LEVELS", "BY", "_IN")),
    ("PER", "'per row'", ""),
    *((word, f"'{word.strip('_').lower()}'", "") for word in ("_ROW", "_THEN", "_ELSE")),
    ("$END", "the end of the statement", ""),
)

_STATEMENTS_LISTED = f"statements start with {', '.join(STATEMENTS)}"
_COMPARISONS = frozenset((">=", ">", "<=", "<", "=="))
_NUMBER_LIKE = re.compile(rf"[0-9][{WORD}]*(?:\.(?!\.)[{WORD}]*)*(?:(?<=[eE])[+-][{WORD}]*)?")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LABEL_LIKE = re.compile(rf"[{WORD}]+(?:[./+*-]+[{WORD}]+)*")


@dataclass(frozen=True)
class Stop:
    """Where the parser stopped in a statement, and the terminals that it expected there."""

    source: Source
    tokens: list[Token]
    index: int  # of the token that does not fit; one past the last at the end of the statement
    offset: int  # of the character that does not fit
    expected: frozenset[str]

    @property
    def found(self) -> str:
        return self.text(self.index)

    @property
    def kind(self) -> str:
        return self.tokens[self.index].kind if self.index < len(self.tokens) else ""

    @property
    def before(self) -> str:
        return self.text(self.index - 1)

    @property
    def keyword(self) -> str:
        return self.tokens[0].text

    @property
    def span(self) -> Span:
        """The span of the token that does not fit, or of the last token if the statement ends too early."""
        return self.span_of(min(self.index, len(self.tokens) - 1))

    def text(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def span_of(self, first: int, last: int | None = None) -> Span:
        end = self.tokens[first if last is None else last].end
        return Span(self.source, self.tokens[first].start, end)

    def touches(self, i: int) -> bool:
        """Whether token i directly follows the one before it."""
        return 0 < i < len(self.tokens) and self.tokens[i - 1].end == self.tokens[i].start

    def after_number(self) -> bool:
        """Whether the token before is (the end of) a number, in a place for numbers and not for labels."""
        where = (
            self.expects("SLASH")
            or self.keyword in ("param", "input", "distance")
            or self.text(self.index - 2) in (":", "-", "+")
        )
        return where and self.before[:1].isdecimal()

    def touches_number(self, i: int) -> bool:
        return self.touches(i) and self.text(i)[:1].isdecimal()

    def expects(self, *terminals: str) -> bool:
        return self.expected.issuperset(terminals)

    def fault(
        self, code: str, message: str, way_out: str, span: Span | None = None, fixes: Iterable[Fix] = ()
    ) -> Diagnostic:
        return Diagnostic(code, span or self.span, message, way_out, fixes=tuple(fixes))

    def add_before(self, text: str) -> Fix:
        """The fix that adds a text after the token before the one that does not fit."""
        return Fix.add(self.source, self.tokens[self.index - 1].end, text)

    def after(self) -> str:
        """` after 'x'`, where x is the whole name or number before the error."""
        first = self.index - 1
        while self.touches(first) and "." in (self.text(first)[:1], self.text(first - 1)[:1]):
            first -= 1
        if first < 0:
            return ""
        text = self.span_of(first, self.index - 1).text
        return f" after '{text if len(text) <= 40 else text[:37] + '...'}'"


def explain(stop: Stop) -> Diagnostic:
    """The diagnostic of the first rule that recognises the mistake."""
    return next(fault for rule in _RULES if (fault := rule(stop)) is not None)


def _unknown_statement(stop: Stop) -> Diagnostic | None:
    """`labls { a, b }`, at the start of the file or after a whole statement."""
    i, word = stop.index, stop.found
    if i > 0:
        starts_line = "\n" in stop.source.text[stop.tokens[i - 1].end : stop.offset]
        if not (stop.expects("$END") and starts_line and stop.kind == "word" and _is_statement(stop)):
            return None
    if stop.kind != "word":
        message, way_out = f"a statement cannot start with '{word}'", _STATEMENTS_LISTED
    elif stop.text(i + 1) == "=":
        message = f"unknown statement '{word}'"
        way_out = f"declare it: param {word} = ... for a number, let {word} = ... for an expression"
    else:
        message, suggestion = f"unknown statement '{word}'", suggest(word, STATEMENTS)
        way_out = suggestion.help if suggestion.names else _STATEMENTS_LISTED
        return stop.fault("E113", message, way_out, fixes=suggestion.fixes(stop.span))
    return stop.fault("E113", message, way_out)


def _is_statement(stop: Stop) -> bool:
    """Whether a word on a new line is meant to begin a statement, and is no clause and no operand without operator."""
    i, word, column = stop.index, stop.found, stop.source.position(stop.offset)[1]
    body = stop.text(i + 1) == "=" or (stop.text(i + 1) != "(" and stop.text(i + 2) in ("=", "{", "from", "of"))
    if body or nearest(word, STATEMENTS):
        return True
    if word in RESERVED or word[0].isdecimal() or nearest(word, CLAUSES.get(stop.keyword, ())):
        return False
    if not stop.expects("SLASH"):
        return True
    # `forbid any(C)`: no expression continues like this.
    follows = i + 1 < len(stop.tokens) and stop.tokens[i + 1].kind in ("word", "string", "open")
    return column == 1 and follows and stop.text(i + 1) not in ("and", "or", "then", "else", "(")


def _bad_range(stop: Stop) -> Diagnostic | None:
    """`a..c`, `0.5..9`, `00..99`"""
    i = stop.index
    if stop.found == ".." and not stop.expects("_DOTS"):
        way_out = "list the labels one by one"
    elif stop.text(i + 1) == ".." and stop.kind == "word" and stop.expects("INT"):
        way_out = "list the labels one by one"
        if stop.found.isdecimal():
            way_out = "leave out leading zeros; list labels that have them one by one, quoted"
    elif stop.before == ".." or (stop.found == "." and ".." in (stop.text(i - 2), stop.text(i + 2))):
        way_out = "write 0..9"
    else:
        return None
    return stop.fault("E125", "a range needs whole numbers at both ends", way_out)


def _malformed_number(stop: Stop) -> Diagnostic | None:
    """`.5`, `1.`, `1,5`, `007`, `1_000`, `3px`; in a list of labels, a label that must be quoted."""
    i, found, before = stop.index, stop.found, stop.before
    after_digits = before[:1].isdecimal() and stop.touches(i)
    if found == "." and after_digits and stop.after_number() and not stop.touches_number(i + 1):
        span = stop.span_of(i - 1, i)
        fixes = [Fix.write(span, number) for number in (before, f"{before}.0")]
        return stop.fault("E110", f"'{span.text}' is not a number here", f"write {before} or {before}.0", span, fixes)
    if before.isdecimal() and stop.text(i - 2) == "," and stop.touches_number(i - 1) and stop.text(i - 3).isdecimal():
        span = stop.span_of(i - 3, i - 1)
        return _not_a_number(stop, span, span.text.replace(",", "."))
    if found[:1].isdecimal() and stop.offset == stop.span.start:
        match = _NUMBER_LIKE.match(stop.source.text, stop.offset)
        whole = match[0] if match else found
    elif found == "." and stop.touches_number(i + 1) and not after_digits:
        whole = "." + stop.text(i + 1)
    else:
        return None
    span = Span(stop.source, stop.offset, stop.offset + len(whole))
    if stop.expects("NUMBER"):
        return _not_a_number(stop, span, _number_meant(whole))
    if stop.expects("INT"):
        what = "with leading zeros" if whole.isdecimal() else f"that starts with '{whole[0]}'"
        return _quoted(stop, f"a label {what} must be quoted", span)
    return None


def _not_a_number(stop: Stop, span: Span, suggestion: str) -> Diagnostic:
    way_out, fixes = "numbers are written 1, 0.5, 1e-3", []
    if _NUMBER.fullmatch(suggestion):
        way_out, fixes = f"write {suggestion}", [Fix.write(span, suggestion)]
    return stop.fault("E110", f"'{span.text}' is not a number here", way_out, span, fixes)


def _quoted(stop: Stop, message: str, span: Span) -> Diagnostic:
    quoted = f'"{span.text}"'
    fixes = [] if stop.keyword == "labels" and stop.index <= 1 else [Fix.write(span, quoted)]  # labels cannot be there
    return stop.fault("E111", message, f"write {quoted}", span, fixes)


def _number_meant(whole: str) -> str:
    plain = whole.replace("_", "").lstrip("0").removesuffix(".")
    return plain if plain[:1].isdecimal() else f"0{plain}"


def _needs_quotes(stop: Stop) -> Diagnostic | None:
    """`basal-cell`, `0.5`, `and/or` as a label or a name."""
    i = stop.index
    inside = i < len(stop.tokens) and stop.offset > stop.tokens[i].start  # of a number such as 0.5e-3
    follows = stop.touches(i) and stop.found in ("-", "/", ".", "+", "*") and stop.tokens[i - 1].kind == "word"
    if not (inside or follows) or stop.expects("SLASH") or stop.after_number():
        return None
    start = stop.tokens[i if inside else i - 1].start
    match = _LABEL_LIKE.match(stop.source.text, start)
    whole = match[0] if match else ""
    if start + len(whole) <= stop.offset:
        return None
    span, sign = Span(stop.source, start, start + len(whole)), "." if inside else stop.found
    if i == 2 and stop.keyword != "labels":
        name = re.sub(r"[^0-9A-Za-z_]", "_", whole)
        fixes = [Fix.write(span, name)] if is_name(name) else []
        return stop.fault("E112", f"a declared name cannot contain '{sign}'", f"write {name}", span, fixes)
    what = "label" if stop.expected & {"RBRACE", "_COLON"} else "name"
    return _quoted(stop, f"a {what} that contains '{sign}' must be quoted", span)


def _reserved_name(stop: Stop) -> Diagnostic | None:
    """`loss sum = ...`, `let "my sum" = ...`: what cannot name a declaration."""
    if not stop.expects("NAME") or stop.expects("NUMBER") or not stop.found:
        return None
    word = stop.found
    if word in RESERVED:
        what = "an atom" if word in ATOM_NAMES else "a function"
        reason = "is a word of the language" if word in KEYWORDS else f"is the name of {what}"
        way_out = f"choose another name, such as my_{word}"
        return stop.fault("E112", f"'{word}' {reason} and cannot name a declaration", way_out)
    if stop.kind in ("string", "word"):
        way_out = "names are letters, digits and '_', without quotes, and do not start with a digit"
        return stop.fault("E112", f"{word} cannot name a declaration", way_out)
    return None


def _chain(stop: Stop) -> Diagnostic | None:
    """`a < b < c`"""
    if stop.found in _COMPARISONS and stop.expects("SLASH") and not stop.expects("COMPARE"):
        return stop.fault("E115", "comparisons do not chain", "write a < b and b < c")
    return None


def _equals(stop: Stop) -> Diagnostic | None:
    """`=` for `==` or `:`, and the other way round."""
    if stop.found == "=" and stop.expects("SLASH"):
        fixes = [Fix.write(stop.span, "==")] if stop.expects("COMPARE") else []
        return stop.fault("E116", "'=' is for declarations", "compare with '=='", fixes=fixes)
    if stop.found == "=" and stop.expects("_COLON"):
        way_out = f"write {stop.before}: {stop.text(stop.index + 1)}"
        message = f"expected {_wanted(stop)}{stop.after()}"
        return stop.fault("E116", message, way_out, fixes=[Fix.write(stop.span, ":")])
    if stop.found in ("==", ":") and stop.expects("_EQUALS"):
        message = f"a declaration is written with '=', not '{stop.found}'"
        return stop.fault("E116", message, "write '='", fixes=[Fix.write(stop.span, "=")])
    return None


def _incomplete_if(stop: Stop) -> Diagnostic | None:
    """An `if` without `then` or `else`, or put behind its value as in Python."""
    form = "write: if i then e else f"
    if stop.found == "if" and stop.expects("SLASH"):
        return stop.fault("E118", "'if' cannot follow a value", form)
    if stop.found in ("elif", "elsif", "elseif") and stop.expects("_ELSE"):
        message, fixes = f"there is no '{stop.found}' in this language", [Fix.write(stop.span, "else if")]
        return stop.fault("E118", message, "write 'else if'", fixes=fixes)
    for terminal, word in (("_THEN", "then"), ("_ELSE", "else")):
        if stop.expects(terminal) and stop.found in ("", ")", ",", "then", "else"):
            opened: list[int] = []
            for i in range(stop.index):
                if stop.text(i) == "if":
                    opened.append(i)
                elif stop.text(i) == "else" and opened:
                    opened.pop()
            way_out = f"{form}; 'else 0' adds nothing" if word == "else" else form
            fixes = [stop.add_before(" else 0")] if word == "else" and stop.found in ("", ")", ",") else []
            return stop.fault("E118", f"this 'if' has no '{word}'", way_out, stop.span_of(opened[-1]), fixes)
    return None


def _unknown_call(stop: Stop) -> Diagnostic | None:
    """`foo(x)`, `2(x + y)`, `path(h)` in an expression."""
    if stop.found == "path" and stop.expects("ATOM"):
        way_out = "declare it, distance d = path(h), and write diameter(d); or write diameter(h)"
        return stop.fault("E121", "'path' is not an expression", way_out)
    if stop.found != "(" or not stop.expects("SLASH"):
        return None
    name = stop.before
    if stop.tokens[stop.index - 1].kind != "word" or name[:1].isdecimal():
        fixes = [stop.add_before(" * ")]
        return stop.fault("E120", f"expected an operator{stop.after()}", "write '*' to multiply", fixes=fixes)
    return unknown_call(name, stop.span_of(stop.index - 1))


def unknown_call(name: str, span: Span) -> Diagnostic:
    """The error of a call `foo(x)` of an unknown function; `span` is that of its name."""
    suggestion = suggest(name, sorted(CALLED))
    way_out, fixes = suggestion.help, suggestion.fixes(span)
    if name in ("node", "level"):
        way_out, fixes = f"write h.{name}(...), h being the hierarchy", ()
    return Diagnostic("E121", span, f"there is no atom or function '{name}'", way_out, fixes=fixes)


def _nothing_inside(stop: Stop) -> Diagnostic | None:
    """`{ }` and `sum()`"""
    pair = stop.span_of(stop.index - 1, stop.index) if 0 < stop.index < len(stop.tokens) else stop.span
    if (stop.before, stop.found) == ("{", "}"):
        return stop.fault("E122", "there is nothing between '{' and '}'", "list at least one label", pair)
    if (stop.before, stop.found) == ("(", ")"):
        name = stop.text(stop.index - 2)
        way_out = "write what it applies to between them"
        if name in ATOM_NAMES:
            way_out += ", or leave them out if it applies to the whole set"
        return stop.fault("E122", "there is nothing between '(' and ')'", way_out, pair)
    return None


def _missing_comma(stop: Stop) -> Diagnostic | None:
    """`{ basal cell }`, `{ a: 1 b: 2 }`"""
    if not stop.expects("_COMMA", "RBRACE") or stop.kind not in ("word", "string"):
        return None
    previous = stop.tokens[stop.index - 1]
    way_out, fixes = "put a comma between them", [stop.add_before(",")]
    one_line = "\n" not in stop.source.text[previous.end : stop.offset]
    if previous.kind == stop.kind == "word" and one_line and not previous.text[0].isdecimal():
        quoted = f'"{previous.text} {stop.found}"'
        way_out += f", or quotes around a label of several words: {quoted}"
        fixes.append(Fix.write(stop.span_of(stop.index - 1, stop.index), quoted))
    return stop.fault("E117", f"expected {_wanted(stop)}{stop.after()}", way_out, fixes=fixes)


def _trailing(stop: Stop) -> Diagnostic | None:
    """Something after a complete statement."""
    if not stop.expects("$END") or not stop.found:
        return None
    fixes: tuple[Fix, ...] = ()
    if stop.expects("SLASH"):
        wanted, way_out = ["an operator"], "put an operator between them, such as '+' or 'and'"
    else:
        used = {token.text for token in stop.tokens[: stop.index]}
        words = [word for word in CLAUSES.get(stop.keyword, ()) if word.upper() in stop.expected and word not in used]
        wanted = [f"'{sign}'" for terminal, sign in (("_COMMA", ","), ("_IN", "in")) if stop.expects(terminal)]
        wanted += [f"'{word}'" for word in words]
        suggestion = suggest(stop.found, words)
        way_out = suggestion.help if suggestion.names else f"the form is {_FORMS[stop.keyword]}"
        fixes = suggestion.fixes(stop.span)
    message = f"expected {_either([*wanted, 'a new statement'])}{stop.after()}"
    return stop.fault("E114", message, way_out, fixes=fixes)


def _fallback(stop: Stop) -> Diagnostic:
    """What was expected, and the form of the statement."""
    message, found, fixes = f"expected {_wanted(stop)}{stop.after()}", stop.found, list[Fix]()
    keywords = [word for terminal in sorted(stop.expected) if (word := terminal.strip("_").lower()) in KEYWORDS]
    suggestion = suggest(found, keywords)
    if found not in RESERVED and suggestion.names:
        return stop.fault("E120", message, suggestion.help, fixes=suggestion.fixes(stop.span))
    if stop.expected == {"STRING"} and stop.kind == "word" and found not in RESERVED:
        path = stop.source.text[stop.offset :].split()[0]
        fixes = [Fix.write(Span(stop.source, stop.offset, stop.offset + len(path)), f'"{path}"')]
        return stop.fault("E120", message, f'write from "{path}"', fixes=fixes if path.isprintable() else [])
    return stop.fault("E120", message, _way_out(stop))


def _way_out(stop: Stop) -> str:
    found = stop.found
    if stop.expects("ATOM"):
        if found == "not":
            return "put it in parentheses: (not ...)"
        if found == "{":
            return "use labels in braces inside an atom: any({ a, b })"
        if found in KEYWORDS:
            return f"'{found}' is a word of the language; a declared name cannot be one"
        return "an expression is a number, a name, an atom such as size or sum(c), or made of these"
    if stop.expects("PART"):
        return "write F.category, h.level.node, h.node(n) or h.level(2); any part may be quoted"
    if stop.expected & {"_THEN", "_ELSE"}:
        return "write if i then e else f"
    if stop.expects("SLASH"):
        return "put a comma or an operator between them" if stop.expects("_COMMA") else "put an operator between them"
    return f"the form is {_FORMS[stop.keyword]}"


def _wanted(stop: Stop) -> str:
    """The expected terminals in words."""
    rest, words = set(stop.expected), []
    for terminal, phrase, absorbed in _PHRASES:
        if terminal in rest:
            words.append(phrase)
            rest.difference_update(absorbed.split())
    if stop.expects("FROM", "INT"):
        words[words.index("a whole number")] = "a range such as 0..99"
    if stop.expects("_COLON"):
        follows = {"costs": "a cost", "categories": "its labels"}.get(stop.keyword, "a number")
        words[words.index("':'")] = f"':' and {follows}"
    return _either(words)


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


_RULES = (
    _unknown_statement,
    _bad_range,
    _malformed_number,
    _needs_quotes,
    _reserved_name,
    _chain,
    _equals,
    _incomplete_if,
    _unknown_call,
    _nothing_inside,
    _missing_comma,
    _trailing,
    _fallback,
)
