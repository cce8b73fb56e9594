"""A column's role is declared once: the explicit signatures and the options of the commands are held to it."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from pathlib import Path

import click
import pytest

from udcp_dsl import InputError, SetPredictor
from udcp_dsl.cli import main
from udcp_dsl.rows.roles import ENTRIES, ROLES, Columns
from udcp_dsl.rows.rows import ADDED_BY_STAGES, NOT_PER_ROW, Rows
from udcp_dsl.rows.source import open_rows, read_rows

VERBS = ("calibrate", "predict", "evaluate", "monitor", "compare", "order", "gap", "validate", "studio")


def test_the_explicit_signature_has_every_role() -> None:
    parameters = inspect.signature(SetPredictor.predict_batches).parameters
    assert set(ROLES) - set(parameters) == {"truth_column"}
    for name in set(ROLES) - {"truth_column"}:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == getattr(Columns(), name)


def test_readers_take_columns_as_a_value_or_by_keyword(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("photo,cat,dog,site\nx,0.5,0.5,a\n")
    columns = Columns(id_column="photo", ignore=["site"])
    for how in ({"columns": columns}, {"columns": replace(columns, ignore=()), "ignore": ["site"]}, vars(columns)):
        source = open_rows(tmp_path / "p.csv", ["cat", "dog"], **{**how, "inputs": None})
        assert source.wanted.columns == columns
        assert read_rows(tmp_path / "p.csv", ["cat", "dog"], **{**how, "inputs": None}).ids.tolist() == ["x"]
    with pytest.raises(TypeError, match="photo_column"):
        open_rows(tmp_path / "p.csv", ["cat", "dog"], photo_column="photo")


@pytest.mark.parametrize("verb", VERBS)
def test_options_are_those_that_are_declared(verb: str) -> None:
    command = main.get_command(click.Context(main), verb)  # type: ignore[attr-defined]
    assert command is not None
    options = {x.opts[0]: x for x in command.params if isinstance(x, click.Option)}
    declared = {role.option: role for role in ROLES.values()}
    assert {"--probs", "--ignore"} <= set(options)
    for name in declared.keys() & options.keys():
        assert (options[name].help, options[name].multiple) == (declared[name].help, declared[name].several)


def test_what_belongs_to_rows_is_a_field_of_them() -> None:
    assert set(ENTRIES.values()) == {x.name for x in fields(Rows)} - {*NOT_PER_ROW, "P", "inputs", *ADDED_BY_STAGES}


def test_lists_of_columns_are_lists() -> None:
    assert Columns(ignore=["a"]) == Columns(ignore=("a",))
    for name in ("carry", "ignore"):
        with pytest.raises(InputError, match="carry and ignore are lists of columns"):
            Columns(**{name: "taken"})
