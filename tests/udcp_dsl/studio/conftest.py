"""A studio in a folder of its own, and a page that speaks to it in process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra studio is not installed")
from starlette.testclient import TestClient

from udcp_dsl.studio.app import application
from udcp_dsl.studio.place import open_spec
from udcp_dsl.studio.studio import Studio

PORT, TOKEN = 8765, "secret-of-this-test"
SPEC = """# Pets: what a set of them takes.
labels { cat, dog, wolf, bear, ant, bee }
hierarchy kin { mammal { cat, canine { dog, wolf }, bear }, insect { ant, bee } }
param coherence = 2 in [0, 10]
loss plain = size
loss care = coherence * count(kin.level(1)) + 0.5 * size
"""


@dataclass
class Page:
    """What a browser's page does: it asks, changes, and waits for what follows."""

    client: TestClient
    studio: Studio
    folder: Path
    views: dict[str, Any] = field(default_factory=dict)
    version: int = 0

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(f"/{TOKEN}/api/{path}", json=body)

    def change(self, **what: Any) -> Any:
        return self.post("change", what)

    def until(self, holds: Callable[[dict[str, Any]], Any], seconds: float = 120.0) -> dict[str, Any]:
        """Waits until the views say so, and gives them."""
        end = time.monotonic() + seconds
        while True:
            answer = self.client.get(f"/{TOKEN}/api/views", params={"since": self.version}).json()
            self.version = answer["version"]
            self.views |= answer["views"]
            assert not self.views.get("fault"), self.views["fault"]
            try:
                if holds(self.views):
                    return self.views
            except (KeyError, TypeError):  # not there yet
                pass
            assert time.monotonic() < end, {name: str(view)[:300] for name, view in self.views.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pets.loss").write_text(SPEC, encoding="utf-8")
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    studio = Studio(*open_spec(folder / "pets.loss"))
    studio.change({"oracles": ["price", "lac"]})
    with TestClient(application(studio, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}") as client:
        yield Page(client, studio, folder)
    studio.close()
