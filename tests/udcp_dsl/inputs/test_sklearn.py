"""Inputs per row through the scikit-learn class, and its requests for metadata."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError

pytest.importorskip("sklearn")


def test_inputs_are_fitted_with_their_rows_and_can_be_requested() -> None:
    import sklearn
    from sklearn.linear_model import LogisticRegression

    from udcp_dsl.sklearn import UtilitySetClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=300) > 0).astype(int) + (X[:, 1] > 1)]
    text = "labels { a, b, c }  input km in [0, 9]  costs fee per row in [1, 5]  loss l = sum(fee) + km * any({ a, b })"
    loss = udcp.loads(text)
    inputs = {"km": rng.uniform(0, 9, 300), "fee": rng.uniform(1, 5, (300, 3))}
    made = UtilitySetClassifier(LogisticRegression(), loss, alpha=0.2, random_state=0).fit(X, y, inputs=inputs)
    new = {name: column[:20] for name, column in inputs.items()}
    sets = made.predict_set(X[:20], inputs=new)
    assert sets.mask.shape == (20, 3)
    np.testing.assert_array_equal(made.p_values(X[:20], inputs=new) > 0.2, sets.mask)
    with pytest.raises(InputError, match="give inputs="):
        made.predict_set(X[:20])
    with sklearn.config_context(enable_metadata_routing=True):
        asked = UtilitySetClassifier(LogisticRegression(), udcp.loads(text)).set_fit_request(
            inputs=True, groups=True, weights=True
        )
        assert asked.get_metadata_routing().fit.requests == {"inputs": True, "groups": True, "weights": True}
