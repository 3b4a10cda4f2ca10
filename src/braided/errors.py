"""The errors braided raises on purpose; each message names the value, the place and the remedy."""


class BraidedError(Exception):
    """Base of every error that braided raises on purpose."""


class InputError(BraidedError, ValueError):
    """A value given by the caller can't be used; the model is exactly as it was."""


class NumericalError(BraidedError, ArithmeticError):
    """The arithmetic broke down at a sample; the model holds the samples before it."""


class FileError(BraidedError, ValueError):
    """A saved model can't be written or read."""
