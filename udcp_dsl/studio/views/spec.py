"""A text as the page shows it: its errors, its parameters, what is proved about it, and the oracles that apply."""

from __future__ import annotations

import shlex
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
from udcp_dsl.predict.applicability import applicability
from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.predict.oracle import oracle_names
from udcp_dsl.studio.spec_folder import SpecFolder
from udcp_dsl.studio.state import State


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
        own = {name: value for name, value in vars(self).items() if name != "span"}
        return {**own, "at": list(_offsets(self.span))}


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
    found = applicability(name, loss)
    says = found.declaration
    return {
        "name": name,
        "applies": found.applies,
        "why": f"{says.does}; {found.why}" if says is not None and found.applies else found.why,
        "exact": found.exact,
        "solves": says is not None and says.solves,
        "time": None if found.time is None else found.time.per_row,
    }


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    start, end = _offsets(diagnostic.span)
    return {**diagnostic.as_dict(), "from": start, "to": end}


def _offsets(span: Span) -> tuple[int, int]:
    """Start and end as a browser counts: characters beyond U+FFFF are two."""
    text = span.source.text
    start = len(text[: span.start].encode("utf-16-le", "surrogatepass")) // 2
    return start, start + len(text[span.start : span.end].encode("utf-16-le", "surrogatepass")) // 2


def copied(state: State, loss: str, chosen: bool, moved: Mapping[str, float], oracle: str) -> dict[str, str]:
    """A command and Python code to copy, with what the page shows.

    `chosen`: whether the loss is not the last of the spec; `moved`: parameters that differ from the spec's.
    """
    spec, alpha = state.place.name, show_level(state.alpha)
    command = ["udcp", "compare", spec, "--probs", "probs.npy", "--truth", "truth.npy", "--alpha", alpha]
    command += ["--loss", loss] if chosen else []
    for name, value in moved.items():
        command += ["--param", f"{name}={value:g}"]
    params = f", params={dict(moved)!r}" if moved else ""
    other = f", loss={loss!r}" if chosen else ""
    python = f"""import numpy as np

import udcp_dsl as udcp

loss = udcp.load({spec!r}{params}{other})
predictor = udcp.SetPredictor(loss, oracle={oracle!r}, alpha={alpha})
predictor.calibrate(np.load("probs.npy"), np.load("truth.npy"))  # columns in the order of loss.labels
sets = predictor.predict_set(np.load("new_probs.npy"))
"""
    return {"command": shlex.join(command), "python": python}
