"""`udcp show FILE`: describe a saved predictor, without scoring or compiling anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish, json_option, wants_json
from udcp_dsl.cli.thresholds import calibration_as_data, found_lines, limits_shown, threshold_table, tuning_lines
from udcp_dsl.showing import Column, Description, Styled, Table, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from udcp_dsl.predict.applicability import Applicability
    from udcp_dsl.predict.predictor import SetPredictor

_STATES = ("proved", "refuted", "unknown")
_LISTED = 8
_SHOWN_AS_FOUND = ("alpha", "repair", "temperature")  # options of a promise that are shown as found, not as requested


@click.command("show", epilog="Example:  udcp show pets.json")
@click.argument("predictor_file", metavar="FILE", type=click.Path())
@click.option("--spec", "spec_alone", is_flag=True, help="Print only the spec that is saved in the predictor.")
@json_option
def command(predictor_file: str, spec_alone: bool) -> int:
    """Describe a saved predictor: its loss, oracle, guarantee, thresholds and calibration rows."""
    import warnings

    from udcp_dsl.diagnostics import InputError
    from udcp_dsl.predict.applicability import applicability
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.predict.row_warnings import limits_not_enforced
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
    way = applicability(predictor.oracle.name, predictor.loss)
    by = f": {predictor.loss.name} by {predictor.oracle.name}, saved by udcp_dsl {version}"
    columns = (Column("", 0, kind="word", style="dim"), Column("", 1))
    limit_table, limit_lines = limits_shown(predictor)
    unenforced = filter(None, [limits_not_enforced(predictor.oracle)])
    described = Description(
        title=(Styled(predictor_file, "bold"), by),
        tables=(Table(columns, list(_lines(predictor, way))), threshold_table(predictor), limit_table),
        notes=(*limit_lines, *unenforced, *(() if predictor.tuning is None else tuning_lines(predictor.tuning))),
        data={"version": version, "format": form, **_as_data(predictor, way)},
    )
    return finish(described, {"file": predictor_file})


def _as_data(predictor: SetPredictor, way: Applicability) -> dict[str, Any]:
    from udcp_dsl.expression.explain import facts_as_dict
    from udcp_dsl.predict.promise import OPTIONS

    loss, anchors, promise = predictor.loss, predictor.anchors, predictor.promise
    asked = {name: getattr(promise, name) for name in OPTIONS if name not in _SHOWN_AS_FOUND}
    return {
        **calibration_as_data(predictor),
        "labels": list(loss.labels),
        "params": dict(loss.params),
        "expression": loss.expression.root.span.line,
        "spec": {"name": loss.source.name, "text": loss.source.text, "files": list(loss.files)},
        **facts_as_dict(loss),
        "way": {"algorithm": way.why, "exact": way.exact, "time": way.time},
        "promise": {
            "alphas": [str(alpha) for alpha in predictor.alphas],
            "coverage": [float(1 - alpha) for alpha in predictor.alphas] if promise.risk is None else None,
            "told": [fitted.guarantee for fitted in predictor.fits.values()],
            **asked,
            "bins": promise.bin_count if promise.by_difficulty else None,
            "confidence": None if promise.confidence is None else float(promise.confidence),
            "weighted": predictor.fitted.thresholds.calibration.weighted,
        },
        "input": {
            "class_names": None if predictor.class_names is None else list(predictor.class_names),
            "columns": None if predictor.columns is None else list(predictor.columns),
            "logits": predictor.logits,
            "normalize": predictor.normalize,
            "inputs": [
                {"name": x.name, "range": [x.low, x.high], "entries": None if x.entries is None else list(x.entries)}
                for x in predictor.inputs.values()
            ],
        },
        "groups": list(predictor.fitted.context.strata.names) if predictor.promise.by_name else [],
        "decision": None if predictor.decision is None else predictor.decision.as_dict(),
        "anchors": None if anchors is None else {str(alpha): anchor.as_dict() for alpha, anchor in anchors.items()},
        "repair": None if predictor.repair is None else {**predictor.repair.as_dict(), "about": str(predictor.repair)},
        "temperature": predictor.temperature,
    }


def _lines(predictor: SetPredictor, way: Applicability) -> Iterator[tuple[str, str]]:
    from udcp_dsl.expression.explain import summary

    loss = predictor.loss
    yield "loss", f"{loss.name} = {loss.expression.root.span.line}"
    yield "", f"{summary(loss)}, from {loss.source.name}"
    if loss.params:
        yield "with", _settings(loss.params)
    for state in _STATES:
        names = [name.replace("_", " ") for name, fact in loss.facts if fact.state == state]
        if names:
            yield state, ", ".join(names)
    yield "labels", listed(loss.labels, _LISTED)
    exact = "" if way.exact is None else ", exact" if way.exact else ", a heuristic"
    time = "" if way.time is None else f"; {way.time.per_row}"
    yield "oracle", f"{predictor.oracle.name}, by {way.why}{exact}{time}"
    settings = {name: x for name, x in predictor.oracle.options.items() if x is not None and x is not False}
    if settings:
        yield "options", _settings(settings)
    yield "guarantee", _promise(predictor)
    yield from (("", line) for line in found_lines(predictor))
    yield "rows", predictor.fitted.rows_used
    takes = "logits" if predictor.logits else "numbers to be normalised" if predictor.normalize else "probabilities"
    order = "" if predictor.class_names is None else f"; columns of arrays: {listed(predictor.class_names, _LISTED)}"
    if predictor.columns is not None:
        order = f"; columns by name (in calibration: {listed(predictor.columns, _LISTED)})"
    yield "input", takes + order
    yield from (("" if i else "inputs", str(x)) for i, x in enumerate(predictor.inputs.values()))
    yield "repair", predictor.fitted.about_p
    yield from _anchors(predictor)


def _promise(predictor: SetPredictor) -> str:
    text = "; ".join(fitted.guarantee for fitted in predictor.fits.values())
    if predictor.fitted.thresholds.calibration.weighted:
        text += "; for new rows whose shift the weights describe"
    if predictor.pool:
        text += "; those with too few rows share a threshold, without a guarantee"
    if predictor.nonempty:
        text += "; no set is empty"
    if predictor.randomize:
        text += f"; randomised, seed {predictor.seed}"
    return text


def _anchors(predictor: SetPredictor) -> Iterator[tuple[str, str]]:
    from udcp_dsl.predict.calibrate import show_level

    if predictor.anchors is None:
        return
    every = predictor.anchors
    found = [f"{show_level(alpha)}: {_anchor(anchor.overall)}" for alpha, anchor in every.items()]
    yield "anchor", "at alpha " + ", ".join(found)
    for name in list(next(iter(every.values())).by_stratum)[:_LISTED]:
        found = [f"{show_level(alpha)}: {_anchor(anchor.by_stratum[name])}" for alpha, anchor in every.items()]
        yield "", f"of {name}, at alpha " + ", ".join(found)


def _anchor(price: float | None) -> str:
    return "none" if price is None else f"{price:.6g}"


def _settings(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {f'{x:.10g}' if isinstance(x, float) else x}" for name, x in values.items())
