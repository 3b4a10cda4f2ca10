"""The errors braided raises on purpose; each message names the value, the place and the remedy."""

from collections.abc import Sequence

Made = tuple[Sequence[float], Sequence[float]]  # forecasts and their deviations


class BraidedError(Exception):
    """Base of every error that braided raises on purpose."""


class InputError(BraidedError, ValueError):
    """A value given by the caller can't be used; the model is unchanged."""


class NumericalError(BraidedError, ArithmeticError):
    """The arithmetic broke down at a sample; the model has learned the samples before it.

    `forecasts` are those of the samples before, from a progressive run. `made` are these and those of the rest of the
    round, which were made before any of it was learned, with their deviations if asked for.
    """

    def __init__(self, message: str, forecasts: Sequence[float] = (), made: Made | None = None) -> None:
        super().__init__(message)
        self.forecasts = forecasts
        self.made = (forecasts, ()) if made is None else made


class FileError(BraidedError, ValueError):
    """A file can't be written or read."""


class MissingFileError(FileError, InputError):
    """A file that was to be read does not exist."""


class FileWarning(UserWarning):
    """A file was read, but may be incomplete or have changed."""


def unreadable(path: object, error: Exception, remedy: str = "check the path") -> FileError:
    """Return the error for a file that can't be read; missing permission is reported as such."""
    if isinstance(error, PermissionError):
        return FileError(f"no permission to read {path}: get read access to the file and its folders, or a copy of it")
    kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
    return kind(f"{path} can't be read ({getattr(error, 'strerror', None) or error}): {remedy}")
