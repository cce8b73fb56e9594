"""One description, and what is drawn from it: text, JSON, HTML; and how a command ends with it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import unescape
from io import StringIO
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from udcp_dsl.cli.ending import finish, json_option
from udcp_dsl.report.page import verdict_page
from udcp_dsl.showing import Column, Description, Styled, Table
from udcp_dsl.showing.data import as_data
from udcp_dsl.showing.html import as_html
from udcp_dsl.showing.text import as_rich, as_text


@dataclass(frozen=True)
class Record:
    name: str
    cost: float | None
    interval: tuple[float, float]


HOSTILE = "<b>\x1b[31m"
RECORDS = [Record(HOSTILE, 1.25, (0.0, 1.0)), Record("b", None, (0.5, 1.0))]
COLUMNS = (Column("name", "name"), Column("cost", "cost", ".1f"))
VERDICT = "holds " * 30 + "to the end"
DESCRIPTION = Description(
    title=(Styled("pets", "bold"), " of two rows"),
    tables=(
        Table(COLUMNS, RECORDS, key="rows", shown=RECORDS[:1], note="and 1 more", stands_out=lambda r: r.name != "b"),
        Table((), [{"hidden": 1}], key="data_alone"),
    ),
    notes=(("one line", "\n", Styled("\n", "dim")),),
    verdict=(Styled(VERDICT, "good"), "for a reason"),
    data={"n": 2},
)


def test_json_has_all_records_whatever_is_shown() -> None:
    assert as_data(DESCRIPTION) == {
        "n": 2,
        "rows": [
            {"name": HOSTILE, "cost": 1.25, "interval": [0.0, 1.0]},
            {"name": "b", "cost": None, "interval": [0.5, 1.0]},
        ],
        "data_alone": [{"hidden": 1}],
    }


def test_text_has_the_records_that_are_shown_and_a_verdict_on_one_line() -> None:
    assert as_text(DESCRIPTION).split("\n") == [
        "pets of two rows",
        "",
        "name          cost",
        "──────────────────",
        "<b>\\x1b[31m    1.2",
        "and 1 more",
        "",
        "one line",
        "\\n",
        "",
        VERDICT,
        "for a reason",
    ]


@pytest.mark.parametrize("draw", [as_html, verdict_page])
def test_html_is_escaped_and_has_the_same_words(draw: Any) -> None:
    html = draw(DESCRIPTION)
    assert "<b>" not in html
    assert "\x1b" not in html
    assert "hidden" not in re.sub(r"<style>.*?</style>|class=\"hidden\"", "", html, flags=re.S)
    for part in (" of two rows", "<b>\\x1b[31m", "1.2", "and 1 more", VERDICT, "for a reason"):
        assert part in unescape(html)
    assert '<tr style="font-weight: bold">' in html


def test_a_column_reads_fields_keys_places_and_functions() -> None:
    cells = [
        Column("", "name").cell(RECORDS[1]),
        Column("", "name").cell({"name": "x"}),
        Column("", 1).cell(("a", "y")),
    ]
    assert cells == ["b", "x", "y"]
    assert Column("", lambda r: r.interval[0], ".2f").cell(RECORDS[1]) == "0.50"
    assert Column("", "cost", ".2f").cell(RECORDS[1]) == ""


def ended(*arguments: str, fails: bool = False, status: int = 0) -> tuple[int, str]:
    def write() -> list[str]:
        if fails:
            raise OSError(28, "No space left", "out.csv")
        return ["out.csv"]

    @click.command()
    @json_option
    @click.pass_context
    def command(ctx: click.Context) -> None:
        result = Description(title="done", data={"n": 2})
        ctx.exit(finish(result, {"diagnostics": []}, status=status, write=write, key="file"))

    done = CliRunner().invoke(command, arguments)
    return done.exit_code, done.stdout


def test_a_command_ends_with_its_result_its_files_and_its_status() -> None:
    assert ended() == (0, "done\nout.csv is written\n")
    assert ended(status=1) == (1, "done\nout.csv is written\n")
    for status, ok in ((0, True), (1, False), (3, True)):
        code, text = ended("--json", status=status)
        assert (code, json.loads(text)) == (status, {"ok": ok, "diagnostics": [], "file": "out.csv", "n": 2})


def test_with_json_a_file_that_fails_is_told_beside_the_result() -> None:
    code, text = ended("--json", fails=True)
    told = json.loads(text)
    assert (code, told["ok"], told["file"], told["n"]) == (2, False, None, 2)
    assert told["diagnostics"][0]["message"] == "out.csv: No space left"
    assert ended(fails=True) == (1, "done\n")  # the error goes on to those who tell it


@pytest.mark.parametrize("width", [80, 100])
def test_a_table_that_is_too_wide_goes_on_below(width: int) -> None:
    """With seven oracles the names of the rows were folded to a letter or two."""
    names = ["price", "lac", "base", "raps", "penalized", "greedy", "ratio"]
    oracles = (Column(name, lambda row: "0.912 (34%)", kind="number") for name in names)
    table = Table((Column("coverage by difficulty", str), *oracles), ["hardest quarter", "easiest quarter"])
    console = Console(width=width, record=True, file=StringIO())
    console.print(as_rich(Description(tables=(table,))))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    heads = [line.split()[3:] for line in lines if line.startswith("coverage by difficulty")]
    assert len(heads) > 1
    assert [name for head in heads for name in head] == names
    assert sum(line.startswith("hardest quarter  ") for line in lines) == len(heads)
