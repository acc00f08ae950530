"""cli: the command line."""
