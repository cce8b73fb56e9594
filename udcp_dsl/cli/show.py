"""`udcp show FILE`: describe a saved predictor, without scoring or compiling anything."""

from __future__ import annotations

import warnings
from dataclasses import replace

import click

from udcp_dsl.cli.ending import finish, json_option, wants_json
from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Styled


@click.command("show", epilog="Example:  udcp show pets.json")
@click.argument("predictor_file", metavar="FILE", type=click.Path())
@click.option("--spec", "spec_alone", is_flag=True, help="Print only the spec that is saved in the predictor.")
@json_option
def command(predictor_file: str, spec_alone: bool) -> int:
    """Describe a saved predictor: its loss, oracle, guarantee, thresholds and calibration rows."""
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.predict.saved import saved_by

    if spec_alone and wants_json():
        raise InputError("--spec prints only the text, and --json contains it: choose one")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # shown at calibration and at use
        predictor = SetPredictor.load(predictor_file)
    if spec_alone:
        click.echo(predictor.loss.source.text, nl=not predictor.loss.source.text.endswith("\n"))
        return 0
    version, form = saved_by(predictor_file)
    by = f": {predictor.loss.name} by {predictor.oracle.name}, saved by udcp_dsl {version}"
    described = predictor.describe()
    data = {"version": version, "format": form, **described.data}
    return finish(replace(described, title=(Styled(predictor_file, "bold"), by), data=data), {"file": predictor_file})
