"""The grammar of the loss language, apart from the code that reads it."""
