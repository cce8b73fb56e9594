"""The lexer for Pygments, which finds it by its entry point: specs are coloured in documents and notebooks."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from udcp_dsl.language.editors import CLAUSE_WORDS, COLUMNS, NUMBER, OPERATOR_WORDS, PART
from udcp_dsl.language.scan import STATEMENTS
from udcp_dsl.language.words import CALLED


class LossLexer(RegexLexer):  # type: ignore[misc]  # pygments has no types of its own
    """The loss language: what a set of labels costs."""

    name = "Loss"
    aliases: ClassVar = ["loss", "udcp"]
    filenames: ClassVar = ["*.loss"]
    url = ""

    tokens: ClassVar = {
        "everywhere": [
            (r"[ \t\r\n\f\ufeff]+", Text.Whitespace),
            (r"#[^\r\n]*", Comment.Single),
            (r'"(?:[^"\\\r\n]|\\.)*"', String.Double),
            (rf"{NUMBER}(?!\w)", Number),
            (r"\{", Punctuation, "braces"),
        ],
        "root": [
            (rf"(column|by|levels|in)(\s+)({COLUMNS})", bygroups(Keyword, Text.Whitespace, Name.Attribute)),
            (PART, Name.Attribute),
            (words(STATEMENTS, suffix=r"(?!\w)"), Keyword.Declaration),
            (words(OPERATOR_WORDS, suffix=r"(?!\w)"), Operator.Word),
            (words(CLAUSE_WORDS, suffix=r"(?!\w)"), Keyword),
            (words(CALLED, suffix=r"(?!\w)"), Name.Builtin),
            (r"[^\W\d]\w*", Name),
            include("everywhere"),
            (r"\.\.|[<>=]=|[-+*/^<>=]", Operator),
            (r"[\](),.:[]", Punctuation),
        ],
        "braces": [
            (r"default(?=\s*:)", Keyword),
            (r"[^\W\d]\w*", Name.Constant),
            include("everywhere"),
            (r"\}", Punctuation, "#pop"),
            (r"[-+,.:]", Punctuation),
        ],
    }
