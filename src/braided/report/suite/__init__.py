"""The report of the forecasting suite."""
