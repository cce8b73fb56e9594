"""`udcp new FILE`: write a spec with comments that compiles, as a starting point."""

from __future__ import annotations

from pathlib import Path

import click

from udcp_dsl.cli.ending import finish, json_option
from udcp_dsl.cli.spec import parse_labels
from udcp_dsl.diagnostics import InputError, Source, Span
from udcp_dsl.language import ast
from udcp_dsl.showing import Description, counted, visible

_SHOWN = 3  # labels that are named once the spec is written
_PETS = {"cats": ["tabby", "siamese", "lynx"], "dogs": ["beagle", "poodle", "wolf"]}

_TEMPLATE = """\
# The cost of a set of labels: lower is better. Lines that begin with # are comments.
# Try:  udcp check {file}    and    udcp eval {file} {example}

# The labels, in the order of the classifier's columns. They can also be read from a file, or be a range:
#   labels from "labels.csv" column name
#   labels 0..99
{labels}

# A tree over the labels, of any depth. A file has one column per level:
#   hierarchy groups from "labels.csv" levels family, branch
{hierarchy}

# A cost for each label. From a file:  costs effort from "labels.csv" column effort
{costs}

# A category: labels that belong together.
{category}

# A parameter, which can be set from outside:  udcp check {file} --param coherence=3
param coherence = 2 in [0, 10]

# An expression with a name. This one is 1 if a set has both serious and other labels, otherwise 0.
let undecided = any(serious) and not within(serious)

# The loss. A file may have several; the last one is used unless --loss names another.
loss cost =
    sum(effort)                             # the cost of each label
  + coherence * count(groups.level(1))      # for each branch of the tree that the set touches
  + diameter(groups)                        # how far apart its labels are in the tree
  + 5 * undecided
  + 0.01 * size                             # a small weight on size, so that no label is free
"""


@click.command("new", epilog="Example:  udcp new pets.loss --labels cat,dog,wolf")
@click.argument("file", type=click.Path())
@click.option(
    "--labels",
    callback=parse_labels,
    metavar="LIST|FILE",
    help="Your labels: a,b,c or 0..9, or a .txt (one per line), .csv (first column, below a header) or .json.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def command(file: str, labels: list[str] | None, force: bool) -> int:
    """Write a starting spec with comments to FILE; it compiles without changes."""
    from udcp_dsl.files import atomic_write

    if Path(file).exists() and not force:
        raise InputError(f"{file} already exists: choose another name, or overwrite it with --force")
    text = starting_spec(file, labels)
    with atomic_write(file) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    about = "" if labels is None else f" with {_listed(labels)}"
    next_step = f"{file} is written{about}; next: udcp check {file}"
    return finish(Description(verdict=(next_step,), data={"file": file, "text": text}), {"diagnostics": []})


def _listed(labels: list[str]) -> str:
    """How many labels there are, and the first of them: a .csv without a header shows here."""
    shown = ", ".join(repr(label) for label in labels[:_SHOWN])
    return f"{counted(len(labels), 'label')}: {shown}{', ...' if len(labels) > _SHOWN else ''}"


def starting_spec(file: str, labels: list[str] | None) -> str:
    """The text of a starting spec for these labels, or for a few pets."""
    import shlex

    from udcp_dsl.language.unparse import unparse

    groups = _PETS if labels is None else _halves(labels)
    names = labels or [label for members in groups.values() for label in members]
    nowhere = Span(Source("", ""), 0, 0)

    def name(text: str) -> ast.Name:
        return ast.Name(text, span=nowhere)

    def written(declaration: ast.Declaration) -> str:
        return unparse(ast.Spec((declaration,), span=nowhere)).rstrip()

    branches = tuple(ast.Branch(name(g), tuple(map(name, members)), span=nowhere) for g, members in groups.items())
    dear = ast.CostEntry(name(names[-1]), ast.Signed(3.0, span=nowhere), span=nowhere)
    default = ast.Signed(1.0, span=nowhere)
    return _TEMPLATE.format(
        file=visible(shlex.quote(file)),  # on one line, whatever it holds
        example=visible(shlex.join(names[:2])),
        labels=written(ast.Labels(tuple(map(name, names)), span=nowhere)),
        hierarchy=written(ast.Hierarchy(name("groups"), branches, span=nowhere)),
        costs=written(ast.Costs(name("effort"), None, (dear,), default, span=nowhere)),
        category=written(ast.Category(name("serious"), (name(names[-1]),), span=nowhere)),
    )


def _halves(labels: list[str]) -> dict[str, list[str]]:
    """Two groups for the user to replace; only one if there is one label."""
    half = (len(labels) + 1) // 2
    return {name: members for name, members in (("one", labels[:half]), ("two", labels[half:])) if members}
