"""Prediction sets of another library, in an environment of its own: run by rivals/libraries.py, imports none of ours.

    python library_worker.py LIBRARY rows.npz

rows.npz: P and y to calibrate on, Q to predict. Each line of input, a method and a confidence level and a file, is
answered by a line with the seconds that it took, or the error; the file then holds the sets, packed in bits.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

LAMBDA, KREG = 0.01, 5  # of RAPS, where a library does not choose


class Given:
    """A fitted classifier whose input is its probabilities."""

    def __init__(self, k: int) -> None:
        self.classes_ = np.arange(k)
        self.n_features_in_ = k

    def fit(self, X: Any, y: Any) -> Given:
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return X.argmax(axis=1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def mapie(P: Any, y: Any, Q: Any) -> Callable[[str, float], Any]:
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import ClassifierMixin

    class Estimator(Given, ClassifierMixin): ...

    def sets(method: str, level: float) -> Any:
        model = SplitConformalClassifier(
            Estimator(P.shape[1]), confidence_level=level, conformity_score=method, prefit=True, random_state=0
        )
        return model.conformalize(P, y).predict_set(Q)[1][:, :, 0]

    return sets


def torchcp(P: Any, y: Any, Q: Any) -> Callable[[str, float], Any]:
    from unittest.mock import MagicMock

    # Two functions of torchsort are imported with the package; the losses that call them are none of ours.
    sys.modules["torchsort"] = MagicMock()
    import torch
    import torchcp.classification.score as scores
    from torchcp.classification.predictor import SplitPredictor

    logits, truth, new = torch.log(torch.from_numpy(P)), torch.from_numpy(y), torch.log(torch.from_numpy(Q))

    def sets(method: str, level: float) -> Any:
        score = {
            "lac": lambda: scores.LAC(),
            "aps": lambda: scores.APS(randomized=False, score_type="softmax"),
            "raps": lambda: scores.RAPS(randomized=False, score_type="softmax", penalty=LAMBDA, kreg=KREG),
        }[method]()
        model = SplitPredictor(score)
        model.calculate_threshold(logits, truth, 1 - level)
        return np.asarray(model.predict_with_logits(new), dtype=bool)

    return sets


def crepes(P: Any, y: Any, Q: Any) -> Callable[[str, float], Any]:
    from crepes import ConformalClassifier
    from crepes.extras import hinge, margin

    held: dict[str, Any] = {}  # p-values, which are the same for every level

    def sets(method: str, level: float) -> Any:
        if method not in held:
            score = {"lac": hinge, "margin": margin}[method]
            model = ConformalClassifier()
            model.fit(score(P, np.arange(P.shape[1]), y))
            held[method] = model.predict_p(score(Q), smoothing=False)
        return held[method] >= 1 - level

    return sets


def puncc(P: Any, y: Any, Q: Any) -> Callable[[str, float], Any]:
    import deel.puncc.classification as methods
    from deel.puncc.api.prediction import BasePredictor

    class Identity(BasePredictor):  # type: ignore[misc]  # untyped
        def predict(self, X: Any, **_: Any) -> Any:
            return X

    def sets(method: str, level: float) -> Any:
        options = {"lac": {}, "aps": {"rand": False}, "raps": {"rand": False, "lambd": LAMBDA, "k_reg": KREG}}[method]
        model = getattr(methods, method.upper())(Identity(None, is_trained=True), train=False, **options)
        model.fit(X_calib=P, y_calib=y)
        found = np.zeros(Q.shape, dtype=bool)
        for row, labels in zip(found, model.predict(Q, alpha=1 - level)[1], strict=True):
            row[np.asarray(labels, dtype=np.int64)] = True
        return found

    return sets


def main() -> None:
    library, rows = sys.argv[1:]
    warnings.simplefilter("ignore")
    with np.load(rows) as held:
        P, y, Q = held["P"], held["y"], held["Q"]
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries may print
    sets = {"mapie": mapie, "torchcp": torchcp, "crepes": crepes, "puncc": puncc}[library](P, y, Q)
    for line in sys.stdin:
        method, level, file = line.rstrip("\n").split("\t")
        start = time.perf_counter()
        try:
            found = sets(method, float(level))
        except Exception as error:  # a library may refuse; the others go on
            print(f"{type(error).__name__}: {error}".replace("\n", " "), file=answers, flush=True)
            continue
        seconds = time.perf_counter() - start
        np.save(file, np.packbits(found, axis=1))
        print(seconds, file=answers, flush=True)


if __name__ == "__main__":
    main()
