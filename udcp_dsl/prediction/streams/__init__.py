"""From input files to files of sets, for more rows than fit into memory: in batches, in parts, by several workers."""
