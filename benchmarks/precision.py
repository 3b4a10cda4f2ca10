"""How exact MTWRLS is: its weights against the closed form, as the prior variance of a forecast grows.

P is stored by its entries, so what the first samples take off it costs digits, the more the larger the prior variance
‖x‖² / (penalty · ridge) is. The closed form is solved by orthogonal decomposition of the stacked problem. The stream
is synthetic.

    python benchmarks/precision.py
"""

import numpy as np

import braided as bd

TASKS, FEATURES, ROUNDS = 5, 4, 40


def closed_form(A, penalty, X, y, tasks):
    Z = np.zeros((len(y), TASKS, FEATURES))
    Z[np.arange(len(y)), tasks] = X
    prior = np.kron(np.linalg.cholesky(penalty * A).T, np.eye(FEATURES))
    stacked = np.vstack([Z.reshape(len(y), -1), prior])
    return np.linalg.lstsq(stacked, np.append(y, np.zeros(len(prior))), rcond=None)[0].reshape(TASKS, FEATURES)


def main():
    rng = np.random.default_rng(0)
    graph = bd.TaskGraph.pooled(range(TASKS), ridge=0.1)
    tasks = np.tile(np.arange(TASKS), ROUNDS)
    X = rng.normal(size=(len(tasks), FEATURES))
    y = X @ rng.normal(size=FEATURES) + 0.3 * rng.normal(size=len(tasks))
    print(
        "| prior variance ‖x‖² / (penalty · ridge) | largest relative error, over all samples | after the last sample |"
    )
    print("|---|---|---|")
    for exponent in range(0, 13, 2):
        penalty = FEATURES / (graph.ridge * 10.0**exponent)
        model = bd.MTWRLS(graph, FEATURES, penalty)
        errors = []
        for i, task in enumerate(tasks):
            model.learn_one(X[i], y[i], task=int(task))
            exact = closed_form(graph.relation, penalty, X[: i + 1], y[: i + 1], tasks[: i + 1])
            errors.append(np.abs(model.coef - exact).max() / np.abs(exact).max())
        print(f"| 1e{exponent} | {max(errors):.0e} | {errors[-1]:.0e} |")


if __name__ == "__main__":
    main()
