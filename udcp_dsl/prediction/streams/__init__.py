"""More rows than fit into memory, from input files to files of sets: in batches, in parts, and by several workers."""
