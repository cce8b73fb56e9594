"""The old name of `udcp_dsl.predict`."""
