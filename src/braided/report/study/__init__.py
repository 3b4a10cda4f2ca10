"""The report of a study."""
