"""Calibration as a chain of stages: repair of p, tuning, thresholds. One file each; `chain` joins them."""
