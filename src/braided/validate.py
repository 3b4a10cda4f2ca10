"""Checks of values at the boundary: once, before anything is changed."""

from __future__ import annotations

import math
from collections.abc import Sized
from numbers import Integral, Real
from typing import Any

import numpy as np

from braided.errors import InputError
from braided.types import Floats

LEAST = 1e-9  # of a fraction


def real(value: Any, name: str) -> float:
    """Return `value` as a finite float."""
    if type(value) is float and math.isfinite(value):  # at once, what most calls have
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
    """Return `value` as a float above zero, and far enough from the ends of the range that products are finite."""
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
    """Return `value` as a float in (0, 1], and not so small that arithmetic ends."""
    number = real(value, name)
    if not LEAST <= number <= 1:
        raise InputError(f"{name} is {number:g}: it must be above 0 ({LEAST:g} or more) and at most 1")
    return number


def share(value: Any, name: str) -> float:
    """Return `value` as a float between 0 and 1, neither of them."""
    number = real(value, name)
    if not 0 < number < 1:
        raise InputError(f"{name} is {number:g}: it must be above 0 and below 1")
    return number


def count(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} is {value!r}: it must be a whole number, not {type(value).__name__}")
    if value < least:
        raise InputError(f"{name} is {value}: it must be {least} or more")
    return int(value)


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
        raise InputError(f"{name} is no array of {ndim} dimensions: {error}") from error
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


def same_length(values: Sized, name: str, expected: int) -> None:
    """Insist that `values` has one entry per sample."""
    if len(values) != expected:
        raise InputError(f"{name} has {len(values)} values for {expected} samples: give one per sample")
