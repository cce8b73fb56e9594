"""A text as the page shows it: its errors, its parameters, what is proved about it, and the oracles that apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from udcp_dsl.compile.passes import compile_spec
from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import Diagnostic, InputError, Source, Span, SpecError
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.loss import Loss
from udcp_dsl.predict.oracle import Refusal, declaration_of, oracle_names
from udcp_dsl.studio.spec_folder import SpecFolder


@dataclass(frozen=True)
class Slider:
    """A parameter: its value in the spec and the place of that value, its current value, and its range."""

    name: str
    default: float
    value: float
    low: float | None
    high: float | None
    span: Span
    about: str = ""  # the comment after it
    read: bool = True  # whether the chosen loss reads it

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "default": self.default,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "about": self.about,
            "read": self.read,
            "at": list(_offsets(self.span)),
        }


@dataclass(frozen=True)
class Checked:
    """A text that was compiled; `loss` is None if it has errors."""

    loss: Loss | None
    diagnostics: tuple[Diagnostic, ...]
    sliders: tuple[Slider, ...]

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the page shows of the text."""
        from udcp_dsl.expression.explain import facts_as_dict

        found: dict[str, Any] = {
            "ok": self.loss is not None,
            "diagnostics": [_diagnostic(x) for x in self.diagnostics],
            "params": [slider.as_data() for slider in self.sliders],
        }
        if self.loss is not None:
            found |= {
                "loss": self.loss.name,
                "unit": self.loss.unit,
                "losses": list(self.loss.losses),
                "K": self.loss.K,
                "terms": list(self.loss.example.terms(())),
                "oracles": [_oracle(name, self.loss) for name in oracle_names()],
                **facts_as_dict(self.loss),
            }
        return found


def check(text: str, place: SpecFolder, moved: Mapping[str, tuple[float, float]], loss: str | None) -> Checked:
    """Compile a text in its place.

    `moved` are the moved sliders: their values, and the values that the spec gave when they were moved. If the spec now
    gives another value, or the parameter is gone, the text takes precedence.
    """
    from udcp_dsl.expression.explain import free_labels_warning
    from udcp_dsl.spec_warnings import spec_warnings

    source = Source(place.name, text)
    sliders = _sliders(source, moved)
    params = {s.name: s.value for s in sliders if s.value != s.default}
    # Not by `loads`, which warns: threads share the filters of warnings.
    files = Files(None if place.carried is not None else place.folder, contents=place.carried)
    try:
        made = Loss(compile_spec(source, files, params))
        if loss in made.losses and loss != made.name:
            made = Loss(compile_spec(source, files, params, loss=loss))
    except SpecError as error:
        return Checked(None, error.diagnostics, sliders)
    except InputError as error:
        return Checked(None, (Diagnostic("E200", Span(source, 0, 0), str(error)),), sliders)
    free = free_labels_warning(made)
    read = _names_read(source, made.name)
    sliders = tuple(replace(slider, read=slider.name in read) for slider in sliders)
    meant = (found.diagnostic for found in spec_warnings(made))
    return Checked(made, (*made.warnings, *([] if free is None else [free]), *meant), sliders)


def same_meaning(one: Loss, other: Loss) -> bool:
    """Whether two texts differ only in comments and layout, and read the same files with the same parameters."""
    if (one.name, one.labels, one.params, one.files) != (other.name, other.labels, other.params, other.files):
        return False
    return parse(one.source)[0] == parse(other.source)[0]


def _names_read(source: Source, loss: str) -> set[str]:
    """The declared names that a loss reads, directly or through others."""
    spec, _ = parse(source)
    named = {declared.name.text: declared for declared in spec.declarations if not isinstance(declared, ast.Labels)}
    waiting, found = [loss], {loss}
    # Limits hold for every loss of the spec.
    waiting += [name for name, declared in named.items() if type(declared).__name__ == "Limit"]
    while waiting:
        declared = named.get(waiting.pop())
        fresh = set() if declared is None else {name.text for name in _names_in(declared)} - found
        found |= fresh
        waiting += fresh
    return found


def _names_in(node: object) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _names_in(part)
    elif is_dataclass(node) and not isinstance(node, Span):
        for part in fields(node):
            yield from _names_in(getattr(node, part.name))


def _sliders(source: Source, moved: Mapping[str, tuple[float, float]]) -> tuple[Slider, ...]:
    spec, _ = parse(source)
    found = []
    for declared in spec.declarations:
        if not isinstance(declared, ast.Param):
            continue
        name, default = declared.name.text, declared.value.value
        low, high = (None if end is None else end.value for end in (declared.low, declared.high))
        value, then = moved.get(name, (default, default))
        fits = (low is None or low <= value) and (high is None or value <= high)
        now = value if then == default and fits else default
        behind = source.text[declared.span.end :].partition("\n")[0].strip()
        about = behind.lstrip("# ") if behind.startswith("#") else ""
        found.append(Slider(name, default, now, low, high, declared.value.span, about))
    return tuple(found)


def _oracle(name: str, loss: Loss) -> dict[str, Any]:
    says = declaration_of(name)
    if says is None:
        return {"name": name, "applies": True, "why": "it says nothing of itself", "solves": False, "time": None}
    way = says.way(loss)
    if isinstance(way, Refusal):
        return {"name": name, "applies": False, "why": way.why, "solves": says.solves, "time": None}
    return {
        "name": name,
        "applies": True,
        "why": f"{says.does}; {way.algorithm}",
        "exact": way.exact,
        "solves": says.solves,
        "time": way.time.per_row,
    }


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    start, end = _offsets(diagnostic.span)
    line, column = diagnostic.span.source.position(diagnostic.span.start)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "from": start,
        "to": end,
        "line": line,
        "column": column,
    }


def _offsets(span: Span) -> tuple[int, int]:
    """Start and end as a browser counts: characters beyond U+FFFF are two."""
    text = span.source.text
    start = len(text[: span.start].encode("utf-16-le", "surrogatepass")) // 2
    return start, start + len(text[span.start : span.end].encode("utf-16-le", "surrogatepass")) // 2
