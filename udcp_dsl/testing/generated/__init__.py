"""Random well-typed specs: what they declare, what they say of it, and the text with its data files."""
