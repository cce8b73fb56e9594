"""Limits of a spec in prediction: their multipliers, their means on rows, and bounds for these."""
