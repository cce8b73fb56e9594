"""Numbers: compiled loops over rows, exact sums, orders of a row."""
