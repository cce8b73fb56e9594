"""What is asked of a predictor, and what it takes to keep it (docs/guarantees.md).

`promise` declares each option once, by means of `option`; `harm` and `shift` hold what two of them need of the spec and
of the rows. The thresholds themselves are `calibrate`'s: scores, cells, weights and harms in, thresholds out.
"""
