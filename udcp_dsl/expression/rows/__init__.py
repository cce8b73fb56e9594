"""Numbers that come with each row: what a spec declares of them, their ranges in facts, their values in expressions."""
