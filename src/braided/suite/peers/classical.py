"""AutoETS and AutoARIMA of statsforecast: one model per stream, chosen and fitted at the cuts.

Between two cuts, a model forecasts each value from those before it, with the parameters that it was fitted with. A
missing value counts as the last known one. These are slow, so each is fitted on the last
thousand values at most, and long panels are sampled: the streams that were forecast are spread evenly over all.

Reference: Hyndman & Khandakar, Automatic time series forecasting: the forecast package for R, JSS 27, 2008.
"""

from __future__ import annotations

import warnings
from itertools import count
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from braided.processes import each
from braided.suite.past import Past, known_so_far
from braided.suite.peers.progress import Progress, silent
from braided.types import Floats, Ints

Kind: TypeAlias = Literal["ETS", "ARIMA"]

FITTED_ON = 1000  # the last values before a cut
STREAMS = {"ETS": 50, "ARIMA": 12}  # at most
LONGEST_SEASON = 24  # rounds: beyond it, ETS has no season, and ARIMA takes hours
FEWEST_VALUES = 10
EXACT_UP_TO, EXACT_SEASON = 150, 12  # values and rounds up to which ARIMA is chosen without approximation, as in R


class Piece(NamedTuple):
    """One stream between two cuts: what to fit on, and the values whose forecasts are wanted."""

    known: Floats
    ahead: Floats


def streams_of(past: Past, kind: Kind) -> Ints:
    """Return which streams are forecast: all, or some spread evenly over them."""
    n_streams = len(past.panel.tasks)
    return np.unique(np.linspace(0, n_streams - 1, min(n_streams, STREAMS[kind])).round().astype(np.int64))


def forecast(past: Past, kind: Kind, jobs: int = 1, progress: Progress = silent) -> Floats:
    """Return forecasts of the values (rounds, T); NaN for streams that were left out."""
    season = min((one.lag for one in past.seasons if one.lag <= LONGEST_SEASON), default=1)
    changes = np.zeros_like(past.changes)
    places = streams_of(past, kind)
    levels = known_so_far(past.levels)
    calls = [(_piece(levels[:, place], start, end), kind, season) for place in places for start, end in past.ends]
    where = [(place, start, end) for place in places for start, end in past.ends]
    for done, (place, start, end), made in zip(count(1), where, each(one_step, calls, jobs), strict=False):
        changes[start:end, place] = made - past.last[start:end, place]
        progress(done / len(where))
    forecasts = past.forecasts(changes)
    forecasts[:, np.setdiff1d(np.arange(changes.shape[1]), places)] = np.nan
    return forecasts


def _piece(levels: Floats, start: int, end: int) -> Piece:
    known = levels[:start]
    return Piece(known[~np.isnan(known)][-FITTED_ON:], levels[start:end])


def one_step(piece: Piece, kind: Kind, season: int) -> Floats:
    """Return a forecast of each value ahead from those before it; NaN where no model can be fitted."""
    if len(piece.known) < max(FEWEST_VALUES, 2 * season) or np.ptp(piece.known) == 0.0 or np.isnan(piece.ahead).any():
        return np.full(len(piece.ahead), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return (_ets if kind == "ETS" else _arima)(piece, season)
        except Exception:  # of any kind, on any series: a model that can't be fitted forecasts "no change"
            return np.full(len(piece.ahead), np.nan)


def _ets(piece: Piece, season: int) -> Floats:
    from statsforecast.models import AutoETS  # slow to import

    model = AutoETS(season_length=season).fit(piece.known)
    made = model.forward(np.append(piece.known, piece.ahead), h=1, fitted=True)["fitted"]
    return np.asarray(made, np.float64)[len(piece.known) :]


def _arima(piece: Piece, season: int) -> Floats:
    """Run the fitted model's Kalman filter on.

    `forward` would return values less *standardised* residuals: where their variance has not settled, as after a short
    series, such a forecast knows part of the value itself.
    """
    from statsforecast.models import AutoARIMA  # slow to import

    n_known = len(piece.known)
    approximate = n_known > EXACT_UP_TO or season > EXACT_SEASON
    fitted = AutoARIMA(season_length=season, approximation=approximate).fit(piece.known).model_
    # Beside lags, a model may have a mean, or a drift per step.
    steps, coefficients = n_known + 1 + np.arange(len(piece.ahead)), fitted["coef"]
    level = coefficients.get("intercept", 0.0) + coefficients.get("drift", 0.0) * steps
    Z, T, V, noise, state, P = (fitted["model"][name] for name in ("Z", "T", "V", "h", "a", "P"))
    made = np.empty(len(piece.ahead))
    for step, value in enumerate(piece.ahead):
        state, P = T @ state, T @ P @ T.T + V
        made[step] = Z @ state + level[step]
        gain = P @ Z / (Z @ P @ Z + noise)
        state = state + gain * (value - made[step])
        P = P - np.outer(gain, Z @ P)
    return made
