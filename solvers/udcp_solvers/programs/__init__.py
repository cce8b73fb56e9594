"""Programs: sets proved optimal by integer programming. This room alone knows PuLP."""
