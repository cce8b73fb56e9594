"""Rows: all that is known of n instances, as checked columns, and what reads and writes them.

`rows.rows_of` takes data in memory, `source.read_rows` files; both return checked `Rows`. The command line shows its
help from `roles`, which imports nothing heavy.
"""
