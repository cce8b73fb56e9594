"""What several test files share."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


@pytest.fixture(scope="session")
def mutate() -> Callable[[Sequence[Any], Sequence[Any], random.Random], list[Any]]:
    """(pieces, pool, rng) -> the pieces with one to four changes, new ones taken from the pool."""
    return _mutated


def _mutated(pieces: Sequence[T], pool: Sequence[T], rng: random.Random) -> list[T]:
    """One to four changes of a sequence."""
    found = list(pieces)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not found:
            break
        i, j = rng.randrange(len(found)), rng.randrange(len(found))
        match rng.choice(("drop", "swap", "neighbours", "double", "replace", "insert", "repeat", "cut")):
            case "drop":
                del found[i]
            case "swap":
                found[i], found[j] = found[j], found[i]
            case "neighbours":
                found[i : i + 2] = found[i : i + 2][::-1]
            case "double":
                found.insert(i, found[i])
            case "replace":
                found[i] = rng.choice(pool)
            case "insert":
                found.insert(i, rng.choice(pool))
            case "repeat":
                found[i] = found[j]
            case "cut":
                del found[i : i + rng.randrange(1, 12)]
    return found
