"""The examples in docstrings are tests; where an extra is not installed, those of what needs it are left out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
NEEDED = {"udcp_dsl/torch": "torch", "udcp_dsl/datasets/torch_texts.py": "torch", "udcp_dsl/sklearn.py": "sklearn"}
NEEDED |= {f"udcp_dsl/studio/{name}.py": "starlette" for name in ("app", "serving")}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    needed = [package for place, package in NEEDED.items() if collection_path.is_relative_to(ROOT / place)]
    return True if any(find_spec(package) is None for package in needed) else None
