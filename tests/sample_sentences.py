"""Sentences drawn at random from all that users read, to be held against the table of words in the style guide.

    python tests/sample_sentences.py --seed 1            # 60 sentences, each with its place
    python tests/sample_sentences.py --seed 1 --count 20 --kind docs

Kinds: readme, docs (pages of the site and of the manual), docstrings (of the Python interface), help (of the command
line), messages (of errors and warnings). Every sentence is equally likely. The same seed draws the same sentences from
the same text.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "solvers"), str(ROOT / "grammars"), str(ROOT / "docs" / "extensions")]

KINDS = ("readme", "docs", "docstrings", "help", "messages")
FEWEST_WORDS = 5
RAISED = ("InputError", "OracleError", "SpecError", "TypeError", "warn", "Diagnostic", "error", "fault", "Refusal")


def sentences(text: str) -> Iterator[str]:
    """The sentences of prose: what ends with a full stop, a question mark or the end of its paragraph."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        plain = re.sub(r"^(?:[-*#]+ )*", "", " ".join(paragraph.split()))
        for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z`*\"'\[])", plain):
            if len(sentence.split()) >= FEWEST_WORDS and re.search(r"[a-z]{3}", sentence):
                yield sentence


def prose_of_page(text: str) -> str:
    """A page without code, tables, formulas in blocks and directives."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->|^\$\$.*?\$\$", "", text, flags=re.S | re.M)
    return "\n".join("" if line.startswith(("|", "#", "    ")) else line for line in text.splitlines())


def prose_of_docstring(text: str) -> str:
    """A docstring without its examples; of its sections the descriptions, each a paragraph of its own."""
    kept = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if ">>>" in block:
            continue
        in_section = re.match(r"\w[\w ]*\n-{3,}$", block, re.M) is not None
        kept.append(re.sub(r"^\S.*$", "\n", block, flags=re.M) if in_section else block)
    return "\n\n".join(kept)


def _pages() -> Iterator[tuple[str, str, str]]:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "specs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]
    for page in [ROOT / "README.md", *sorted(pages)]:
        place = page.relative_to(ROOT).as_posix()
        if not place.startswith("docs/made/"):
            kind = "readme" if place == "README.md" else "docs"
            yield from ((kind, place, x) for x in sentences(prose_of_page(page.read_text(encoding="utf-8"))))


def _docstrings() -> Iterator[tuple[str, str, str]]:
    import python_pages

    for name, value in python_pages.public().items():
        found = {name: value.__doc__ or ""}
        if inspect.isclass(value):
            found |= {f"{name}.{own}": getattr(value, own).__doc__ or "" for own in python_pages.members(value)}
        for place, text in found.items():
            yield from (("docstrings", place, x) for x in sentences(prose_of_docstring(text)))


def _help() -> Iterator[tuple[str, str, str]]:
    import click

    from udcp_dsl.cli import main

    context = click.Context(main)
    for verb in main.list_commands(context):
        command = main.get_command(context, verb)
        assert command is not None
        texts = [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]
        yield from (("help", f"udcp {verb} --help", x) for text in texts for x in sentences(text))


def _messages() -> Iterator[tuple[str, str, str]]:
    for root in (ROOT / "udcp_dsl", ROOT / "solvers"):
        for path in sorted(root.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in RAISED:
                    for argument in node.args:
                        place = f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
                        yield from (("messages", place, x) for x in sentences(_text_of(argument)))


def _text_of(node: ast.expr) -> str:
    """A text as a user sees it, with an ellipsis for what is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return ""


def every_sentence(kinds: tuple[str, ...] = KINDS) -> list[tuple[str, str, str]]:
    """Kind, place and text of every sentence, in a fixed order; each text once."""
    sources = {"readme": _pages, "docs": _pages, "docstrings": _docstrings, "help": _help, "messages": _messages}
    found = {}
    for source in dict.fromkeys(sources[kind] for kind in kinds):
        for kind, place, text in source():
            if kind in kinds:
                found.setdefault(text, (kind, place, text))
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--kind", choices=KINDS, action="append")
    asked = parser.parse_args()
    every = every_sentence(tuple(asked.kind or KINDS))
    drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    print(f"{len(drawn)} of {len(every):,} sentences, seed {asked.seed}\n")
    for number, (_, place, text) in enumerate(drawn, 1):
        print(textwrap.fill(f"{number:2}. [{place}] {text}", 118, subsequent_indent="    "))


if __name__ == "__main__":
    main()
