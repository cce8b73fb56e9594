"""The compiler: from the syntax tree and the files that it names to an expression."""
