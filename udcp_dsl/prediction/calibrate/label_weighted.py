"""Label shift: points whose weight depends on their true label alone, for new points with another mix of labels.

Let r(y) be how much likelier label y is among new points than among the n calibration points. A new point with the
candidate label y then has the weight r(y), known without its truth, so that every label has a threshold of its own
(Podkopaev and Ramdas, 2021): the least tau with

    sum over points with s_i > tau of r(y_i) + r(y)  <=  alpha (sum over points of r(y_i) + r(y)).

Sets {y : s(y) <= tau_y} cover with probability at least 1 - alpha if r is right up to a factor and scores do not depend
on the points. Where harm is bounded, each point counts by its harm and the new one by the largest harm of any label.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from numpy.typing import ArrayLike

from udcp_dsl.prediction.calibrate.calibration import Calibration, calibrate
from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray, IntArray, as_classes
from udcp_dsl.prediction.calibrate.levels import Level


def label_weighted(
    scores: FloatArray,
    y: IntArray,
    label_weights: FloatArray,
    *,
    alphas: Level | Iterable[Level],
    harms: ArrayLike | None = None,
    most: Fraction | None = None,
) -> Calibration:
    """Thresholds of every label, from the scores of true labels `y` and the weight r of each label.

    >>> import numpy as np
    >>> c = label_weighted(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([1.0, 2.0]), alphas=0.5)
    >>> c.tau().tolist()
    [[3.0, 3.0]]
    """
    classes = as_classes(y, len(label_weights), len(scores))[1]
    own = label_weights[classes]
    found = calibrate(scores, alphas=alphas, weights=own, harms=harms, most=most, warned=True)
    return replace(found, label_weights=label_weights)
