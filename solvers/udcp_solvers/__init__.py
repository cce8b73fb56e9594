"""Oracles: one file each, found through the entry-point group `udcp_dsl.oracles`."""
