"""The report of a run, and of a saved model."""
