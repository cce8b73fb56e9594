"""The language: text to syntax tree and back, and why a text is none."""
