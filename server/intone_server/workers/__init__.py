"""The child process that owns one copy of the model, and the wire to it."""
