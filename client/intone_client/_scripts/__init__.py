"""The script of a dialogue, in code and in files."""
