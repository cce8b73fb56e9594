"""The words of the language, in one place: the grammar, the checker and the sentences about mistakes read them here.

The atoms are a table of one line each. Atom `x` is the class of that name in udcp_dsl/expression/atoms/x.py, which the
language does not import: it has to know the word, not what it means.
"""

from __future__ import annotations

# Adding an atom: its file, its line here, its page of the reference.
ATOM_NAMES = (
    "size",
    "sum",
    "max",
    "min",
    "diameter",
    "spread",
    "radius",
    "count",
    "any",
    "all",
    "within",
    "empty",
    "worst",
)

# Functions of one number that Python's math and numpy know by the same name.
FUNCTION_NAMES = ("sqrt", "log1p")

KEYWORDS = frozenset(
    "labels from column levels hierarchy costs of distance path edge category categories actions param in let loss "
    "default by and or not if then else".split()
)
CALLED = (*ATOM_NAMES, *FUNCTION_NAMES)
RESERVED = KEYWORDS.union(CALLED)
