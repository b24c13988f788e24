"""Adapters around model libraries. Only workers import an engine module."""
