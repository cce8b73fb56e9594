"""Formatting keeps what a writer put there for readers: comments, groups, lines. (Anywhere: see test_unparse.)"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from udcp_dsl.diagnostics import Source
from udcp_dsl.language.layout import formatted
from udcp_dsl.language.parse import parse

SPECS = Path(__file__).parents[3] / "specs"


def tidy(text: str) -> str:
    source = Source("test.loss", text)
    spec, faults = parse(source)
    assert faults == []
    return formatted(source, spec)


def test_comments_stay_where_they_were() -> None:
    assert tidy("""
# About the file.
#  Indented.


labels {a,b}   # two of them
                # and no more
param p=1# short
param longer = 2.0 in [0,10]     # long


# The loss.
loss l =  # in euros
    size      # each
    # the rest

  + p*any({ a,   # the first
      b })     # dear
  + longer
# the end
""") == (
        "# About the file.\n#  Indented.\n\n"
        "labels { a, b }  # two of them\n"
        "# and no more\n"
        "param p = 1                  # short\n"
        "param longer = 2 in [0, 10]  # long\n\n"
        "# The loss.\n"
        "loss l =  # in euros\n"
        "    size  # each\n"
        "    # the rest\n\n"
        "    # the first\n"
        "  + p * any({ a, b })  # dear\n"
        "  + longer\n"
        "# the end\n"
    )  # fmt: skip


def test_a_comment_of_several_lines_behind_something_stays_one() -> None:
    text = 'labels from "a.csv"  # or in place\n                     # or a range\nloss l = size\n'
    assert tidy(text) == text


def test_a_list_with_comments_or_groups_keeps_its_lines() -> None:
    text = (
        "costs c {  # hours\n"
        "    a: 1, b: 2,  # cheap\n"
        "    # dear ones\n"
        "    c: 3,\n"
        "\n"
        "    d: 4,\n"
        "    default: 0,\n"
        "    # no more\n"
        "}\n"
        "\n"
        "hierarchy h {\n"
        "    x { a, b },  # near\n"
        "    y {  # far\n"
        "        c,\n"
        "        d,  # farthest\n"
        "    },\n"
        "}\n"
    )
    assert tidy(text) == text


def test_a_list_without_either_is_wrapped() -> None:
    assert tidy("labels { a,\n b\n}\n") == "labels { a, b }\n"


def test_a_list_that_begins_on_a_new_line_keeps_its_lines() -> None:
    assert tidy("hierarchy h {\n a {b, c}, d { e\n , f }\n ,g,\n h }") == (
        "hierarchy h {\n    a { b, c },\n    d { e, f },\n    g,\n    h,\n}\n"
    )


def test_a_sum_on_several_lines_stays_on_them() -> None:
    text = "loss l =\n    size\n  + 2\n"
    assert tidy(text) == text
    assert tidy("loss l = size\n   + 2 + 3") == "loss l =\n    size\n  + 2\n  + 3\n"
    assert tidy("loss l =\n    size + 2") == "loss l = size + 2\n"
    text = "let i =\n    any(C)\n    and any(D)  # both\n"
    assert tidy(text) == text
    text = "loss l =\n    if any(C)  # dear\n    then 3\n    else size\n"
    assert tidy(text) == text


def test_long_conditions_are_broken_too() -> None:
    long = " and ".join(f"any(a_category_with_a_name_{i})" for i in range(4))
    assert tidy(f"let i = {long}").splitlines()[:3] == [
        "let i =",
        "    any(a_category_with_a_name_0)",
        "    and any(a_category_with_a_name_1)",
    ]


def test_comments_in_a_head_or_a_clause_go_above() -> None:
    assert tidy('labels # x\n from # y\n "a.csv" # z\n') == '# x\n# y\nlabels from "a.csv"  # z\n'


def test_blank_lines_are_the_writers() -> None:
    text = "labels { a }\ncosts c { a: 1 }\n\ncosts d { a: 1 }\nloss l = size\n"
    assert tidy(text) == text
    assert tidy("labels { a } costs c { a: 1 } costs d { a: 1 } loss l = size") == (
        "labels { a }\n\ncosts c { a: 1 }\ncosts d { a: 1 }\n\nloss l = size\n"
    )


def test_nothing_but_comments() -> None:
    assert tidy("\n\n# a\n\n\n#b \n") == "# a\n\n#b\n"
    assert tidy("") == ""


@pytest.mark.parametrize("spec", sorted(SPECS.glob("*/*.loss")), ids=lambda path: path.stem)
def test_the_examples_keep_their_shape(spec: Path) -> None:
    """What changes in them are spaces, how numbers are written, and lines that are too long."""
    text = spec.read_text(encoding="utf-8")
    before = [line.partition("#")[0].split() for line in text.splitlines() if len(line.partition("#")[0]) < 100]
    after = [line.partition("#")[0].split() for line in tidy(text).splitlines()]
    missing = [line for line in before if line not in after]
    assert all(re.search(r"\d\.0\b|:$", " ".join(line)) for line in missing), missing


def test_a_long_list_takes_no_time() -> None:
    rows = "".join(f"  n{i} {{ # {i}\n a{i}, b{i} }},\n" for i in range(3_000))
    start = time.perf_counter()
    text = tidy(f"hierarchy h {{\n{rows}}}\n")
    assert time.perf_counter() - start < 5  # a tenth of it here; minutes where each entry looks at all others
    assert text.count("#") == 3_000
