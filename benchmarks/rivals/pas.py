"""PAS, prevalence-adjusted softmax (arXiv 2507.06867): the score -p(y|x) / pi(y), pi the frequency of y in training.

Target: the least mean size at a given macro-coverage, the mean over classes of the coverage of each. It is the loss
`sum(prevalence)` under `ratio` (or `price`): pi / p is a rising function of the score, so the sets are the same.
Interp-Q, of the same paper, mixes the thresholds of each class with the common one, q_y = w qCW_y + (1 - w) q, with no
guarantee.
"""

from __future__ import annotations

import numpy as np

from rivals import ByScore, Floats, as_rows


def scores(P: Floats, prevalence: Floats) -> Floats:
    return np.asarray(-as_rows(P) / prevalence)


def family(P: Floats, prevalence: Floats) -> ByScore:
    return ByScore(scores(P, prevalence))
