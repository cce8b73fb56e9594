"""Numbers that come with each row: their declarations, their ranges in facts, and their values in expressions."""
