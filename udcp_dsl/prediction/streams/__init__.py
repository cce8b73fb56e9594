"""Rows that are too many to hold, from their files to files of sets: in batches, in parts, and by several workers."""
