"""Limits of a spec in prediction: their multipliers, their means over rows, and upper bounds for these means."""
