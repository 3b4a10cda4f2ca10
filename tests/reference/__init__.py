"""The slow, obvious twins: closed forms and textbook recursions in plain NumPy."""
