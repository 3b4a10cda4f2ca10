"""The forecaster, round by round and task by task, straight from its docstring."""

import numpy as np
from scipy.special import ndtri


def obvious_intervals(errors, deviations, tasks, groups, misses, n_tasks):
    """Half-widths, one group after the other."""
    log_factor = [np.log(ndtri(1.0 - misses / 2.0))] * n_tasks
    seen, squares = [0] * n_tasks, [0.0] * n_tasks
    widths = np.full(len(errors), np.nan)
    for group in groups:
        for i in group:
            t = tasks[i]
            spread = deviations[i] if len(deviations) else np.sqrt(squares[t] / seen[t]) if seen[t] else np.nan
            widths[i] = np.exp(log_factor[t]) * spread if np.isfinite(spread) else np.nan
        for i in group:
            t = tasks[i]
            seen[t] += 1
            squares[t] += errors[i] ** 2
            if not np.isnan(widths[i]):
                log_factor[t] += max(seen[t] ** -0.6, 0.02) * ((abs(errors[i]) > widths[i]) - misses)
    return widths


def obvious_mean_of_others(values, S):
    """Means over the neighbours that have a value."""
    means = np.zeros_like(values)
    for (step, task), _ in np.ndenumerate(values):
        weights = np.where(np.isnan(values[step]), 0.0, S[task])
        if S[task].any():
            means[step, task] = np.nansum(weights * values[step]) / weights.sum() if weights.any() else np.nan
    return means


def obvious_forecasts(learner, lags, graph, units, times, values, step):
    """(row, task, forecast) of all values that can be forecast; tasks are those of the learner throughout."""
    made = []
    levels = []  # rows of levels; one of NaN for a gap
    S = np.clip(np.asarray(graph.similarity), 0.0, None)

    def around(row, task):
        return obvious_mean_of_others(row[None], S)[0, task]

    for row, (time, value) in enumerate(zip(times, values, strict=True)):
        if row and time - times[row - 1] > 1.5 * step:
            levels.append(np.full(len(value), np.nan))
        level = (value - units.centre) / units.scale
        batch = []
        if levels:
            padded = [np.full(len(value), np.nan)] * lags.reach + levels
            changes = np.diff(padded[-lags.reach :], axis=0)[::-1]
            for t, task in enumerate(learner.tasks):
                x = [change[t] for change in changes[: lags.count]]
                x += [levels[-1][t]] * lags.level
                x += [around(change, t) for change in changes[: lags.neighbours]]
                if lags.gap:
                    x.append(around(levels[-1], t) - levels[-1][t] if S[t].any() else 0.0)
                if lags.fill and not np.isnan(levels[-1][t]):
                    x = np.nan_to_num(x).tolist()
                x += [1.0] * lags.bias
                y = level[t] - levels[-1][t]
                if not np.isnan([*x, y]).any():
                    change = learner.predict_one(x, task=task)
                    made.append((row, t, (levels[-1][t] + change) * units.scale[t] + units.centre[t]))
                    batch.append((x, y, task))
        for x, y, task in batch:
            learner.learn_one(x, y, task=task, round=row)
        levels.append(level)
    return made


def obvious_losses(levels, scale, ends, actual, places):
    """Number of forecasts (T,), pinball losses and values below (T, L), of samples without NaN."""
    known = ~np.isnan(ends).any(axis=1)
    with np.errstate(over="ignore"):
        errors = np.clip((actual[:, None] - ends) / scale[places, None], -1e100, 1e100)
    losses = np.maximum(levels * errors, (levels - 1.0) * errors)
    of_task = [known & (places == t) for t in range(len(scale))]
    sums = ([array[own].sum(axis=0) for own in of_task] for array in (np.ones(len(ends)), losses, errors < 0.0))
    return tuple(map(np.array, sums))
