"""MTOSLSSVR and OSLSSVR solve their defining problem after every sample."""

import numpy as np
import pytest

import braided as bd
from braided.forgetting import Directional, Drift, HalfLife, Restore
from braided.kernels import linear, polynomial, rbf
from tests.reference.kernel import Defined, paper_step
from tests.reference.linear import batch
from tests.streams import random_graph, random_stream, worst


def multi_task(kernel, graph):
    """k((x,s),(x',t)) = A⁻¹[s,t] κ(x,x'), spelled out."""
    inverse = np.linalg.inv(graph.relation)
    return lambda a, b: inverse[a[1], b[1]] * kernel(a[0][None, :], b[0])[0]


def fitted(model):
    """Forecasts at the dictionary's own inputs, Kα."""
    inputs, tasks = model.dictionary
    return model.predict_many(inputs, tasks)


@pytest.mark.parametrize("kernel", [linear(), rbf(1.5)], ids=["linear", "rbf"])
@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0, 1e2])
@pytest.mark.parametrize("novelty", [1e-6, 1e-4, 1e-2, 1e-1])
def test_fitted_values_are_those_of_the_defining_problem_at_every_step(kernel, penalty, novelty):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 3)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=20)
    model = bd.MTOSLSSVR(graph, 2, kernel, penalty, novelty)
    defined = Defined(multi_task(kernel, graph), penalty, novelty)
    for x, target, t in zip(X, y, tasks, strict=True):
        model.learn_one(x, target, task=int(t))
        defined.learn((x, t), target)
        assert len(model.dictionary[0]) == len(defined.dictionary)
        assert worst(fitted(model), defined.fitted()) < 1e-8


@pytest.mark.parametrize("kernel", [linear(), rbf(1.5)], ids=["linear", "rbf"])
def test_equals_the_papers_recursion(kernel):
    """α, and P = U'P̃U, where the explicit inverse still holds."""
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 3)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=15)
    penalty, novelty = 0.1, 1e-2
    model = bd.MTOSLSSVR(graph, 2, kernel, penalty, novelty)
    k = multi_task(kernel, graph)
    points = list(zip(X, tasks, strict=True))
    k11 = k(points[0], points[0])
    Kinv, P, alpha = np.array([[1 / k11]]), np.array([[k11 / (k11 + penalty)]]), np.array([y[0] / (k11 + penalty)])
    dictionary = [points[0]]
    model.learn_one(X[0], y[0], task=int(tasks[0]))
    for point, target in list(zip(points, y, strict=True))[1:]:
        model.learn_one(point[0], target, task=int(point[1]))
        column = np.array([k(point, other) for other in dictionary])
        Kinv, P, alpha, grew = paper_step(Kinv, P, alpha, column, k(point, point), target, penalty, novelty)
        dictionary += [point] * grew
        m = len(dictionary)
        U, triangle = model.state.factor[0, :m, :m], np.tril(model.state.covariance[0, :m, :m])
        whole = triangle + np.tril(triangle, -1).T
        assert worst(model.dual_coef, alpha) < 1e-6
        assert worst(U.T @ whole @ U, P) < 1e-6


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
def test_a_linear_dictionary_stops_at_dt_whatever_the_scale(ridge, size):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        graph = bd.TaskGraph.pooled(range(10), ridge=ridge)
        X, y, tasks, _ = random_stream(rng, 10, 10, n_rounds=60)
        penalty = size**2
        kernel, exact = bd.MTOSLSSVR(graph, 10, "linear", penalty, 0.0), bd.MTWRLS(graph, 10, penalty)
        assert worst(kernel.progressive(size * X, y, tasks), exact.progressive(size * X, y, tasks)) < 1e-7
        assert kernel.state.sizes[0] == 100
        assert worst(kernel.coef, exact.coef) < 1e-7
        kernel.add_task("new", {0: 0.5})
        exact.add_task("new", {0: 0.5})
        assert worst(kernel.coef, exact.coef) < 1e-7


def test_linear_without_novelty_equals_mtwrls_and_stops_at_dt():
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 5)
    X, y, tasks, rounds = random_stream(rng, 5, 4, n_rounds=60)
    for novelty in (0.0, 1e-10):
        kernel, exact = bd.MTOSLSSVR(graph, 4, "linear", 0.3, novelty), bd.MTWRLS(graph, 4, 0.3)
        mean, std = kernel.progressive(X, y, tasks, rounds=rounds, with_std=True)
        expected, expected_std = exact.progressive(X, y, tasks, rounds=rounds, with_std=True)
        assert worst(mean, expected) < 1e-8
        assert worst(std[5:], expected_std[5:]) < 1e-8
        assert worst(kernel.coef, exact.coef) < 1e-8
        assert kernel.state.sizes[0] == 20


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_dictionary_a_task_equals_a_graph_without_edges(kernel):
    rng = np.random.default_rng(4)
    X, y, tasks, rounds = random_stream(rng, 4, 3, n_rounds=30)
    single = bd.OSLSSVR(range(4), 3, kernel, 0.2, 1e-3)
    joint = bd.MTOSLSSVR(bd.TaskGraph.independent(range(4)), 3, kernel, 0.2, 1e-3)
    assert worst(single.progressive(X, y, tasks, rounds=rounds), joint.progressive(X, y, tasks, rounds=rounds)) < 1e-9


def test_linear_oslssvr_equals_wrls():
    rng = np.random.default_rng(5)
    X, y, tasks, _ = random_stream(rng, 4, 3, n_rounds=30)
    kernel, filters = bd.OSLSSVR(range(4), 3, "linear", 0.2, 0.0), bd.WRLS(range(4), 3, 0.2)
    assert worst(kernel.progressive(X, y, tasks), filters.progressive(X, y, tasks)) < 1e-9
    assert worst(kernel.coef, filters.coef) < 1e-9


@pytest.mark.parametrize("form", ["laplacian", "penalty"])
def test_a_joining_task_gives_the_batch_solution_on_the_enlarged_graph(form):
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 3, form=form)
    X, y, tasks, _ = random_stream(rng, 4, 2, n_rounds=12)
    early = np.flatnonzero(tasks < 3)[:25]
    late = np.setdiff1d(np.arange(len(y)), early)
    model = bd.MTOSLSSVR(graph, 2, "linear", 0.2, novelty=0.0)
    model.learn_many(X[early], y[early], tasks[early])
    model.add_task(3, similar_to={0: 0.5, 1: 0.9})
    enlarged = graph.join(3, {0: 0.5, 1: 0.9})
    assert worst(model.coef, batch(enlarged.dense_relation, 0.2, X[early], y[early], tasks[early])[0]) < 1e-8
    model.learn_many(X[late], y[late], tasks[late])
    order = np.concatenate([early, late])
    w, _, minimum = batch(enlarged.dense_relation, 0.2, X[order], y[order], tasks[order])
    assert worst(model.coef, w) < 1e-8
    assert model.state.totals[0, 1] == pytest.approx(minimum, rel=1e-8)


def test_a_leaving_task_changes_no_other_forecast_now_or_later():
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 4)
    X, y, tasks, _ = random_stream(rng, 4, 3, n_rounds=20)
    stays, leaves = (bd.MTOSLSSVR(graph, 3, "rbf", 0.1) for _ in range(2))
    for model in (stays, leaves):
        model.learn_many(X[:40], y[:40], tasks[:40])
    leaves.remove_task(1)
    others = np.flatnonzero(tasks[40:] != 1) + 40
    stay = stays.progressive(X[others], y[others], tasks[others])
    assert worst(leaves.progressive(X[others], y[others], tasks[others]), stay) < 1e-12
    # and one may join after it, beside what the one that left has taught
    links = {0: 0.5, 3: 0.2}
    for model in (stays, leaves):
        model.add_task("new", links)
    assert worst(leaves.predict_many(X[:5], ["new"] * 5), stays.predict_many(X[:5], ["new"] * 5)) < 1e-9
    assert None in leaves.dictionary[1]


def test_a_task_may_leave_before_it_has_shown_anything():
    rng = np.random.default_rng(13)
    X, y, tasks, _ = random_stream(rng, 4, 3, n_rounds=10)
    stays, leaves = (bd.MTOSLSSVR(random_graph(np.random.default_rng(0), 4), 3, "rbf") for _ in range(2))
    seen = tasks != 1
    for model in (stays, leaves):
        model.learn_many(X[seen], y[seen], tasks[seen])
    leaves.remove_task(1)
    assert leaves.dictionary[1] == stays.dictionary[1]
    later = [m.progressive(X[seen], y[seen], tasks[seen]) for m in (stays, leaves)]
    assert worst(later[1], later[0]) < 1e-12


def test_a_task_may_join_large_dictionaries():
    rng = np.random.default_rng(14)
    X, y, tasks, _ = random_stream(rng, 2, 3, n_rounds=40)
    model = bd.OSLSSVR(range(2), 3, "rbf", novelty=0.0)
    model.learn_many(X, y, tasks)
    assert model.state.sizes.min() > 16
    model.add_task("new")
    assert model.predict_one(X[0], task="new") == 0.0
    alone = bd.OSLSSVR(["new"], 3, "rbf", novelty=0.0)
    same = [m.progressive(X, y, ["new"] * len(y)) for m in (model, alone)]
    assert worst(same[0], same[1]) < 1e-12


def test_a_kernel_that_overflows_is_told():
    model = bd.MTOSLSSVR(bd.TaskGraph.pooled(["a"]), 1)
    with pytest.raises(bd.NumericalError, match="broke down at sample 0"):
        model.learn_one([1e200], 5.0, task="a")
    assert model.samples == 0


def test_a_budget_bounds_the_dictionary_and_a_large_one_changes_nothing():
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 3)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=50)
    free, ample, tight = (bd.MTOSLSSVR(graph, 2, "rbf", 0.1, budget=b) for b in (None, 1000, 20))
    forecasts = [m.progressive(X, y, tasks, rounds=rounds) for m in (free, ample, tight)]
    assert (forecasts[0] == forecasts[1]).all()
    assert tight.state.sizes[0] == 20
    assert free.state.sizes[0] > 20
    assert np.sqrt(np.mean((forecasts[2] - y)[75:] ** 2)) < np.std(y)


def test_novelty_may_be_a_share_of_the_kernel():
    rng = np.random.default_rng(9)
    graph = random_graph(rng, 3)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=30)
    large, small = (bd.MTOSLSSVR(graph, 2, "linear", 0.1, 0.01, novelty_relative=True) for _ in range(2))
    large.learn_many(X, y, tasks)
    small.learn_many(X / 1000, y, tasks)
    assert large.state.sizes[0] == small.state.sizes[0] > 0
    absolute = bd.MTOSLSSVR(graph, 2, "linear", 0.1, 0.01)
    absolute.learn_many(X / 1000, y, tasks)
    assert absolute.state.sizes[0] == 0


def test_a_kernel_of_the_users_own_gives_the_same_answers():
    rng = np.random.default_rng(10)
    graph = random_graph(rng, 3)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=25)
    compiled, own = (
        bd.MTOSLSSVR(graph, 2, kernel, 0.1) for kernel in (rbf(1.3), lambda X, x: np.exp(-((X - x) ** 2).sum(1) / 3.38))
    )
    mean, std = own.progressive(X, y, tasks, rounds=rounds, with_std=True)
    expected, expected_std = compiled.progressive(X, y, tasks, rounds=rounds, with_std=True)
    assert worst(mean, expected) < 1e-9
    assert worst(std[3:], expected_std[3:]) < 1e-9
    assert worst(own.progressive(X, y, tasks), compiled.progressive(X, y, tasks)) < 1e-9
    with pytest.raises(bd.FileError, match="can't be saved"):
        bd.save(own, "nowhere")


@pytest.mark.parametrize(
    "broken", [lambda X, x: np.full(len(X), np.nan), lambda X, x: 1.0, lambda X, x: 1 / 0, lambda X, x: ["a"] * len(X)]
)
def test_a_broken_kernel_leaves_the_model_as_it_was(broken):
    calls = []

    def kernel(X, x):
        calls.append(len(X))
        return broken(X, x) if len(calls) > 8 else np.exp(-((X - x) ** 2).sum(1))

    model = bd.MTOSLSSVR(bd.TaskGraph.pooled(["a", "b"]), 1, kernel)
    model.learn_one([0.1], 1.0, task="a")
    before = [array.tobytes() for array in model.state]
    with pytest.raises((ValueError, ZeroDivisionError)):
        model.learn_many(np.arange(9.0)[:, None], np.ones(9), ["a"] * 9)
    assert [array.tobytes() for array in model.state] == before


@pytest.mark.parametrize(
    "kernel", [2 * linear() + rbf(0.7), rbf(2.0) * polynomial(3, 0.5), polynomial(2) + linear() * 0.3]
)
def test_compositions_run_compiled_and_agree_with_numpy(kernel):
    rng = np.random.default_rng(11)
    X, y, tasks, _ = random_stream(rng, 2, 3, n_rounds=15)
    graph = random_graph(rng, 2, density=1.0)
    compiled, plain = bd.MTOSLSSVR(graph, 3, kernel, 0.1), bd.MTOSLSSVR(graph, 3, lambda X, x: kernel(X, x), 0.1)
    assert worst(compiled.progressive(X, y, tasks), plain.progressive(X, y, tasks)) < 1e-8


def test_a_recursive_inverse_gives_negative_distances_where_the_factor_does_not():
    rng = np.random.default_rng(12)
    X, tasks = rng.uniform(-2, 2, (200, 1)), np.arange(200) % 3
    y = np.sin(2 * X[:, 0])
    graph, penalty, novelty = bd.TaskGraph.pooled(range(3), ridge=1.0), 0.01, 1e-6
    k = multi_task(rbf(1.0), graph)
    points = list(zip(X, tasks, strict=True))
    k11 = k(points[0], points[0])
    Kinv, P, alpha = np.eye(1) / k11, np.eye(1) * k11 / (k11 + penalty), y[:1] / (k11 + penalty)
    dictionary, distances = points[:1], []
    for point, target in zip(points[1:], y[1:], strict=True):
        column = np.array([k(point, other) for other in dictionary])
        distances.append(k(point, point) - column @ Kinv @ column)
        Kinv, P, alpha, grew = paper_step(Kinv, P, alpha, column, k(point, point), target, penalty, novelty)
        dictionary += [point] * grew
    assert min(distances) < -1e-9
    model = bd.MTOSLSSVR(graph, 1, rbf(1.0), penalty, novelty)
    model.learn_many(X, y, tasks)
    inputs, keys = model.dictionary
    U = model.state.factor[0, : len(keys), : len(keys)]
    for point in points:
        phi = np.linalg.solve(U.T, [k(point, other) for other in zip(inputs, keys, strict=True)])
        assert k(point, point) - phi @ phi > -1e-9


def test_the_rbf_dictionary_stays_sound_for_small_novelty():
    """Where the recursive inverse breaks (ν = 1e-6 and below), the factor does not."""
    rng = np.random.default_rng(12)
    graph = bd.TaskGraph.pooled(range(3), ridge=1.0)
    X = rng.uniform(-2, 2, (450, 1))
    tasks = np.arange(450) % 3
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=450)
    errors = []
    for novelty in (1e-3, 1e-6, 1e-9, 0.0):
        model = bd.MTOSLSSVR(graph, 1, rbf(1.0), 0.01, novelty)
        errors.append(np.sqrt(np.mean((model.progressive(X, y, tasks) - y)[150:] ** 2)))
        assert (np.diagonal(model.state.factor[0])[: model.state.sizes[0]] > 0).all()
    assert max(errors) < 1.1 * min(errors)


def test_restoring_is_a_process_in_space_and_time():
    """With every input kept: a Gaussian process with the kernel ρ^|n − m| k(x, x') / λ and noise 1."""
    rng = np.random.default_rng(21)
    graph, kernel, penalty, rho = random_graph(rng, 3), rbf(1.5), 0.3, 0.8
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=12)
    k = multi_task(kernel, graph)
    points = list(zip(X, tasks, strict=True))
    K = np.array([[k(a, b) for b in points] for a in points]) / penalty
    model = bd.MTOSLSSVR(graph, 2, kernel, penalty, 0.0, forgetting=Restore(rho))
    for n in range(12):
        own = rounds == n
        model.learn_many(X[own], y[own], tasks[own], rounds=rounds[own])
        seen = rounds <= n
        past = K[np.ix_(seen, seen)] * rho ** np.abs(rounds[seen][:, None] - rounds[seen]) + np.eye(seen.sum())
        cross = K[:, seen] * rho ** (n - rounds[seen])
        made, deviations = model.predict_many(X, tasks, with_std=True)
        np.testing.assert_allclose(made, cross @ np.linalg.solve(past, y[seen]), rtol=1e-8, atol=1e-9)
        variance = 1.0 + K.diagonal() - (cross * np.linalg.solve(past, cross.T).T).sum(axis=1)
        noise = model.noise_variance[0]
        np.testing.assert_allclose(deviations, np.sqrt(noise * variance), rtol=1e-7)


@pytest.mark.parametrize("policy", [1.0, Restore(0.97), Directional(0.95)], ids=repr)
@pytest.mark.parametrize("make", [bd.MTOSLSSVR, bd.OSLSSVR])
def test_a_kernel_of_ones_own_does_the_same_with_budget_forgetting_coherence_and_robustly(make, policy):
    rng = np.random.default_rng(22)
    first = bd.TaskGraph.pooled(range(3)) if make is bd.MTOSLSSVR else range(3)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=60)
    y[70] = 1e5
    given = {"penalty": 0.1, "novelty": 1e-3, "budget": 9, "coherence": 0.99, "forgetting": policy, "robust": 4.0}
    own = lambda X, x: np.exp(-0.5 * ((X - x) ** 2).sum(axis=1) / 0.8**2)  # noqa: E731
    one, other = (make(first, 2, kernel, **given) for kernel in (rbf(0.8), own))
    made = [model.progressive(X, y, tasks, rounds=rounds, with_std=True) for model in (one, other)]
    np.testing.assert_allclose(made[0], made[1], rtol=1e-8, atol=1e-10)
    assert one.health.dictionary == other.health.dictionary == 9 * len(one.state.sizes)
    assert one.state.evicted.min() > 0
    np.testing.assert_allclose(one.health[2:4], other.health[2:4], rtol=1e-8)


def smooth_stream(n, seed=0, travel=0.0):
    """Samples of three tasks about a centre that may travel."""
    rng = np.random.default_rng(seed)
    tasks = np.arange(n) % 3
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.linspace(0.0, travel, n)
    y = np.sin(X[:, 0]) * (1.0 + 0.2 * tasks) + 0.5 * np.cos(X[:, 1]) + 0.1 * rng.normal(size=n)
    return X, y, tasks, np.arange(n) // 3


@pytest.mark.parametrize("budget", [None, 60])
@pytest.mark.slow
def test_the_error_does_not_depend_on_the_novelty_and_no_distance_is_negative(budget):
    X, y, tasks, rounds = smooth_stream(900)
    errors = []
    for novelty in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 0.0):
        model = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3), ridge=0.1), 2, rbf(1.5), 0.05, novelty, budget)
        made = model.progressive(X, y, tasks, rounds=rounds)
        errors.append(np.sqrt(np.mean((made - y)[300:] ** 2)))
        m = int(model.state.sizes[0])
        U, (inputs, keys) = np.triu(model.state.factor[0, :m, :m]), model.dictionary
        k = multi_task(rbf(1.5), model.graph)
        points = list(zip(inputs, keys, strict=True))
        K = np.array([[k(a, b) for b in points] for a in points])
        np.testing.assert_allclose(U.T @ U, K, atol=1e-12 * K.max())
        phi = np.linalg.solve(U.T, K)
        assert (K.diagonal() - (phi**2).sum(axis=0) > -1e-6 * K.max()).all()
        assert (U.diagonal() ** 2 > 0.99 * novelty).all()  # δ of each, when it came or since others went
    assert max(errors) < 1.1 * min(errors)


def test_inputs_that_move_on_take_no_more_room_and_are_forecast_as_well():
    X, y, tasks, rounds = smooth_stream(6000, travel=12.0)
    errors = []
    for budget in (None, 120):
        model = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3), ridge=0.1), 2, rbf(1.5), 0.05, 1e-2, budget)
        made, sizes = [], []
        for part in np.array_split(np.arange(6000), 10):
            made.append(model.progressive(X[part], y[part], tasks[part], rounds=rounds[part]))
            sizes.append(sum(array.nbytes for array in model.state))
        errors.append(np.sqrt(np.mean((np.concatenate(made) - y)[-2000:] ** 2)))
    assert errors[1] < 1.1 * errors[0]
    assert sizes[-1] == sizes[2]
    assert model.health.dictionary == 120
    assert model.state.inputs.shape[1] <= 128


def test_coherence_keeps_out_what_is_alike():
    X, y, tasks, rounds = smooth_stream(300)
    sizes = []
    for coherence in (1.0, 0.9, 0.5):
        model = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, rbf(1.0), 0.1, 1e-9, coherence=coherence)
        model.learn_many(X, y, tasks, rounds=rounds)
        inputs, keys = model.dictionary
        k = multi_task(rbf(1.0), model.graph)
        points = list(zip(inputs, keys, strict=True))
        K = np.array([[k(a, b) for b in points] for a in points])
        alike = np.abs(K) / np.sqrt(np.outer(K.diagonal(), K.diagonal())) - np.eye(len(K))
        assert alike.max() <= coherence
        sizes.append(len(K))
    assert sizes[0] > sizes[1] > sizes[2] > 5


def test_a_sample_that_cannot_be_learned_has_not_made_time_pass():
    graph = bd.TaskGraph.pooled(range(2))
    learners = [
        bd.MTOSLSSVR(graph, 1, "linear", forgetting=Restore(0.9)),
        bd.MTOSLSSVR(graph, 1, lambda X, x: X @ x, forgetting=Restore(0.9)),
        bd.MTWRLS(graph, 1, forgetting=Restore(0.9)),
        bd.MTWRLS(graph, 1, forgetting=Drift(0.1)),
        bd.WRLS(range(2), 1, forgetting=HalfLife(3)),
    ]
    for model in learners:
        same = model.with_features(1)
        model.learn_many([[1.0], [2.0]], [1.0, 2.0], [0, 1], rounds=[0, 0])
        with pytest.raises(bd.NumericalError):
            model.learn_many([[1.5], [3.0], [1.0]], [1.0, 2.0, 1e200], [1, 0, 0], rounds=[1, 1, 2])
        same.learn_many([[1.0], [2.0], [1.5], [3.0]], [1.0, 2.0, 1.0, 2.0], [0, 1, 1, 0], rounds=[0, 0, 1, 1])
        for one, other in zip(model.state, same.state, strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(bd.NumericalError):
            model.learn_one([1.0], 1e200, task=0, round=2)
        for one, other in zip(model.state, same.state, strict=True):
            np.testing.assert_array_equal(one, other)


def test_forgetting_that_a_dictionary_can_not_do_is_refused():
    graph = bd.TaskGraph.pooled(["a", "b"])
    for policy in (0.9, bd.Exponential(0.9), Drift(0.1), HalfLife(3)):
        with pytest.raises(bd.InputError, match="give MTOSLSSVR a Restore or Directional"):
            bd.MTOSLSSVR(graph, 1, forgetting=policy)
    assert bd.MTOSLSSVR(graph, 1, forgetting=bd.Exponential(1.0, per="round")).forgetting == bd.Exponential(1.0)
    for bad in (0.0, 1.5):
        with pytest.raises(bd.InputError, match="coherence is"):
            bd.OSLSSVR(["a"], 1, coherence=bad)


def test_a_task_joins_the_same_whatever_scale_the_covariance_is_kept_in():
    rng = np.random.default_rng(30)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=40)
    models = [bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, rbf(1.0), 0.1, forgetting=Restore(0.9)) for _ in range(2)]
    for model in models:
        model.learn_many(X, y, tasks, rounds=rounds)
    scale = models[1].state.totals[0, 0]
    assert scale < 0.5
    models[1].state.covariance[0] *= scale
    models[1].state.totals[0, 0] = 1.0
    made = []
    for model in models:
        model.add_task("new", {0: 0.5, 1: 0.2})
        made.append(model.predict_many(X[:9], [0, 1, 2, "new", 0, 1, 2, "new", 0], with_std=True))
    np.testing.assert_allclose(made[0], made[1], rtol=1e-9)
    assert np.abs(made[0][0]).max() > 0.1


def test_a_task_that_leaves_after_evictions_leaves_no_row_behind(tmp_path):
    rng = np.random.default_rng(31)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=30)
    model = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, rbf(0.5), 0.1, budget=4)
    model.learn_many(X, y, tasks, rounds=rounds)
    model.learn_many(X[:20], y[:20], np.zeros(20, int))
    model.remove_task(2)
    bd.save(model, tmp_path / "model")
    np.testing.assert_array_equal(
        bd.load(tmp_path / "model").predict_many(X[:2], [0, 1]), model.predict_many(X[:2], [0, 1])
    )


def test_after_a_join_the_dictionary_is_that_of_the_enlarged_prior():
    rng = np.random.default_rng(32)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=20)
    model = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, rbf(1.0), 0.1, budget=12)
    model.learn_many(X, y, tasks, rounds=rounds)
    model.add_task("new", {0: 0.5, 1: 0.2})
    inputs, keys = model.dictionary
    k = multi_task(rbf(1.0), model.graph)
    points = [(x, model.graph.index(key)) for x, key in zip(inputs, keys, strict=True)]
    K = np.array([[k(a, b) for b in points] for a in points])
    np.testing.assert_allclose(model.state.norms[0, :12], K.diagonal(), rtol=1e-10)
    np.testing.assert_allclose(model.state.precision[0, :12], np.linalg.inv(K).diagonal(), rtol=1e-7)


@pytest.mark.parametrize("budget", [1, 15, 16, 17, 32, 33])
def test_a_budget_may_be_as_large_as_the_room(budget):
    X, y, tasks, rounds = smooth_stream(150)
    model = bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, rbf(0.3), 0.1, 1e-6, budget)
    model.learn_many(X, y, tasks, rounds=rounds)
    assert model.health.dictionary == budget


def test_health_of_several_dictionaries_that_restore():
    X, y, tasks, rounds = smooth_stream(150)
    model = bd.OSLSSVR(range(3), 2, rbf(0.3), 0.1, budget=8, forgetting=Restore(0.9))
    assert np.isnan(model.health.largest_variance)
    model.learn_many(X, y, tasks, rounds=rounds)
    state = model.state
    each = np.concatenate([np.diag(state.covariance[f])[:m] * state.totals[f, 0] for f, m in enumerate(state.sizes)])
    assert model.health[2:5] == (pytest.approx(each.max()), pytest.approx(each.max() / each.min()), 24)
    assert each.max() <= 10.0 * (1.0 + 1e-12)  # the prior variance


def test_a_join_under_directional_forgetting_leaves_the_noise_alone():
    X, y, tasks, rounds = smooth_stream(150)
    for model in (
        bd.MTOSLSSVR(bd.TaskGraph.pooled(range(3)), 2, rbf(1.0), 0.1, forgetting=Directional(0.5)),
        bd.MTWRLS(bd.TaskGraph.pooled(range(3)), 2, 0.1, Directional(0.5)),
    ):
        model.learn_many(X, y, tasks, rounds=rounds)
        before = model.noise_variance
        model.add_task("new", {0: 0.5})
        np.testing.assert_array_equal(model.noise_variance, before)
