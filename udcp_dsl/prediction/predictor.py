"""The one place where loss, oracle and calibrator meet: `SetPredictor`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, SpecWarning, warn
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.anchors import Anchors, anchor_fold, find_anchors
from udcp_dsl.prediction.calibrate import (
    DEFAULT_GRID,
    Calibration,
    CalibrationWarning,
    Level,
    Tuning,
    calibrate,
    levels_of,
    merged,
    points_needed,
    randomized_sets,
    randomized_tau,
    row_draws,
    show_level,
    three_folds,
    threshold,
    tune,
    warn_of_too_few,
)
from udcp_dsl.prediction.containers import flag, frame_index
from udcp_dsl.prediction.doubts import warn_of_another_order, warn_of_shared_draws
from udcp_dsl.prediction.oracle import AnchoredOracle, Oracle, make_oracle, with_lambda
from udcp_dsl.prediction.rows import Rows, rows_of
from udcp_dsl.prediction.rows.probabilities import Matrix, check_class_names, names_of_classes
from udcp_dsl.prediction.sets import PredictionSets

# Randomised sets by class need every score: this many entries of them are held at a time.
_BLOCK = 1 << 22


class SetPredictor:
    """Prediction sets that contain the true label with probability at least 1 - alpha, cheap under a loss.

    `oracle` is a name (with its `options`) or an oracle made by `make_oracle` for this loss. Give `alpha` or
    `confidence_level`; `alpha` may be a list, one of which is chosen at prediction. `conditional="group"` or `"class"`
    guarantees coverage within each group or class; those with too few points get full sets, or, with `pool=True`, the
    threshold of all. `nonempty=True` never gives an empty set; `randomize=True` covers 1 - alpha exactly, with draws
    that depend on `seed`, the row's probabilities and its id, if ids are given, alone (so without ids rows with equal
    probabilities share a draw: where the classifier has few distinct outputs, coverage is exact on average over seeds,
    and a warning says so). `class_names` names the columns of arrays, if
    they are not in the order of `loss.labels`; true labels are best given by name, as integers are positions in
    `loss.labels` all the same.

    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  category wild {wolf}  loss l = size + 5 * any(wild)")
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], 100)
    >>> y = [rng.choice(3, p=p) for p in probs]
    >>> predictor = udcp.SetPredictor(loss, oracle="price", alpha=0.1).calibrate(probs, y)
    >>> predictor.predict_set([[0.9, 0.1, 0.0]]).labels
    [('cat', 'dog')]
    """

    def __init__(
        self,
        loss: Loss,
        oracle: str | Oracle = "price",
        *,
        options: Mapping[str, object] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        confidence_level: Level | None = None,
        conditional: Literal["group", "class"] | None = None,
        nonempty: bool = False,
        randomize: bool = False,
        seed: int = 0,
        class_names: Sequence[object] | None = None,
        pool: bool = False,
    ) -> None:
        if not isinstance(loss, Loss):
            raise TypeError(f"loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
        self.nonempty, self.randomize = flag(nonempty, "nonempty"), flag(randomize, "randomize")
        self.pool = flag(pool, "pool")
        if conditional not in (None, "group", "class"):
            raise InputError(f'conditional is {conditional!r}: choose None, "group" or "class"')
        if self.randomize and self.nonempty:
            raise InputError("randomize and nonempty exclude each other: a set that is never empty covers more")
        if self.pool and conditional is None:
            raise InputError('pool=True goes with conditional="group" or "class"')
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed is {seed!r}: give a whole number, 0 or more")
        self.loss = loss
        self.alphas = levels_of(alpha, confidence_level)
        self.conditional: Literal["group", "class"] | None = conditional
        self.seed = int(seed)
        self.class_names = None if class_names is None else names_of_classes(class_names)
        if self.class_names is not None:
            check_class_names(self.class_names, loss.labels)
        self.oracle: Oracle = _oracle(loss, oracle, options)
        self._tuned_anew = self.oracle.untuned
        self._anchored_anew = self.oracle.wants_anchor
        if self._anchored_anew and self.randomize and len(self.alphas) > 1:
            raise InputError(
                f"{self.oracle.name!r} has an anchor for each alpha under this loss, so that randomize=True takes one "
                "alpha: give one, or an anchor among the options"
            )
        if self._tuned_anew and len(self.alphas) > 1:
            raise InputError(
                f"an untuned {self.oracle.name!r} takes one alpha, for which its lambda is tuned: give one, or lam "
                "among the options"
            )
        self.calibration: Calibration | None = None
        self.tuning: Tuning | None = None
        self.anchors: Anchors | None = None
        self.logits = False
        self.normalize = False

    def __repr__(self) -> str:
        alphas = ", ".join(show_level(a) for a in self.alphas)
        state = "not calibrated" if self.calibration is None else f"calibrated on {self.calibration.n}"
        return f"SetPredictor({self.loss.name!r}, oracle={self.oracle.name!r}, alpha={alphas}, {state})"

    def calibrate(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        logits: bool = False,
        normalize: bool = False,
    ) -> SetPredictor:
        """Set the threshold from probabilities (n, K) and true labels that the classifier was not trained on.

        `probs` are an array, a tensor, a frame or nested lists; `logits` and `normalize` say what the numbers are, here
        and at prediction; `ignore` names columns of a frame to leave unread. Or they are rows by `read_rows`: these
        are probabilities already, and hold `y`, `groups` and `ids` if these were read. An oracle whose lambda is to be
        tuned takes three folds of the rows, chosen by `seed`: two for lambda, and the third for the threshold; one that
        takes an anchor, as `price` does unless the loss is submodular, a quarter of the rows for it, at most 1,000.
        Returns the predictor itself; calibrating again starts afresh.

        Warned of first: labels that cost nothing, which an oracle led by cost puts into every set; columns that seem to
        be in another order than the labels; and, with `randomize`, rows that share a draw, if they have no `ids`.
        """
        logits, normalize = flag(logits, "logits"), flag(normalize, "normalize")
        if self.oracle.by_cost:
            warn_of_free_labels(self.loss)
        rows = rows_of(
            probs,
            self.loss.labels,
            y=y,
            groups=groups,
            ids=ids,
            ignore=ignore,
            class_names=self.class_names,
            logits=logits,
            normalize=normalize,
        )
        self._check_groups(rows, groups)
        warn_of_another_order(rows)
        if self.randomize:
            warn_of_shared_draws(rows, self.seed)
        oracle, tuning, anchors, every = self.oracle, None, None, rows
        folds = three_folds(len(rows), np.random.default_rng(self.seed)) if self._tuned_anew else None
        own = self._anchor_fold(rows) if self._anchored_anew and folds is None else np.empty(0, dtype=np.int64)
        if folds is not None:
            rows = rows.take(folds[2])
        elif len(own):
            rows = rows.take(np.setdiff1d(np.arange(len(rows)), own))
        groups = rows.groups if self.conditional == "group" else None
        self._warn(rows, groups, every)
        if folds is not None:
            tuning, oracle = self._tune(every.P, every.truth, folds)
        elif len(own):
            anchors = self._anchors(every.take(own), rows)
        # Scores depend on the anchor, and so on alpha, where there is one.
        self.calibration = merged(
            calibrate(
                self.true_scores(rows.P, rows.truth, _anchored(oracle, anchors, alphas[0], groups, len(rows))),
                alphas=alphas,
                conditional=self.conditional,
                groups=groups,
                y=rows.y if self.conditional == "class" else None,
                n_classes=self.loss.K if self.conditional == "class" else None,
                pool=self.pool,
                randomize=self.randomize,
                warned=True,
            )
            for alphas in ([self.alphas] if anchors is None else [(alpha,) for alpha in self.alphas])
        )
        self.oracle, self.tuning, self.anchors = oracle, tuning, anchors
        self.logits, self.normalize = logits, normalize
        return self

    def predict_set(
        self,
        probs: Any,
        *,
        alpha: Level | None = None,
        groups: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
    ) -> PredictionSets:
        """The prediction sets of new probabilities, of none too; `alpha` chooses where several were calibrated.

        `ids` name the rows in what is written of the sets, and are taken into the draws of randomised ones; one that
        repeats is warned of. `ignore` names columns of a frame to leave unread. A pandas frame keeps its index.
        """
        level = self.calibrated.level(alpha)
        rows = self.rows(probs, groups=groups, ids=ids, ignore=ignore, empty=True)
        self._check_groups(rows, groups)
        if self.randomize:
            warn_of_shared_draws(rows, self.seed)
        mask = self.sets(rows, level) if len(rows) else np.zeros(rows.P.shape, dtype=bool)
        return PredictionSets(self.loss, mask, rows.ids, index=frame_index(probs))

    @property
    def calibrated(self) -> Calibration:
        """The calibration; refuses where there is none yet."""
        if self.calibration is None:
            raise InputError("the predictor is not calibrated: call calibrate(probs, y) first")
        return self.calibration

    def rows(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        empty: bool = False,
    ) -> Rows:
        """What `predict_set` and `evaluate` make of their arguments."""
        return rows_of(
            probs,
            self.loss.labels,
            y=y,
            groups=groups,
            ids=ids,
            ignore=ignore,
            class_names=self.class_names,
            logits=self.logits,
            normalize=self.normalize,
            empty=empty,
        )

    def __getstate__(self) -> dict[str, Any]:
        """What a copy, pickled or deep, takes along; the grid of lambdas is made anew where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_grid"}

    def save(self, path: str | Path) -> None:
        """Write everything needed to predict elsewhere into one JSON file."""
        from udcp_dsl.prediction.saved import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> SetPredictor:
        """A predictor saved by `save`; a file that was changed, or is of a newer format, is refused."""
        from udcp_dsl.prediction.saved import load

        return load(path)

    def restore(
        self,
        calibration: Calibration,
        tuning: Tuning | None,
        anchors: Anchors | None = None,
        *,
        logits: bool,
        normalize: bool,
    ) -> None:
        """Take up the state of a saved predictor; one that was tuned is tuned anew when it is calibrated again."""
        self.calibration, self.tuning, self.anchors = calibration, tuning, anchors
        self._tuned_anew = self._tuned_anew or tuning is not None
        self.logits, self.normalize = logits, normalize

    def _check_groups(self, rows: Rows, given: Any) -> None:
        """Rows may hold groups that are not asked for; an argument that is not asked for is a mistake."""
        by_group = self.conditional == "group"
        if (given is not None and not by_group) or (rows.groups is None and by_group):
            raise InputError(f'groups= goes with conditional="group", and only with it (it is {self.conditional!r})')

    def true_scores(self, P: Matrix, y: npt.NDArray[np.int64], oracle: Oracle | None = None) -> npt.NDArray[np.float64]:
        """The scores of true labels, as calibration takes them: with `nonempty`, -inf for the first of the order."""
        if oracle is None:
            oracle = _anchored(self.oracle, self.anchors, self.alphas[0], None, len(P))
        scores = oracle.score_of(P, y)
        return np.where(oracle.first(P) == y, -np.inf, scores) if self.nonempty else scores

    def sets(self, rows: Rows, level: Fraction) -> npt.NDArray[np.bool_]:
        """The sets of rows, (n, K) bool, at one of the alphas: what `predict_set` comes to."""
        calibration, P = self.calibrated, rows.P
        groups = rows.groups if self.conditional == "group" else None
        oracle = _anchored(self.oracle, self.anchors, level, groups, len(P))
        if not self.randomize:
            mask = oracle.sets(P, calibration.tau(level, groups=groups, n=len(P)))
            if self.nonempty:
                mask[np.arange(len(P)), oracle.first(P)] = True
            return mask
        draws = row_draws(P, self.seed, rows.ids)
        if self.conditional != "class":
            return oracle.sets(P, randomized_tau(calibration, level, draws, len(P), groups))
        mask = np.empty(P.shape, dtype=bool)
        step = max(1, _BLOCK // self.loss.K)
        for start in range(0, len(P), step):
            part = slice(start, start + step)
            scores = _anchored(self.oracle, self.anchors, level, None, len(P[part])).scores(P[part])
            mask[part] = randomized_sets(scores, calibration, level, draws[part])
        return mask

    def _warn(self, rows: Rows, groups: npt.NDArray[np.str_] | None, every: Rows) -> None:
        """Warn of what can be seen before the work: rows for the threshold, of all that are given, too few or p = 0."""
        names, need = tuple[str, ...](), points_needed(self.alphas[0])
        sizes = [len(rows)]
        if groups is not None:
            names, sizes = (x.tolist() for x in np.unique(groups, return_counts=True))
        elif self.conditional == "class":
            sizes = np.bincount(rows.truth, minlength=self.loss.K).tolist()
        if self._tuned_anew and len(rows) < need:
            warn(
                f"two thirds of the {len(every)} rows are used to tune lambda, and {len(rows)} are left for the "
                f"threshold, too few: alpha {show_level(self.alphas[0])} needs {need} there. Give {3 * need} rows, or "
                "lam among the options",
                CalibrationWarning,
            )
        warn_of_zeros(rows, min(self.alphas))
        warn_of_too_few(
            sizes,
            self.alphas,
            conditional=self.conditional,
            groups=names,
            pool=self.pool,
            randomize=self.randomize,
        )

    def _anchor_fold(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The rows that are given up for the anchor, a quarter of them by `seed`; none, where they are too few."""
        groups = rows.groups if self.conditional == "group" else None
        cells = np.zeros(len(rows), dtype=np.int64)
        if groups is not None:
            cells = np.unique(groups, return_inverse=True)[1]
        elif self.conditional == "class":
            cells = rows.truth
        return anchor_fold(cells, min(self.alphas), np.random.default_rng(self.seed))

    def _anchors(self, own: Rows, left: Rows) -> Anchors:
        """The anchors, on rows of their own; the others are left for the threshold."""
        assert isinstance(self.oracle, AnchoredOracle)
        by_group = self.conditional == "group"
        return find_anchors(
            self.oracle,
            own.P,
            own.truth,
            self.alphas,
            left=len(left),
            groups=own.groups if by_group else None,
            left_of=Counter(map(str, left.groups)) if by_group and left.groups is not None else None,
        )

    @cached_property
    def _grid(self) -> dict[float, Oracle]:
        """The oracle with each lambda that is tried."""
        return {lam: with_lambda(self.oracle, lam) for lam in DEFAULT_GRID}

    def _tune(
        self, P: Matrix, y: npt.NDArray[np.int64], folds: tuple[npt.NDArray[np.intp], ...]
    ) -> tuple[Tuning, Oracle]:
        """Choose lambda on two folds; the rows of the third are left for the threshold."""
        oracles = self._grid

        def threshold_of(lam: float, rows: npt.NDArray[np.intp]) -> float:
            return threshold(self.true_scores(P[rows], y[rows], oracles[lam]), self.alphas[0])

        def mean_cost_of(lam: float, tau: float, rows: npt.NDArray[np.intp]) -> float:
            mask = oracles[lam].sets(P[rows], tau)
            if self.nonempty:
                mask[np.arange(len(rows)), oracles[lam].first(P[rows])] = True
            return float(self.loss.batch(mask).mean())

        lo, hi = self.loss.facts.interval
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # said before the work
            tuning = tune(DEFAULT_GRID, threshold_of, mean_cost_of, folds=folds, cost_range=(lo, hi))
        return tuning, oracles[tuning.best]


def _anchored(
    oracle: Oracle, anchors: Anchors | None, alpha: Fraction, groups: npt.NDArray[np.str_] | None, n: int
) -> Oracle:
    """The oracle at the anchors of n rows, where there are any."""
    if anchors is None:
        return oracle
    assert isinstance(oracle, AnchoredOracle)
    return oracle.anchored(anchors.of_rows(alpha, groups, n))


def _oracle(loss: Loss, oracle: str | Oracle, options: Mapping[str, object] | None) -> Oracle:
    if isinstance(oracle, str):
        return make_oracle(oracle, loss, **(options or {}))
    if not isinstance(oracle, Oracle):
        raise TypeError(f"oracle is a {type(oracle).__name__}: give a name, or an oracle made by udcp.make_oracle")
    if options:
        raise InputError("options go with the name of an oracle; this oracle was made with its own already")
    if oracle.loss is not loss:
        raise InputError("the oracle was made for another loss: make it for this one")
    return oracle


def warn_of_free_labels(loss: Loss) -> None:
    """Warn of labels that cost nothing, or less, on their own (W601)."""
    from udcp_dsl.expression.explain import free_labels_warning

    if (free := free_labels_warning(loss)) is not None:
        warn(free.render(), SpecWarning)


def warn_of_zeros(rows: Rows, alpha: Fraction) -> None:
    """Warn where so many true labels have p = 0 that covering them takes large sets."""
    zeros = int((rows.true_probabilities == 0).sum())
    if 2 * zeros > alpha * len(rows):
        warn(
            f"{zeros} of {len(rows)} true labels have probability exactly 0, so that large sets are needed to cover "
            "them: the classifier's softmax ran out of digits, or it is wrong with certainty. Give its logits "
            "(logits=True), or probabilities in float64",
            CalibrationWarning,
        )
