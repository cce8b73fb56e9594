"""For test suites: random specs, sets, probabilities and problems, and assertions that judge losses and oracles.

The strategies need hypothesis (`pip install 'udcp_dsl[test]'`); the assertions and `all_masks` do not.
Everything is imported when it is first used.

    from hypothesis import given
    import udcp_dsl as udcp
    from udcp_dsl.testing import assert_coverage, assert_facts, assert_meaning, classification_problems, label_sets

    triage = udcp.load("triage.loss")

    def test_triage_means_what_it_says():
        assert_meaning(triage)
        assert_facts(triage)

    @given(label_sets(triage))
    def test_no_set_is_worth_more_than_a_day(S):
        assert triage(S) <= 24

    @given(classification_problems(triage))
    def test_coverage(problem):
        assert_coverage(udcp.SetPredictor(triage, "price", alpha=0.1), problem)

An oracle of your own, called as `MyOracle(loss, **options)`, gets the whole conformance suite in one line:

    def test_my_oracle():
        assert_valid_oracle(MyOracle)

And with the plugin `pytest --udcp specs/*.loss` validates every loss of every spec as a test of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from udcp_dsl.testing.conformance import assert_valid_oracle
    from udcp_dsl.testing.coverage import Problem, assert_coverage
    from udcp_dsl.testing.generated.specs import GeneratedSpec, losses, specs
    from udcp_dsl.testing.lowering import assert_lowers
    from udcp_dsl.testing.meaning import assert_meaning
    from udcp_dsl.testing.oracle_consistency import assert_faces
    from udcp_dsl.testing.proofs import assert_facts
    from udcp_dsl.testing.row_inputs import drawn_inputs
    from udcp_dsl.testing.strategies import classification_problems, label_sets, probabilities
    from udcp_dsl.testing.subset_lattices import all_masks

_WHERE = {
    "GeneratedSpec": "generated.specs",
    "Problem": "coverage",
    "all_masks": "subset_lattices",
    "assert_coverage": "coverage",
    "assert_faces": "oracle_consistency",
    "assert_facts": "proofs",
    "assert_lowers": "lowering",
    "assert_meaning": "meaning",
    "assert_valid_oracle": "conformance",
    "classification_problems": "strategies",
    "drawn_inputs": "row_inputs",
    "label_sets": "strategies",
    "losses": "generated.specs",
    "probabilities": "strategies",
    "specs": "generated.specs",
}

__all__ = [
    "GeneratedSpec",
    "Problem",
    "all_masks",
    "assert_coverage",
    "assert_faces",
    "assert_facts",
    "assert_lowers",
    "assert_meaning",
    "assert_valid_oracle",
    "classification_problems",
    "drawn_inputs",
    "label_sets",
    "losses",
    "probabilities",
    "specs",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'udcp_dsl.testing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"udcp_dsl.testing.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
