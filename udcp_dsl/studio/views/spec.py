"""A text as the page shows it: what is wrong with it, its parameters, what is proved of it, which oracles take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from udcp_dsl.compile.passes import compile_spec
from udcp_dsl.compile.sources import Files
from udcp_dsl.diagnostics import Diagnostic, InputError, Source, Span, SpecError
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.declaration import Refusal
from udcp_dsl.prediction.oracle import declaration_of, oracle_names
from udcp_dsl.studio.place import Place


@dataclass(frozen=True)
class Slider:
    """A parameter: the number that the spec gives it, the one it has now, its range, and where the number stands."""

    name: str
    default: float
    value: float
    low: float | None
    high: float | None
    span: Span

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "default": self.default,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "at": list(_offsets(self.span)),
        }


@dataclass(frozen=True)
class Checked:
    """A text that was compiled; `loss` is None where it has faults."""

    loss: Loss | None
    diagnostics: tuple[Diagnostic, ...]
    sliders: tuple[Slider, ...]

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the page shows of it."""
        from udcp_dsl.expression.explain import facts_as_dict

        found: dict[str, Any] = {
            "ok": self.loss is not None,
            "diagnostics": [_diagnostic(x) for x in self.diagnostics],
            "params": [slider.as_data() for slider in self.sliders],
        }
        if self.loss is not None:
            found |= {
                "loss": self.loss.name,
                "losses": list(self.loss.losses),
                "K": self.loss.K,
                "terms": list(self.loss.terms(())),
                "oracles": [_oracle(name, self.loss) for name in oracle_names()],
                **facts_as_dict(self.loss),
            }
        return found


def check(text: str, place: Place, moved: Mapping[str, tuple[float, float]], loss: str | None) -> Checked:
    """Compile a text in its place.

    `moved` are the sliders that were moved: the number now, and the one that the spec gave when that was done. Where
    the spec gives another since, or the parameter is gone, the text has the last word.
    """
    from udcp_dsl.expression.explain import free_labels_warning

    source = Source(place.name, text)
    sliders = _sliders(source, moved)
    params = {s.name: s.value for s in sliders if s.value != s.default}
    # Not by `loads`, which warns: threads share what is done with warnings.
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
    return Checked(made, (*made.warnings, *([] if free is None else [free])), sliders)


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
        found.append(Slider(name, default, now, low, high, declared.value.span))
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
        "time": str(way.time),
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
