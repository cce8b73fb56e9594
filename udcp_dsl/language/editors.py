"""Grammars for editors, made of the words of the language: TextMate for VS Code, a syntax file for Vim and Neovim.

`python -m udcp_dsl.language.editors` rewrites them in editors/. Words between braces are labels, nodes or categories,
even if they are also keywords; a word after a dot is a part of a reference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from udcp_dsl.language.scan import STATEMENTS
from udcp_dsl.language.words import CALLED, KEYWORDS

# Words that are operators of an expression.
OPERATOR_WORDS = ("and", "or", "not", "if", "then", "else")
CLAUSE_WORDS = tuple(sorted(KEYWORDS.difference(STATEMENTS, OPERATOR_WORDS)))
NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
# After a dot: a part of a reference, and the node in node(n).
PART = r"(?<=\.)(?:(?:node|level)\s*\(\s*)?[^\W\d]\w*"
COLUMNS = r"[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*"
_BEFORE, _AFTER = r"(?<![\w.])", r"(?!\w)"


def textmate() -> dict[str, Any]:
    """The TextMate grammar."""

    def words(name: str, listed: tuple[str, ...]) -> dict[str, str]:
        return {"name": f"{name}.loss", "match": f"{_BEFORE}(?:{'|'.join(listed)}){_AFTER}"}

    comment = {"name": "comment.line.number-sign.loss", "match": r"#[^\r\n]*"}
    string = {
        "name": "string.quoted.double.loss",
        "match": r'"(?:[^"\\\r\n]|\\.)*"',
    }
    number = {"name": "constant.numeric.loss", "match": rf"(?:{_BEFORE}|(?<=\.\.)){NUMBER}{_AFTER}"}
    sign = {"name": "keyword.operator.loss", "match": r"\.\.|[<>=]=|[-+*/^<>=]"}
    braces = {
        "begin": r"\{",
        "end": r"\}",
        "patterns": [
            comment,
            string,
            number,
            {"name": "keyword.other.loss", "match": rf"{_BEFORE}default(?=\s*:)"},
            {"name": "constant.other.label.loss", "match": r"[^\W\d]\w*"},
            {"include": "#braces"},
        ],
    }
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "comment": "Made by python -m udcp_dsl.language.editors",
        "name": "loss",
        "scopeName": "source.loss",
        "patterns": [
            comment,
            string,
            number,
            {"name": "variable.other.member.loss", "match": PART},
            # Columns, levels and units may have the names of keywords.
            {
                "match": rf"{_BEFORE}(column|by|levels|in){_AFTER}\s+({COLUMNS})",
                "captures": {"1": {"name": "keyword.other.loss"}, "2": {"name": "variable.other.member.loss"}},
            },
            words("keyword.declaration", STATEMENTS),
            words("keyword.operator.word", OPERATOR_WORDS),
            words("keyword.other", CLAUSE_WORDS),
            words("support.function", CALLED),
            {"include": "#braces"},
            sign,
        ],
        "repository": {"braces": braces},
    }


def vim() -> str:
    """The syntax file of Vim and Neovim."""
    return rf"""" Made by python -m udcp_dsl.language.editors
if exists("b:current_syntax")
  finish
endif

syn keyword lossStatement {" ".join(STATEMENTS)}
syn keyword lossOperator {" ".join(OPERATOR_WORDS)}
syn keyword lossClause {" ".join(CLAUSE_WORDS)}
syn keyword lossAtom {" ".join(CALLED)}
syn match lossNumber "\<\(0\|[1-9][0-9]*\)\(\.[0-9]\+\)\?\([eE][+-]\?[0-9]\+\)\?\>"
syn match lossPart "\.\@1<=\h\w*"
syn match lossDefault "\<default\ze\s*:" contained
syn region lossString start=+"+ skip=+\\.+ end=+"+ oneline
syn match lossComment "#.*$" contains=@Spell
syn region lossBraces start="{{" end="}}" transparent contains=lossComment,lossString,lossNumber,lossDefault,lossBraces

hi def link lossStatement Keyword
hi def link lossOperator Operator
hi def link lossClause Keyword
hi def link lossDefault Keyword
hi def link lossAtom Function
hi def link lossNumber Number
hi def link lossPart Identifier
hi def link lossString String
hi def link lossComment Comment

setlocal commentstring=#\ %s
let b:current_syntax = "loss"
"""


def files() -> dict[str, str]:
    """The contents of the generated files, by their path below editors/."""
    return {
        "vscode/syntaxes/loss.tmLanguage.json": json.dumps(textmate(), indent=2, ensure_ascii=False) + "\n",
        "neovim/syntax/loss.vim": vim(),
    }


if __name__ == "__main__":
    for path, content in files().items():
        file = Path(__file__).parents[2] / "editors" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
