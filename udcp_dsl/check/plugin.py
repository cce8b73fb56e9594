"""A pytest plugin: `pytest --udcp specs/*.loss` validates every loss of every spec, each as a test of its own.

Each case of a file NAME.cases beside a spec is a test, too (`udcp_dsl.check.cases`); `pytest --udcp NAME.cases`
runs only these.

Without `--udcp`, the plugin does nothing and does not import the compiler. It cannot set labels or parameters: use
`udcp validate`, or a test that calls `validate`, for specs that need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("udcp", "specs of udcp_dsl")
    group.addoption("--udcp", action="store_true", help="Validate every .loss file, each of its losses as a test.")
    group.addoption("--udcp-cases", type=int, default=1, metavar="N", help="Rounds of generated cases (default: 1).")
    group.addoption("--udcp-seed", type=int, default=0, metavar="N", help="Seed of generated cases (default: 0).")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".loss" and parent.config.getoption("--udcp"):
        return SpecFile.from_parent(parent, path=file_path)
    if file_path.suffix == ".cases" and parent.config.getoption("--udcp") and parent.session.isinitpath(file_path):
        return CasesFile.from_parent(parent, path=file_path)
    return None


class SpecFile(pytest.File):
    """A spec: one test for each of its losses (a single one if it does not compile), and one for each case."""

    def collect(self) -> Iterator[pytest.Item]:
        from udcp_dsl.diagnostics import SpecError
        from udcp_dsl.loss import load

        try:
            names = load(self.path).losses
        except (SpecError, OSError):  # reported when the test is run
            names = (self.path.stem,)
        for name in names:
            yield SpecItem.from_parent(self, name=name)
        yield from _cases(self)


class CasesFile(pytest.File):
    """A .cases file: the cases of the spec beside it."""

    def collect(self) -> Iterator[pytest.Item]:
        return _cases(self)


def _cases(parent: pytest.File) -> Iterator[pytest.Item]:
    """A test for each case, or a single one if they cannot be read."""
    from udcp_dsl.diagnostics import SpecError
    from udcp_dsl.fit.cases import cases_beside

    try:
        cases = cases_beside(parent.path)
    except SpecError as error:
        yield CaseItem.from_parent(parent, name="cases", case=None, fault=str(error))
        return
    for case in cases:
        yield CaseItem.from_parent(parent, name=f"case {case.name}", case=case)


class Invalid(Exception):
    """What a validation found, as text."""


class SpecItem(pytest.Item):
    """One loss of a spec."""

    def runtest(self) -> None:
        from udcp_dsl.check.run import validate

        cases, seed = (self.config.getoption(name) for name in ("--udcp-cases", "--udcp-seed"))
        several = _loaded(self.path)
        loss = _loaded(self.path, self.name) if len(several.losses) > 1 else several
        validation = validate(loss, cases=cases, seed=seed)
        if not validation.ok:
            raise Invalid("\n".join(_failure_text(stage, verdict) for stage, verdict in validation.failures))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Invalid):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


class CaseItem(SpecItem):
    """One case of a spec; `fault` says why it cannot be read."""

    def __init__(self, *, case: Any, fault: str = "", **rest: Any) -> None:
        super().__init__(**rest)
        self._case, self._fault = case, fault

    def runtest(self) -> None:
        from udcp_dsl.check.cases import check_case

        if self._case is None:
            raise Invalid(self._fault)
        verdict = check_case(_loaded(self.path.with_suffix(".loss"), self._case.loss), self._case)
        if verdict.counter_example is not None:
            raise Invalid(f"{self._case.span}: {verdict.claim} fails\n  {verdict.counter_example.text}")


def _loaded(path: Path, name: str | None = None) -> Loss:
    """A loss of a spec; Invalid says why it does not compile."""
    from udcp_dsl.diagnostics import InputError, SpecError, SpecWarning, keeping_warnings
    from udcp_dsl.loss import load

    try:
        with keeping_warnings(SpecWarning):
            return load(path, loss=name)
    except (SpecError, InputError, OSError) as error:
        raise Invalid(str(error)) from None


def _failure_text(stage: Any, verdict: Any) -> str:
    example = "" if verdict.counter_example is None else f"\n  {verdict.counter_example.text}"
    return f"{stage.name}: {verdict.claim} fails{example}"
