"""Nothing that can be typed makes a feature fail: texts made of the examples by cutting, doubling and mixing."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import InputError
from udcp_dsl.lsp import (
    Document,
    Reader,
    code_actions,
    completion,
    definition,
    diagnostics,
    folding,
    formatting,
    hover,
    references,
    rename,
    semantic_tokens,
    symbols,
)

if TYPE_CHECKING:
    from tests.conftest import Sizes

SPECS = Path(__file__).parents[3] / "specs"
BITS = """{ } ( ) " # . .. , : = loss labels of ß 🙂 7e9 node( default - ^ if""".split()
BITS += ["\r", "\n", "\0", "\ufeff", "\u2028"]


# Short ones, so that many take seconds.
SHORT = """
labels from "skin.csv" column condition
hierarchy h from "skin.csv" levels kind, family
loss l = count(h.family)
---
labels { a, b, 3..5 }
costs c { a: 1, default: 0 }  # euros
let i = any({ a }) and size >= 2
loss l = sum(c) + 3 * i
---
labels 0..3
hierarchy t { x { 0, 1 }, y { 2, 3 } }
param p = 1 in [0, 2]
loss l = p * diameter(t) + size(t.node(x))
---
labels { a, b }
categories F { u: { a }, v: { a, b } }
costs w of F { u: 1, v: 2 }
loss l = if any(F.u) then count(F, w) else max(size - 1, 0) ^ 2
""".split("---")


def mutated(rng: random.Random, texts: list[str]) -> str:
    text = rng.choice(texts)
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        i, j = sorted(rng.choices(range(len(text) + 1), k=2))
        j = min(j, i + rng.choice([1, 3, 20, 200]))
        pieces = ["", rng.choice(BITS), text[i:j] * 2, "".join(rng.sample(BITS, 3)), rng.choice(texts)[:40]]
        text = text[:i] + rng.choice(pieces) + text[j:]
    return text


def every_feature(document: Document, rng: random.Random) -> None:
    position = document.lines.position(rng.randrange(len(document.text) + 1))
    diagnostics(document)
    completion(document, position)
    definition(document, position)
    references(document, position)
    semantic_tokens(document)
    symbols(document)
    folding(document)
    formatting(document)
    with suppress(InputError):
        rename(document, position, "another")


def test_no_text_makes_a_feature_fail(sizes: Sizes) -> None:
    rng = random.Random(0)
    reader = Reader()
    long = [x.read_text(encoding="utf-8") for x in sorted(SPECS.glob("*/*.loss"))]
    for i in range(sizes.mutants):
        text = mutated(rng, long if i % 20 == 0 else SHORT)
        document = reader.read(text, SPECS / "dermatology")
        every_feature(document, rng)
        if i % 10 == 1:  # these prove facts, or compile again
            hover(document, document.lines.position(rng.randrange(len(document.text) + 1)))
            for fault in diagnostics(document)[:1]:
                code_actions(document, fault["range"]["start"], fault["range"]["end"])


def test_every_beginning_of_a_spec(triage: str) -> None:
    """As it is typed, key by key."""
    reader, rng = Reader(), random.Random(1)
    for end in range(0, len(triage), 7):
        document = reader.read(triage[:end], SPECS / "dermatology")
        every_feature(document, rng)
        completion(document, document.lines.position(end))
