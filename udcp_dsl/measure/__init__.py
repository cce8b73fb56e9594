"""What sets cost and cover: on fresh rows, over splits, along parameters, and as a stream."""
