"""Sets for more rows than fit into memory: batches, folders of results, Dask."""
