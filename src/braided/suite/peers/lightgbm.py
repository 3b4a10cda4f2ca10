"""LightGBM: gradient-boosted trees, one model of all streams, trained on all before and refitted at the cuts.

Reference: Ke et al., LightGBM: A Highly Efficient Gradient Boosting Decision Tree, NIPS 2017.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from braided.processes import each
from braided.suite.past import Past
from braided.suite.peers.progress import Progress, silent
from braided.suite.peers.regression import features_of, has_category
from braided.types import Floats

TREES = 200
CLIP_TARGET_AT = 20.0  # times its root mean square
SAMPLES_PER_LEAF, LEAVES_PER_SAMPLES = 20, 2000  # at least so many samples in a leaf, or such a share of all
SETTINGS: dict[str, Any] = {
    "objective": "regression",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "seed": 0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


def forecast(past: Past, jobs: int = 1, again: bool = False, progress: Progress = silent) -> Floats:
    """Return forecasts of the values (rounds, T); "no change" before the first cut.

    Units are those of the rounds before the first cut, or of all rounds before each (`again`).
    """
    made = past.no_change.copy()
    # A process for each fit: threads within one wait for each other, and on few samples they cost more than they gain.
    fits = each(_one_step, (_call(*piece) for piece in past.pieces(again)), jobs)
    for done, (piece, start, end), ahead in zip(count(1), past.pieces(again), fits, strict=False):
        changes = np.zeros_like(piece.changes)
        changes[piece.rows[start] : piece.rows[end - 1] + 1] = ahead
        made[start:end] = piece.forecasts(changes)[start:end]
        progress(done / len(past.cuts))
    return made


def _call(past: Past, start: int, end: int) -> tuple[Floats, Floats, int, bool]:
    """What a fit needs: features before the next cut, changes known when the first row after this one is forecast."""
    first = int(past.rows[start])
    known = past.target[: max(first - past.horizon + 1, 0)]
    return features_of(past)[: past.rows[end - 1] + 1], known, first, has_category(past)


def _one_step(features: Floats, target: Floats, first: int, category: bool) -> Floats:
    """Train on the rows of the targets; return forecasts of the rows from `first` on."""
    import lightgbm

    start, (end, n_streams, n_features) = len(target), features.shape
    known = ~np.isnan(target)
    y = target[known]
    if not len(y):
        return np.zeros((end - first, n_streams))
    limit = CLIP_TARGET_AT * np.sqrt(np.mean(y**2))
    leaf = max(SAMPLES_PER_LEAF, len(y) // LEAVES_PER_SAMPLES)
    categories = [n_features - 1] if category else []
    data = lightgbm.Dataset(features[:start][known], y.clip(-limit, limit), categorical_feature=categories)
    model = lightgbm.train(SETTINGS | {"min_data_in_leaf": leaf}, data, num_boost_round=TREES)
    made = model.predict(features[first:].reshape(-1, n_features))
    return np.asarray(made).reshape(end - first, n_streams)
