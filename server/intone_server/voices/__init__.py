"""The voices that callers can name."""
