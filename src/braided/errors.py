"""The errors braided raises on purpose; each message names the value, the place and the remedy."""

from collections.abc import Sequence


class BraidedError(Exception):
    """Base of every error that braided raises on purpose."""


class InputError(BraidedError, ValueError):
    """A value given by the caller can't be used; the model is exactly as it was."""


class NumericalError(BraidedError, ArithmeticError):
    """The arithmetic broke down at a sample; the model holds the samples before it.

    `forecasts` are those that a progressive run had made of the samples before.
    """

    def __init__(self, message: str, forecasts: Sequence[float] = ()) -> None:
        super().__init__(message)
        self.forecasts = forecasts


class FileError(BraidedError, ValueError):
    """A file can't be written or read."""
