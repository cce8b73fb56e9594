"""Well-formed specs and data files with pieces dropped, swapped, doubled and replaced: never a traceback.

What comes out either compiles, and then means what its interpreter says, or is a diagnostic with a place inside the
file. The same ones in every run; the slow run tries many more, and new ones.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import specs
from udcp_dsl.diagnostics import Diagnostic
from udcp_dsl.language.words import RESERVED

if TYPE_CHECKING:
    from tests.conftest import ExamplesOf, Sizes

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|\s+|[<>=]=|\.\.|.', re.DOTALL)
_SIGNS = (
    "{ } ( ) [ ] , : . .. = == >= <= > < + - * / ^ # ; & | ! != ** ' \" \\ \n \t \r \0 \x85 \u2028 \ufeff é 漢".split(
        " "
    )
)
_VALUES = '0 1 7 -1 0.5 .5 1. 007 1e308 1e-320 1e999 nan inf 1_000 ٣ null "" "a" "\\u0000" "\\ud800" "../x.csv"'.split()
_NAMES = "a b h1 c1 F1 l1 i1 p1 root level node true None __class__".split()
_POOL = [*sorted(RESERVED), *_SIGNS, *_VALUES, *_NAMES, ""]


@dataclass(frozen=True)
class Case:
    """A spec as bytes, what it reads, and the labels where it declares none."""

    name: str
    text: bytes
    files: Mapping[str, bytes]
    labels: tuple[str, ...] | None = None


@pytest.fixture(scope="module")
def corpus(pytestconfig: pytest.Config, examples_of: ExamplesOf) -> list[list[Case]]:
    """The example specs, and as many generated ones as are needed to meet every kind of declaration often."""
    examples = []
    for path in sorted((pytestconfig.rootpath / "specs").glob("*/*.loss")):
        data = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.suffix in (".csv", ".json", ".npy")}
        examples.append(Case(path.name, path.read_bytes(), data))
    drawn = examples_of(specs(max_labels=4, max_depth=3, max_lets=2))
    generated = [Case("generated", spec.text.encode(), spec.files, spec.labels) for spec in drawn]
    assert len(examples) >= 7
    return [examples, generated, generated]


# Mutation ------------------------------------------------------------------------------------------------------------


Mutate = Callable[[Sequence[Any], Sequence[Any], random.Random], list[Any]]


def _mutated_bytes(data: bytes, rng: random.Random, mutate: Mutate, *, as_text: bool) -> bytes:
    if as_text:
        tokens = _TOKEN.findall(data.decode("utf-8"))
        return "".join(mutate(tokens, _POOL, rng)).encode("utf-8")
    return bytes(mutate(data, range(256), rng))


def _mutant(corpus: list[list[Case]], rng: random.Random, mutate: Mutate) -> Case:
    case = rng.choice(rng.choice(corpus))
    if case.files and rng.random() < 0.25:
        path = rng.choice(sorted(case.files))
        as_text = not path.endswith(".npy") and rng.random() < 0.6
        return replace(case, files={**case.files, path: _mutated_bytes(case.files[path], rng, mutate, as_text=as_text)})
    return replace(case, text=_mutated_bytes(case.text, rng, mutate, as_text=rng.random() < 0.75))


# Judgement -----------------------------------------------------------------------------------------------------------


def _judge(case: Case, folder: Path, rng: random.Random) -> str:
    """What became of a mutant; any other exception than those of a user's mistake is a failure."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # numpy's, of what should have been refused
            warnings.simplefilter("ignore", udcp.SpecWarning)
            loss = _compiled(case, folder)
            for warning in loss.warnings:
                _check(warning)
            _evaluated(loss, rng)
        return "compiled"
    except udcp.SpecError as error:
        _check_all(error)
        return "refused"


def _compiled(case: Case, folder: Path) -> udcp.Loss:
    try:
        text = case.text.decode("utf-8")
    except UnicodeDecodeError:
        path = folder / "mutant.loss"
        path.write_bytes(case.text)
        return udcp.load(path, labels=case.labels)
    return udcp.loads(text, labels=case.labels, files=case.files)


def _evaluated(loss: udcp.Loss, rng: random.Random) -> None:
    masks = np.array([[False] * loss.K, [True] * loss.K, [rng.random() < 0.4 for _ in range(loss.K)]])
    loss = loss.example
    values = loss.batch(masks)
    assert np.isfinite(values).all()
    if loss.K <= 12:
        meant = [loss.interpret(mask) for mask in masks]
        np.testing.assert_allclose(values, meant, rtol=1e-9, atol=1e-9)
        if rng.random() < 0.1:
            assert loss.explain()


def _check_all(error: udcp.SpecError) -> None:
    assert error.diagnostics
    assert str(error)
    for diagnostic in error.diagnostics:
        _check(diagnostic)


def _check(diagnostic: Diagnostic) -> None:
    span = diagnostic.span
    assert 0 <= span.start <= span.end <= len(span.source.text)
    assert re.fullmatch(r"[EW]\d{3}", diagnostic.code)
    assert diagnostic.message
    assert diagnostic.render()


def _try(corpus: list[list[Case]], seeds: Sequence[str], folder: Path, mutate: Mutate) -> Counter[str]:
    became: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        case = _mutant(corpus, rng, mutate)
        try:
            became[_judge(case, folder, rng)] += 1
        except Exception as error:
            raise AssertionError(f"mutant {seed!r} of {case.name}: {type(error).__name__}: {error}\n{case}") from error
    return became


def test_a_mutant_compiles_or_is_refused_with_a_place(
    corpus: list[list[Case]], tmp_path: Path, mutate: Mutate, sizes: Sizes
) -> None:
    became = _try(corpus, [f"0/{i}" for i in range(sizes.mutants)], tmp_path, mutate)
    # Mutants are worth something only if they are neither all harmless nor all the same mistake.
    assert became["compiled"] > 0.05 * sizes.mutants
    assert became["refused"] > 0.5 * sizes.mutants


@pytest.mark.slow
def test_new_mutants_in_every_run(corpus: list[list[Case]], tmp_path: Path, mutate: Mutate, sizes: Sizes) -> None:
    fresh = random.SystemRandom().getrandbits(64)
    _try(corpus, [f"{fresh}/{i}" for i in range(sizes.mutants)], tmp_path, mutate)
