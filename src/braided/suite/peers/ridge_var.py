"""Ridge VAR: a regression per stream on its own past and that of the streams most like it, refitted at the cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from braided.features import Scale
from braided.suite.past import Past, back
from braided.suite.peers.regression import OTHER_LAGS, OWN_LAGS
from braided.types import Floats, Ints

OTHERS = 20  # streams, the most similar
PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4)
CHOSEN_ON = 0.25  # the last share of the samples, on which one penalty is chosen for all streams
CLIP_AT = 10.0  # deviations of a feature: a level that hardly ever moved may leap
FREE = 1e-6  # the penalty of the bias
FEWEST_SAMPLES = 4  # of a stream, to fit it


class _Fit(NamedTuple):
    """The equations of one stream, on the early samples and on all, and the samples that the penalty is chosen on."""

    early: tuple[Floats, Floats]  # the Gram matrix and the moments
    whole: tuple[Floats, Floats]
    X: Floats
    y: Floats


def forecast(past: Past) -> Floats:
    """Return forecasts of the values (rounds, T); "no change" before the first cut."""
    changes = np.zeros_like(past.changes)
    features = [_features(past, place, _most_similar(past, place)) for place in range(changes.shape[1])]
    for start, end in past.ends:
        fits: dict[int, _Fit] = {}
        scales: dict[int, Scale] = {}
        for place, X in enumerate(features):
            y = past.changes[:start, place]
            known = ~np.isnan(y)
            if known.sum() >= FEWEST_SAMPLES:
                scales[place] = Scale.fit(X[:start][known])
                fits[place] = _fit(_scaled(scales[place], X[:start][known]), y[known])
        penalty = _chosen(list(fits.values()))
        for place, fit in fits.items():
            ahead = _scaled(scales[place], features[place][start:end])
            changes[start:end, place] = ahead @ _solved(*fit.whole, penalty)
    return past.forecasts(changes)


def _most_similar(past: Past, place: int) -> Ints:
    similarity = past.similarity[[place]].toarray().ravel()
    similarity[place] = -1.0
    return np.argsort(-similarity, kind="stable")[: min(OTHERS, len(similarity) - 1)]


def _features(past: Past, place: int, others: Ints) -> Floats:
    """The features of a stream in each row (rows, F); what is missing is 0."""
    own, changes, last = past.last[:, [place]], past.changes, past.last[:, others]
    columns = [back(changes[:, [place]], lag) for lag in range(1, OWN_LAGS + 1)]
    columns += [own, *(back(changes[:, others], lag) for lag in range(1, OTHER_LAGS + 1)), last - own]
    made: Floats = np.nan_to_num(np.hstack(columns))
    return made


def _scaled(scale: Scale, X: Floats) -> Floats:
    """Features in deviations, clipped, and a bias."""
    return np.hstack([scale.transform(X).clip(-CLIP_AT, CLIP_AT), np.ones((len(X), 1))])


def _fit(X: Floats, y: Floats) -> _Fit:
    early = len(y) - max(round(CHOSEN_ON * len(y)), 1)
    gram, moment = X[:early].T @ X[:early], X[:early].T @ y[:early]
    more, extra = X[early:].T @ X[early:], X[early:].T @ y[early:]
    return _Fit((gram, moment), (gram + more, moment + extra), X[early:], y[early:])


def _chosen(fits: list[_Fit]) -> float:
    """Return the penalty with the smallest error on the last quarter, over all streams."""

    def error(penalty: float) -> float:
        return sum(float(np.mean((fit.y - fit.X @ _solved(*fit.early, penalty)) ** 2)) for fit in fits)

    return min(PENALTIES, key=error)


def _solved(gram: Floats, moment: Floats, penalty: float) -> Floats:
    ridge = np.full(len(moment), penalty)
    ridge[-1] = FREE  # the bias
    return np.asarray(np.linalg.solve(gram + np.diag(ridge), moment), np.float64)
