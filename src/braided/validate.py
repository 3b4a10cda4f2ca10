"""Checks of values at the boundary: once, before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Sized
from numbers import Integral, Real
from typing import Any

import numpy as np

from braided.errors import InputError
from braided.types import Floats

SMALLEST_FRACTION = 1e-9
LARGEST_VALUE = 1e150  # of a stream, so that squares are finite
LARGEST_COUNT = 2**62  # in a saved state: one more still fits 64 bits


def real(value: Any, name: str) -> float:
    """Return `value` as a finite float."""
    if type(value) is float and math.isfinite(value):  # the fast path of most calls
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} is {value!r}: it must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} is {number}: it must be finite")
    return number


def positive(value: Any, name: str) -> float:
    """Return `value` as a float above zero, between 1e-150 and 1e150 so that products are finite."""
    number = real(value, name)
    if number <= 0:
        raise InputError(f"{name} is {number:g}: it must be above 0")
    if not 1e-150 <= number <= 1e150:
        raise InputError(f"{name} is {number:g}: it must lie between 1e-150 and 1e150")
    return number


def not_negative(value: Any, name: str) -> float:
    """Return `value` as a float of zero or more."""
    number = real(value, name)
    if number < 0:
        raise InputError(f"{name} is {number:g}: it must be 0 or more")
    return number


def fraction(value: Any, name: str) -> float:
    """Return `value` as a float in (0, 1], not below 1e-9."""
    number = real(value, name)
    if not SMALLEST_FRACTION <= number <= 1:
        raise InputError(f"{name} is {number:g}: it must be above 0 ({SMALLEST_FRACTION:g} or more) and at most 1")
    return number


def share(value: Any, name: str) -> float:
    """Return `value` as a float above 0 and below 1."""
    number = real(value, name)
    if not 0 < number < 1:
        raise InputError(f"{name} is {number:g}: it must be above 0 and below 1")
    return number


def count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int of at least `least`, and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} is {value!r}: it must be a whole number, not {type(value).__name__}")
    if value < least:
        raise InputError(f"{name} is {value}: it must be {least} or more")
    number = int(value)
    if most is not None and number > most:
        raise InputError(f"{name} is {number}: it must be {most} or less")
    return number


def choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise InputError(f"{name} is {value!r}: choose one of {', '.join(map(repr, choices))}")
    return str(value)


def floats(values: Any, name: str, ndim: int, remedy: str = "give finite numbers") -> Floats:
    """Return `values` as a finite, C-contiguous, writeable float64 array of `ndim` dimensions.

    The array is the caller's own where it already has that form, and never changed.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array of {ndim} dimension{'s' * (ndim > 1)}: {error}") from error
    if array.dtype.kind == "O" and all(isinstance(value, Real) for value in array.flat):
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {array.dtype}: it must hold real numbers; convert it to float64")
    if array.ndim != ndim:
        raise InputError(f"{name} has shape {array.shape}: it must have {ndim} dimension{'s' * (ndim > 1)}")
    if array.dtype != np.float64 or not array.flags.carray:
        with np.errstate(over="ignore"):  # a longdouble may overflow to infinity, which is caught below
            array = np.require(array, np.float64, ["C", "W", "A"])
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(map(int, np.argwhere(~finite)[0]))
        where = f"{name}[{', '.join(map(str, place))}]" if place else name
        raise InputError(f"{where} is {array[place]}: {remedy}")
    return array


def numbers(values: Any, name: str) -> Floats:
    """Return `values` as a float64 array, in which NaN says that one is missing."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something else than numbers ({error}): use NaN for a missing value") from error


def same_length(values: Sized, name: str, expected: int) -> None:
    """Insist that `values` has one entry per sample."""
    if len(values) != expected:
        raise InputError(f"{name} has {len(values)} values for {expected} samples: give one per sample")


def stored_integer(value: Any, name: str) -> int:
    """Return `value` as an int that fits 64 bits."""
    return count(value, name, least=-(2**63), most=2**63 - 1)


def insist_numbers(values: Any, name: str, shape: tuple[int, ...], missing: bool = False) -> None:
    """Insist on a float64 array of this shape, all finite; NaN is allowed where values may be `missing`."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != shape:
        raise InputError(f"{name} is {_form(values)}: it must be numbers of shape {shape}")
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        raise InputError(f"{name} holds {values[bad][0]}: it must be finite")


def insist_integers(values: Any, name: str, shape: tuple[int, ...], least: int, most: int) -> None:
    """Insist on an array of integers of this shape, from `least` to `most`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "i" or values.shape != shape:
        raise InputError(f"{name} is {_form(values)}: it must be integers of shape {shape}")
    bad = (values < least) | (values > most)
    if bad.any():
        raise InputError(f"{name} holds {values[bad][0]}: it must lie between {least} and {most}")


def insist_offsets(values: Any, name: str, rows: int, end: int) -> None:
    """Insist on integers that rise from 0 to `end`: the starts of the rows, and the end of the last."""
    insist_integers(values, name, (rows + 1,), 0, end)
    if values[0] != 0 or values[-1] != end or (np.diff(values) < 0).any():
        raise InputError(f"{name} does not rise from 0 to {end}")


def insist_kinds(part: Any, **kinds: Any) -> None:
    """Insist that the named attributes of `part`, which may come from a file, are of these types."""
    for name, kind in kinds.items():
        if not isinstance(getattr(part, name), kind):
            raise InputError(f"{name} of a {type(part).__name__} is {getattr(part, name)!r:.80}")


def _form(values: Any) -> str:
    return f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
