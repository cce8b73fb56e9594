"""`udcp new`: a starting spec that compiles, whatever the labels."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.cli.new import starting_spec
from udcp_dsl.loss import loads

Udcp = Callable[..., Result]


def test_the_spec_is_written_and_checks_without_a_word_of_warning(udcp: Udcp, folder: Path) -> None:
    result = udcp("new", "start.loss")
    assert (result.exit_code, result.stdout) == (0, "start.loss is written; next: udcp check start.loss\n")
    checked = udcp("check", "start.loss")
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert sorted(p.name for p in folder.iterdir()) == ["pets.loss", "start.loss"]


def test_the_commands_in_its_comments_work(udcp: Udcp, folder: Path) -> None:
    udcp("new", "start.loss")
    text = (folder / "start.loss").read_text()
    assert "udcp eval start.loss tabby siamese" in text
    assert udcp("eval", "start.loss", "tabby", "siamese").exit_code == 0
    assert "udcp check start.loss --param coherence=3" in text
    assert udcp("check", "start.loss", "--param", "coherence=3").exit_code == 0


def test_it_takes_your_labels(udcp: Udcp, folder: Path) -> None:
    done = udcp("new", "start.loss", "--labels", "ham,spam,not sure")
    assert done.exit_code == 0
    assert "start.loss is written with 3 labels: 'ham', 'spam', 'not sure'; next: udcp check" in done.stdout
    assert 'labels { ham, spam, "not sure" }' in (folder / "start.loss").read_text()


def test_a_file_is_overwritten_only_by_force(udcp: Udcp, folder: Path) -> None:
    before = (folder / "pets.loss").read_text()
    result = udcp("new", "pets.loss")
    assert result.exit_code == 2
    assert result.stderr == "error: pets.loss already exists: choose another name, or overwrite it with --force\n"
    assert (folder / "pets.loss").read_text() == before
    assert udcp("new", "pets.loss", "--force").exit_code == 0
    assert (folder / "pets.loss").read_text() != before


def test_json(udcp: Udcp, folder: Path) -> None:
    data = json.loads(udcp("new", "start.loss", "--json").stdout)
    assert data == {
        "ok": True,
        "diagnostics": [],
        "file": "start.loss",
        "text": (folder / "start.loss").read_text(),
    }


LABELS = st.lists(
    st.one_of(st.sampled_from(["default", "one", "two", "groups", "size", "7", "07", "a\nb", '"', "{", "#", "0..9"]),
              st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)),
    min_size=1, max_size=8, unique=True,
)  # fmt: skip


@given(LABELS)
def test_any_labels_give_a_spec_that_compiles(labels: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = loads(starting_spec("my spec\n.loss", labels))
    assert list(loss.labels) == labels
    assert loss.free_labels == ()
    assert loss.facts.monotone
