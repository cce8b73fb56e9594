"""What a predictor promises beyond coverage on average, and what it takes to keep it (docs/guarantees.md).

`options` says what can be asked for together; `harm`, `temperature` and `shift` hold what each needs of the spec and
of the rows. The thresholds themselves are `calibrate`'s: scores, strata, weights and harms in, thresholds out.
"""
