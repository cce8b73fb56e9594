"""What the README and the docs show is what happens: their Python runs, their commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(text, id=f"{page.name}:{page.read_text()[: m.start()].count(chr(10)) + 1}")
    for page in PAGES
    for m in re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
    for text in [m[1]]
]


@pytest.mark.parametrize("code", BLOCKS)
def test_python_of_the_pages_runs(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if "torch" in code:
        pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    exec(compile(code.replace("/tmp/", f"{tmp_path}/"), "page", "exec"), {})


def test_the_readme_opens_with_two_commands_that_make_their_own_environment() -> None:
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) == 2
    assert all("pip install -c constraints.txt" in command for command in commands)
    assert commands[1].endswith("-m pytest")


def test_every_command_of_the_readme_exists() -> None:
    from udcp_dsl.cli import main

    shown = set(re.findall(r"^udcp (\w+)", (ROOT / "README.md").read_text(), re.M))
    assert shown <= set(main.list_commands(None)), shown  # type: ignore[arg-type]


def test_the_table_of_oracles_is_what_they_say_of_themselves() -> None:
    from udcp_dsl.prediction.oracle import declaration_of

    table = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", (ROOT / "README.md").read_text(), re.M)
    told = {name: (does, fits) for name, does, fits in table if declaration_of(name) is not None}
    assert list(told) == ["base", "lac", "raps", "penalized", "ratio", "greedy", "price", "ilp"]
    for name, shown in told.items():
        says = declaration_of(name)
        assert says is not None
        assert (says.does, says.choose_for) == shown


def test_the_triage_tutorial_names_all_kinds_of_its_data() -> None:
    import csv

    with (ROOT / "specs/dermatology/skin.csv").open() as table:
        kinds = {row["kind"] for row in csv.DictReader(table)}
    opening = (ROOT / "docs/tutorials/triage.md").read_text().split("##")[0]
    assert set(re.findall(r"\*(\w+)\*", opening)) == kinds


def test_the_readme_counts_languages_and_labels() -> None:
    pytest.importorskip("py3langid")
    pytest.importorskip("django")
    from udcp_dsl.datasets import languages

    data = languages(0, rows=8000)
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"in {len(set(data.y.tolist()))} languages, has {len(data.labels)} labels" in text


def test_the_readme_tells_how_its_spec_differs_from_the_file() -> None:
    import udcp_dsl as udcp

    text = (ROOT / "README.md").read_text()
    shown = re.search(r"^loss triage =\n(.*?)^```", text, re.S | re.M)
    assert shown is not None
    terms = {re.sub(r"\s*#.*", "", line).strip(" +") for line in shown[1].splitlines()}
    more = set(udcp.load(ROOT / "specs/dermatology/triage.loss").terms(())) - terms
    assert more == {"3 * any(urgent)"}
    assert "# the text above, and a term for urgent conditions" in text
