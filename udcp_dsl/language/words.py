"""The words of the language, in one place: the grammar, the checker and the sentences about mistakes read them here.

A name is a Unicode identifier (UAX 31: letters, marks, digits and '_' of any script, not beginning with a digit or
mark) in the normal form NFKC, so that names with different encodings cannot look the same: `²`, `٣` and `ﬁle` are not
names.

The atoms are a table of one line each. Atom `x` is the class of that name in udcp_dsl/expression/atoms/x.py, which the
language does not import: it has to know the word, not what it means.
"""

from __future__ import annotations

import re
import unicodedata

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
    "nodes",
    "any",
    "all",
    "within",
    "empty",
    "worst",
)

# Functions of one number that Python's math and numpy know by the same name.
FUNCTION_NAMES = ("sqrt", "log1p")

KEYWORDS = frozenset(
    "labels from column levels hierarchy costs of distance path edge category categories actions param in limit let "
    "loss default by and or not if then else input per row".split()
)
CALLED = (*ATOM_NAMES, *FUNCTION_NAMES)
# Words that have a meaning in one place alone, where no name can stand: they may be names everywhere else.
UNRESERVED = frozenset(("per", "row"))
RESERVED = KEYWORDS.difference(UNRESERVED).union(CALLED)

# Signs of other languages that are no ASCII; in a word they would be letters.
FOREIGN_SIGNS = "\u2260\u2265\u2264\u00d7\u00b7\u00f7\u2212\u2013\u2014"
FOREIGN_QUOTES = "'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"

# The characters between which a text is cut into words, as the inside of a regular expression's [...]: more than names
# can hold, so that what is no name (`x²`) is told as one mistake. The ASCII ones are digits, letters and `_`.
WORD = rf"^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f\s{FOREIGN_SIGNS}{FOREIGN_QUOTES[1:]}"

_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]*")


def is_name(text: str) -> bool:
    """Whether a text may stand without quotes, a whole number apart; a reserved word, too, but not for a declaration.

    >>> is_name("größe"), is_name("हिन्दी"), is_name("x²"), is_name("٣"), is_name("ﬁle")
    (True, True, False, False, False)
    """
    return text.isidentifier() and (
        text.isascii() or ("\u00b7" not in text and unicodedata.is_normalized("NFKC", text))
    )


def is_bare(text: str) -> bool:
    """Whether a label, category, node, level or column of this name is written without quotes."""
    return is_name(text) or _WHOLE_NUMBER.fullmatch(text) is not None
