"""What the README and the docs show is what happens: their Python runs, their commands exist."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(text, id=f"{page.name}:{page.read_text()[: m.start()].count(chr(10)) + 1}")
    for page in PAGES
    for m in re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
    for text in [m[1]]
    if ">>> " not in text
]
# Pages whose blocks are sessions, with what they print: these share their names, as those of a notebook do.
SESSIONS = [page for page in PAGES if "```python\n>>> " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("code", BLOCKS)
def test_python_of_the_pages_runs(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if "torch" in code:
        pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    exec(compile(code.replace("/tmp/", f"{tmp_path}/"), "page", "exec"), {})


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.name)
def test_sessions_of_the_pages_print_what_they_show(page: Path) -> None:
    import doctest

    blocks = re.findall(r"^```python\n(>>> .*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_the_readme_has_three_commands_that_make_their_own_environment() -> None:
    """`.ci/run` finds each by what it runs, and runs it in a fresh copy."""
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) == 3
    assert all("pip install -c constraints.txt" in command for command in commands)
    assert commands[0].endswith("udcp demo")
    assert commands[1].endswith("-m pytest")
    assert commands[2].endswith("-m sphinx -b html docs site")
    script = ROOT / ".ci/run"
    if script.exists():  # it is no part of the source distribution
        assert all(f'"{ending}"' in script.read_text() for ending in ("udcp demo", "-m pytest", "-m sphinx"))


def test_every_command_of_the_readme_exists() -> None:
    from udcp_dsl.cli import main

    shown = set(re.findall(r"^udcp (\w+)", (ROOT / "README.md").read_text(), re.M))
    assert shown <= set(main.list_commands(None)), shown  # type: ignore[arg-type]


def test_the_table_of_oracles_is_what_they_say_of_themselves() -> None:
    from udcp_dsl.predict.oracle import declaration_of

    table = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", (ROOT / "docs/oracles.md").read_text(), re.M)
    told = {name: (does, fits) for name, does, fits in table if declaration_of(name) is not None}
    assert list(told) == ["base", "lac", "raps", "penalized", "ratio", "greedy", "price", "ilp"]
    for name, shown in told.items():
        says = declaration_of(name)
        assert says is not None
        assert (says.does, says.choose_for) == shown


def test_the_page_on_oracles_lists_their_options_with_their_defaults() -> None:
    from importlib.metadata import entry_points
    from inspect import Parameter, signature

    from udcp_dsl.predict.oracle import GROUP
    from udcp_solvers.ilp import LEVELS

    page = (ROOT / "docs/oracles.md").read_text()
    shown = {
        (oracle, option): LEVELS if default == "LEVELS" else ast.literal_eval(default)
        for option, default, oracles in re.findall(r"^\| `(\w+)=(.*?)` \| (.*?) \|", page, re.M)
        for oracle in re.findall(r"`(\w+)`", oracles)
    }
    assert shown == {
        (entry.name, option.name): option.default
        for entry in entry_points(group=GROUP)
        for option in signature(entry.load()).parameters.values()
        if option.kind == Parameter.KEYWORD_ONLY
    }


def test_the_triage_tutorial_names_all_kinds_of_its_data() -> None:
    import csv

    with (ROOT / "specs/dermatology/skin.csv").open() as table:
        kinds = {row["kind"] for row in csv.DictReader(table)}
    opening = (ROOT / "docs/tutorials/triage.md").read_text().split("##")[0]
    assert set(re.findall(r"\*(\w+)\*", opening)) == kinds


def test_a_spec_reads_below_its_own_folder_as_security_says(tmp_path: Path) -> None:
    import udcp_dsl as udcp

    (tmp_path / "labels.csv").write_text("label\na\nb\n")
    (tmp_path / "spec").mkdir()
    spec = tmp_path / "spec" / "t.loss"
    spec.write_text('labels from "../labels.csv" column label\nloss l = size\n')
    with pytest.raises(udcp.SpecError, match="outside"):
        udcp.load(spec)
    assert udcp.load(spec, allow_outside=True).K == 2
    page = " ".join((ROOT / "SECURITY.md").read_text().split())
    assert "only below its own folder" in page
    assert "`allow_outside=True`" in page


def test_only_the_user_who_scores_writes_compiled_kernels_of_an_image() -> None:
    """numba unpickles them. Before 0.68 it also compiles again what layers of an image have dropped fractions from."""
    image = re.search(r"^```dockerfile\n(.*?)^```", (ROOT / "docs/containers.md").read_text(), re.S | re.M)
    assert image is not None
    assert "chmod" not in image[1]
    assert "install -d -m 700 -o scorer /opt/kernels" in image[1]
    assert image[1].index("USER scorer") < image[1].index("udcp warm")
    assert "'numba>=0.68'" in image[1]
    assert "numba unpickles" in (ROOT / "SECURITY.md").read_text()


def test_the_page_counts_languages_and_labels() -> None:
    pytest.importorskip("py3langid")
    pytest.importorskip("django")
    from udcp_dsl.datasets import languages

    data = languages(0, rows=8000)
    text = " ".join((ROOT / "docs/benchmarks.md").read_text().split())
    assert f"in {len(set(data.y.tolist()))} languages, has {len(data.labels)} labels" in text


def test_the_readme_shows_what_its_example_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", README, re.S | re.M)
    assert shown is not None
    exec(compile(shown[1], "README.md", "exec"), {})
    assert capsys.readouterr().out == shown[2]


def test_the_readme_shows_the_loss_of_its_example() -> None:
    import udcp_dsl as udcp

    shown = re.search(r"^```\n(labels from.*?)^```", README, re.S | re.M)
    assert shown is not None
    here = udcp.loads(shown[1], folder=ROOT / "specs/code")
    there = udcp.load(ROOT / "specs/code/languages.loss")
    assert here.labels == there.labels
    assert here.terms({"js", "json"}) == there.terms({"js", "json"})


def test_the_readme_shows_the_error_of_its_loss() -> None:
    import udcp_dsl as udcp

    shown = re.search(r"^```\n(labels from.*?)^```.*?^```\n(languages.loss:.*?)^```", README, re.S | re.M)
    assert shown is not None
    text = shown[1].replace("count(code.family)", "count(code.famly)")
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(text, folder=ROOT / "specs/code", name="languages.loss")
    assert str(caught.value).strip() == shown[2].strip()


def test_the_picture_and_the_table_are_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import idea

    data = json.loads(idea.RESULTS.read_text(encoding="utf-8"))
    assert README.split(idea.BEGIN)[1].split(idea.END)[0].strip() == idea.table(data)
    assert idea.FIGURE.read_text(encoding="utf-8") == idea.drawn(data["row"])
    coverages = [x["coverage"] for case in data["results"].values() for x in case.values()]
    assert min(coverages) > 0.885, "the README says that all columns cover about the same"
    assert max(coverages) < 0.905


def test_the_readme_is_read_in_a_minute() -> None:
    assert README.count("\n") <= 150
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_sentences_are_drawn_from_all_that_users_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests")
    import sample_sentences

    every = sample_sentences.every_sentence(("readme", "docs", "help", "messages"))
    kinds = {kind for kind, _, _ in every}
    assert kinds == {"readme", "docs", "help", "messages"}
    assert len(every) > 1500
    assert list(
        sample_sentences.sentences("One sentence is here now. A second has `code` in it.\n\n- and three is a list item")
    ) == [
        "One sentence is here now.",
        "A second has `code` in it.",
        "and three is a list item",
    ]
