"""Limits of a spec on the prediction side: their multipliers, what they come to on rows, and bounds for them."""
