"""Sound: whether the parts of an engine that was loaded belong together; a file may come from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from braided.errors import InputError
from braided.forecasting.auto.newcomers import LONGEST_WAIT
from braided.forecasting.auto.schedule import ALONE, HEADS, LATER, SCORED_FROM
from braided.forecasting.auto.surroundings import HOLIDAY_COLUMNS
from braided.forecasting.clock import NEVER
from braided.forecasting.curve import BINS, Curve
from braided.forecasting.record import MODEL, NO_CHANGE, Record
from braided.validate import LARGEST_COUNT, count, insist_integers, insist_kinds, insist_numbers

if TYPE_CHECKING:
    from braided.forecasting.auto.engine import AutoEngine


def insist_sound(engine: AutoEngine) -> None:
    """Refuse an engine whose parts do not belong together."""
    n, n_extras = len(engine.columns), engine._n_extras
    count(engine._samples, "samples", least=0, most=LARGEST_COUNT)
    insist_integers(engine.unplanned, "unplanned", (2 + engine.n_known, engine.horizon), 0, LARGEST_COUNT)
    insist_integers(engine._quiet, "quiet", (n,), 0, LARGEST_COUNT)
    insist_numbers(engine._last, "last values", (n,), missing=True)
    if np.shape(engine._has_changed) != (n,) or engine._has_changed.dtype != np.bool_:
        raise InputError("it is not known of each stream whether it has changed")
    insist_numbers(engine._last_extras, "last extras", (n, n_extras), missing=True)
    later = engine.horizon - 1
    kinds = [isinstance(one, Record) and (len(one.scale), one.contenders) for one in engine.later_records]
    if kinds != [(n, LATER)] * later:
        raise InputError(f"there are {len(kinds)} records of later rounds, or of other streams: {later} are due")
    for one in engine.later_records:
        engine._insist_levels(one)
    insist_numbers(engine._surroundings.units, "units of the extras", (2, n_extras))
    insist_integers(engine.places, "places", (len(engine.places),), 0, n - 1)
    if engine.rounds and not NEVER < engine.first_stamp <= engine.last_stamp:
        raise InputError(f"{engine.rounds} rounds were learned, and none has a time")
    _insist_sound_ensembles(engine)
    since = engine.rounds % HEADS[-1]
    kept = 0 if engine._is_measured else min(engine.rounds - since, LONGEST_WAIT) + since
    engine._head.insist_sound(kept, engine.last_stamp, n, n_extras)
    engine._newcomers.insist_sound({*range(n)} - {*engine.places.tolist()}, engine.rounds, engine._is_measured)


def _insist_sound_ensembles(engine: AutoEngine) -> None:
    """Refuse ensembles, or a record, of other streams, columns, horizons or members."""
    one, other = engine.ensemble, engine.alone
    is_inside = 0 if one is None else one.n_streams
    if len({*engine.places.tolist()}) != is_inside or is_inside != len(engine.places):
        raise InputError("the places are not those of the streams of the ensemble")
    if (other is not None) != (one is not None and engine.auto.compares):
        raise InputError("there is an ensemble to compare with, or none, but should not")
    if other is not None and (other.n_streams != is_inside or other.sharing):
        raise InputError("the ensemble to compare with is of other streams, or shares")
    has_holidays, n_known = engine.is_dated and engine.auto.holidays is not None, engine.n_known
    given = (engine._n_extras - n_known + HOLIDAY_COLUMNS * has_holidays, 2 * n_known), n_known + has_holidays
    for ensemble, horizon in ((one, engine.auto.horizon), (other, 1)):
        if ensemble is None:
            continue
        if any((tuple(view.n_given), ensemble.n_planned) != given for view in ensemble.views):
            raise InputError("an ensemble has learned from other columns than those there are")
        if ensemble.views[0].horizon != horizon:
            raise InputError(f"an ensemble forecasts {ensemble.views[0].horizon} rounds ahead, not {horizon}")
    names = [NO_CHANGE] if one is None or engine.rounds < SCORED_FROM else one.names
    expected = (MODEL, *([ALONE] if other and names != [NO_CHANGE] else []), *names)
    if engine.record.contenders != expected:
        raise InputError(f"the record is of {engine.record.contenders!r:.200}, the engine of {expected!r:.200}")
    _insist_sound_report(engine)


def _insist_sound_report(engine: AutoEngine) -> None:
    """Refuse weights or copies that do not belong to the streams, members and rounds."""
    insist_kinds(engine, weights=Curve | None, copies=tuple)
    count(engine.measured_on, "measured_on", least=0, most=engine.rounds)
    count(engine.n_measured, "n_measured", least=0, most=len(engine.places))
    copies = [
        count(place, "place of a copy", least=0, most=len(engine.columns) - 1) for one in engine.copies for place in one
    ]
    if len({*copies}) < len(copies):
        raise InputError("a stream is a copy twice")
    n_scored = 0 if engine.weights is None else engine.weights.rounds
    if engine.weights is not None and engine.ensemble is not None:
        insist_numbers(engine.weights.sums, "weights", (BINS, len(engine.ensemble.names)))
    if n_scored != engine.record.rounds:
        raise InputError(f"there are weights of {n_scored} rounds, and errors of {engine.record.rounds}")
