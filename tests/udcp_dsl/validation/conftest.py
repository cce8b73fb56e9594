"""What is validated here is seldom a promise, and seldom coverage."""

from __future__ import annotations

import pytest

from udcp_dsl.testing.coverage import CLASSIFIERS
from udcp_dsl.validation import coverage


@pytest.fixture(autouse=True)
def hardly_any_promises(few_promises: None) -> None:
    pass


@pytest.fixture
def every_classifier() -> None:
    """For a test in which validation is to try coverage with every kind of classifier."""


@pytest.fixture(autouse=True)
def few_classifiers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage is tried with three kinds of classifiers, in a fifth of the time, but for `every_classifier`."""
    if "every_classifier" not in request.fixturenames:
        kinds = ("overconfident", "saturated", "tied")
        monkeypatch.setattr(coverage, "CLASSIFIERS", {kind: CLASSIFIERS[kind] for kind in kinds})
