"""The guarantees that a user requests, and what they need (docs/guarantees.md).

`promise` declares each option once, with `option`. `harm` and `shift` compute what two of the options need from the
spec and the rows. The thresholds themselves are computed in `calibrate`, from scores, cells, weights and harms.
"""
