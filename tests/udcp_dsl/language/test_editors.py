"""The editors' grammars take for words of the language what the language server takes for them, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from udcp_dsl.language import editors
from udcp_dsl.language.words import CALLED, KEYWORDS
from udcp_dsl.lsp import Reader, semantic_tokens
from udcp_dsl.lsp.decorations import TYPES

ROOT = Path(__file__).parents[3]
SPECS = sorted((ROOT / "specs").glob("*/*.loss"))
TRICKY = """
labels { default, loss, "a # b", sum, 7, x1 }   # labels may be any words
costs c { "default": 1, loss: -2.5e-3, default: 0 }
hierarchy h { if { default, loss }, then { "a # b", sum }, 7, x1 }
hierarchy g from "a.csv" levels loss, size
costs e from "size.csv" column loss by size
loss lossy = sum(c) + size({ sum, 7 }) + any(h.node(then)) + 3 * (size >= 2 and not empty)
"""


TEXTS = [TRICKY, *(spec.read_text(encoding="utf-8") for spec in SPECS)]


def truth(text: str) -> dict[int, str]:
    """By offset: comment, string, number, keyword, function; of a statement's words what the server takes them for."""
    document = Reader().read(text)
    data = semantic_tokens(document)["data"]
    found: dict[int, str] = {}
    line = character = 0
    for i in range(0, len(data), 5):
        down, right, _, kind, _ = data[i : i + 5]
        line, character = line + down, right if down else character + right
        found[document.lines.offset(line, character)] = TYPES[kind]
    return found


def same_colours(text: str, coloured: dict[int, str]) -> None:
    """Whatever one takes for a comment, a keyword or an atom, so does the other; and all strings and numbers."""
    wanted = truth(text)
    for kind in ("comment", "keyword", "function"):
        by_server = {at for at, found in wanted.items() if found == kind}
        by_grammar = {at for at, found in coloured.items() if found == kind}
        assert {(text[at : at + 12], at) for at in by_server ^ by_grammar} == set(), kind
    for kind in ("string", "number"):
        assert {at for at, found in wanted.items() if found == kind} <= {
            at for at, found in coloured.items() if found == kind
        }


@pytest.mark.parametrize("path", sorted(editors.files()))
def test_the_files_are_what_the_words_make(path: str) -> None:
    assert (ROOT / "editors" / path).read_text(encoding="utf-8") == editors.files()[path], (
        "run python -m udcp_dsl.language.editors"
    )


def test_every_word_is_in_every_grammar() -> None:
    for content in editors.files().values():
        for word in (*KEYWORDS, *CALLED):
            assert re.search(rf"\b{word}\b", content), word


KINDS = {"comment": "comment", "string": "string", "constant.numeric": "number", "support.function": "function",
         "keyword.declaration": "keyword", "keyword.other": "keyword", "keyword.operator.word": "keyword"}  # fmt: skip


def textmate(text: str) -> dict[int, str]:
    """Colours by the TextMate grammar: of the rules in force the one that matches first, of several there the first."""
    grammar = editors.textmate()
    stack: list[dict[str, Any]] = [grammar]
    found: dict[int, str] = {}

    def note(at: int, name: str) -> None:
        for prefix, kind in KINDS.items():
            if name.startswith(prefix):
                found[at] = kind

    at = 0
    while at < len(text):
        rules = [grammar["repository"][x["include"][1:]] if "include" in x else x for x in stack[-1]["patterns"]]
        ways = [(m.start(), i, m, x) for i, x in enumerate(rules)
                if (m := re.compile(x.get("match", x.get("begin"))).search(text, at))]  # fmt: skip
        if len(stack) > 1 and (end := re.compile(stack[-1]["end"]).search(text, at)):
            ways.append((end.start(), -1, end, {}))
        if not ways:
            break
        _, _, match, rule = min(ways, key=lambda way: way[:2])
        if not rule:
            stack.pop()
        elif "begin" in rule:
            stack.append(rule)
        for group, capture in rule.get("captures", {"0": rule}).items():
            note(match.start(int(group)), capture.get("name", ""))
        at = max(match.end(), at + 1)
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_textmate(text: str) -> None:
    same_colours(text, textmate(text))


@pytest.mark.parametrize("text", TEXTS)
def test_pygments(text: str) -> None:
    pygments = pytest.importorskip("pygments")
    from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String

    from udcp_dsl.language.lexer import LossLexer

    kinds = {Comment.Single: "comment", String.Double: "string", Number: "number", Name.Builtin: "function",
             Keyword: "keyword", Keyword.Declaration: "keyword", Operator.Word: "keyword"}  # fmt: skip
    found = {at: kinds.get(kind, str(kind)) for at, kind, _ in LossLexer().get_tokens_unprocessed(text)}
    assert str(Error) not in found.values()
    same_colours(text, found)
    assert pygments.lex(text, LossLexer())


def test_the_extension_of_vs_code_names_what_is_there() -> None:
    folder = ROOT / "editors" / "vscode"
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    named = [manifest["icon"], *(x["path"] for x in manifest["contributes"]["grammars"]),
             *(x["configuration"] for x in manifest["contributes"]["languages"]), "README.md", "LICENSE"]  # fmt: skip
    assert not [path for path in named if not (folder / path).is_file()]
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
