"""What each way to forget is good for: on streams that drift, for a task that falls silent, and what `health` costs.

Prints Markdown tables and writes docs/forgetting.svg. All streams are synthetic, linear with noise of deviation 0.5,
one sample of every task per round, each round forecast before any of it is learned. About four minutes, one thread.

    python benchmarks/forgetting.py [--part drift|silent|figure|health]

*The streams.* Every task's weights are a part that all tasks have in common, N(0, 1) at first, and one of its own,
N(0, 0.3²) at first. Where they wander, each weight steps at every round, by N(0, 0.03²) in common and N(0, 0.0075²)
of its own. Learners are told that all tasks are alike (`TaskGraph.pooled`), and how much by a ridge that is tuned.

*Equal memory.* For one input of variance 1, forgetting σ per round ends with P = 1 − σ, the gain of a new sample.
Drift ends with the same where a weight's variance grows by q = (1 − σ)²/σ per round, and Restore where
1 − ρ² = q / (P₀ − (1 − σ)), with P₀ a weight's prior variance: ρ alone does not tell how long Restore remembers.
Directional ends with z'Pz = 1 − σ where Exponential has d (1 − σ), so it forgets as fast with 1 − σ d times as large.
"""

# ruff: noqa: E402 (the number of threads is set before NumPy is imported)
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import statistics
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress

import braided as bd
from braided.errors import NumericalError
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore

NOISE = 0.5
COMMON, OWN = 0.03, 0.0075  # steps of the weights per round
RIDGES = (0.01, 0.1, 1.0)


def weights(rng, n, T, d, common, own, jumps=False):
    """The true weights (n, T, d); with `jumps` they move in a hundredth of the rounds, and by ten times as much."""
    steps = common * rng.normal(size=(n, 1, d)) + own * rng.normal(size=(n, T, d))
    if jumps:
        steps *= 10.0 * (rng.random((n, 1, 1)) < 0.01)
    return rng.normal(size=d) + 0.3 * rng.normal(size=(T, d)) + steps.cumsum(axis=0)


def samples(rng, W, seen=None, noise=NOISE):
    """X, y, tasks and rounds of a stream with these weights, of the samples that are `seen` (n, T)."""
    n, T, _ = W.shape
    X = rng.normal(size=W.shape)
    y = (X * W).sum(axis=2) + noise * rng.normal(size=(n, T))
    rounds, tasks = np.indices((n, T))
    seen = np.ones((n, T), bool) if seen is None else seen
    return X[seen], y[seen], tasks[seen], rounds[seen]


def pooled(T, ridge):
    return bd.TaskGraph.pooled(range(T), ridge=ridge)


def variance(graph):
    """What a weight varies by under A⁻¹."""
    return float(np.diag(graph.inverse).mean())


def drift_like(factor, graph):
    """Drift that remembers as long as forgetting `factor` per round does."""
    return Drift((1.0 - factor) ** 2 / factor / variance(graph), graph)


def restore_like(factor, graph, penalty):
    """Restore that does; None where the prior is too narrow for that."""
    room = variance(graph) / penalty - (1.0 - factor)
    share = (1.0 - factor) ** 2 / factor / room if room > 0.0 else 1.0
    return Restore(np.sqrt(1.0 - share)) if share < 1.0 else None


# Drift -------------------------------------------------------------------------------------------------------------

T, d, ROUNDS = 10, 10, 2000
TUNED_ON, SCORED_ON = 0, range(1, 6)
FACTORS = (0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98)
PENALTIES = (0.1, 1.0, 10.0)
VARIANCES = (0.001, 0.002, 0.003, 0.004, 0.006, 0.01)  # of a weight's step, over that of the noise


def coupled_drift(v, ridge):
    graph = pooled(T, ridge)
    return Drift(v / variance(graph), graph)


def multi_task(policy):
    return lambda penalty, ridge, *p: bd.MTWRLS(pooled(T, ridge), d, penalty, policy(*p))


def single_task(policy):
    return lambda penalty, *p: bd.WRLS(range(T), d, penalty, policy(*p))


METHODS = {  # how a learner is made, and the values of each parameter to choose among
    "WRLS, Exponential": (single_task(float), PENALTIES, FACTORS),
    "WRLS, Drift": (single_task(Drift), PENALTIES, VARIANCES),
    "MTWRLS, Exponential": (
        multi_task(lambda factor, per: Exponential(factor ** (1 / T) if per == "sample" else factor, per)),
        PENALTIES,
        RIDGES,
        FACTORS,
        ("sample", "round", "task"),
    ),
    "MTWRLS, Restore": (
        multi_task(Restore),
        (0.01, 0.1, 1.0, 10.0),
        RIDGES,
        (0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99998),
    ),
    "MTWRLS, Directional": (multi_task(Directional), PENALTIES, RIDGES, (0.7, 0.8, 0.85, *FACTORS)),
    "MTWRLS, Drift": (multi_task(coupled_drift), (0.1, 1.0), (0.1,), VARIANCES, (0.01, 0.03, 0.1, 0.3, 1.0, 10.0)),
    "MOGD": (
        lambda penalty, ridge, step: bd.MOGD(pooled(T, ridge), d, penalty, step),
        (0.001, 0.01, 0.03, 0.1, 1.0),
        RIDGES,
        (0.03, 0.1, 0.3, 1.0, 3.0),
    ),
}
NAMES = {
    "WRLS, Exponential": "penalty {}, factor {}",
    "WRLS, Drift": "penalty {}, variance {}",
    "MTWRLS, Exponential": "penalty {}, ridge {}, factor {} (a round), per {}",
    "MTWRLS, Restore": "penalty {}, ridge {}, factor {}",
    "MTWRLS, Directional": "penalty {}, ridge {}, factor {}",
    "MTWRLS, Drift": "penalty {}, ridge {}; a weight's variance {}, ridge of the drift {}",
    "MOGD": "penalty {}, ridge {}, step {}",
}
OTHERS = {  # of about the same speed, so what differs is how
    "no own steps": (0.0309, 0.0, False),
    "own steps 1/4 of the common (the stream above)": (COMMON, OWN, False),
    "own steps 1/2 of the common": (0.0277, 0.0138, False),
    "own steps as large as the common": (0.0219, 0.0219, False),
    "own steps only: tasks wander apart": (0.0, 0.0309, False),
    "jumps, in a hundredth of the rounds": (COMMON, OWN, True),
}


def drifting(seed, common=COMMON, own=OWN, jumps=False):
    rng = np.random.default_rng(seed)
    return samples(rng, weights(rng, ROUNDS, T, d, common, own, jumps))


def rmse(model, stream):
    X, y, tasks, rounds = stream
    try:
        return float(np.sqrt(np.mean((model.progressive(X, y, tasks, rounds=rounds) - y) ** 2)))
    except NumericalError:
        return np.inf


def tuned(name, stream, kept=()):
    """The best of the grid, the first parameters `kept` as they are."""
    make, *grid = METHODS[name]
    grid[: len(kept)] = [(value,) for value in kept]
    return min(product(*grid), key=lambda values: rmse(make(*values), stream))


def scores(name, values, streams):
    return np.array([rmse(METHODS[name][0](*values), stream) for stream in streams])


def spread(values, digits=3):
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"


def drift(bar):
    print(f"\n## Weights that wander: T = {T}, d = {d}, {ROUNDS} rounds (synthetic)\n")
    print(
        f"Tuned on one stream, scored on {len(SCORED_ON)} others: RMSE, mean ± standard error. The noise is {NOISE}.\n"
    )
    streams = [drifting(seed) for seed in SCORED_ON]
    rows = {}
    for name in bar.track(METHODS, description="drift"):
        values = tuned(name, drifting(TUNED_ON))
        rows[name] = values, scores(name, values, streams)
    base = rows["MTWRLS, Exponential"][1].mean()
    print("| method | RMSE | ratio to MTWRLS, Exponential | chosen |")
    print("|---|---|---|---|")
    for name, (values, found) in rows.items():
        shown = NAMES[name].format(*(f"{v:g}" if isinstance(v, float) else v for v in values))
        print(f"| {name} | {spread(found)} | {found.mean() / base:.3f} | {shown} |")
    ratio = rows["MTWRLS, Drift"][1].mean() / base
    print(f"\nDrift has {ratio:.3f} times the RMSE of Exponential.")
    print("\nThe ratio is that of this stream.")
    print("How it depends on the stream; forgetting is tuned anew, the prior stays as chosen above:\n")
    print("| weights | WRLS, Exponential | MTWRLS, Exponential | MTWRLS, Drift | ratio of the last two |")
    print("|---|---|---|---|---|")
    for title, kind in bar.track(OTHERS.items(), description="other drifts"):
        chosen, streams = drifting(TUNED_ON, *kind), [drifting(seed, *kind) for seed in SCORED_ON]
        kept = {"WRLS, Exponential": 1, "MTWRLS, Exponential": 2, "MTWRLS, Drift": 2}
        choices = {name: tuned(name, chosen, rows[name][0][:k]) for name, k in kept.items()}
        found = [scores(name, values, streams).mean() for name, values in choices.items()]
        print(f"| {title} | {' | '.join(f'{value:.3f}' for value in found)} | {found[2] / found[1]:.3f} |")


# A silent task -----------------------------------------------------------------------------------------------------

TASKS, FEATURES, SILENT, BACK = 8, 5, 200, 10
SIGMAS = (0.01, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 1.0)  # those of the paper, and two that a user would choose
USUAL = (0.8, 0.95, 0.99)
SEEDS, TUNING_SEEDS = range(20), range(1000, 1002)
SCENES = {  # steps of the weights, end of the silence, factors
    "(a) constant weights": (0.0, 0.0, 4000, SIGMAS),
    "(b) weights that wander in common": (COMMON, 0.0, 4000, SIGMAS),
    "(c) weights that wander in common and on their own": (COMMON, OWN, 4000, USUAL),
    "(d) constant weights, back after 300 rounds": (0.0, 0.0, 500, USUAL),
    "(e) weights that wander in common, back after 300 rounds": (COMMON, 0.0, 500, USUAL),
}
PRIORS = tuple(product((0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1e4, 1e6), RIDGES))  # penalties and ridges to choose among
POLICIES = {
    "Exponential, per sample": lambda s, g, penalty: Exponential(s),
    "Exponential, per round": lambda s, g, penalty: Exponential(s, per="round"),
    "Restore, ρ² = σ": lambda s, g, penalty: Restore(np.sqrt(s)),
    "Restore, equal memory": restore_like,
    "Directional": lambda s, g, penalty: Directional(s),
    "Drift, equal memory": lambda s, g, penalty: drift_like(s, g),
}
PLAIN, PAPER = "Exponential, per round", "Exponential, per sample"


def silenced(seed, common, own, n):
    """A stream whose first task is silent from round 200 to n, and then comes back for ten rounds."""
    rng = np.random.default_rng(seed)
    seen = np.ones((n + BACK, TASKS), bool)
    seen[SILENT:n, 0] = False
    return samples(rng, weights(rng, n + BACK, TASKS, FEATURES, common, own), seen)


def is_definite(P):
    """Whether P is positive definite; scaled to a unit diagonal, which does not change that, but rounding."""
    root = np.sqrt(np.diag(P))
    return bool(np.linalg.eigvalsh(P / np.outer(root, root))[0] > 0.0)


def comeback(policy, penalty, ridge, stream):
    """RMSE of the silent task's first ten samples back, of all forecasts; is P definite, how often was it rescued."""
    X, y, tasks, rounds = stream
    model = bd.MTWRLS(pooled(TASKS, ridge), FEATURES, penalty, policy)
    cut, definite, errors = len(y) - BACK * TASKS, True, []
    try:
        for part in (slice(cut), slice(cut, None)):
            errors.append(model.progressive(X[part], y[part], tasks[part], rounds=rounds[part]) - y[part])
            definite = definite and is_definite(model.covariance)
    except NumericalError:
        return np.inf, np.inf, False, model.health.guarded
    back = errors[1][tasks[cut:] == 0]
    return *(float(np.sqrt(np.mean(e**2))) for e in (back, np.concatenate(errors))), definite, model.health.guarded


def runs(name, sigma, penalty, ridge, streams):
    """`comeback` of every stream; None where there is no such policy."""
    if sigma == 1.0:
        policy = None if "Drift" in name or "equal" in name else Exponential(1.0)
    else:
        policy = POLICIES[name](sigma, pooled(TASKS, ridge), penalty)
    return None if policy is None else [comeback(policy, penalty, ridge, stream) for stream in streams]


def best(name, sigma, streams):
    """The penalty and ridge with the least error: of the return, and of all forecasts; None where none will do."""
    found = {values: runs(name, sigma, *values, streams) for values in PRIORS}
    errors = {values: np.mean([run[:2] for run in each], axis=0) for values, each in found.items() if each is not None}
    return [min(errors, key=lambda values, k=k: errors[values][k]) for k in (0, 1)] if errors else None


def row(sigma, found):
    """A line of a table: of every policy, the mean over the streams, and how often it is better than plain."""
    cells = []
    for name in POLICIES:
        if name not in found:
            cells.append("–")
        else:
            wins = f" ({(found[name] < found[PLAIN]).sum()})" if name != PLAIN and sigma < 1.0 else ""
            cells.append(spread(found[name], 2) + wins)
    return f"| {sigma:g} | {' | '.join(cells)} |"


def head(*more):
    columns = ("σ", *POLICIES, *more)
    print(f"\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|")


def silent(bar):
    print(f"\n## A task that falls silent: T = {TASKS}, d = {FEATURES} (synthetic)\n")
    print(f"Silent from round {SILENT} to 4,000 or 500: RMSE of its first {BACK} samples back, mean ± standard error")
    print(f"over {len(SEEDS)} streams; in brackets, on how many of them it is below Exponential per round. Penalty and")
    print(
        f"ridge are chosen for every cell on {len(TUNING_SEEDS)} other streams (of 500 rounds for σ below 0.8 and 1)."
    )
    arithmetic, better = {}, {}
    for scene, (common, own, n, sigmas) in SCENES.items():
        streams = [silenced(seed, common, own, n) for seed in SEEDS]
        others = {
            usual: [silenced(seed, common, own, n if usual else 500) for seed in TUNING_SEEDS] for usual in (0, 1)
        }
        tables = {"the return": {}, "all forecasts": {}}
        for sigma in bar.track(sigmas, description=f"silent task {scene[:3]}"):
            for name in POLICIES:
                if name == PAPER and sigma < USUAL[0] and common:
                    continue  # a minute more, for nothing new
                choices = best(name, sigma, others[sigma in USUAL])
                if choices is None:
                    continue
                if sigma not in USUAL:
                    choices[0] = choices[1]
                done = {values: runs(name, sigma, *values, streams) for values in set(choices)}
                for table, values in zip(tables.values(), choices, strict=True):
                    table.setdefault(sigma, {})[name] = np.array([run[0] for run in done[values]])
                for each in done.values():
                    arithmetic.setdefault((sigma, name), []).extend(run[2:] for run in each)
        for by in ("all forecasts", "the return"):
            print(f"\n**{scene}; tuned on {by}**")
            head()
            for sigma, found in tables[by].items():
                if by == "all forecasts" or sigma in USUAL:
                    print(row(sigma, found))
                    for name, rival in product(POLICIES, (PLAIN, PAPER)):
                        if sigma < 1.0 and name in found and rival in found and name not in (PLAIN, PAPER):
                            won = found[name].mean() < found[rival].mean()
                            better.setdefault((f"{scene[:3]} {by}", name, rival), []).append(won)
    print("\n**Summary**: at how many σ the mean is below that of Exponential per round, per sample\n")
    names = [name for name in POLICIES if name not in (PLAIN, PAPER)]
    print(f"| tuned on | {' | '.join(names)} |\n{'|---' * (len(names) + 1)}|")
    for title in dict.fromkeys(key[0] for key in better):
        won = [[better[title, name, rival] for rival in (PLAIN, PAPER)] for name in names]
        print(f"| {title} | {' | '.join(f'{sum(a)} of {len(a)}, {sum(b)} of {len(b)}' for a, b in won)} |")
    print(
        "\n**Arithmetic**: is P positive definite at the end of the silence and of the stream, in all runs above, and"
    )
    print("how often the guard made it anew, mean per stream. Without the guard, on 5 streams of (a):")
    head("per sample, no guard", "per round, no guard")
    streams = [silenced(seed, 0.0, 0.0, 4000) for seed in SEEDS[:5]]
    for sigma in bar.track(SIGMAS, description="without the guard"):
        cells = []
        for name in POLICIES:
            each = arithmetic.get((sigma, name), [])
            bad = sum(not definite for definite, _ in each)
            kept = f"no, {bad} of {len(each)}" if bad else "yes"
            cells.append(f"{kept}, {np.mean([guarded for _, guarded in each]):.0f}" if each else "–")
        for per in ("sample", "round"):
            bare = [comeback(Exponential(sigma, per, guard=False), 1.0, 0.1, stream) for stream in streams]
            broken = sum(not np.isfinite(run[0]) for run in bare)
            bad = sum(not run[2] for run in bare) - broken
            cells.append(f"{broken} broke down, {bad} indefinite" if broken or bad else "yes")
        print(f"| {sigma:g} | {' | '.join(cells)} |")


# The figure --------------------------------------------------------------------------------------------------------

STYLE = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "braided", "svg.fonttype": "path"}
MEMORY = 0.98  # per round: 50 rounds
LINES = {  # colour, dashes and width; told apart with every kind of colour blindness, and where they lie on each other
    "Exponential": ("#e08a4a", "-", 3.2),
    "HalfLife": ("#7a2f00", (0, (3, 2)), 1.1),
    "Drift": ("#6fb1cf", "-", 3.2),
    "Restore": ("#003f66", (0, (3, 2)), 1.1),
    "Directional": ("#00795a", "-", 1.4),
}


def figure(bar):
    penalty, graph = 1.0, pooled(TASKS, 0.1)
    policies = {
        "Exponential": Exponential(MEMORY, per="round"),
        "HalfLife": HalfLife(float(np.log(0.5) / np.log(MEMORY))),
        "Drift": drift_like(MEMORY, graph),
        "Restore": restore_like(MEMORY, graph, penalty),
        "Directional": Directional(1.0 - FEATURES * (1.0 - MEMORY)),
    }
    n, clock = 900, np.arange(900)
    away = np.zeros((n, TASKS), bool)
    away[300:600, 0] = True
    panels = {
        "a jump": (np.where(clock < 300, 0.0, 1.0), np.ones((n, TASKS), bool)),
        "a ramp": (np.clip((clock - 200) / 500, 0.0, 1.0), np.ones((n, TASKS), bool)),
        "a silent task returns": (np.clip((clock - 320) / 200, 0.0, 1.0), ~away),
    }
    drawn = Figure(figsize=(9, 3.5), layout="constrained")
    for axis, (title, (course, seen)) in zip(drawn.subplots(1, 3, sharey=True), panels.items(), strict=True):
        rng = np.random.default_rng(3)
        W = np.ones((n, TASKS, FEATURES)) + 0.15 * rng.normal(size=(TASKS, FEATURES))
        W[:, :, 0] = course[:, None] + 0.1 * rng.normal(size=TASKS)
        X, y, tasks, rounds = samples(rng, W, seen, 0.3)
        axis.plot(clock, W[:, 0, 0], color="#c3cacf", linewidth=6, solid_capstyle="butt", label="true weight")
        for name, policy in bar.track(policies.items(), description=f"figure: {title}"):
            model, course = bd.MTWRLS(graph, FEATURES, penalty, policy), np.empty(n)
            for r in range(n):
                now = slice(*np.searchsorted(rounds, (r, r + 1)))
                model.learn_many(X[now], y[now], tasks[now], rounds=rounds[now])
                course[r] = model.coef[0, 0]
            colour, dashes, width = LINES[name]
            axis.plot(clock[::3], course[::3], color=colour, linestyle=dashes, linewidth=width, label=name)
        if not seen.all():
            axis.axvspan(300, 600, color="#eef1f3", zorder=0)
            axis.text(450, -0.28, "silent", ha="center", color="#3c4650")
        axis.set_title(title, loc="left", fontsize=11)
        axis.set(xlabel="round", xlim=(150, n), ylim=(-0.35, 1.45))
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e4e8eb", linewidth=0.8)
    drawn.axes[0].set_ylabel("a weight of one task")
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
    path = Path(__file__).parents[1] / "docs" / "forgetting.svg"
    with rc_context(STYLE):
        drawn.savefig(path, metadata={"Date": None})
    print("\n## How each policy tracks a weight\n")
    print(
        f"Synthetic data, a stream each: T = {TASKS}, d = {FEATURES}, noise 0.3, memory {1 / (1 - MEMORY):.0f} rounds."
    )
    print("All tasks make the jump and the ramp; in the last panel one task is silent while the others move.")
    print(
        "HalfLife is Exponential by the clock: with rounds of equal length the two are one line. So, nearly, are Drift"
    )
    print("and Restore, with the same graph and memory, while the weights stay well within the prior.")
    print(f"wrote {path}")


# Health ------------------------------------------------------------------------------------------------------------


def health(bar):
    X, y, tasks, rounds = drifting(0)
    chunk, repeats = 1000, 60

    def seconds(is_asked):
        model = bd.MTWRLS(pooled(T, 0.1), d, 1.0, Exponential(0.96, per="round"))
        began = perf_counter()
        for first in range(0, len(y), chunk):
            part = slice(first, first + chunk)
            model.progressive(X[part], y[part], tasks[part], rounds=rounds[part])
            if is_asked:
                model.health  # noqa: B018 (what is timed)
        return perf_counter() - began

    seconds(True)
    pairs = []
    for turn in bar.track(range(repeats), description="health"):
        first = seconds(turn % 2 == 1)  # which goes first alternates
        second = seconds(turn % 2 == 0)
        pairs.append((first, second) if turn % 2 == 0 else (second, first))
    bare, asked = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"\n## What `health` costs: T = {T}, d = {d}, {len(y):,} samples in chunks of {chunk:,} (synthetic)\n")
    print(f"| without, s | asked after every chunk, s | more (median of {repeats} alternating pairs) |")
    print("|---|---|---|")
    print(f"| {bare:.4f} | {asked:.4f} | {100 * (ratio - 1):.2f} % |")


PARTS = {"drift": drift, "silent": silent, "figure": figure, "health": health}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="what to run, may be repeated; else all")
    chosen = parser.parse_args().part or PARTS
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        for part in chosen:
            PARTS[part](bar)


if __name__ == "__main__":
    main()
