"""What is validated here is seldom a promise: fewer trials of those, but where they are what is tried."""

from __future__ import annotations

import pytest

from udcp_dsl.validation import promises


@pytest.fixture(autouse=True)
def few_trials(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.path.name.endswith("promises.py"):
        monkeypatch.setattr(promises, "_TRIALS", promises._FEWEST)
