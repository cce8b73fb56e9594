"""The language manual is its own test: each spec in it compiles to what the page claims, or fails as the page shows.

specs/reference/README.md says what each kind of fenced block means. After a change of wording, running this file as a
script writes the new text of errors and warnings into the pages, to be read before it is kept.
"""

from __future__ import annotations

import ast
import doctest
import io
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import keeping_warnings
from udcp_dsl.expression.atoms import ATOMS

SOURCE = Path(udcp.__file__).parent
PAGES = Path(__file__).parents[1] / "specs" / "reference"
FENCE = re.compile(r"^```(\w+)(?: +([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATA = ("csv", "json", "npy", "bytes")
CLAIMS = ("values", "terms", "facts", "error", "warning")


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind, the words after the kind, its text, and where on the page it stands."""

    kind: str
    words: str
    text: str
    start: int  # of the text
    line: int


@dataclass(frozen=True)
class Example:
    """A spec or a piece of Python, the files above it on the page, and the claims below it."""

    page: str
    block: Block
    files: Mapping[str, bytes]
    claims: list[Block] = field(default_factory=list)


def blocks(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        kind, words, body = match.groups(default="")
        yield Block(kind, words, body, match.start(3), text.count("\n", 0, match.start()) + 1)


def examples(page: Path) -> list[Example]:
    """The examples of a page, in order."""
    found: list[Example] = []
    files: dict[str, bytes] = {}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.kind in DATA:
            files[block.words] = data(block)
        elif block.kind in ("loss", "python"):
            found.append(Example(page.stem, block, dict(files)))
            files["spec.loss"] = block.text.encode() if block.kind == "loss" else files.get("spec.loss", b"")
        elif block.kind in CLAIMS:
            found[-1].claims.append(block)
        else:
            assert block.kind == "text", f"{page.name}:{block.line}: unknown kind of block {block.kind!r}"
    return found


def data(block: Block) -> bytes:
    """The content of a data file."""
    if block.kind == "npy":
        saved = io.BytesIO()
        np.save(saved, np.array(ast.literal_eval(block.text)))
        return saved.getvalue()
    return bytes(ast.literal_eval(block.text)) if block.kind == "bytes" else block.text.encode()


def write_files(example: Example, folder: Path) -> None:
    for name, content in example.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def compiled(example: Example, folder: Path) -> tuple[udcp.Loss | None, str, str]:
    """The loss, the warnings and the errors of a spec."""
    write_files(example, folder)
    (folder / "spec.loss").write_text(example.block.text, encoding="utf-8")
    given = dict(word.split("=", 1) for word in example.block.words.split())
    labels = given.pop("labels").split(",") if "labels" in given else None
    chosen = given.pop("loss", None)
    params = {name: float(value) for name, value in given.items()}
    # Not by `warnings.catch_warnings`: numba does that too, in threads that a studio before may have left compiling.
    with chdir(folder), keeping_warnings() as kept:
        try:
            loss = udcp.load("spec.loss", labels=labels, loss=chosen, params=params)
        except udcp.SpecError as error:
            return None, "", str(error)
    return loss, "\n\n".join(kept), ""


ALL = [example for page in sorted(PAGES.glob("*.md")) for example in examples(page)]
SPECS = [example for example in ALL if example.block.kind == "loss"]
PYTHON = [example for example in ALL if example.block.kind == "python"]


def place(example: Example) -> str:
    return f"{example.page}:{example.block.line}"


# The examples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", SPECS, ids=place)
def test_spec(example: Example, tmp_path: Path) -> None:
    loss, warned, errors = compiled(example, tmp_path)
    shown = {"error": "", "warning": ""} | {block.kind: block.text.rstrip("\n") for block in example.claims}
    assert len({block.kind for block in example.claims}) == len(example.claims), "one block of a kind"
    assert all(block.text.strip() for block in example.claims), "an empty block claims nothing"
    assert errors == shown["error"]
    assert warned == shown["warning"]
    for block in example.claims:
        for claim in block.text.splitlines():
            if block.kind == "values":
                check_value(loss, claim)
            elif block.kind == "terms":
                check_terms(loss, claim)
            elif block.kind == "facts":
                check_fact(loss, claim)


def labels_of(text: str) -> list[str]:
    """`{a, "basal cell"}` as names."""
    assert re.fullmatch(r"\{.*\}", text), f"{text} is not a set"
    return [name.strip('"') for name in re.findall(r'"[^"]*"|[^\s,{}]+', text)]


def same(value: float, written: str) -> bool:
    """Whether a value is the one written; `1.73...` is one that begins like this."""
    if written.endswith("..."):
        return repr(float(value)).startswith(written.removesuffix("..."))
    return bool(np.isclose(value, float(written), rtol=1e-12, atol=1e-12))


def check_value(loss: udcp.Loss | None, claim: str) -> None:
    """`{a, b} = 3.5`, in every face of the loss."""
    assert loss is not None
    names, written = (part.strip() for part in claim.rsplit("=", 1))
    chosen = labels_of(names)
    mask = loss.mask(chosen)
    grown = loss.increments(1)
    for y in np.flatnonzero(mask):
        after = grown.after()[0, y]
        grown.push([int(y)])
        assert same(after, repr(float(grown.value[0]))), f"{claim}: the increments disagree with themselves"
    faces = {
        "call": loss(chosen),
        "batch": loss.batch(mask[None, :])[0],
        "interpreter": loss.interpret(chosen),
        "increments": grown.value[0],
    }
    for face, value in faces.items():
        assert same(value, written), f"{claim}: {face} gives {value}"


def check_terms(loss: udcp.Loss | None, claim: str) -> None:
    """`{a, b}: size = 2; 5 * any(wild) = 0`"""
    assert loss is not None
    names, written = claim.split(":", 1)
    terms = dict(part.strip().rsplit(" = ", 1) for part in written.split(";"))
    paid = loss.terms(labels_of(names))
    assert list(paid) == list(terms)
    for text, value in paid.items():
        assert same(value, terms[text]), f"{text} pays {value}"


def check_fact(loss: udcp.Loss | None, claim: str) -> None:
    """`monotone: proved`, `separable: refuted (reason)`, `interval: [0, 12]`"""
    assert loss is not None
    match = re.fullmatch(r"(\w+): (?:(\w+)(?: \((.*)\))?|\[(.*), (.*)\])", claim)
    assert match, f"{claim!r} is not a claim about a fact"
    name, state, reason, lo, hi = match.groups()
    if name == "interval":
        assert same(loss.facts.interval.lo, lo), loss.facts.interval
        assert same(loss.facts.interval.hi, hi), loss.facts.interval
        return
    fact = getattr(loss.facts, name)
    assert str(fact) == state, f"{name} is {fact}: {fact.reason}"
    assert reason in (None, fact.reason)


@pytest.mark.parametrize("example", PYTHON, ids=place)
def test_python(example: Example, tmp_path: Path) -> None:
    write_files(example, tmp_path)
    test = doctest.DocTestParser().get_doctest(
        example.block.text, {"udcp": udcp, "np": np}, place(example), example.page, example.block.line
    )
    assert test.examples, "write Python as it stands at the prompt, >>> and all"
    report = io.StringIO()
    with chdir(tmp_path):
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.write)
    assert result.failed == 0, report.getvalue()


# The manual as a whole -----------------------------------------------------------------------------------------------

SHOWN = re.compile(r"(?:error|warning)\[([EW]\d{3})\]: (.*)")


def test_every_code_is_in_the_index() -> None:
    raised = {
        code for file in SOURCE.rglob("*.py") for code in re.findall(r'"([EW]\d{3})"', file.read_text(encoding="utf-8"))
    }
    index = (PAGES / "errors.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([EW]\d{3}) \|", index, re.MULTILINE)
    assert sorted(raised) == listed


def test_every_code_is_shown_where_the_index_says() -> None:
    index = (PAGES / "errors.md").read_text(encoding="utf-8")
    for code, page in re.findall(r"^\| ([EW]\d{3}) \|.*\]\((\w[\w-]*\.md)\) \|$", index, re.MULTILINE):
        shown = {found for found, _ in SHOWN.findall((PAGES / page).read_text(encoding="utf-8"))}
        assert code in shown, f"{page} shows no {code}"


PINNED = [
    diagnostic
    for example in SPECS
    for block in example.claims
    if block.kind in ("error", "warning")
    for diagnostic in block.text.split("\n\n")
]


def test_many_distinct_mistakes_are_pinned() -> None:
    """Messages are told apart by their wording, not by the names, files and numbers in them."""
    found = [SHOWN.findall(diagnostic) for diagnostic in PINNED]
    wordings = {(code, re.sub(r"'[^']*'|\w+\.\w+|\d+", "_", message)) for ((code, message),) in found}
    assert len(wordings) >= 60


def test_every_mistake_has_a_way_out() -> None:
    for diagnostic in PINNED:
        assert "\n   = help: " in diagnostic, diagnostic


@pytest.mark.parametrize("atom", sorted(ATOMS))
def test_every_atom_has_a_page(atom: str) -> None:
    text = (PAGES / f"{atom}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["Mathematics", "Facts", "Examples", "Mistakes"]
    kinds = {block.kind for block in blocks(text)}
    assert {"loss", "values", "facts", "error"} <= kinds


def test_links_lead_somewhere() -> None:
    for page in PAGES.glob("*.md"):
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_index() -> None:
    """An atom's page is found by its name as well, so that it need not wait for the index."""
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    for page in PAGES.glob("*.md"):
        found = page.name == "README.md" or page.stem in ATOMS or f"]({page.name})" in index
        assert found, f"README.md does not link to {page.name}"


def test_the_index_of_atoms_is_written_by_this_file() -> None:
    assert len(INDEX.findall((PAGES / "README.md").read_text(encoding="utf-8"))) == 1


# A spec in which every atom of the table of atoms can be written, with costs that are and are not negative.
DECLARED = """
labels { a, b, c, d }
costs cost { a: 1, b: 3, c: 2, d: 5 }   costs debt { a: -1, b: 3, c: -2, d: 5 }
category C { a, b }
categories F { one: { a, b }, two: { b, c }, three: { c, d } }
costs weight of F { one: 1, two: 2, three: 1 }   costs refund of F { one: 1, two: -2, three: -1 }
hierarchy h { x { a, b }, y { c, d } }
distance d from "d.json"
actions u from "u.json"   actions v from "v.json"
"""
FILES = {
    "d.json": b'{"labels": ["a", "b", "c", "d"], "matrix": [[0, 1, 4, 2], [1, 0, 2, 7], [4, 2, 0, 3], [2, 7, 3, 0]]}',
    "u.json": b'{"a": {"r": 0, "s": 4}, "b": {"r": 3, "s": 1}, "c": {"r": 5, "s": 0}, "d": {"r": 1, "s": 2}}',
    "v.json": b'{"a": {"r": -1, "s": 4}, "b": {"r": 3, "s": -2}, "c": {"r": -5, "s": 0}, "d": {"r": 1, "s": -2}}',
}
# By atom: an expression for which its conditions hold, and one for which they do not.
WRITTEN = {
    "size": ("size", "size"),
    "sum": ("sum(cost)", "sum(debt)"),
    "max": ("max(cost)", "max(debt)"),
    "min": ("min(cost)", "min(debt)"),
    "diameter": ("diameter(d)", "diameter(d)"),
    "spread": ("spread(d)", "spread(d)"),
    "radius": ("radius(d)", "radius(d)"),
    "count": ("count(F, weight)", "count(F, refund)"),
    "nodes": ("nodes(h)", "nodes(h)"),
    "any": ("any(C)", "any(C)"),
    "all": ("all(C)", "all(C)"),
    "within": ("within(C)", "within(C)"),
    "empty": ("empty", "empty"),
    "worst": ("worst(u)", "worst(v)"),
}


def test_the_table_of_atoms_says_what_is_proved() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    head = re.search(r"^\| atom \| value on a set S \| (.*) \|$", index, re.MULTILINE)
    assert head is not None
    names = head[1].split(" | ")
    rows = re.findall(r"^\| \[`(\w+)[^|]*\| [^|]+ \| (.*) \|$", index, re.MULTILINE)
    assert [atom for atom, _ in rows] == list(WRITTEN)
    assert set(WRITTEN) == set(ATOMS)
    for atom, cells in rows:
        good, bad = (udcp.loads(f"{DECLARED}loss l = {text}", files=FILES).facts for text in WRITTEN[atom])
        for name, cell in zip(names, cells.split(" | "), strict=True):
            proved = (bool(getattr(good, name)), bool(getattr(bad, name)))
            meant = {"yes": (True, True), "no": (False, False)}.get(cell, (True, False))
            assert proved == meant, f"{atom}, {name}: {cell}"


INDEX = re.compile(r"^\| atoms \| .* \|$", re.MULTILINE)


def update() -> None:
    """Write the index of atoms, and the errors and warnings as they are now, into the pages."""
    index = PAGES / "README.md"
    atoms = ", ".join(f"[{atom}]({atom}.md)" for atom in ATOMS)
    index.write_text(INDEX.sub(f"| atoms | {atoms} |", index.read_text(encoding="utf-8")), encoding="utf-8")
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for example in reversed(examples(page)):
            with tempfile.TemporaryDirectory() as folder:
                _, warned, errors = compiled(example, Path(folder)) if example.block.kind == "loss" else (None, "", "")
            for block in reversed(example.claims):
                if block.kind in ("error", "warning"):
                    now = errors if block.kind == "error" else warned
                    text = text[: block.start] + now + "\n" + text[block.start + len(block.text) :]
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
