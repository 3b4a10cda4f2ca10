"""Each compiled function of local_rls.py against its twin by dense matrices."""

from itertools import pairwise

import numpy as np
import pytest

from braided._compiled import local_rls as loc
from braided._compiled import local_solve as solve
from braided._compiled.local_solve import PRIOR, TYPICAL
from braided._compiled.rls_step import COUNT, ERROR_WINDOW, FOLD, RESIDUAL, SCALE, SEEN, SQUARE, UNUSUAL, typical_square
from tests.compiled.batches import as_batch
from tests.reference import local as slow

# Without the JIT, NumPy warns of the overflows that compiled code lets pass and the functions detect.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid)")

NOTHING = np.empty(0)


def relation(rng, n, ridge=0.1, links=2):
    """C of a random sparse graph: two parts without a link between them, and a task without neighbours."""
    S = np.zeros((n, n))
    for t in range(n - 1):
        for j in rng.choice(n - 1, links):
            if t != j and (t < n // 2) == (j < n // 2):
                S[t, j] = S[j, t] = rng.uniform(0.5, 2.0)
    return np.diag(ridge + S.sum(axis=1)) - S


def fresh(C, d):
    rows, columns = np.nonzero(C - np.diag(np.diag(C)))
    starts = np.searchsorted(rows, np.arange(len(C) + 1))
    return loc.fresh_local(starts, columns, C[rows, columns], np.diag(C).copy(), np.arange(len(C)), d), loc.fresh_room(
        len(C), d
    )


def stream(rng, n, n_tasks, d, level=3.0):
    X, tasks = rng.normal(size=(n, d)), rng.integers(0, n_tasks, n)
    weights = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.5, 2.0, n))
    return X, rng.normal(size=n) + level, tasks, weights


def started(seed=0, n=12, d=3, samples=40):
    """A state amid learning, with a residual that is not solved for, and its moments."""
    rng = np.random.default_rng(seed)
    C = relation(rng, n)
    state, room = fresh(C, d)
    state.weights[:] = W = rng.normal(size=(n, d))
    state.residual[:] = -C @ W
    X, y, tasks, weights = stream(rng, samples, n, d)
    state.totals[0, RESIDUAL] = np.sum(W * (C @ W))
    job = job_of(X, y, tasks, weights, [samples], np.ones(samples))
    steps = loc.forecast_inplace, loc.learn_range_inplace, lambda *_: 0
    assert loc.learn_group(*steps, state, room, job, 0, samples) == samples
    return state, room, C, slow.moments(n, X, y, tasks, weights)


def job_of(X, y, tasks, weights, ends, fades, tolerance=1e-12, robust=0.0):
    n, batch = len(y), as_batch(X, y, tasks, ends, weights)
    return loc.Job(batch, fades.copy(), np.empty(n), np.empty(n), NOTHING, robust, tolerance)


def run(state, room, X, y, tasks, weights, ends, fades, **given):
    job = job_of(X, y, tasks, weights, ends, fades, **given)
    done = loc.progressive_inplace(state, room, job, 0, len(job.batch.ends))
    return job.mean, done


def test_learning_keeps_residual_covariance_and_objective_without_moving():
    state, _, C, (Phi, psi, squares) = started()
    np.testing.assert_allclose(state.residual, slow.residual(C, Phi, psi, state.weights), atol=1e-12)
    np.testing.assert_allclose(state.covariance, slow.conditional(C, Phi), rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(state.covariance, state.covariance.swapaxes(1, 2))
    assert state.totals[0, RESIDUAL] == pytest.approx(slow.objective(C, Phi, psi, squares, state.weights), rel=1e-12)


def test_a_product_and_a_sum():
    rng = np.random.default_rng(0)
    P, r, z = rng.normal(size=(4, 4)), rng.normal(size=4), np.empty(4)
    assert solve.apply_inplace(z, P, r) == pytest.approx(r @ P @ r)
    np.testing.assert_allclose(z, P @ r)
    assert solve.total_of(P, 2) == pytest.approx(P[:, 2].sum())


def test_solving_is_conjugate_gradients():
    state, room, C, (Phi, psi, _) = started()
    n, d = psi.shape
    K, P = slow.information(C, Phi), np.zeros((n * d, n * d))
    for t in range(n):
        P[t * d : (t + 1) * d, t * d : (t + 1) * d] = state.covariance[t]
    w, r = state.weights.ravel().copy(), state.residual.ravel().copy()
    for steps in range(1, 6):
        other = solve.Local(*(a.copy() for a in state))
        before = 0.0
        solve.step_inplace(other, room, 0.0, 0, n)
        for _ in range(steps):
            energy = solve.total_of(room.sums, 0)
            solve.turn_inplace(other, room, energy / before if before else 0.0, 0, n)
            before = energy
            solve.step_inplace(other, room, energy / solve.total_of(room.sums, 0), 0, n)
        expected, left = slow.conjugate_gradients(K, w, r, P, steps)
        np.testing.assert_allclose(other.weights.ravel(), expected, atol=1e-10)
        np.testing.assert_allclose(other.residual.ravel(), left, atol=1e-10)
        assert solve.total_of(room.sums, 0) == pytest.approx(left @ P @ left)


@pytest.mark.parametrize("limit", [1.0, 1e-3, 1e-24])
def test_both_solvers_end_where_the_residual_is_small_and_know_the_objective(limit):
    for solver in ("solve", "push"):
        state, room, C, (Phi, psi, squares) = started()
        n = len(psi)
        if solver == "solve":
            assert 0 < solve.solve_inplace(state, room, limit, 100) < 100
        else:
            assert solve.push_inplace(state, room, limit / n, np.arange(n), 10**6) > 0
        steps = np.einsum("tij,tj->ti", state.covariance, state.residual)
        assert (steps**2 @ state.squares).sum() <= limit
        np.testing.assert_allclose(state.residual, slow.residual(C, Phi, psi, state.weights), atol=1e-11)
        found = slow.objective(C, Phi, psi, squares, state.weights)
        assert state.totals[0, RESIDUAL] == pytest.approx(found, rel=1e-10)
        if limit < 1e-20:
            np.testing.assert_allclose(state.weights, slow.solution(C, Phi, psi), atol=1e-10)


def test_one_relaxation_and_no_more_than_there_is_patience_for():
    state, room, C, _ = started()
    W, R = slow.relax(C, state.weights, state.residual, state.covariance, 3)
    assert solve.push_inplace(state, room, 0.0, np.array([3, 3]), 1) == -1
    np.testing.assert_allclose(state.weights, W)
    np.testing.assert_allclose(state.residual, R, atol=1e-14)
    assert not room.queued.any()
    small = state.residual.copy()
    assert solve.push_inplace(state, room, 1e9, np.arange(12), 10) == 0
    np.testing.assert_array_equal(state.residual, small)


def test_solving_ends_where_there_is_no_progress():
    state, room, _, _ = started()
    assert 10 < solve.solve_inplace(state, room, -1.0, 10_000) < 1000  # nothing is left of the residual
    state.residual[:] = 1.0
    state.links[:] *= 100.0  # no longer positive definite
    assert solve.solve_inplace(state, room, 0.0, 100) < 100
    assert np.isfinite(state.weights).all()


def test_solving_ends_after_so_many_iterations():
    state, room, _, _ = started()
    assert solve.solve_inplace(state, room, 0.0, 3) == 3


GROUPS = {"samples": range(1, 91), "rounds": [30, 60, 90], "mixed": [1, 2, 12, 50, 52, 90], "one": [90]}


@pytest.mark.parametrize("fade", [1.0, 0.97, 0.9])
@pytest.mark.parametrize("groups", GROUPS)
def test_weights_are_those_of_the_batch_solution_after_every_group(groups, fade):
    rng = np.random.default_rng(3)
    n, d = 20, 2
    C = relation(rng, n, ridge=0.5)
    state, room = fresh(C, d)
    X, y, tasks, weights = stream(rng, 90, n, d)
    ends = list(GROUPS[groups])
    first = 0
    for end in ends:
        part = slice(first, end)
        expected = (state.weights[tasks[part]] * X[part]).sum(axis=1)
        given = X[part], y[part], tasks[part], weights[part], [end - first], np.full(end - first, fade)
        mean, done = run(state, room, *given)
        assert done == end - first
        np.testing.assert_allclose(mean, expected, rtol=1e-12)
        age = fade ** np.arange(end - 1, -1, -1)
        prior = fade**end * C
        Phi, psi, squares = slow.moments(n, X[:end], y[:end], tasks[:end], age * weights[:end])
        best = slow.solution(prior, Phi, psi)
        np.testing.assert_allclose(state.weights, best, rtol=1e-9, atol=1e-9)
        objective = slow.objective(prior, Phi, psi, squares, best)
        assert state.totals[0, RESIDUAL] == pytest.approx(objective, rel=1e-9)
        scale = state.totals[0, SCALE]
        np.testing.assert_allclose(state.covariance * scale, slow.conditional(prior, Phi), rtol=1e-8, atol=1e-9)
        assert state.totals[0, PRIOR] / scale == pytest.approx(fade**end)
        assert state.totals[0, COUNT] == pytest.approx(age @ weights[:end])
        first = end
    assert state.totals[0, SCALE] <= FOLD
    assert np.isfinite(state.weights).all()


@pytest.mark.parametrize("weight", [1.0, 1e-6])
def test_the_usual_innovation_and_input_are_those_of_the_last_round(weight):
    state, room = fresh(np.eye(4), 1)
    inputs, ones, alike = np.full((8, 1), 1e-9), np.ones(8), np.full(8, weight)
    tasks, y = np.arange(8) % 4, np.arange(8.0)
    run(state, room, inputs, y, tasks, alike, [8], ones)
    assert state.totals[0, TYPICAL] == pytest.approx(3.5)
    assert state.squares == pytest.approx(1e-18)
    run(state, room, 3.0 * inputs[:2], y[:2] - 10.0, tasks[:2], alike[:2] * [1.0, 3.0], [1, 2], ones[:2])
    assert state.totals[0, TYPICAL] == pytest.approx((3.5 * 0.75 + 2.5) * 0.75 + 9.0 / 4.0)
    assert state.squares == pytest.approx((1.0 * 0.75 + 9.0 / 4.0) * 0.75e-18 + 9e-18 / 4.0)
    run(state, room, inputs, y, tasks, np.zeros(8), [8], ones)
    assert state.totals[0, COUNT] == pytest.approx(12.0 * weight)
    assert solve.limit_of(state, 0.1) == pytest.approx(4.0 * (0.1 * state.totals[0, TYPICAL]) ** 2)


def test_a_move_is_that_of_a_forecast_on_the_mean():
    assert solve.move_of(np.array([1.0, 4.0]), np.array([3.0, 0.5])) == 10.0


@pytest.mark.parametrize("fade", [1e-3, 1e-9])
def test_a_strong_fade_is_folded_in_before_the_sample(fade):
    """However strong, the sample that follows is fitted as the prior that is held lets it be."""
    state, room, _, _ = started(samples=60)
    X, y, tasks, weights = stream(np.random.default_rng(9), 12, 12, 3)
    weights[:] = 1.0
    tasks = np.arange(12)
    for _ in range(3):
        run(state, room, X, y, tasks, weights, [12], np.append(fade, np.ones(11)))
    assert state.totals[0, SCALE] <= FOLD
    assert state.totals[0, PRIOR] >= 1e-6 / FOLD
    assert np.abs(y - (state.weights * X).sum(axis=1)).max() < 1e-3


def test_the_pooled_errors_remember_so_many():
    state, room = fresh(np.eye(3), 1)
    n = 300
    X, y, tasks, _ = stream(np.random.default_rng(10), n, 3, 1)
    run(state, room, X, y, tasks, np.ones(n), [100, 200, 300], np.ones(n), robust=3.0)
    assert state.errors[-1, SEEN] == ERROR_WINDOW


def test_after_the_prior_was_held_all_tasks_are_solved_for():
    rng = np.random.default_rng(11)
    state, room = fresh(relation(rng, 40), 2)
    for _ in range(5):
        X, y, _, _ = stream(rng, 40, 40, 2)
        run(state, room, X, y, np.arange(40), np.ones(40), [40], np.append(0.02, np.ones(39)), tolerance=1e-6)
    for _ in range(4):
        X, y, tasks, _ = stream(rng, 1, 40, 2)
        run(state, room, X, y, tasks, np.ones(1), [1], np.array([0.02]), tolerance=1e-6)
        steps = np.einsum("tij,tj->ti", state.covariance, state.residual)
        assert (steps**2 @ state.squares).sum() <= solve.limit_of(state, 1e-6) * (1 + 1e-9)


def test_a_covariance_without_digits_refuses():
    state, room = fresh(np.array([[1e-12]]), 2)
    X = 1e4 * np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9], [1.0, 1.0 - 1e-9]])
    _, done = run(state, room, X, np.ones(3), np.zeros(3, np.int64), np.ones(3), [1, 2, 3], np.ones(3))
    assert done < 3


def test_folding_changes_units_only():
    state, _, _, _ = started()
    state.totals[0, SCALE] = 8.0
    before = [a.copy() for a in state]
    loc.fold_inplace(state)
    np.testing.assert_allclose(state.covariance, 8.0 * before[2])
    np.testing.assert_allclose(state.residual, before[1] / 8.0)
    assert state.totals[0, [SCALE, PRIOR]].tolist() == [1.0, 0.125]
    np.testing.assert_array_equal(state.weights, before[0])


def test_the_prior_is_held_above_a_millionth():
    state, _, C, (Phi, psi, squares) = started()
    assert not loc.hold_inplace(state)
    # Samples that are told of in full, and a prior of which a billionth is left.
    state.covariance[:] = slow.conditional(1e-9 * C, Phi + 0.5 * np.eye(3))
    state.residual[:] = slow.residual(1e-9 * C, Phi + 0.5 * np.eye(3), psi, state.weights)
    state.totals[0, RESIDUAL] = slow.objective(1e-9 * C, Phi + 0.5 * np.eye(3), psi, squares, state.weights)
    state.totals[0, PRIOR] = 1e-9
    assert loc.hold_inplace(state)
    kept = (1e-6 * C, Phi + 0.5 * np.eye(3))
    assert state.totals[0, PRIOR] == 1e-6
    np.testing.assert_allclose(state.covariance, slow.conditional(*kept), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.residual, slow.residual(*kept, psi, state.weights), atol=1e-9)
    assert state.totals[0, RESIDUAL] == pytest.approx(slow.objective(*kept, psi, squares, state.weights), rel=1e-12)


def test_a_long_silence_leaves_the_prior_and_finite_weights():
    state, room, _, _ = started()
    n = 400
    X, y, tasks, weights = stream(np.random.default_rng(1), n, 1, 3)
    _, done = run(state, room, X, y, tasks, weights, range(10, n + 1, 10), np.full(n, 0.5), tolerance=1e-3)
    assert done == n
    assert 1e-10 < state.totals[0, PRIOR] <= 1e-6
    assert np.isfinite(state.weights).all()
    assert np.abs(state.covariance).max() < 1e13


@pytest.mark.parametrize("left", [1.0, 0.3])
def test_deviations_are_at_least_a_tasks_own_and_at_most_its_stars(left):
    state, _, C, (Phi, _, _) = started()
    C = left * C  # what is left of the prior
    state.covariance[:] = slow.conditional(C, Phi)
    state.totals[0, [SCALE, RESIDUAL, COUNT, PRIOR]] = 2.0, 8.0, 4.0, left
    X, tasks = np.random.default_rng(4).normal(size=(12, 3)), np.arange(12)
    mean, std = np.empty(12), np.empty(12)
    loc.forecast_inplace(state, X, tasks, mean, std, 0, 12)
    stars = np.array([slow.star(C, Phi, t) for t in tasks])
    variances = np.array([slow.bound(*each) for each in zip(stars, state.covariance, X, strict=True)])
    np.testing.assert_allclose(mean, (X * state.weights).sum(axis=1))
    np.testing.assert_allclose(std, np.sqrt(2.0 * (1.0 + 2.0 * variances)))
    exact = np.linalg.inv(slow.information(C, Phi))
    blocks = np.array([exact[t * 3 : t * 3 + 3, t * 3 : t * 3 + 3] for t in tasks])
    own = np.einsum("ti,tij,tj->t", X, state.covariance, X)
    bounds = [own, variances, *(np.einsum("ti,tij,tj->t", X, V, X) for V in (stars, blocks))]
    for less, more in pairwise(bounds):
        assert (less <= more * (1 + 1e-12)).all()
    assert variances[-1] == pytest.approx(own[-1])  # it has no neighbours
    state.links[:] *= 100.0  # no longer the information of anything
    t = np.flatnonzero(np.diff(state.starts))[0]
    assert loc.variance_of(state, t, X[t]) == pytest.approx(own[t])
    state.links[:] /= 100.0
    assert loc.variance_of(state, t, 1e140 * X[t]) == pytest.approx(1e280 * variances[t])


@pytest.mark.parametrize(
    ("x", "y", "weight"),
    [
        (1e150, 1.0, 1.0),
        (1.0, 1e150, 1.0),
        (np.nan, 1.0, 1.0),
        (1.0, np.inf, 1.0),
        (1.0, np.nan, 1.0),
        (1.0, 1.0, np.nan),
        (1.0, 1.0, -1.0),
        (1.0, np.inf, 0.0),
        (1.0, 1e60, 1e60),
        (1e80, 1.0, 0.0),
    ],
)
@pytest.mark.parametrize("ends", [[1, 2, 3, 4, 5], [5]])
def test_it_ends_before_what_cannot_be_learned(x, y, weight, ends):
    rng = np.random.default_rng(5)
    C = relation(rng, 6)
    X, targets, tasks, weights = stream(rng, 5, 6, 2)
    (state, room), (other, _) = fresh(C, 2), fresh(C, 2)
    good = X[:3], targets[:3], tasks[:3], weights[:3], [k for k in ends if k <= 3] or [3], np.ones(3)
    run(other, room, *[np.copy(a) for a in good])
    X[3], targets[3], weights[3] = x, y, weight
    _, done = run(state, room, X, targets, tasks, weights, ends, np.ones(5))
    assert done == 3
    for mine, expected in zip(state, other, strict=True):
        np.testing.assert_array_equal(mine, expected)


@pytest.mark.parametrize("value", [1e60, 1e-60])
@pytest.mark.parametrize("size", [1e60, 1e-60])
def test_large_and_small_values_stay_finite(value, size):
    rng = np.random.default_rng(7)
    X, y, tasks, weights = stream(rng, 40, 6, 2)
    state, room = fresh(relation(rng, 6), 2)
    _, done = run(state, room, value * X, size * y, tasks, weights, [1, 2, 3, 10, 20, 40], np.ones(40))
    assert done > 0
    assert all(np.isfinite(a).all() for a in state)


def test_no_variance_turns_negative():
    """From 1 to less than rounding of it by one sample."""
    state, room = fresh(np.eye(1), 2)
    run(state, room, np.array([[1e9, 0.0]]), np.ones(1), np.zeros(1, np.int64), np.ones(1), [1], np.ones(1))
    assert 0.0 < state.covariance[0, 0, 0] < 1e-15
    assert state.covariance[0, 1, 1] == 1.0


@pytest.mark.parametrize("fade", [1.0, 0.95])
@pytest.mark.parametrize("ends", [range(1, 31), [10, 20, 30]])
def test_a_robust_step_weighs_what_is_unusual_less(ends, fade):
    """One task, so that the solution is that of a filter, sample by sample, with the weight of rls."""
    rng = np.random.default_rng(8)
    X, y, k = rng.normal(size=(30, 2)), rng.normal(size=30), 2.0
    y[[12, 25]] = 40.0, -1e6
    state, room = fresh(np.eye(1), 2)
    errors, given = np.zeros((2, 3)), []
    tasks, ones = np.zeros(30, np.int64), np.ones(30)
    run(state, room, X, y, tasks, ones, ends, np.full(30, fade), robust=k)
    information, target, first = np.eye(2), np.zeros(2), 0
    for end in ends:
        w, ratios = np.linalg.solve(information, target), []
        for i in range(first, end):
            information, target = fade * information, fade * target
            e, r = y[i] - X[i] @ w, X[i] @ np.linalg.solve(information, X[i])
            most = k * k * typical_square(errors, 0)
            square, weight = e * e / (1 + r), 1.0
            if square > most > 0.0:
                square, weight = most, 1.0 / (e * e / most - r)
            given.append(weight)
            seen = min(errors[0, SEEN] + 1, ERROR_WINDOW)
            errors[0] = errors[0, SQUARE] + (square - errors[0, SQUARE]) / seen, seen, errors[0, UNUSUAL] + (weight < 1)
            ratios.append(square)
            information = information + weight * np.outer(X[i], X[i])
            target = target + weight * y[i] * X[i]
        many = len(ratios)
        seen = min(errors[1, SEEN] + many, ERROR_WINDOW)
        errors[1, SQUARE] += (np.mean(ratios) - errors[1, SQUARE]) * min(many / seen, 1.0)
        errors[1, SEEN], first = seen, end
    assert sum(weight < 1 for weight in given) >= 2
    np.testing.assert_allclose(state.weights[0], np.linalg.solve(information, target), rtol=1e-8)
    np.testing.assert_allclose(state.errors[0], errors[0], rtol=1e-8)
    assert state.errors[1, UNUSUAL] == errors[0, UNUSUAL]
    np.testing.assert_allclose(state.errors[1, :2], errors[1, :2], rtol=1e-8)


def test_after_every_sample_no_more_is_left_to_move_than_the_tolerance_says():
    """Whatever the units of the features: the limit is one of forecasts."""
    rng = np.random.default_rng(17)
    n, d, size = 40, 3, np.array([10.0, 1.0, 0.01])
    state, room = fresh(relation(rng, n, ridge=0.5), d)
    X, y, tasks, weights = stream(rng, 120, n, d)
    for i in range(len(y)):
        part = slice(i, i + 1)
        run(state, room, X[part] * size, y[part], tasks[part], weights[part], [1], np.ones(1), tolerance=1e-3)
        steps = np.einsum("tij,tj->ti", state.covariance, state.residual)
        assert (state.squares * steps**2).sum() <= solve.limit_of(state, 1e-3)


def test_what_weighs_nothing_leaves_no_trace_in_what_is_usual():
    state, room, _, _ = started()
    known = state.totals[0, TYPICAL:], state.squares, state.errors
    before = [array.copy() for array in known]
    run(state, room, np.ones((3, 3)), np.full(3, 1e3), np.arange(3), np.zeros(3), [3], np.ones(3), robust=3.0)
    for array, old in zip(known, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_one_wild_value_does_not_set_what_is_usual():
    rng = np.random.default_rng(18)
    state, room = fresh(np.eye(4), 1)
    X, y, tasks, ones = rng.normal(size=(80, 1)), rng.normal(size=80), np.arange(80) % 4, np.ones(80)
    y[60] = 1e6
    run(state, room, X, y, tasks, ones, range(1, 81), ones, robust=3.0)
    assert state.totals[0, TYPICAL] < 10.0


@pytest.mark.parametrize("n_zeros", [0, 20])
def test_errors_of_nothing_are_errors(n_zeros):
    """Those of one task are those of all, also where they are 0."""
    rng = np.random.default_rng(19)
    state, room = fresh(np.eye(1), 1)
    n = n_zeros + 30
    X, y = np.ones((n, 1)), np.append(np.zeros(n_zeros), rng.normal(size=30))
    run(state, room, X, y, np.zeros(n, np.int64), np.ones(n), range(1, n + 1), np.ones(n), robust=100.0)
    np.testing.assert_allclose(state.errors[1], state.errors[0])
    assert state.errors[1, SEEN] == n


def test_samples_of_a_group_come_in_any_order():
    """Also of more tasks than are summed together."""
    rng = np.random.default_rng(20)
    n = 2 * solve.CHUNK + 40
    C = relation(rng, n, ridge=0.5)
    state, room = fresh(C, 1)
    tasks = np.concatenate([np.arange(n)[::-1][:50], np.arange(50)])
    X, y, ones = rng.normal(size=(100, 1)), rng.normal(size=100), np.ones(100)
    run(state, room, X, y, tasks, ones, [100], ones)
    Phi, psi, squares = slow.moments(n, X, y, tasks, ones)
    best = slow.solution(C, Phi, psi)
    np.testing.assert_allclose(state.weights, best, atol=1e-8)
    assert state.totals[0, RESIDUAL] == pytest.approx(slow.objective(C, Phi, psi, squares, best))
