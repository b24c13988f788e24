"""Compares the server with the bare library and with `pocket-tts serve`. Run: `make bench`."""
