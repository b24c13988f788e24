"""Who calls, what that client may do, and how much of it."""
