"""The classifiers of repair.py: the real ones of the repository, and six of scikit-learn on noisy digits and on drawn
classes, the latter with the mix of classes that they were trained on and with another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from dominance_cases import DIGITS, probabilities
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl import datasets

SPECS = Path(__file__).parent.parent / "specs"
FORESTS = ("random forest", "extra trees")
CLASSIFIERS = (*FORESTS, "boosting", "naive Bayes", "25 neighbours", "logistic regression")
_NOISE, _COPIES, _TRAINING = 7.0, 4, 600
_DRAWN_CLASSES, _DRAWN_TRAINING = 20, 2000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Case:
    """A loss, probabilities and true labels. Each split calibrates with `calibration` rows and judges others.

    Where rows can be drawn at will, these are `test` rows, and no two splits share any. Else (`test` None) they are all
    others of one pool: splits share rows, and standard errors over them are too small.
    """

    name: str
    loss: Any
    P: NDArray[np.floating[Any]]
    y: Ints
    calibration: int
    is_forest: bool = False
    test: int | None = None


def cases(quick: bool) -> Iterator[tuple[str, Callable[[], Case]]]:
    kinds = {"noisy digits": _noisy_digits, "20 classes": _drawn, "20 classes, another mix": _drawn_another_mix}
    for kind, make in kinds.items():
        for classifier in CLASSIFIERS[::5] if quick else CLASSIFIERS:
            yield f"{kind}: {classifier}", partial(make, f"{kind}: {classifier}", classifier)
    for classifier in ("25 neighbours", "logistic regression"):
        name = f"20 classes, label costs: {classifier}"
        yield name, partial(_drawn, name, classifier, text="sum(c)")
    yield "digits: shapes", partial(_digits, "digits: shapes", 30.0)
    yield "digits, C = 1: shapes", partial(_digits, "digits, C = 1: shapes", 1.0)
    yield "source code: parsers", partial(_of_spec, "source code: parsers", "source_code", "code/languages", "parsers")
    if quick:
        return
    yield (
        "source code: languages",
        partial(_of_spec, "source code: languages", "source_code", "code/languages", "languages"),
    )
    yield "icons: spoken", partial(_of_spec, "icons: spoken", "icons", "icons/icons", "spoken")
    for classifier in ("languages, normalised", "languages, raw", "texts through torch"):
        yield f"{classifier}: branches", partial(_languages, f"{classifier}: branches", classifier)
    yield "medicine: departments", partial(_medicine, "medicine: departments", shifted=False)
    yield "medicine, old titles: departments", partial(_medicine, "medicine, old titles: departments", shifted=True)


# Real classifiers -------------------------------------------------------------------------------------------------


def _real(name: str, loss: Any, P: Any, y: Any, most: int = 6000) -> Case:
    n = min(most, len(y))
    return Case(name, loss, P[:n], y[:n], n // 2)


def _digits(name: str, C: float) -> Case:
    data = datasets.digits(C=C)
    return _real(name, udcp.loads(DIGITS), data.probs, data.y)


def _of_spec(name: str, data: str, spec: str, loss: str) -> Case:
    rows = getattr(datasets, data)()
    return _real(name, udcp.load(SPECS / f"{spec}.loss", loss=loss), rows.probs, rows.y)


def _languages(name: str, classifier: str) -> Case:
    loss = udcp.load(SPECS / "languages" / "branches.loss")
    return _real(name, loss, probabilities(classifier), datasets.languages().y)


def _medicine(name: str, *, shifted: bool) -> Case:
    data = datasets.medicine()
    P, y = (data.shifted_probs, data.shifted_y) if shifted else (data.probs, data.y)
    return _real(name, udcp.load(SPECS / "medicine" / "blocks.loss", loss="departments"), P, y)


# Classifiers of scikit-learn --------------------------------------------------------------------------------------


def _model(classifier: str) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    makes: dict[str, Callable[[], Any]] = {
        "random forest": lambda: RandomForestClassifier(200, random_state=0),
        "extra trees": lambda: ExtraTreesClassifier(200, random_state=0),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "naive Bayes": GaussianNB,
        "25 neighbours": lambda: KNeighborsClassifier(25),
        "logistic regression": lambda: LogisticRegression(max_iter=300),
    }
    return makes[classifier]()


def _loss(K: int, groups: int, text: str = "sum(c) + 2 * count(f)") -> Any:
    """Label costs c from 0.5 to 1.5, and families f of labels."""
    families = ", ".join(f"f{g}: {{ {', '.join(str(y) for y in range(g, K, groups))} }}" for g in range(groups))
    costs = ", ".join(f"{y}: {0.5 + 7919 * y % 1009 / 1009:.4f}" for y in range(K))
    return udcp.loads(f"labels 0..{K - 1}\ncosts c {{ {costs} }}\ncategories f {{ {families} }}\nloss l = {text}")


def _noisy_digits(name: str, classifier: str) -> Case:
    """Digits under noise: images that are not trained on, each under several draws of it."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    training, rest = order[:_TRAINING], np.repeat(order[_TRAINING:], _COPIES)
    rest = rng.permutation(rest)
    noisy = X[training] + rng.normal(0, _NOISE, (len(training), 64)), X[rest] + rng.normal(0, _NOISE, (len(rest), 64))
    P = _model(classifier).fit(noisy[0] / 16, y[training]).predict_proba(noisy[1] / 16)
    return Case(name, _loss(10, 3), P, y[rest].astype(np.int64), len(rest) // 2, classifier in FORESTS)


@cache
def _points(n: int = 120_000) -> tuple[Floats, Ints]:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n,
        n_features=20,
        n_informative=10,
        n_redundant=0,
        n_classes=_DRAWN_CLASSES,
        n_clusters_per_class=2,
        class_sep=1.2,
        random_state=0,
    )
    return X, y.astype(np.int64)


@cache
def _drawn_probabilities(classifier: str) -> tuple[Floats, Ints]:
    X, y = _points()
    model = _model(classifier).fit(X[:_DRAWN_TRAINING], y[:_DRAWN_TRAINING])
    return model.predict_proba(X[_DRAWN_TRAINING:]), y[_DRAWN_TRAINING:]


def _drawn(name: str, classifier: str, text: str = "sum(c) + 2 * count(f)") -> Case:
    P, y = _drawn_probabilities(classifier)
    return Case(name, _loss(20, 5, text), P, y, 2400, classifier in FORESTS, test=2400)


def _drawn_another_mix(name: str, classifier: str) -> Case:
    """A few classes are frequent in use, others rare; 350 rows to calibrate with."""
    P, y = _drawn_probabilities(classifier)
    rng = np.random.default_rng(1)
    mix = rng.permutation(0.75 ** np.arange(_DRAWN_CLASSES))
    kept = np.flatnonzero(rng.random(len(y)) < mix[y])
    return Case(name, _loss(20, 5), P[kept], y[kept], 350, classifier in FORESTS, test=1650)
