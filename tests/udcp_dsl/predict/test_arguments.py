"""Arguments that would be misread are refused: names without an order, truth values that are none, huge numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import InputError, OracleError, SetPredictor

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

LOSS = udcp.loads("labels {cat, dog, wolf, lynx}  costs c {wolf: 3, lynx: 2, default: 1}  loss l = sum(c)")
LABELS = list(LOSS.labels)
rng = np.random.default_rng(0)
N = 90
P_CAL, P_NEW = rng.dirichlet(np.ones(4), N), rng.dirichlet(np.ones(4), 24)
Y_CAL, Y_NEW = (np.array(LABELS)[np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)] for P in (P_CAL, P_NEW))

BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"class_names": set(LABELS)}, TypeError, "class_names: expected a sequence, not set"),
    ({"class_names": frozenset(LABELS)}, TypeError, "class_names: expected a sequence, not frozenset"),
    ({"class_names": dict.fromkeys(LABELS)}, TypeError, "class_names: expected a sequence, not dict"),
    ({"class_names": "cat dog wolf lynx"}, TypeError, "class_names: expected a sequence, not str"),
    ({"class_names": [*LABELS[:3], None]}, InputError, "class_names: number 4 is None: names are strings or whole"),
    ({"nonempty": "no"}, InputError, "nonempty is 'no': give True or False"),
    ({"randomize": 1}, InputError, "randomize is 1: give True or False"),
    ({"conditional": "class", "pool": None}, InputError, "pool is None: give True or False"),
    ({"oracle": "ilp", "options": {"canonical": "no"}}, OracleError, "canonical must be True or False, not 'no'"),
    ({"oracle": "price", "options": {"exact": "no"}}, OracleError, "exact must be True or False, not 'no'"),
    ({"oracle": "penalized", "options": {"lam": 10**400}}, OracleError, "lam must be a finite number"),
    ({"oracle": "raps", "options": {"lam": 10**400}}, OracleError, "lam must be 0 or a number"),
    ({"oracle": "greedy", "options": {"M": 10**400}}, OracleError, "M must be a finite number"),
    ({"oracle": "price", "options": {"anchor": 10**400}}, OracleError, "anchor must be a price"),
    ({"oracle": "ilp", "options": {"time_limit": 10**400}}, OracleError, "time_limit must be a number of seconds"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), BAD_SETTINGS)
def test_settings_that_would_be_misread(settings: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        SetPredictor(**{"loss": LOSS, "oracle": "lac", **settings})


def test_a_rank_beyond_all_labels_is_free_for_raps() -> None:
    far, last = (udcp.make_oracle("raps", LOSS, k=k) for k in (10**400, len(LABELS)))
    np.testing.assert_array_equal(far.scores(P_NEW), last.scores(P_NEW))


@pytest.mark.parametrize("option", ["logits", "normalize"])
def test_truth_values_at_calibration_are_truth_values(option: str) -> None:
    no: dict[str, Any] = {option: "no"}
    predictor = SetPredictor(LOSS, "lac")
    for given in (P_CAL, predictor.rows(P_CAL)):
        with pytest.raises(InputError, match=f"{option} is 'no': give True or False"):
            predictor.calibrate(given, Y_CAL, **no)
    predictor.calibrate(P_CAL, Y_CAL, logits=np.bool_(False))  # type: ignore[arg-type]
    assert predictor.logits is False


def test_columns_of_a_frame_that_are_no_labels_are_ignored_by_name() -> None:
    frame = pd.DataFrame(P_CAL[:, ::-1], columns=LABELS[::-1]).assign(truth=Y_CAL, note="x")
    new = pd.DataFrame(P_NEW[:, ::-1], columns=LABELS[::-1]).assign(truth=Y_NEW, note="x")
    plain = SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P_CAL, Y_CAL)
    predictor = SetPredictor(LOSS, "lac", alpha=0.2)
    others = ["truth", "note"]
    for kind in (lambda x: x, pl.from_pandas):
        predictor.calibrate(kind(frame), frame["truth"], ignore=others)
        np.testing.assert_array_equal(
            predictor.predict_set(kind(new), ignore=others).mask, plain.predict_set(P_NEW).mask
        )
        found = udcp.evaluate(predictor, kind(new), new["truth"], ignore=others)
        assert found.coverage == udcp.evaluate(plain, P_NEW, Y_NEW).coverage
        compared = udcp.compare(LOSS, kind(frame), frame["truth"], oracles=["lac"], splits=2, ignore=others)
        assert compared.n == N
    with pytest.raises(
        InputError, match=r"columns 'truth' and 'note' are not labels; .* ignored, by ignore=\[\.\.\.\]"
    ):
        predictor.predict_set(new)
    with pytest.raises(InputError, match="there is no column 'notes'; did you mean 'note'"):
        predictor.predict_set(new, ignore=["truth", "notes"])
    with pytest.raises(InputError, match="ignore is one string, 'truth': give a list"):
        predictor.predict_set(new, ignore="truth")
    with pytest.raises(InputError, match="'truth' names a column of a frame; an array has no named columns"):
        predictor.predict_set(P_NEW, ignore=["truth"])
    with pytest.raises(InputError, match="'truth' names a column of a frame; these rows have already been read"):
        predictor.predict_set(predictor.rows(P_NEW, class_names=LABELS), ignore=["truth"])


def test_numbers_that_no_float_holds_and_tensors_without_values() -> None:
    with pytest.raises(InputError, match="the probabilities: row 0, label 'cat', is 1000"):
        SetPredictor(LOSS, "lac").calibrate([[10**400, 0, 0, 0]], ["cat"])
    torch = pytest.importorskip("torch")
    meta = torch.zeros(3, 4, device="meta")
    with pytest.raises(InputError, match=r"the tensor \(device meta, torch\.float32\) has no values that can be read"):
        SetPredictor(LOSS, "lac").calibrate(meta, ["cat"] * 3)
