"""What is validated here is seldom a promise, and seldom coverage."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def seldom(few_promises: None, few_classifiers: None) -> None:
    pass
