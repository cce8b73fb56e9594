"""Random well-typed specs: declarations, expressions over them, and the text with its data files."""
