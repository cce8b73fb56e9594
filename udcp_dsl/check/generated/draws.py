"""Draws from cached strategies: a spec needs hundreds, and making them would take most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

_COIN = st.booleans()


class Draws:
    """The draws that a spec is made of."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def coin(self) -> bool:
        return self.draw(_COIN)

    def number(self, least: int, most: int) -> int:
        return self.draw(_numbers(least, most))

    def pick(self, options: Sequence[T]) -> T:
        words = options if isinstance(options, tuple) and isinstance(options[0], str) else None
        return options[self.draw(_places(len(options), words))]

    def several(self, of: st.SearchStrategy[T], least: int, most: int, *, unique: bool = False) -> list[T]:
        """`least` to `most` draws of a strategy, which must be a lasting object, as lists of it are cached."""
        return self.draw(_lists(of, least, most, unique))

    def some(self, below: int) -> list[int]:
        """One or more of the numbers from 0 to `below` - 1, in ascending order."""
        return sorted(self.draw(_subsets(below)))

    def shuffled(self, options: Sequence[T]) -> list[T]:
        return [options[i] for i in self.draw(_orders(len(options)))]


@cache
def _numbers(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


@lru_cache(maxsize=1000)
def _places(many: int, words: tuple[Any, ...] | None) -> st.SearchStrategy[int]:
    """With `words`, hypothesis recognises draws of one kind and can replace one by another."""
    return st.sampled_from(range(many)) if words is None else st.sampled_from(words).map(words.index)


@cache
def _lists(of: st.SearchStrategy[Any], least: int, most: int, unique: bool) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, min_size=least, max_size=most, unique=unique)


@cache
def _subsets(below: int) -> st.SearchStrategy[set[int]]:
    return st.sets(_numbers(0, below - 1), min_size=1)


@cache
def _orders(n: int) -> st.SearchStrategy[list[int]]:
    return st.permutations(range(n))
