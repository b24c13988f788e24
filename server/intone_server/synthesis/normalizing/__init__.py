"""Numbers, money, dates, times, units and signs as people say them."""

from intone_server.synthesis.normalizing.scanner import normalize

__all__ = ["normalize"]
