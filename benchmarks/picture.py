"""Draw the picture of the README: synthetic related streams, one filter per stream against all of them together.

Thirty streams of eight features whose weights vary around a common part; graph from positions, both methods' penalty
chosen on another draw of the same kind. Every round is forecast before any of it is learned. Prints the figures that
the README quotes, and writes docs/picture.svg.

    python benchmarks/picture.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import braided as bd

TASKS, FEATURES, ROUNDS, NOISE = 30, 8, 40, 0.5
BLUE, GREY = "#0b6e99", "#9aa5ad"


def draw(seed):
    """Streams at places on a map: neighbours have similar weights."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 1, (TASKS, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    cover = np.exp(-0.5 * (distances / 0.5) ** 2) + 1e-9 * np.eye(TASKS)
    W = np.linalg.cholesky(cover) @ rng.normal(size=(TASKS, FEATURES)) / np.sqrt(FEATURES)
    tasks = np.tile(np.arange(TASKS), ROUNDS)
    X = rng.normal(size=(len(tasks), FEATURES))
    y = (X * W[tasks]).sum(axis=1) + NOISE * rng.normal(size=len(tasks))
    graph = bd.TaskGraph.nearest(places, k=5, ridge=0.1)
    return graph, X, y, tasks, np.repeat(np.arange(ROUNDS), TASKS), places


def error_by_round(make, problem):
    graph, X, y, tasks, rounds, _ = problem
    forecasts = make(graph).progressive(X, y, tasks, rounds=rounds)
    return np.sqrt(((forecasts - y) ** 2).reshape(ROUNDS, TASKS).mean(axis=1))


def tuned(learner, problem):
    """The learner with the penalty that is best on a problem of its own."""
    grid = 10.0 ** np.arange(-3, 3)
    errors = [error_by_round(lambda g, p=p: learner(g, FEATURES, penalty=p), problem).mean() for p in grid]
    best = grid[int(np.argmin(errors))]
    return lambda g: learner(g, FEATURES, penalty=best)


def main():
    other = draw(seed=1000)
    single, braided = tuned(bd.WRLS, other), tuned(bd.MTWRLS, other)
    problems = [draw(seed) for seed in range(40)]
    alone = np.mean([error_by_round(single, p) for p in problems], axis=0)
    together = np.mean([error_by_round(braided, p) for p in problems], axis=0)
    reach = int(np.argmax(together <= alone[20]))
    print(f"synthetic, {TASKS} streams × {FEATURES} features, mean RMSE of 40 draws (noise {NOISE}):")
    print(f"after 10 samples per stream: alone {alone[10]:.3f}, together {together[10]:.3f}")
    print(f"the error that one filter per stream has after 20 samples, braided has after {reach}")

    plt.rcParams |= {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "braided", "svg.fonttype": "path"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.1), width_ratios=[1, 1.35], layout="constrained")
    graph, *_, places = problems[0]
    for a in graph.tasks:
        for b in graph.neighbours(a):
            if a < b:
                left.plot(*places[[a, b]].T, color=BLUE, linewidth=0.7, alpha=0.55, zorder=1)
    left.scatter(*places.T, s=34, color=BLUE, edgecolor="white", zorder=2)
    left.set_title("related streams share what they learn", loc="left", fontsize=10)
    left.set_aspect("equal")
    left.axis("off")

    samples = np.arange(ROUNDS)
    for curve, color, label, lift in ((alone, GREY, "one filter per stream", 10), (together, BLUE, "braided", -14)):
        right.plot(samples, curve, color=color, linewidth=2.2)
        place = (samples[12], curve[12])
        right.annotate(label, place, xytext=(6, lift), textcoords="offset points", color=color, fontweight="bold")
    right.axhline(NOISE, color="#444", linewidth=0.8, linestyle=(0, (4, 4)))
    right.annotate("noise, the least possible", (ROUNDS - 1, NOISE), (0, -12), textcoords="offset points", ha="right",
                   fontsize=8.5, color="#444")  # fmt: skip
    right.set(xlim=(0, ROUNDS - 1), ylim=(0.42, None), xlabel="samples seen of each stream", ylabel="forecast RMSE")
    right.set_title("error of the next forecast (synthetic streams)", loc="left", fontsize=10)
    right.spines[["top", "right"]].set_visible(False)
    target = Path(__file__).parents[1] / "docs" / "picture.svg"
    figure.savefig(target, metadata={"Date": None})
    print(f"wrote {target.relative_to(Path(__file__).parents[1])}")


if __name__ == "__main__":
    main()
