"""Samples to bytes. Pure: no I/O, no clock."""
