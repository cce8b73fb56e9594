"""The words of the language, in one place: the grammar, the checker and the error messages take them from here.

A name is a Unicode identifier (UAX 31: letters, marks, digits and '_' of any script, not beginning with a digit or
mark) in the normal form NFKC, so that names with different encodings cannot look the same: `²`, `٣` and `ﬁle` are not
names.

Each atom has one line in `ATOM_NAMES`. The class of atom `x` is in udcp_dsl/expression/atoms/x.py, which this package
does not import: it needs the word, not its meaning.
"""

from __future__ import annotations

import re
import unicodedata

# To add an atom, add its file, its line here, and its page in the reference.
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

# Functions of one number, named as in Python's math and in numpy.
FUNCTION_NAMES = ("sqrt", "log1p")

KEYWORDS = frozenset(
    "labels from column levels hierarchy costs of distance path edge category categories actions param in limit let "
    "loss default by and or not if then else input per row".split()
)
CALLED = (*ATOM_NAMES, *FUNCTION_NAMES)
# Words with a meaning in one place only, where no name is allowed; everywhere else they may be names.
UNRESERVED = frozenset(("per", "row"))
RESERVED = KEYWORDS.difference(UNRESERVED).union(CALLED)

# Non-ASCII signs of other languages: they end a word, instead of being letters in it.
FOREIGN_SIGNS = "\u2260\u2265\u2264\u00d7\u00b7\u00f7\u2212\u2013\u2014"
FOREIGN_QUOTES = "'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"

# The characters of a word, as the inside of a regular expression's [...]: more than a name may contain, so that an
# invalid name (`x²`) is reported as one mistake. The ASCII ones are digits, letters and `_`.
WORD = rf"^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f\s{FOREIGN_SIGNS}{FOREIGN_QUOTES[1:]}"

_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]*")


def is_name(text: str) -> bool:
    """Whether a text is a valid name. Reserved words are, too, although they cannot name a declaration.

    >>> is_name("größe"), is_name("हिन्दी"), is_name("x²"), is_name("٣"), is_name("ﬁle")
    (True, True, False, False, False)
    """
    return text.isidentifier() and (
        text.isascii() or ("\u00b7" not in text and unicodedata.is_normalized("NFKC", text))
    )


def is_bare(text: str) -> bool:
    """Whether a label, category, node, level or column of this name is written without quotes."""
    return is_name(text) or _WHOLE_NUMBER.fullmatch(text) is not None
