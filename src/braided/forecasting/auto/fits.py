"""Fit estimators and ask them for forecasts; an error that they raise is a breakdown, and does not end a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from braided.errors import InputError
from braided.forecasting.auto.estimators import Recipe
from braided.types import Floats

CLIP_FITTED_CHANGES_AT = 20.0  # times their root mean square, unless every error counts in full
ROWS_AT_ONCE = 512  # that a model forecasts in one call


def fitted(recipe: Recipe, X: Floats, y: Floats, is_robust: bool) -> tuple[Any, str]:
    """Return an estimator fitted to inputs X (n, d) and changes y (n,), or None and why it broke down."""
    if is_robust:
        limit = CLIP_FITTED_CHANGES_AT * np.sqrt(np.mean(y**2))
        y = y.clip(-limit, limit)
    model = recipe.build()
    try:
        model.fit(X, y)
    except Exception as error:  # of any kind: a run goes on without this member
        return None, repr(error)
    return model, ""


def forecasts_of(model: Any, X: Floats, first: int, name: str) -> tuple[Floats, str]:
    """Return forecasts (n, T) from inputs (n, T, d), NaN from a breakdown on, and why the model broke down.

    `first` is the number of the first round. Each call of the model has the same shape, and a round always has the same
    place in it, as matrix products of different shapes may differ in the last bits.
    """
    n, T, d = X.shape
    at_once = max(ROWS_AT_ONCE // T, 1)
    made, start = np.full((n, T), np.nan), 0
    while start < n:
        place = (first + start) % at_once
        end = min(n, start + at_once - place)
        room = np.zeros((at_once, T, d))
        room[place : place + end - start] = X[start:end]
        try:
            said = model.predict(room.reshape(-1, d))
        except Exception as error:  # of any kind
            if end - start > 1:  # find the round that it breaks down at, however rounds are cut into calls
                singly = [forecasts_of(model, X[i : i + 1], first + i, name) for i in range(start, end)]
                made[start:end] = np.concatenate([one for one, _ in singly])
            return _until_missing(made, repr(error))
        made[start:end] = _checked(said, (at_once, T), name)[place : place + end - start]
        start = end
    return _until_missing(made, "it predicts NaN or infinity")


def _until_missing(made: Floats, reason: str) -> tuple[Floats, str]:
    """Return forecasts with NaN from the first missing one on, and the reason if any is missing."""
    missing = np.flatnonzero(~np.isfinite(made).all(axis=1))
    if len(missing):
        made[missing[0] :] = np.nan
    return made, reason if len(missing) else ""


def _checked(said: Any, shape: tuple[int, int], name: str) -> Floats:
    try:
        made = np.asarray(said, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} predicts {said!r:.80}: it must return numbers") from error
    if made.shape != (shape[0] * shape[1],):
        raise InputError(f"{name} predicts an array of shape {made.shape}: it must return {(shape[0] * shape[1],)}")
    return made.reshape(shape)
