"""For test suites: random specs, sets and probabilities, and assertions that judge a compiled loss.

The strategies need hypothesis (`pip install 'udcp_dsl[test]'`); the assertions and `all_masks` do not.
Everything is imported when it is first used.

    from hypothesis import given
    import udcp_dsl as udcp
    from udcp_dsl.testing import assert_facts, assert_meaning, label_sets

    triage = udcp.load("triage.loss")

    def test_triage_means_what_it_says():
        assert_meaning(triage)
        assert_facts(triage)

    @given(label_sets(triage))
    def test_no_set_is_worth_more_than_a_day(S):
        assert triage(S) <= 24
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from udcp_dsl.testing.cubes import all_masks
    from udcp_dsl.testing.generated import GeneratedSpec, losses, specs
    from udcp_dsl.testing.inputs import label_sets, probabilities
    from udcp_dsl.testing.meaning import assert_meaning
    from udcp_dsl.testing.proofs import assert_facts

_WHERE = {
    "GeneratedSpec": "generated",
    "all_masks": "cubes",
    "assert_facts": "proofs",
    "assert_meaning": "meaning",
    "label_sets": "inputs",
    "losses": "generated",
    "probabilities": "inputs",
    "specs": "generated",
}

__all__ = [
    "GeneratedSpec",
    "all_masks",
    "assert_facts",
    "assert_meaning",
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
