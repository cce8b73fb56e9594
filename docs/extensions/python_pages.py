"""One page per public name of the Python interface, made from its docstring, and an index of them.

`PAGES` is the list of what is public; tests/test_docstrings.py holds every entry to a complete docstring.
"""

from __future__ import annotations

import inspect
from functools import cached_property
from importlib import import_module
from typing import Any

from adopted import MADE

# Title -> one line, and the names as `module:name`.
PAGES: dict[str, tuple[str, list[str]]] = {
    "Losses": (
        "What a set costs.",
        [
            *("udcp_dsl:load", "udcp_dsl:loads", "udcp_dsl:Loss"),
            *("udcp_dsl.expression.facts:Facts", "udcp_dsl.expression.facts:Fact"),
            *("udcp_dsl:fit_params", "udcp_dsl:Fit"),
        ],
    ),
    "Predictors": (
        "Calibrate, predict, save.",
        ["udcp_dsl:SetPredictor", "udcp_dsl:PredictionSets", "udcp_dsl:Promise", "udcp_dsl:Repair"],
    ),
    "Evaluation": (
        "Measure, compare, watch.",
        [
            *("udcp_dsl:evaluate", "udcp_dsl:Evaluation", "udcp_dsl:compare", "udcp_dsl:Comparison"),
            *("udcp_dsl.measure.comparison:Summary", "udcp_dsl:sweep", "udcp_dsl:Sweep"),
            *("udcp_dsl:Monitor", "udcp_dsl:Alarm", "udcp_dsl:gap", "udcp_dsl:Gap"),
        ],
    ),
    "Shifts": (
        "New rows that differ from the calibration rows.",
        [
            *("udcp_dsl:weights_from_classifier", "udcp_dsl.predict.shift_weights:ShiftWeights"),
            "udcp_dsl:LabelShift",
        ],
    ),
    "Oracles": (
        "Order the labels of a row.",
        [
            *("udcp_dsl:make_oracle", "udcp_dsl:oracle_names", "udcp_dsl.predict.oracle:Oracle"),
            *("udcp_dsl:applicable_oracles", "udcp_dsl:Applicable", "udcp_dsl.predict.order:Order"),
        ],
    ),
    "scikit-learn, torch and Dask": (
        "With other libraries.",
        [
            "udcp_dsl.sklearn:UtilitySetClassifier",
            *("udcp_dsl.torch:probabilities", "udcp_dsl.torch:logits", "udcp_dsl.torch:mc_probabilities"),
            *("udcp_dsl.torch:fit_temperature", "udcp_dsl.torch:load_weights"),
            "udcp_dsl.torch:hierarchy_from_embeddings",
            *("udcp_dsl.cluster.dask:predict_parts", "udcp_dsl.cluster.dask:rows_of_parts"),
        ],
    ),
    "Datasets": (
        "Real classifiers with real mistakes; nothing is downloaded.",
        [
            *("udcp_dsl.datasets:source_code", "udcp_dsl.datasets:icons", "udcp_dsl.datasets:KeptRows"),
            *("udcp_dsl.datasets:languages", "udcp_dsl.datasets:Languages"),
            *("udcp_dsl.datasets:digits", "udcp_dsl.datasets:Digits"),
            *("udcp_dsl.datasets:medicine", "udcp_dsl.datasets:Medicine"),
            *("udcp_dsl.datasets:texts_through_torch", "udcp_dsl.datasets:TorchTexts"),
        ],
    ),
    "Testing": (
        "Test a spec or an oracle of your own.",
        [
            *("udcp_dsl.check:assert_meaning", "udcp_dsl.check:assert_facts", "udcp_dsl.check:assert_coverage"),
            *("udcp_dsl.check:assert_valid_oracle", "udcp_dsl.check:assert_faces"),
            *("udcp_dsl.check:assert_lowers", "udcp_dsl.check:Problem", "udcp_dsl.check:all_masks"),
            *("udcp_dsl.check:specs", "udcp_dsl.check:GeneratedSpec", "udcp_dsl.check:losses"),
            *("udcp_dsl.check:label_sets", "udcp_dsl.check:probabilities", "udcp_dsl.check:drawn_inputs"),
            "udcp_dsl.check:classification_problems",
        ],
    ),
    "Errors and warnings": (
        "All errors are ValueErrors.",
        ["udcp_dsl:SpecError", "udcp_dsl:InputError", "udcp_dsl:OracleError", "udcp_dsl:SpecWarning"],
    ),
}

# Results: users get them from a function and do not call their constructor.
MADE_BY_US = frozenset({
    *("Alarm", "Applicable", "Comparison", "Digits", "Evaluation", "Fact", "Facts", "Fit", "Gap", "GeneratedSpec"),
    *("KeptRows", "Languages", "Loss", "Medicine", "Order", "PredictionSets", "ShiftWeights", "Summary", "Sweep"),
    "TorchTexts",
})  # fmt: skip

# Attributes that are for the package's own use, or deprecated.
INTERNAL = {
    "Loss": (
        *("example", "inputs_of", "of_spec", "costs_of", "interpret_positions", "form", "facts_of"),
        *("fact", "reading", "whole", "of_rows", "summands", "without_limits", "fixed_inputs"),
    ),
    "SetPredictor": (
        *("fitted", "calibrated", "promises", "kept", "rows", "use", "at", "level", "true_scores", "threshold_rows"),
        *("repaired", "sets", "make_sets", "make_sets_and_warn", "check_columns"),
    ),
    "PredictionSets": ("views", "decision_names", "paid"),
    "Promise": (
        "rule",
        "refuse_weights",
        "alpha_is_default",
        "within",
        "reads",
        "at_alpha",
        "before_fit",
        "check_groups",
    ),
    "Comparison": ("left_out", "called", "within", "kind", "temperature"),
    "Oracle": (
        *("of_format", "by_cost", "normalized", "unproved", "on_progress", "with_inputs", "best"),
        *("with_multipliers", "settled_by_row"),
    ),
    "UtilitySetClassifier": ("set_params", "get_params"),
    "Fact": (),
}
SHOWN_DUNDERS = {"Loss": ("__call__",)}


def public() -> dict[str, Any]:
    """Every public object by its name."""
    return {name: getattr(import_module(name.partition(":")[0]), name.partition(":")[2]) for name in names()}


def names() -> list[str]:
    return [name for _, entries in PAGES.values() for name in entries]


def members(value: type) -> list[str]:
    """The documented attributes of a class: methods and properties of its own and of its bases in this package."""
    hidden = INTERNAL.get(value.__name__, ())
    found: dict[str, None] = {}
    for base in value.__mro__:
        if base.__module__.startswith("udcp_dsl") and not base.__module__.startswith("udcp_dsl.showing"):
            for name, member in vars(base).items():
                shown = not name.startswith("_") or name in SHOWN_DUNDERS.get(value.__name__, ())
                kinds = (property, cached_property, classmethod, staticmethod)
                if shown and name not in hidden and (inspect.isfunction(member) or isinstance(member, kinds)):
                    found[name] = None
    return [name for name in found if name != "describe"]


def _page(name: str, value: Any) -> str:
    module, _, short = name.partition(":")
    where = f"{module}.{short}"
    called = (
        where.replace("udcp_dsl", "udcp") if module.count(".") <= 1 else short
    )  # users meet results, not their modules
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        listed = [] if kind == "autoexception" else members(value)
        more = f"\n   :members: {', '.join(listed)}" if listed else ""
        dunders = [x for x in listed if x.startswith("__")]
        more += f"\n   :special-members: {', '.join(dunders)}" if dunders else ""
    else:
        kind, more = "autofunction", ""
    return f"# {called}\n\n```{{eval-rst}}\n.. {kind}:: {where}{more}\n```\n"


def _file(name: str) -> str:
    """The page of a name; functions and classes that differ in case alone need different files everywhere."""
    module, _, short = name.partition(":")
    place = module.removeprefix("udcp_dsl").removeprefix(".")
    return ".".join(
        [*([place] if place.count(".") == 0 and place else []), short + ("-class" if short[0].isupper() else "")]
    )


def make(app: Any) -> None:
    from sphinx.ext.autodoc.mock import mock

    folder = MADE / "python"
    folder.mkdir(parents=True, exist_ok=True)
    with mock(app.config.autodoc_mock_imports):
        objects = public()
    index = [
        "# Python\n",
        "```python\nimport udcp_dsl as udcp\n```\n",
        "`import udcp_dsl` is quick: torch, numba, solvers and tables are imported when something needs them.\n",
        "The keywords of a predictor, with what excludes what, are also in one table: "
        "[Options of a predictor](../options.md).\n",
    ]
    for title, (about, entries) in PAGES.items():
        index += [f"## {title}\n", f"{about}\n", "| name | |", "|---|---|"]
        for name in entries:
            file = _file(name)
            (folder / f"{file}.md").write_text(_page(name, objects[name]), encoding="utf-8")
            first = (inspect.getdoc(objects[name]) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            index.append(f"| [{name.partition(':')[2]}]({file}.md) | {first} |")
        index += ["", "```{toctree}", ":hidden:", "", *(_file(name) for name in entries), "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    def signature(app: Any, what: str, name: str, value: Any, *rest: Any) -> tuple[str, None] | None:
        """Results are shown without their constructor."""
        return ("", None) if what == "class" and name.rpartition(".")[2] in MADE_BY_US else None

    app.connect("builder-inited", make, priority=200)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": False}
