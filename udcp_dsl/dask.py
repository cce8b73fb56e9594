"""The old name of `udcp_dsl.cluster.dask`."""

from udcp_dsl.deprecation import forwarding

__getattr__ = forwarding(__name__, "udcp_dsl.cluster.dask", as_of="0.4", removed_in="0.6")
