"""Does the guarantee still hold? An anytime-valid test of new rows against the calibration rows."""

from udcp_dsl.prediction.monitor.stream import Alarm, Stream
from udcp_dsl.prediction.monitor.watching import Monitor

__all__ = ["Alarm", "Monitor", "Stream"]
