"""A dialogue: the call, and what the command line makes of it."""
