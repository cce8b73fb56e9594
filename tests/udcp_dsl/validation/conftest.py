"""What is validated here is seldom a promise."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def hardly_any_promises(few_promises: None) -> None:
    pass
