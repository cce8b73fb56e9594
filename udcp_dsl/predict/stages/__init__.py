"""The stages of calibration, one file each; `udcp_dsl.predict.chain` has their order."""
