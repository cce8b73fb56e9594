"""The language: from text to syntax tree and back, with error messages for texts that do not parse."""
