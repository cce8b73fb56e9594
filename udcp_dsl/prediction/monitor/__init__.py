"""Does the promise still hold? An anytime-valid test of new rows against those of calibration."""

from udcp_dsl.prediction.monitor.stream import Alarm, Stream
from udcp_dsl.prediction.monitor.watching import Monitor

__all__ = ["Alarm", "Monitor", "Stream"]
