"""What reports of studies and of runs share."""
