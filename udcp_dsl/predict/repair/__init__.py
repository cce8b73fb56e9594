"""Repair of p: p'(y) proportional to p_w(y)^a exp(b_y), with p_w = (1 - w) p + w / K, fitted on separate rows.

Real classifiers are too sure or too unsure, favour some labels, and are used on another mix of classes than they were
trained on. `fit_repair` finds the exponent a, the offsets b and the smoothing w, or finds that p is best left alone;
`Repair` holds and applies the result. p' is a fixed function of the row, so every guarantee stays exact.
"""

from udcp_dsl.predict.repair.fit import fit_repair
from udcp_dsl.predict.repair.label_shift import LabelShift, estimate_label_shift, mean_mix
from udcp_dsl.predict.repair.value import Repair

__all__ = ["LabelShift", "Repair", "estimate_label_shift", "fit_repair", "mean_mix"]
