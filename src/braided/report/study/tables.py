"""Tables of a study, and its findings in words.

| table      | the paper's | what                                                       |
|------------|-------------|------------------------------------------------------------|
| errors     | 1 and 3     | mean and median over the windows, beside the paper's means |
| ranks      | 2 and 4     | mean rank, victories and defeats of the paper's methods    |
| parameters |             | the values chosen most often                               |
| times      |             | the time that tuning and testing took                      |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from braided.datasets import EMBEDDED
from braided.evaluation import PROTOCOLS, Protocol
from braided.methods import Method
from braided.report.common.table import SYMBOLS, Table, number
from braided.statistics import compare_ranks
from braided.study import METHODS, Results
from braided.study.plan import TUNING_SHARES, WINDOWS
from braided.types import Floats

# Lencione & Von Zuben, arXiv 2308.01938, Tables 1–4, on ten sites at Miami: (RELRMSE, RELMAE, mean rank), I and II.
PAPER = {
    "mt-wrls": {"I": (0.7502, 0.7310, 1.77), "II": (0.7470, 0.7274, 1.87)},
    "mt-oslssvr": {"I": (0.7498, 0.7308, 2.00), "II": (0.7476, 0.7279, 2.23)},
    "mt-wrls-elm": {"I": (0.7700, 0.7550, 2.70), "II": (0.7600, 0.7406, 2.50)},
    "wrls": {"I": (0.8467, 0.8236, 5.13), "II": (0.8406, 0.8195, 5.33)},
    "wrls-elm": {"I": (0.8490, 0.8329, 5.40), "II": (0.8336, 0.8196, 5.10)},
    "oslssvr": {"I": (0.8892, 0.8214, 6.10), "II": (0.8765, 0.8170, 5.93)},
    "mogd-elm": {"I": (0.8981, 0.8780, 6.37), "II": (0.9023, 0.8824, 6.27)},
    "mogd": {"I": (0.9336, 0.9191, 7.37), "II": (0.9320, 0.9180, 7.27)},
    "madmm": {"I": (1.1244, 1.0105, 8.17), "II": (1.1704, 0.9779, 8.50)},
}
PAPER_METHODS = [METHODS[name] for name in PAPER]


def tables(results: Results) -> list[Table]:
    """Return all tables of a study, the headline first: synchronous before interleaved."""
    shown: list[Table | None] = []
    for protocol in PROTOCOLS:
        if results.windows == 1:
            shown.append(_errors_of_one_window(results, protocol))
        else:
            shown += [make(results, split, protocol) for make in (_errors, _ranks) for split in results.splits]
    return [table for table in (*shown, _parameters(results), _times(results)) if table and table.rows]


def _errors(results: Results, split: str, protocol: Protocol) -> Table:
    against_no_change, against_last_change = (
        [results.table(split, protocol, f"{error}_to_{base}") for error in ("rmse", "mae")]
        for base in ("no_change", "last_change")
    )
    with_paper = _is_own(results)
    rows = {}
    for place, method in _present(results, against_no_change[0]):
        levels = [float(f(table[:, place])) for table in against_no_change for f in (np.mean, np.median)]
        differences = [float(np.mean(table[:, place])) for table in against_last_change]
        printed = PAPER.get(method.name, {}).get(split, (np.nan, np.nan))[:2] if with_paper else ()
        broke = results.breakdowns(split, protocol, method.name)
        rows[method] = (levels[0], (*map(_fixed, (*levels, *differences, *printed)), str(broke)))
    zero = results.methods.index(METHODS["no-change"]) if METHODS["no-change"] in results.methods else None
    line = f" (here {np.mean(against_last_change[0][:, zero]):.3f})" if zero is not None else ""
    return _sorted(
        rows,
        group=protocol,
        name=f"errors-{split}-{protocol}",
        title=f"Errors, Experiment {split}, {protocol}",
        columns=("Method", "RMSE", "median", "MAE", "median", *(("RMSE", "MAE") * (1 + with_paper)), "broke"),
        groups=(
            ("", 1),
            ("over no change", 4),
            ("over last change", 2),
            *([("paper, Miami", 2)] * with_paper),
            ("", 1),
        ),
        note=(
            f"Mean over {results.windows} windows of the mean over {len(results.tasks)} streams; below 1 is better "
            f"than the baseline. Over the last change, only errors below that of 'no change'{line} show skill. "
            f"{'The figures of the paper are for other data, interleaved, over the last change. ' * with_paper}"
            "'broke': windows in which the method broke down; from there on its forecast is 'no change'."
        ),
    )


def _errors_of_one_window(results: Results, protocol: Protocol) -> Table:
    metrics = ("rmse", "mae", "rmse_to_no_change")
    columns = [results.table(split, protocol, metric)[0] for metric in metrics for split in results.splits]
    rows = {
        method: (columns[len(results.splits) - 1][place], tuple(_fixed(column[place]) for column in columns))
        for place, method in _present(results, columns[0][None, :])
    }
    tuned = " and ".join(str(train - 1 - results.about["lags"]) for train in results.about["splits"].values())
    return _sorted(
        rows,
        group=protocol,
        name=f"errors-{protocol}",
        title=f"Errors, {protocol}",
        columns=("Method", *(split for _ in metrics for split in results.splits)),
        groups=(("", 1), *((title, len(results.splits)) for title in ("RMSE", "MAE", "RMSE over no change"))),
        note=(
            f"Mean over {len(results.tasks)} streams; {' and '.join(results.splits)}: tuned on the first {tuned} "
            f"rounds, the rest forecast from scratch. Sorted by the RMSE of {results.splits[-1]}."
        ),
    )


def _ranks(results: Results, split: str, protocol: Protocol) -> Table | None:
    ranked = results.ranked(split, protocol)
    if ranked is None:
        return None
    methods, comparison = ranked
    p = f"{comparison.p_value:{'.3f' if comparison.p_value >= 0.001 else '.0e'}}"
    rows: dict[Method, tuple[float, tuple[str, ...]]] = {
        method: (rank, (f"{rank:.2f}", str(comparison.victories[place]), str(comparison.defeats[place])))
        for place, (method, rank) in enumerate(zip(methods, comparison.mean_ranks, strict=True))
    }
    columns: tuple[str, ...] = ("rank", "victories", "defeats")
    groups = [("", 1), ("here", 3)]
    # Ranks among other methods can't be compared.
    if _is_own(results) and methods == PAPER_METHODS and split in TUNING_SHARES:
        theirs = compare_ranks([PAPER[method.name][split][2] for method in methods], n_problems=WINDOWS)
        for place, method in enumerate(methods):
            printed = f"{theirs.mean_ranks[place]:.2f}", str(theirs.victories[place]), str(theirs.defeats[place])
            rows[method] = (rows[method][0], rows[method][1] + printed)
        columns, groups = columns * 2, [*groups, ("paper, Miami", 3)]
    return _sorted(
        rows,
        group=protocol,
        name=f"ranks-{split}-{protocol}",
        title=f"Ranks, Experiment {split}, {protocol}",
        columns=("Method", *columns),
        groups=tuple(groups),
        note=(
            f"Friedman's χ² = {comparison.chi_squared:.1f}, p = {p}; mean ranks that differ by "
            f"more than {comparison.difference:.3f} are a victory and a defeat (LSD, 5 %)."
        ),
    )


def _parameters(results: Results) -> Table:
    rows = []
    for method in results.methods:
        counts = [results.chosen(split=split, protocol="synchronous", method=method.name) for split in results.splits]
        if any(counts):
            cells = (" · ".join(_most(count[name]) if name in count else "–" for count in counts) for name in SYMBOLS)
            rows.append((method.title, *("" if set(cell) <= set("– ·") else cell for cell in cells)))
    return Table(
        rows=tuple(rows),
        group="other",
        name="parameters",
        title=f"Parameters chosen most often, synchronous, {' · '.join(results.splits)}",
        columns=("Method", *SYMBOLS.values()),
        note=f"Chosen in the tuning period alone; in brackets how often, of {results.windows}.",
    )


def _times(results: Results) -> Table:
    took = {method: results.seconds(method.name) for method in results.methods if method.make}
    order = sorted(took, key=took.__getitem__)
    return Table(
        rows=tuple((m.title, f"{took[m][0]:.1f}", f"{took[m][1]:.2f}", f"{took[m][2]:.2f}") for m in order),
        group="other",
        name="times",
        title="Times",
        columns=("Method", "tuning, s", "testing, s", "µs per sample"),
        note="Over all windows and experiments, synchronous, on one core; without features, which all share.",
    )


def findings(results: Results) -> list[str]:
    """Return in words what the tables show, also where it goes against the method."""
    said = [_best(results)]
    pairs = (
        ("mt-wrls", "wrls", "Sharing between streams alone (MT-WRLS against WRLS)"),
        ("wrls-neighbours", "wrls", "Seeing the neighbours alone (WRLS + neighbours against WRLS)"),
        ("mt-wrls-neighbours", "wrls", "Both together (MT-WRLS + neighbours against WRLS)"),
        ("mt-oslssvr", "mt-wrls", "The kernel form, linear and without forgetting (MT-OSLSSVR against MT-WRLS)"),
    )
    names = {method.name for method in results.methods}
    said += [_gain(results, one, other, words) for one, other, words in pairs if {one, other} <= names]
    return said + _time_bombs(results)


def _best(results: Results) -> str:
    parts = []
    for split in results.splits:
        error = results.table(split, "synchronous", "rmse_to_no_change").mean(axis=0)
        first = results.methods[int(np.nanargmin(error))]
        naive = "; it has no model, so nothing was gained by learning" if first.naive else ""
        parts.append(f"{first.title} in {split} ({np.nanmin(error):.3f} of the error of 'no change'{naive})")
    return f"Best of all, synchronous: {', '.join(parts)}."


def _gain(results: Results, one: str, other: str, words: str) -> str:
    said = []
    for protocol in PROTOCOLS if METHODS[one].shares else PROTOCOLS[:1]:
        parts = [_change(results, split, protocol, one, other) for split in results.splits]
        said.append(f"{protocol}, {' and '.join(parts)}")
    return f"{words}: {'; '.join(said)}."


def _change(results: Results, split: str, protocol: Protocol, one: str, other: str) -> str:
    table = results.table(split, protocol, "rmse_to_no_change")
    a, b = (table[:, results.methods.index(METHODS[name])] for name in (one, other))
    change, in_mean = (100.0 * (ratio - 1.0) for ratio in (float(np.median(a / b)), float(a.mean() / b.mean())))
    if abs(change) < 0.05:
        return f"the same error in {split}"
    times = f" (lower in {(a < b).sum()} of {results.windows} windows)" if results.windows > 1 else ""
    but = f", but {_percent(in_mean)} in the mean" if in_mean * change < 0.0 and abs(in_mean) >= 0.005 else ""
    return f"{_percent(change)} error in {split}{times}{but}"


def _percent(change: float) -> str:
    return f"{abs(change):.{1 if abs(change) >= 0.05 else 2}f} % {'less' if change < 0 else 'more'}"


def _time_bombs(results: Results) -> list[str]:
    """Name methods with a mean far above their median: rare, large failures."""
    said = []
    for protocol in PROTOCOLS:
        for split in results.splits:
            table = results.table(split, protocol, "rmse_to_no_change")
            wild = [m.title for p, m in _present(results, table) if table[:, p].mean() > 1.2 * np.median(table[:, p])]
            if wild:
                said.append(
                    f"{protocol.capitalize()} {split}: {', '.join(wild)} failed badly in some windows (the mean is far "
                    "above the median): parameters that were good in the tuning period let the filter diverge later."
                )
    return said


def _is_own(results: Results) -> bool:
    """Whether the data come with the package; beside other data, the paper's figures would mislead."""
    return results.name in (*EMBEDDED, "synthetic")


def _present(results: Results, table: Floats) -> list[tuple[int, Method]]:
    return [(p, method) for p, method in enumerate(results.methods) if not np.isnan(table[:, p]).all()]


def _sorted(rows: Mapping[Method, tuple[float, tuple[str, ...]]], **parts: Any) -> Table:
    order = sorted(rows, key=lambda method: rows[method][0])
    return Table(rows=tuple((method.title, *rows[method][1]) for method in order), best_first=True, **parts)


def _fixed(value: float) -> str:
    return number(value, ".4f" if abs(value) < 1000 else ".1e")


def _most(counts: Counter[float]) -> str:
    value, times = max(counts.items(), key=lambda item: (item[1], -item[0]))
    return f"{value:g} ({times})"
