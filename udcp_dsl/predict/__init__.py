"""From checked rows to prediction sets: the oracle protocol, promises, stages, calibration and the predictor."""
