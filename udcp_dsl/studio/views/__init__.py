"""What the page shows, as plain data: functions of what the studio knows, without state."""
