"""Checks of specs and oracles on generated cases, for test suites and for `udcp validate`, which runs them all.

The strategies need hypothesis (`pip install 'udcp_dsl[test]'`); the assertions and `all_masks` do not.
Everything is imported when it is first used.

    from hypothesis import given
    import udcp_dsl as udcp
    from udcp_dsl.check import assert_coverage, assert_facts, assert_meaning, classification_problems, label_sets

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

With the plugin, `pytest --udcp specs/*.loss` validates every loss of every spec in a test of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from udcp_dsl.lazy_imports import on_first_use

if TYPE_CHECKING:
    from udcp_dsl.check.conformance import assert_valid_oracle
    from udcp_dsl.check.coverage import Problem, assert_coverage
    from udcp_dsl.check.facts import assert_facts
    from udcp_dsl.check.generated.specs import GeneratedSpec, losses, specs
    from udcp_dsl.check.meaning import assert_lowers, assert_meaning
    from udcp_dsl.check.oracles import assert_faces
    from udcp_dsl.check.samples import all_masks, drawn_inputs
    from udcp_dsl.check.strategies import classification_problems, label_sets, probabilities

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

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "conformance": "assert_valid_oracle",
        "coverage": "Problem assert_coverage",
        "facts": "assert_facts",
        "generated.specs": "GeneratedSpec losses specs",
        "meaning": "assert_lowers assert_meaning",
        "oracles": "assert_faces",
        "samples": "all_masks drawn_inputs",
        "strategies": "classification_problems label_sets probabilities",
    },
)
