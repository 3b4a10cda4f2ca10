"""Units: values centred and scaled so that changes are about 1, and tasks of any size can share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from braided.errors import InputError
from braided.types import Floats, Ints
from braided.validate import LARGEST_VALUE, insist_numbers

LARGEST_LEVEL = 1e100  # in units
CENTRE_VALUES = 20  # the centre is the median of the first ones: more would leak the future
JOIN_AFTER = CENTRE_VALUES  # values, on which a new stream's units are measured
CLIP_CHANGES_AT = 10.0  # times their typical size, when the scale is measured
LARGEST_FLOAT = float(np.finfo(np.float64).max)
SMALLEST_FLOAT = float(np.finfo(np.float64).tiny)


@final
@dataclass(frozen=True, eq=False)
class Units:
    """(value − centre) / scale per task; with `logarithm`, of the values' logarithms.

    >>> units = Units.measure(np.array([[0.0, 10.0], [1.0, 30.0], [0.0, 50.0]]))
    >>> units.centre, units.scale
    (array([ 0., 30.]), array([ 1., 20.]))
    >>> units.inward(np.array([[1.0, 50.0]]))
    array([[1., 1.]])
    """

    centre: Floats  # (T,) median of the first 20 values
    scale: Floats  # (T,) root mean square of the changes, the largest of them clipped
    logarithm: bool = False
    typical: Floats = field(default_factory=lambda: np.empty(0))  # (T,) as `scale`, but always of the values themselves

    def __post_init__(self) -> None:
        for name in ("centre", "scale", "typical"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        object.__setattr__(self, "logarithm", bool(self.logarithm))
        if not self.logarithm:
            object.__setattr__(self, "typical", self.scale)
        elif not self.typical.size:  # not measured: to first order
            with np.errstate(over="ignore"):
                values = np.exp(self.centre) * self.scale
            object.__setattr__(self, "typical", np.clip(values, SMALLEST_FLOAT, LARGEST_FLOAT))
        for name in ("centre", "scale", "typical"):
            insist_numbers(getattr(self, name), name, (len(self.centre),))
        for name in ("scale", "typical"):
            if not (getattr(self, name) > 0.0).all():
                raise InputError(f"{name} holds {getattr(self, name).min():g}: it must be above 0")

    @classmethod
    def measure(cls, values: Floats, logarithm: bool = False) -> Units:
        """Measure values (steps, tasks), NaN where one is missing; a task that never changes gets the others' scale."""
        levels = logarithms(values) if logarithm else values
        there = ~np.isnan(levels)
        changes = np.diff(levels, axis=0)
        size = np.fmax(np.fmax.reduce(np.abs(changes), axis=0, initial=0.0), 0.0)  # no square overflows below
        known = ~np.isnan(changes)
        squares = np.where(known, np.nan_to_num(changes) / np.where(size > 0.0, size, 1.0), 0.0) ** 2
        scale = size * np.sqrt(_mean_square(squares, np.maximum(known.sum(axis=0), 1)))
        centre = np.array(
            [
                np.median(column[known][:CENTRE_VALUES]) if known.any() else 0.0
                for column, known in zip(levels.T, there.T, strict=True)
            ]
        )
        typical = float(np.median(scale[scale > 0.0])) if (scale > 0.0).any() else 1.0
        scale = np.where(scale > 0.0, scale, typical)
        return cls(centre, scale, logarithm, cls.measure(values).scale if logarithm else scale)

    def inward(self, values: Floats) -> Floats:
        """Return the levels (n, T) that are learned; NaN beyond ±1e100."""
        with np.errstate(over="ignore"):
            levels: Floats = ((logarithms(values) if self.logarithm else values) - self.centre) / self.scale
        levels[~(np.abs(levels) <= LARGEST_LEVEL)] = np.nan
        return levels

    def outward(self, levels: Floats, places: Ints) -> Floats:
        """Return the levels of the tasks at `places` as values; those that overflow become the largest float."""
        with np.errstate(over="ignore", invalid="ignore"):
            values: Floats = levels * self.scale[places] + self.centre[places]
            return np.clip(np.exp(values) if self.logarithm else values, -LARGEST_FLOAT, LARGEST_FLOAT)

    def joined(self, values: Floats) -> Units:
        """Return these units with those of one more task, measured on its values from the first that is known.

        Values that are missing before that would move the last bit of a mean.
        """
        values = values[np.argmax(~np.isnan(values)) :]
        other = Units.measure(values[:, None], self.logarithm)
        changes = np.diff(logarithms(values) if self.logarithm else values)
        moves = np.nan_to_num(changes).any()
        scale, typical = (
            np.append(own, new if moves else np.median(own))
            for own, new in ((self.scale, other.scale), (self.typical, other.typical))
        )
        return Units(np.append(self.centre, other.centre), scale, self.logarithm, typical)


def without_too_large(values: Floats) -> tuple[Floats, int]:
    """Return values with NaN for those that are too large to use, and the number of those.

    >>> without_too_large(np.array([1.0, -1e200, np.nan]))
    (array([ 1., nan, nan]), 1)
    """
    too_large = np.abs(values) > LARGEST_VALUE
    count = int(np.count_nonzero(too_large))
    return (np.where(too_large, np.nan, values), count) if count else (values, 0)


def _mean_square(squares: Floats, counts: Ints) -> Floats:
    """Return the mean of each column, with its largest entries clipped at a hundred times the mean of the rest.

    The largest are a twentieth, and at least two, as one wild value makes two wild changes. If the rest is 0, nothing
    is clipped.
    """
    n, largest = len(squares), np.maximum(counts // 20, 2)
    below = np.vstack([np.zeros_like(counts, np.float64), np.sort(squares, axis=0).cumsum(axis=0)])
    rest = below[np.maximum(n - largest, 0), np.arange(len(counts))] / np.maximum(counts - largest, 1)
    limits = np.where(rest > 0.0, CLIP_CHANGES_AT**2 * rest, np.inf)
    mean: Floats = np.minimum(squares, limits).sum(axis=0) / counts
    return mean


def logarithms(values: Floats) -> Floats:
    """Return the logarithms; a value of 0 or below is refused."""
    bad = values <= 0.0
    if bad.any():
        step, task = map(int, np.argwhere(bad)[0])
        raise InputError(f"value {values[step, task]:g} has no logarithm: leave out --log (logarithm=False)")
    return np.log(values)
