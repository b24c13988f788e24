"""`intone bench`: load for a server, and what its callers hear of it."""
