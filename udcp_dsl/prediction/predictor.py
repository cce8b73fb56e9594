"""The one place where loss, oracle and calibrator meet: `SetPredictor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from udcp_dsl.deprecation import deprecated
from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.rows.declared import RowInput
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.calibrate import Calibration, Conditional, Level, Tuning, row_draws
from udcp_dsl.prediction.calibrate.calibration_scores import CalibrationScores
from udcp_dsl.prediction.containers import flag, frame_index
from udcp_dsl.prediction.input_warnings import (
    warn_of_another_order,
    warn_of_free_labels,
    warn_of_full_sets,
    warn_of_high_alpha,
    warn_of_shared_draws,
)
from udcp_dsl.prediction.least_covered import LeastCovered
from udcp_dsl.prediction.oracle import Oracle, as_oracle
from udcp_dsl.prediction.probability_repair import LabelShift, Repair
from udcp_dsl.prediction.promises.promise import Promise, promise_from
from udcp_dsl.prediction.rows import Rows, rows_of
from udcp_dsl.prediction.rows.column_roles import Columns
from udcp_dsl.prediction.rows.probability_matrix import Matrix, check_class_names, names_of_classes
from udcp_dsl.prediction.rows.row_attributes import labels_as_given
from udcp_dsl.prediction.sets import MadeSets, PredictionSets
from udcp_dsl.prediction.stages.anchors import Anchors
from udcp_dsl.prediction.stages.chain import STAGES, Chain, deal, fit_chain
from udcp_dsl.prediction.stages.lambda_tuning import Lambda
from udcp_dsl.prediction.stages.oracle_input import OracleInput
from udcp_dsl.prediction.stages.repair import RepairStage
from udcp_dsl.prediction.stages.setting import Setting
from udcp_dsl.prediction.stages.temperature import Temperature

# Sets that need every score, or another matrix than that of the rows: this many entries are held at a time.
_BLOCK = 1 << 22


class SetPredictor:
    """Prediction sets that contain the true label with probability at least 1 - alpha, cheap under a loss.

    `oracle` is a name (with its `options`) or an oracle made by `make_oracle` for this loss. Give `alpha` or
    `confidence_level`; `alpha` may be a list, one of which is chosen at prediction. `conditional="group"` or `"class"`
    guarantees coverage within each group or class; those with too few points get full sets, or, with `pool=True`, the
    threshold of all. `conditional="difficulty"` guarantees it within each of `bins` (4) parts of the rows by their
    highest probability. `confidence=0.95`: with that probability over the draw of the calibration rows the coverage of
    this very predictor is at least 1 - alpha, in each group, class or bin by itself or, `simultaneous=True`, in all.
    `risk` names nonnegative `costs` of the spec, the harm of missing a label: its mean over all rows is then at most
    alpha, in its units. docs/guarantees.md says precisely what each of these promises.

    `repair="auto"` repairs the probabilities first, on a fifth of the calibration rows (at least 100, at most 1,000;
    not at all with fewer than 300 rows), and leaves them alone where that is no better; `"temperature"` fits one
    number; None takes p as it is; a `Repair` that was made before is applied. `temperature` is its deprecated name.

    `nonempty=True` never gives an empty set; `randomize=True` covers 1 - alpha exactly, with draws that depend on
    `seed`, the row's probabilities and its id, if ids are given, alone (so without ids rows with equal probabilities
    share a draw: where the classifier has few distinct outputs, coverage is exact on average over seeds, and a warning
    says so). `class_names` names the columns of arrays, if they are not in the order of `loss.labels`; true labels are
    best given by name, as integers are positions in `loss.labels` all the same. Labels in sets have the type in which
    they were given, in `y` or `class_names`: see `PredictionSets`.

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
        promise: Promise | None = None,
        options: Mapping[str, object] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        confidence_level: Level | None = None,
        conditional: Literal["group", "class", "difficulty"] | None = None,
        bins: int | None = None,
        confidence: Level | None = None,
        simultaneous: bool = False,
        risk: str | None = None,
        repair: Literal["auto", "temperature"] | Repair | None = "auto",
        temperature: Literal["fit"] | float | None = None,
        nonempty: bool = False,
        randomize: bool = False,
        seed: int = 0,
        class_names: Sequence[object] | None = None,
        pool: bool = False,
    ) -> None:
        if not isinstance(loss, Loss):
            raise TypeError(f"loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
        self.promise = promise_from(promise, locals())
        self.loss = loss
        self._class_names = class_names  # as given, of which `class_names` are the texts
        self.class_names = None if class_names is None else names_of_classes(class_names)
        if self.class_names is not None:
            check_class_names(self.class_names, loss.labels)
        self.promise.harm(loss)  # refuses costs that the loss does not have
        self.oracle: Oracle = as_oracle(loss, oracle, options)
        self._tune = self.oracle.untuned
        if self.oracle.wants_anchor and self.randomize and len(self.alphas) > 1:
            raise InputError(
                f"{self.oracle.name!r} has an anchor for each alpha under this loss, so that randomize=True takes one "
                "alpha: give one, or an anchor among the options"
            )
        if self._tune and len(self.alphas) > 1:
            raise InputError(
                f"an untuned {self.oracle.name!r} takes one alpha, for which its lambda is tuned: give one, or lam "
                "among the options"
            )
        self.given_labels: tuple[Any, ...] | None = None  # the labels in the type they were given in, if not as texts
        self.chain: Chain | None = None  # the fitted stages and thresholds, once it is calibrated
        self.read_as: tuple[Chain | None, str] | None = None  # the hash of the file it is from, while as it was
        self.logits = False
        self.normalize = False

    def __repr__(self) -> str:
        alphas = self.promise.shown_alphas
        state = "not calibrated" if self.chain is None else f"calibrated on {self.chain.rows_used}"
        return f"SetPredictor({self.loss.name!r}, oracle={self.oracle.name!r}, alpha={alphas}, {state})"

    def calibrate(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
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
        takes an anchor, as `price` does unless the loss is submodular, a quarter of the rows for it, at most 1,000; a
        repair of p that is to be fitted takes a fifth of them before. `weights`, one a row, are how much
        likelier each row is among the new rows than among these (`weights_from_classifier` estimates them). `inputs`
        are the numbers that the loss reads of each row: arrays by name, or a frame. Calibrating again starts afresh.

        Warned of first: an alpha of 0.5 or more, as it may be meant as the coverage; labels that cost nothing, which an
        oracle led by cost puts into every set; columns that seem to be in another order than the labels, or two of them
        exchanged; and, with `randomize`, rows that share a draw, if they have no `ids`.
        """
        logits, normalize = flag(logits, "logits"), flag(normalize, "normalize")
        warn_of_high_alpha(self.promise)
        if self.oracle.by_cost:
            warn_of_free_labels(self.loss)
        beside = {"y": y, "groups": groups, "ids": ids, "weights": weights, "inputs": inputs, "ignore": ignore}
        rows = self._rows_of(probs, beside, logits=logits, normalize=normalize)
        self._check_groups(rows, groups)
        warn_of_another_order(rows)
        if self.randomize:
            warn_of_shared_draws(rows, self.seed)
        if rows.weights is not None:
            self.promise.refuse_weights()
        self.take_up(fit_chain(Setting.of(self.promise, self.oracle, tune=self._tune), rows))
        self.given_labels = labels_as_given(self.loss.labels, y, self._class_names)
        self.logits, self.normalize = logits, normalize
        return self

    def predict_set(
        self,
        probs: Any,
        *,
        alpha: Level | None = None,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
    ) -> PredictionSets:
        """The prediction sets of new probabilities, of none too; `alpha` chooses where several were calibrated.

        `weights` are needed where calibration had them; a row whose weight is too large for the calibration rows has
        the full set, and a warning counts such rows.

        `ids` name the rows in what is written of the sets, and are taken into the draws of randomised ones; one that
        repeats is warned of. `ignore` names columns of a frame to leave unread. A pandas frame keeps its index.
        """
        level = self.calibrated.level(alpha)
        rows = self.rows(probs, groups=groups, weights=weights, inputs=inputs, ids=ids, ignore=ignore, empty=True)
        self._check_groups(rows, groups)
        if self.randomize:
            warn_of_shared_draws(rows, self.seed)
        mask = self.sets(rows, level) if len(rows) else np.zeros(rows.P.shape, dtype=bool)
        made = {"index": frame_index(probs), "given_labels": self.given_labels, "inputs": rows.inputs}
        return PredictionSets(self.loss, mask, rows.ids, **made)

    def predict_batches(
        self,
        batches: Iterable[Any],
        *,
        alpha: Level | None = None,
        column: str | None = None,
        id_column: str | None = None,
        group_column: str | None = None,
        weight_column: str | None = None,
        carry: Sequence[str] = (),
        ignore: Sequence[str] = (),
        only_labels: bool = False,
    ) -> Iterator[Any]:
        """From an iterator of `pyarrow.RecordBatch` to one of the same: id, labels (a list column), size, cost.

        It is what Spark's `mapInArrow` takes, and holds no more than a batch. The columns are those of `open_rows`;
        rows without ids are numbered. A fault is named by its batch and its row there, both counted from 0.

        >>> import numpy as np, pyarrow as pa, udcp_dsl as udcp
        >>> loss = udcp.loads("labels {cat, dog, wolf}  loss l = size")
        >>> predictor = udcp.SetPredictor(loss, "lac", alpha=0.5).calibrate(np.eye(3), ["cat", "dog", "wolf"])
        >>> batch = pa.record_batch({"photo": ["a", "b"], "p": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]})
        >>> [answer.to_pydict() for answer in predictor.predict_batches([batch], id_column="photo")]
        [{'id': ['a', 'b'], 'labels': [['cat'], ['wolf']], 'size': [1, 1], 'cost': [1.0, 1.0]}]
        """
        from udcp_dsl.prediction.streams.answering import predict_batches

        columns = Columns(
            column=column,
            id_column=id_column,
            group_column=group_column,
            weight_column=weight_column,
            ignore=ignore,
            only_labels=only_labels,
            carry=carry,
        )
        return predict_batches(self, batches, alpha, columns)

    @overload
    def adapt(self, probs: Any, *, calibration: None = None) -> LabelShift: ...
    @overload
    def adapt(self, probs: Any, *, calibration: Any) -> SetPredictor: ...
    def adapt(self, probs: Any, *, calibration: Any = None) -> SetPredictor | LabelShift:
        """A new predictor for rows `probs` whose mix of labels has moved, without their truth (docs/label-shift.md).

        `calibration` is (P, y) or (P, y, inputs), labelled rows of the old mix: those that this was calibrated with in
        the same order (so taken if as many; the rows of repair, lambda and anchor are left out), or new ones. Coverage
        is 1 - alpha only as far as the estimated ratios are right; `probs` may be a `LabelShift`, if both mixes are
        known. Without `calibration` the result is a `LabelShift`, which reports how the mix has moved.
        """
        from udcp_dsl.prediction import adapting

        return adapting.report(self, probs) if calibration is None else adapting.adapt(self, probs, calibration)

    def p_values(
        self,
        probs: Any,
        *,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
    ) -> npt.NDArray[np.float64]:
        """The smallest alpha at which each label is left out, (n, K): the set at alpha is {y : p(y) > alpha}, exactly.

        Arguments are as for `predict_set`. With anchors, or cells that are pooled, they are those of the smallest
        alpha. Of scores that a file has thinned they are rounded up, but not past a calibrated alpha. Where harm is
        bounded they are in its units.
        """
        chain, level = self.fitted, min(self.alphas)
        rows = self.rows(probs, groups=groups, ids=ids, weights=weights, inputs=inputs, ignore=ignore, empty=True)
        self._check_groups(rows, groups)
        out = np.empty(rows.P.shape)
        step = max(1, _BLOCK // self.loss.K)
        for start in range(0, len(rows), step):
            part = rows.take(slice(start, start + step))
            out[start : start + step] = chain.p_values(chain.prepare(part), level, self._draws(part))
        return out

    def plot(self) -> Any:
        """A matplotlib figure: how far p can be taken at its word, before and after its repair, on held-out rows of
        the repair's fold. Needs the extra `report`."""
        about_p = self.fitted.about_p
        if self.repair is None:
            raise InputError(f"there is no repair to draw: {about_p}")
        return self.repair.plot()

    @property
    def fitted(self) -> Chain:
        """The fitted chain; refuses where there is none yet."""
        if self.chain is None:
            raise InputError("the predictor is not calibrated: call calibrate(probs, y) first")
        return self.chain

    @property
    def calibrated(self) -> Calibration:
        """The calibration; refuses where there is none yet."""
        return self.fitted.thresholds.calibration

    @property
    def calibration(self) -> Calibration | None:
        """The thresholds, once it is calibrated."""
        return None if self.chain is None else self.chain.thresholds.calibration

    @property
    def calibration_scores(self) -> CalibrationScores | None:
        """The scores that the thresholds were made from, unless they have weights."""
        return None if self.chain is None else self.chain.thresholds.scores

    def least_covered(self, alpha: Level | None = None) -> LeastCovered | None:
        """Who is covered least on the calibration rows, at one of the alphas; `evaluate` tells it of fresh rows.

        None for a predictor that was loaded, and where thresholds are weighted or bound harm.
        """
        found = self.fitted.in_sample.get(self.calibrated.level(alpha))
        return None if found is None else found.least_covered

    @property
    def tuning(self) -> Tuning | None:
        """How lambda was chosen, if it was."""
        stage = None if self.chain is None else self.chain.find(Lambda)
        return None if stage is None else stage.tuning

    @property
    def anchors(self) -> Anchors | None:
        """The anchors of an oracle that takes them."""
        return None if self.chain is None else self.chain.find(Anchors)

    @property
    def repair(self) -> Repair | None:
        """What is done to p first, once it is known; None where nothing is."""
        stage = None if self.chain is None else self.chain.find(RepairStage)
        return None if stage is None else stage.repair

    @property
    def temperature(self) -> float | None:
        """The temperature that is used, where the repair of p is one."""
        old = None if self.chain is None else self.chain.find(Temperature)
        return old.value if old is not None else None if self.repair is None else self.repair.temperature

    @property
    def alphas(self) -> tuple[Fraction, ...]:
        """The levels that it is calibrated for."""
        return self.promise.alphas

    @property
    def conditional(self) -> Conditional:
        """Within what coverage is promised: groups, classes, bins by difficulty, or None."""
        return self.promise.conditional

    @property
    def nonempty(self) -> bool:
        """Whether no set is empty."""
        return self.promise.nonempty

    @property
    def randomize(self) -> bool:
        """Whether sets are randomised."""
        return self.promise.randomize

    @property
    def pool(self) -> bool:
        """Whether small groups and classes take the threshold of all rows."""
        return self.promise.pool

    @property
    def seed(self) -> int:
        """The seed of folds and of randomised sets."""
        return self.promise.seed

    @property
    def promises(self) -> Promise:
        """Deprecated name of `promise`."""
        deprecated("SetPredictor.promises", "SetPredictor.promise", as_of="0.3", removed_in="0.5")
        return self.promise

    @property
    def kept(self) -> CalibrationScores | None:
        """Deprecated name of `calibration_scores`."""
        deprecated("SetPredictor.kept", "SetPredictor.calibration_scores", as_of="0.3", removed_in="0.5")
        return self.calibration_scores

    def rows(
        self,
        probs: Any,
        y: Any = None,
        *,
        groups: Any = None,
        weights: Any = None,
        inputs: Any = None,
        ids: Any = None,
        ignore: Sequence[str] = (),
        empty: bool = False,
    ) -> Rows:
        """What `predict_set` and `evaluate` make of their arguments."""
        beside = {"y": y, "groups": groups, "ids": ids, "weights": weights, "inputs": inputs, "ignore": ignore}
        rows = self._rows_of(probs, beside, logits=self.logits, normalize=self.normalize, empty=empty)
        self._check_weights(rows)
        return rows

    def _rows_of(self, probs: Any, beside: Mapping[str, Any], **how: Any) -> Rows:
        read = self.promise.reads(self.loss)
        return rows_of(probs, read.labels, loss=read, class_names=self.class_names, **beside, **how)

    @property
    def inputs(self) -> Mapping[str, RowInput]:
        """What is to be given with each row: the inputs of the loss, and of a harm that differs by row."""
        return self.promise.reads(self.loss).inputs

    def _check_weights(self, rows: Rows) -> None:
        if rows.weights is not None and not self.calibrated.weighted:
            raise InputError("weights= are given, but calibration had none: calibrate with weights=")

    def save(self, path: str | Path) -> None:
        """Write everything needed to predict elsewhere into one JSON file."""
        from udcp_dsl.prediction.saved import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> SetPredictor:
        """A predictor saved by `save`; a file that was changed, or is of a newer format, is refused."""
        from udcp_dsl.prediction.saved import load

        return load(path)

    def take_up(self, chain: Chain) -> None:
        """Predict by this chain from now on; an oracle that it tuned is tuned again at the next calibration."""
        self.chain, self.oracle = chain, chain.setting.oracle
        self._tune = self._tune or chain.find(Lambda) is not None

    def _check_groups(self, rows: Rows, given: Any) -> None:
        """Rows may hold groups that are not asked for; an argument that is not asked for is a mistake."""
        by_group = self.promise.by_group
        if (given is not None and not by_group) or (rows.groups is None and by_group):
            raise InputError(f'groups= goes with conditional="group", and only with it (it is {self.conditional!r})')

    def true_scores(self, rows: Rows, alpha: Fraction | None = None) -> npt.NDArray[np.float64]:
        """The scores of true labels, as calibration takes them; at one of the alphas, on which anchors depend."""
        chain = self.fitted
        return chain.true_scores(chain.prepare(rows), self.alphas[0] if alpha is None else alpha)

    def threshold_rows(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The positions of the rows that calibrating with these rows leaves for thresholds."""
        setting = Setting(self.promise, self.oracle, {} if self._tune else None)
        return deal(setting, rows, STAGES)[1]

    def prepare(self, rows: Rows) -> OracleInput:
        """What the oracle sees of rows, once the predictor is calibrated."""
        return self.fitted.prepare(rows)

    def repaired(self, P: Matrix) -> Matrix:
        """The probabilities as they are repaired, before harm weighs them."""
        return self.fitted.repaired(P)

    def sets(self, rows: Rows, level: Fraction) -> npt.NDArray[np.bool_]:
        """The sets of rows, (n, K) bool, at one of the alphas: what `predict_set` comes to."""
        made = self.make_sets(rows, level)
        if made.full:
            warn_of_full_sets(made.full, len(rows))
        return made.mask

    def make_sets(self, rows: Rows, level: Fraction) -> MadeSets:
        """The same, with what is known of how they were made."""
        if rows.weights is None and self.calibrated.weighted:
            raise InputError("calibrated with weights, so that new rows need theirs: give weights=")
        self._check_weights(rows)
        step = max(1, _BLOCK // self.loss.K)
        if not self._in_blocks or len(rows) <= step:
            return self._make_sets(rows, level)
        mask, full, unproved = np.empty(rows.P.shape, dtype=bool), 0, list[int | None]()
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            made = self._make_sets(rows.take(part), level)
            mask[part], full = made.mask, full + made.full
            unproved.append(made.unproved)
        return MadeSets(mask, full, None if None in unproved else sum(filter(None, unproved)))

    @property
    def _in_blocks(self) -> bool:
        """Whether sets are made in several calls of the oracle, as they need matrices beside that of the rows."""
        other = self.promise.risk is not None or any(stage.repairs for stage in self.fitted.stages)
        return other or (self.promise.by_class and (self.randomize or self.calibrated.weighted))

    def _make_sets(self, rows: Rows, level: Fraction) -> MadeSets:
        chain = self.fitted
        given = chain.prepare(rows)
        mask = chain.sets(given, level, self._draws(rows))
        return MadeSets(mask, chain.thresholds.full(given, level), self.oracle.unproved)

    def _draws(self, rows: Rows) -> npt.NDArray[Any] | None:
        return row_draws(rows.P, self.seed, rows.ids) if self.randomize else None
