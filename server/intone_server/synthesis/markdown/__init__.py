"""Markdown as people want it heard: a rule for text that arrives, and a parser for whole texts."""
