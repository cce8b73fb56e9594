"""Cases of a spec: what its author expects, written in NAME.cases beside it and checked by every validation.

    case "cancer costs more than moles": cost { melanoma } > cost { nevus, wart }
    case "as the bill says": cost { melanoma } == 8.01
    case "the gap" of triage with coherence = 3: cost { melanoma, nevus } >= 12
    case "left open": row { melanoma: 0.6, nevus: 0.4 } by price { anchor: 70.5 } at 71.8 holds { melanoma, nevus }
    case "not for this": row { wart: 0.9, nevus: 0.1 } by lac at -0.5 lacks { nevus }

`with` sets parameters and, if the loss reads inputs, those of the row: `with km = 12`.
A row lists a classifier's probabilities; labels that are not named have 0. `by` names the oracle, with its options,
and `at` the threshold, so a case depends only on the spec. Costs are compared as in the language.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from udcp_dsl.diagnostics import Diagnostic, InputError, Source, Span, SpecError, did_you_mean
from udcp_dsl.language.words import is_bare
from udcp_dsl.loss import Loss

T = TypeVar("T")

ENDING = ".cases"

# Values this close are equal, as in the language.
NEAR = 1e-9
COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])
    |(?P<sign>>=|<=|==|[{}:,=<>])|(?P<word>\w+)|(?P<wrong>.)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class CostCase:
    """The cost of a set, compared with that of another or with a number."""

    members: tuple[str, ...]
    sign: str
    other: tuple[str, ...] | float


@dataclass(frozen=True)
class RowCase:
    """The set of a row, by an oracle at threshold `tau`, contains all `members`; with `holds` False, none of them."""

    p: Mapping[str, float]
    oracle: str
    options: Mapping[str, object]
    tau: float
    members: tuple[str, ...]
    holds: bool = True


@dataclass(frozen=True)
class Case:
    """One case. By default it is about the last loss of the spec, with the parameters of the spec.

    `params` also holds the inputs of the row, if the loss reads any.
    """

    name: str
    claim: CostCase | RowCase
    loss: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)
    span: Span | None = field(default=None, compare=False)


def cases_beside(spec: str | Path) -> tuple[Case, ...]:
    """The cases in the file beside a spec; empty if there is no such file. Raises SpecError if it cannot be read."""
    path = Path(spec).with_suffix(ENDING)
    if not path.is_file():
        return ()
    from udcp_dsl.language.parse import read_source

    return parse_cases(read_source(path))


def parse_cases(source: Source) -> tuple[Case, ...]:
    """Parse the cases of a text; raises SpecError for the first error.

    >>> (case,) = parse_cases(Source("t.cases", 'case "dear": cost { wolf } > cost { cat, "big dog" }'))
    >>> case.name, case.claim.other
    ('dear', ('cat', 'big dog'))
    """
    return tuple(_CaseParser(source).cases())


def case_text(case: Case) -> str:
    """The text of a case, as in a file; `parse_cases` reads it back.

    >>> case_text(Case("dear", CostCase(("wolf",), ">", ("cat", "big dog"))))
    'case "dear": cost { wolf } > cost { cat, "big dog" }'
    """
    of = "" if case.loss is None else f" of {_name(case.loss)}"
    params = ", ".join(f"{_name(name)} = {value!r}" for name, value in case.params.items())
    lead = f"case {_string(case.name)}{of}{f' with {params}' if params else ''}: "
    claim = case.claim
    if isinstance(claim, CostCase):
        other = f"{claim.other!r}" if isinstance(claim.other, float) else f"cost {set_text(claim.other)}"
        return f"{lead}cost {set_text(claim.members)} {claim.sign} {other}"
    p = ", ".join(f"{_name(label)}: {value!r}" for label, value in claim.p.items())
    options = ", ".join(f"{_name(name)}: {_option(value)}" for name, value in claim.options.items())
    by = f"{_name(claim.oracle)}{f' {{ {options} }}' if options else ''} at {claim.tau!r}"
    return f"{lead}row {{ {p} }} by {by} {'holds' if claim.holds else 'lacks'} {set_text(claim.members)}"


def cases_of(loss: Loss, cases: Sequence[Case]) -> list[Case]:
    """The cases about this loss; a case that names no loss is about the last one of its spec."""
    return [case for case in cases if (case.loss or loss.losses[-1]) == loss.name]


def at_values(loss: Loss, values: Mapping[str, float]) -> Loss:
    """The loss with these values of parameters and, if it reads inputs, of the inputs of one row.

    Raises InputError if a name is neither or an input has no value; SpecError if a value is outside its range.
    """
    unknown = [name for name in values if name not in loss.params and name not in loss.declared_inputs]
    if unknown:
        known = did_you_mean(unknown[0], [*loss.params, *loss.declared_inputs])
        raise InputError(f"the spec has no parameter or input {unknown[0]!r}" + (f"; {known}" if known else ""))
    for name, x in loss.inputs.items():
        if name not in values:
            example = x.low if x.width else x.example
            raise InputError(f"the loss reads the input {name!r}: give it, such as `with {name} = {example:g}`")
    params = {name: value for name, value in values.items() if name in loss.params}
    made = loss.with_params(**params) if params else loss
    row = {name: np.full(x.width or (), values[name]) for name, x in loss.inputs.items()}  # equal costs for all labels
    return made.at(row) if row else made


def _name(text: str) -> str:
    return text if is_bare(text) else _string(text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def set_text(labels: Collection[str] | Iterator[str]) -> str:
    inside = ", ".join(map(_name, labels))
    return f"{{ {inside} }}" if inside else "{ }"


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else _string(str(value))


class _CaseParser:
    """Parser of a text of cases, by recursive descent."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = [
            (match.lastgroup or "", match[0], match.start(), match.end())
            for match in _TOKEN.finditer(source.text)
            if match.lastgroup != "space"
        ]
        self._at = 0

    def cases(self) -> Iterator[Case]:
        while self._at < len(self._tokens):
            start = self._tokens[self._at][2]
            self._expect_word("case")
            name = self._text() if self._kind() == "string" else f"line {self._source.position(start)[0]}"
            loss = self._label() if self._accept("of") else None
            params: dict[str, float] = {}
            if self._accept("with"):
                while True:
                    key = self._label()
                    self._expect_sign("=")
                    params[key] = self._number()
                    if not self._accept(","):
                        break
            self._expect_sign(":")
            claim = self._cost() if self._accept("cost") else self._row()
            span = Span(self._source, start, self._tokens[self._at - 1][3])
            yield Case(name, claim, loss, params, span)

    def _cost(self) -> CostCase:
        members = self._members()
        sign = self._expect("sign", "a comparison: > >= < <= ==")
        if sign not in COMPARED:
            self._fault("E703", f"{sign!r} is not a comparison", "compare by > >= < <= or ==", back=1)
        return CostCase(members, sign, self._members() if self._accept("cost") else self._number())

    def _row(self) -> RowCase:
        self._expect_word("row", "cost or row")
        p = {label: float(self._finite(value)) for label, value in self._pairs()}
        self._expect_word("by")
        oracle = self._label()
        options = {key: _value(kind, text) for key, (kind, text) in self._pairs()} if self._peek_is("{") else {}
        self._expect_word("at")
        tau = self._number()
        holds = self._accept("holds")
        if not holds:
            self._expect_word("lacks", "holds or lacks")
        return RowCase(p, oracle, options, tau, self._members(), holds)

    def _listed(self, item: Callable[[], T]) -> Iterator[T]:
        """The items of a list in braces."""
        self._expect_sign("{")
        while not self._accept("}"):
            yield item()
            if not self._accept(","):
                self._expect_sign("}")
                return

    def _pairs(self) -> Iterator[tuple[str, tuple[str, str]]]:
        seen = set[str]()
        for label in self._listed(self._label):
            if label in seen:
                self._fault("E704", f"{label!r} is given twice", "give it once", back=1)
            seen.add(label)
            self._expect_sign(":")
            kind, text = self._kind(), self._peek()
            if kind not in ("number", "string", "word"):
                self._fault("E702", "a value is expected", "write a number")
            self._at += 1
            yield label, (kind, text)

    def _finite(self, token: tuple[str, str]) -> float:
        kind, text = token
        if kind != "number" or not math.isfinite(float(text)):
            self._fault("E702", f"{text} is not a number", "write a finite number, such as 0.4", back=1)
        return float(text)

    def _members(self) -> tuple[str, ...]:
        return tuple(self._listed(self._label))

    def _label(self) -> str:
        if self._kind() == "string":
            return self._text()
        if self._kind() == "number" and is_bare(self._peek()):
            return self._expect("number", "")
        return self._expect("word", "a name")

    def _text(self) -> str:
        text = self._expect("string", "a string in double quotes")
        try:
            return str(json.loads(text))
        except ValueError:
            self._fault("E702", f"{text} is not a string", "strings are written as in JSON", back=1)

    def _number(self) -> float:
        return self._finite(("number", self._expect("number", "a number")))

    def _expect_word(self, word: str, expected: str | None = None) -> None:
        if not self._accept(word):
            self._fault(
                "E701",
                f"{expected or repr(word)} is expected",
                'write: case "why": cost { a } > cost { b }, or row { a: 1 } by lac at -0.5 holds { a }',
            )

    def _expect_sign(self, sign: str) -> None:
        if not self._accept(sign):
            self._fault("E701", f"{sign!r} is expected", "")

    def _accept(self, word: str) -> bool:
        if self._peek_is(word):
            self._at += 1
            return True
        return False

    def _peek_is(self, word: str) -> bool:
        return self._kind() in ("word", "sign") and self._peek() == word

    def _expect(self, kind: str, expected: str) -> str:
        if self._kind() != kind:
            self._fault("E701", f"{expected} is expected", "")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else "end"

    def _peek(self) -> str:
        return self._tokens[self._at][1]

    def _fault(self, code: str, message: str, way_out: str, back: int = 0) -> NoReturn:
        end = len(self._source.text)
        at = self._at - back
        start, stop = self._tokens[at][2:] if at < len(self._tokens) else (end, end)
        raise SpecError([Diagnostic(code, Span(self._source, start, stop), message, way_out)])


def _value(kind: str, text: str) -> object:
    """The value of an option: an int or float, as written, a bool, or a string."""
    if kind == "number":
        return int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)
    if kind == "string":
        return str(json.loads(text))
    return {"true": True, "false": False}.get(text, text)
