"""Prediction: rows in, scores by an oracle, thresholds by the calibrator, sets out; saved, loaded, evaluated."""
