"""Rows: probabilities over labels, and what belongs to them: true labels, groups, ids."""
