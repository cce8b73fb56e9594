"""The expression: what a set costs, what is proved about it, and its linear form."""
