"""A pytest plugin: `pytest --udcp specs/*.loss` validates every loss of every spec, each as a test of its own.

Nothing is done, and nothing of the compiler imported, without `--udcp`. Labels that a spec leaves to be given, and
parameters, are not set here: such specs are validated by `udcp validate` or in a test that calls `validate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("udcp", "specs of udcp_dsl")
    group.addoption("--udcp", action="store_true", help="Validate every .loss file, each of its losses as a test.")
    group.addoption("--udcp-cases", type=int, default=1, metavar="N", help="Rounds of generated cases (default 1).")
    group.addoption("--udcp-seed", type=int, default=0, metavar="N", help="Of all that is generated (default 0).")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".loss" and parent.config.getoption("--udcp"):
        return SpecFile.from_parent(parent, path=file_path)
    return None


class SpecFile(pytest.File):
    """A spec: one test for each of its losses, or a single one where it does not compile."""

    def collect(self) -> Iterator[pytest.Item]:
        from udcp_dsl.diagnostics import SpecError
        from udcp_dsl.loss import load

        try:
            names = load(self.path).losses
        except (SpecError, OSError):  # told when the test is run
            names = (self.path.stem,)
        for name in names:
            yield SpecItem.from_parent(self, name=name)


class Invalid(Exception):
    """What a validation found, as text."""


class SpecItem(pytest.Item):
    """One loss of a spec."""

    def runtest(self) -> None:
        import warnings

        from udcp_dsl.diagnostics import SpecError, SpecWarning
        from udcp_dsl.loss import load
        from udcp_dsl.validation import validate

        cases, seed = (self.config.getoption(name) for name in ("--udcp-cases", "--udcp-seed"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SpecWarning)
                several = load(self.path)
                loss = load(self.path, loss=self.name) if len(several.losses) > 1 else several
        except (SpecError, OSError) as error:
            raise Invalid(str(error)) from None
        validation = validate(loss, cases=cases, seed=seed)
        if not validation.ok:
            raise Invalid("\n".join(_told(stage, verdict) for stage, verdict in validation.failures))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Invalid):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _told(stage: Any, verdict: Any) -> str:
    example = "" if verdict.counter_example is None else f"\n  {verdict.counter_example.text}"
    return f"{stage.name}: {verdict.claim} fails{example}"
