"""Each compiled function of rls_step.py, rls_run.py and linear.py against its twin in plain NumPy."""

import numpy as np
import pytest

from braided._compiled import filters as fs
from braided._compiled import guard, linear, pending
from braided._compiled import rls_run as rls
from braided._compiled import rls_step as step
from braided._compiled.batch import Steps
from tests.compiled.batches import as_batch
from tests.reference.linear import own_clock, recursion, stack

# Without the JIT, NumPy warns of the overflows that compiled code lets pass and the functions detect.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid)")


def symmetric(rng, n):
    M = rng.normal(size=(n, n))
    return M @ M.T + n * np.eye(n)


def filters(rng, F, n, d=2, room=0):
    P = np.array([symmetric(rng, n) for _ in range(F)])
    return fs.fresh_filters(rng.normal(size=(F, n)), P, np.linalg.inv(P), d, room=room), P


def progressive(state, X, y, tasks, weights, ends, *rest):
    *steps, robust, mean, std = rest
    return rls.progressive_inplace(state, as_batch(X, y, tasks, ends, weights), Steps(*steps), robust, mean, std)


def learn_one(state, x, y, task, weight, *rest):
    *steps, robust = rest
    return rls.learn_one_inplace(state, x, y, task, weight, Steps(*steps), robust)


def whole(P):
    return np.tril(P) + np.tril(P, -1).T


def test_dot_and_forecast():
    rng = np.random.default_rng(0)
    W, X, tasks = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), np.array([0, 2, 1, 2, 0])
    assert linear.dot(W[0], X[0]) == pytest.approx(W[0] @ X[0])
    assert linear.dot(np.empty(0), np.empty(0)) == 0.0
    mean = np.empty(5)
    linear.forecast_inplace(mean, W, X, tasks)
    np.testing.assert_allclose(mean, (W[tasks] * X).sum(axis=1))


@pytest.mark.parametrize(("n", "start", "d"), [(6, 0, 6), (6, 0, 2), (6, 2, 2), (6, 4, 2), (5, 2, 1), (1, 0, 1)])
def test_gain_and_quadratic_read_one_triangle_only(n, start, d):
    rng = np.random.default_rng(1)
    P, x, g = symmetric(rng, n), rng.normal(size=d), np.empty(n)
    z = np.zeros(n)
    z[start : start + d] = x
    half = np.tril(P) + np.triu(np.full((n, n), np.nan), 1)
    step.gain_inplace(g, half, start, x)
    np.testing.assert_allclose(g, P @ z, rtol=1e-12)
    assert step.quadratic(half, start, x) == pytest.approx(z @ P @ z, rel=1e-12)


def test_rounding_bounds_what_a_quadratic_form_can_lose():
    P, x = np.diag([1e20, 4.0, 9.0]), np.array([0.0, 1.0, -2.0])
    assert step.rounding(P, 0, x) == pytest.approx(2.0**-52 * 3 * (4.0 + 4 * 9.0))
    assert step.rounding(P, 1, x[1:]) == pytest.approx(2.0**-52 * 2 * (4.0 + 4 * 9.0))


def test_it_refuses_where_rounding_outweighs_the_variance():
    """P = 1e16 in one direction and 1 in the other, x along the second, but not along an axis."""
    u, v = np.array([1.0, 1.0]) / np.sqrt(2), np.array([1.0, -1.0]) / np.sqrt(2)
    wound_up = np.tril(1e16 * np.outer(v, v) + np.outer(u, u))
    assert not learn(wound_up, np.zeros(2), np.array([1.0, 0.0, 0.0]), 0, u)
    assert learn(np.tril(1e8 * np.outer(v, v) + np.outer(u, u)), np.zeros(2), np.array([1.0, 0.0, 0.0]), 0, u)


def test_totals_and_triangles():
    assert step.fresh_totals(2).tolist() == [[1.0, 0.0, 0.0]] * 2
    assert step.noise_variance(step.fresh_totals(1, noise=3.0)) == pytest.approx([9.0])
    P = symmetric(np.random.default_rng(0), 4)
    assert (step.symmetric(np.stack([P, 2 * P])) == np.stack([P, 2 * P])).all()
    assert step.noise_variance(np.array([[1.0, 8.0, 2.0], [1.0, 0.0, 0.0]])).tolist() == [4.0, np.inf]


def test_deviation():
    assert step.deviation(np.array([1.0, 0.0, 0.0]), 2.0) == np.inf
    assert step.deviation(np.array([1.0, 8.0, 2.0]), 3.0) == pytest.approx(4.0)
    assert step.deviation(np.array([1.0, -1e-20, 2.0]), 3.0) == 0.0


def learn(P, w, totals, start, x, y=1.5, everything=1.0, own=1.0, along=1.0, robust=0.0, errors=None):
    n, fade = len(w), np.array([everything, own, along])
    state = fs.Filters(
        weights=w[None],
        covariance=P[None],
        totals=totals[None],
        terms=np.empty((1, 0, n)),
        losses=np.empty((1, 0)),
        pending=np.zeros(1, np.int64),
        base=np.zeros((1, n, n)),
        gained=np.zeros((n // len(x), len(x), len(x))),
        errors=np.zeros((2, 3)) if errors is None else errors,
        guarded=np.zeros(1, np.int64),
    )
    weight, _ = fs.learn_inplace(state, start // len(x), x, y, 1.0, fade, robust, np.empty(n))
    return weight >= 0.0


def test_the_scale_is_folded_in_before_it_overflows():
    rng = np.random.default_rng(2)
    P, totals = symmetric(rng, 4), np.array([1.0, 3.0, 5.0])
    half, nothing = np.tril(P), np.zeros(2)
    for _ in range(25):
        assert learn(half, np.zeros(4), totals, 0, nothing, 0.0, everything=0.01)
        step.fold_inplace(half, totals, 4)
        assert totals[step.SCALE] == 1.0
    np.testing.assert_allclose(half * totals[step.SCALE], np.tril(P) / 0.01**25, rtol=1e-12)
    np.testing.assert_allclose(totals[step.RESIDUAL], 3.0 * 0.01**25, rtol=1e-12)


@pytest.mark.parametrize("start", [0, 2, 4])
def test_fading_a_task_scales_its_rows_and_columns(start):
    rng = np.random.default_rng(3)
    P = symmetric(rng, 6)
    half = np.tril(P)
    step.fade_own_inplace(half, start, 2, 0.25)
    D = np.ones(6)
    D[start : start + 2] = 2.0
    faded = D[:, None] * P * D
    np.testing.assert_allclose(half, np.tril(faded), rtol=1e-12)


@pytest.mark.parametrize("own", [1.0, 0.6])
@pytest.mark.parametrize("everything", [1.0, 0.9])
@pytest.mark.parametrize("start", [0, 2, 4])
def test_learning_is_the_printed_recursion(start, everything, own):
    rng = np.random.default_rng(4)
    P, w, x = symmetric(rng, 6), rng.normal(size=6), rng.normal(size=2)
    z = stack(x, start // 2, 3)
    half, weights, totals = np.tril(P), w.copy(), np.array([1.0, 3.0, 5.0])
    assert learn(half, weights, totals, start, x, everything=everything, own=own)
    D = np.ones(6)
    D[start : start + 2] = 1 / np.sqrt(own)
    faded = D[:, None] * P * D
    expected_P, expected_w = recursion(faded, w, z, 1.5, everything)
    np.testing.assert_allclose(weights, expected_w, rtol=1e-11)
    np.testing.assert_allclose(whole(half) * totals[step.SCALE], expected_P, rtol=1e-10)
    evidence = everything * own ** (1 / 3)
    gained = (1.5 - z @ w) ** 2 / (1 + z @ faded @ z / everything)
    np.testing.assert_allclose(totals, [1 / everything, 3 * evidence + gained, 5 * evidence + 1], rtol=1e-12)


@pytest.mark.parametrize(("x", "y"), [(1e200, 1.0), (1.0, 1e200), (np.nan, 1.0), (1.0, np.inf)])
@pytest.mark.parametrize(("everything", "own"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.5)])
def test_learning_refuses_what_overflows_and_changes_nothing(x, y, everything, own):
    half, w, totals = np.eye(2), np.ones(2), np.array([1.0, 0.5, 2.0])
    assert not learn(half, w, totals, 0, np.array([x, 1.0]), y, everything, own)
    assert (half == np.eye(2)).all()
    assert (w == 1).all()
    assert totals.tolist() == [1.0, 0.5, 2.0]


def test_learning_refuses_an_indefinite_covariance():
    half, w, totals = -np.eye(2), np.ones(2), np.array([1.0, 0.5, 2.0])
    assert not learn(half, w, totals, 0, np.array([2.0, 1.0]), 1.0)


@pytest.mark.parametrize(("F", "room"), [(1, 0), (3, 0), (1, 8), (1, 16)])
@pytest.mark.parametrize("ends", [[1, 2, 3, 4, 5, 6], [3, 6], [6]])
@pytest.mark.parametrize("fade", [(1.0, 1.0), (0.9, 1.0), (1.0, 0.8)])
def test_progressive_is_the_loop_it_stands_for(F, room, ends, fade):
    rng = np.random.default_rng(5)
    T, d = 3, 2
    n = T * d // F
    state, P = filters(rng, F, n, room=room)
    w = state.weights.copy()
    X, y, tasks = rng.normal(size=(6, d)), rng.normal(size=6), np.array([0, 1, 2, 2, 0, 1])
    mean, std = np.empty(6), np.empty(6)
    still = (
        np.tile([*fade, 1.0], (6, 1)),
        np.zeros(6),
        1.0,
        np.zeros((F, T // F, T // F)),
        np.zeros((0, 1, 1)),
        np.zeros((0, 1)),
    )
    learned = progressive(state, X, y, tasks, np.ones(6), np.array(ends), *still, 0.0, mean, std)
    assert learned == 6
    information, expected = [np.linalg.inv(p) for p in P], np.empty(6)
    first = 0
    for end in ends:
        for i in range(first, end):
            f, t = (0, tasks[i]) if F == 1 else (tasks[i], 0)
            expected[i] = stack(X[i], t, n // d) @ w[f]
        for i in range(first, end):
            f, t = (0, tasks[i]) if F == 1 else (tasks[i], 0)
            block = slice(t * d, (t + 1) * d)
            information[f], w[f] = own_clock(
                fade[0] * information[f], w[f], stack(X[i], t, n // d), y[i], fade[1], block
            )
        first = end
    np.testing.assert_allclose(mean, expected, rtol=1e-10)
    np.testing.assert_allclose(state.weights, w, rtol=1e-9)
    for f in range(F):
        np.testing.assert_allclose(whole(fs.covariances(state)[f]), np.linalg.inv(information[f]), rtol=1e-9)
    again, spread = np.empty(6), np.empty(6)
    fs.forecast_inplace(state, X, tasks, again, spread)
    for i in range(6):
        f, t = (0, tasks[i]) if F == 1 else (tasks[i], 0)
        z = stack(X[i], t, n // d)
        noise = state.totals[f, step.RESIDUAL] / state.totals[f, step.COUNT]
        assert again[i] == pytest.approx(z @ w[f], rel=1e-9)
        assert spread[i] == pytest.approx(np.sqrt(noise * (1 + z @ np.linalg.solve(information[f], z))), rel=1e-9)


def test_progressive_stops_at_what_it_cannot_learn():
    rng = np.random.default_rng(6)
    state, _ = filters(rng, 1, 4)
    X = rng.normal(size=(5, 2))
    X[3] = 1e300
    mean = np.empty(5)
    still = np.ones((5, 3)), np.zeros(5), 1.0, np.zeros((1, 2, 2)), np.zeros((0, 1, 1)), np.zeros((0, 1))
    done = progressive(
        state, X, np.ones(5), np.array([0, 1, 0, 1, 0]), np.ones(5), np.arange(1, 6), *still, 0.0, mean, np.empty(0)
    )
    assert done == 3
    assert np.isfinite(state.weights).all()


@pytest.mark.parametrize("scale", [1.0, 2.0**-45, 2.0**45])
@pytest.mark.parametrize("F", [1, 3])
def test_weights_move(F, scale):
    rng = np.random.default_rng(7)
    T, d = 3, 2
    state, P = filters(rng, F, T * d // F)
    w, totals = state.weights.copy(), np.array([scale, 4.0, 5.0])
    state.totals[:] = totals
    noise = np.array([symmetric(rng, T // F) for _ in range(F)])
    fs.move_inplace(state, d, 0.5, 0.8, noise)
    np.testing.assert_allclose(state.weights, 0.8 * w)
    np.testing.assert_allclose(state.totals[:, 1:], np.tile([2.0, 2.5], (F, 1)))
    for f in range(F):
        expected = 0.64 / 0.5 * scale * P[f] + np.kron(noise[f], np.eye(d))
        np.testing.assert_allclose(whole(state.covariance[f]) * state.totals[f, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("along", [0.9, 0.5, 0.1])
def test_forgetting_along_the_input_only(along):
    """Information gains (1 − (1 − σ)/r) z z', and the gain is P z / (σ + r)."""
    rng = np.random.default_rng(8)
    n, start, x = 6, 2, rng.normal(size=2)
    P, w = symmetric(rng, n), rng.normal(size=n)
    z = np.zeros(n)
    z[start : start + 2] = x
    half, weights, totals = np.tril(P), w.copy(), np.array([1.0, 0.0, 0.0])
    assert learn(half, weights, totals, start, x, y=1.5, along=along)
    r = z @ P @ z
    information = np.linalg.inv(P) + (1.0 - (1.0 - along) / r) * np.outer(z, z)
    np.testing.assert_allclose(np.linalg.inv(whole(half) * totals[0]), information, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weights, w + (1.5 - z @ w) * P @ z / (along + r), rtol=1e-12)
    nothing = np.zeros(2)
    before = half.copy()
    assert learn(half, weights, totals, start, nothing, y=0.0, along=along)
    np.testing.assert_array_equal(half, before)


@pytest.mark.parametrize("F", [1, 3])
@pytest.mark.parametrize("fade", [(0.5, 1.0), (1.0, 0.5)])
def test_the_information_is_that_of_the_covariance_and_brings_it_back(F, fade):
    rng = np.random.default_rng(9)
    T, d = 3, 2
    m, n = T // F, T * d // F
    A = symmetric(rng, T) if F == 1 else np.eye(T)
    relation = np.array([A[f * m : (f + 1) * m, f * m : (f + 1) * m] for f in range(F)])
    information = np.array([np.kron(part, np.eye(d)) for part in relation])
    state = fs.fresh_filters(np.zeros((F, n)), np.linalg.inv(information), information, d)
    limits = np.array([np.diag(np.linalg.inv(part)) for part in relation])
    X, y, tasks = rng.normal(size=(40, d)), rng.normal(size=40), np.tile(np.arange(T), 14)[:40]
    steps = np.tile([*fade, 1.0], (40, 1)), np.zeros(40), 1.0, np.zeros_like(relation), relation, limits
    mean = np.empty(40)
    ends = np.arange(1, 41)
    assert progressive(state, X, y, tasks, np.ones(40), ends, *steps, 0.0, mean, np.empty(0)) == 40
    for f in range(F):
        P = whole(state.covariance[f]) * state.totals[f, step.SCALE]
        w = state.weights[f].copy()
        held = state.base[f] / state.totals[f, step.SCALE]
        for t in range(m):
            own = slice(t * d, t * d + d)
            held[own, own] += state.gained[f * m + t] / state.totals[f, step.SCALE]
        np.testing.assert_allclose(held, np.linalg.inv(P), rtol=1e-8, atol=1e-9)
        count = state.guarded[f]
        assert guard.rebuild_inplace(state, f, d, relation)
        put_back = guard.PRIOR_FLOOR * np.kron(relation[f], np.eye(d))
        expected = np.linalg.inv(held + put_back)
        np.testing.assert_allclose(whole(state.covariance[f]), expected, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(state.weights[f], expected @ (held @ w), rtol=1e-8, atol=1e-12)
        assert (state.totals[f, step.SCALE], state.guarded[f]) == (1.0, count + 1)


def test_information_that_is_not_positive_definite_is_left_alone():
    state = fs.fresh_filters(np.ones((1, 2)), np.eye(2)[None], np.zeros((1, 2, 2)), 2)
    state.gained[0] = [[np.inf, 0.0], [0.0, 1.0]]
    assert not guard.rebuild_inplace(state, 0, 2, np.ones((1, 1, 1)))
    state.gained[0] = [[-1.0, 0.0], [0.0, 1.0]]
    assert not guard.rebuild_inplace(state, 0, 2, np.ones((1, 1, 1)))
    np.testing.assert_array_equal(state.covariance[0], np.eye(2))


def test_a_covariance_that_winds_up_is_made_anew_when_the_scale_is_folded():
    state = fs.fresh_filters(np.ones((1, 2)), 1e9 * np.eye(2)[None], 1e-9 * np.eye(2)[None], 2)
    state.totals[0, step.SCALE] = 2.0
    assert guard.settle_inplace(state, 0, 2, np.ones((1, 1)))
    guard.unwind_inplace(state, 0, 2, np.ones((1, 1, 1)), np.ones((1, 1)))
    assert state.guarded[0] == 1
    assert state.covariance[0, 0, 0] < 1e6


@pytest.mark.parametrize("spread", [0.0, 50.0, 140.0])
def test_the_inverse_whatever_the_units(spread):
    rng = np.random.default_rng(10)
    M, units = symmetric(rng, 6), 10.0 ** rng.uniform(-spread, spread, 6)
    A = M * np.outer(units, units)
    assert linear.invert_inplace(A)
    np.testing.assert_allclose(A * np.outer(units, units), np.linalg.inv(M), rtol=1e-10)


def test_the_inverse_of_what_rounding_made_indefinite():
    A = np.ones((3, 3)) + np.diag([0.0, 0.0, 1e-17])
    assert linear.invert_inplace(A)
    assert np.isfinite(A).all()
    assert np.linalg.eigvalsh(A)[0] > 0.0
    for bad in (np.diag([1.0, 0.0]), np.diag([1.0, np.inf]), np.array([[1.0, 2.0], [2.0, 1.0]])):
        assert not linear.invert_inplace(bad.copy())


def test_weights_move_at_the_opening_of_rounds_and_what_winds_up_then_is_made_anew():
    """Half-lives of a tenth of a round and nothing to learn: all information fades, and comes back by the guard."""
    state = fs.fresh_filters(np.ones((1, 2)), np.eye(2)[None], np.eye(2)[None], 1)
    n = 12
    moves = np.where(np.arange(n) % 2 == 0, 1e-3, 0.0)
    relation, limits = np.eye(2)[None], np.ones((1, 2))
    steps = np.ones((n, 3)), moves, 1.0, np.zeros((1, 2, 2)), relation, limits
    mean, nothing = np.empty(n), np.zeros((n, 1))
    tasks, ends = np.arange(n) % 2, np.arange(2, n + 1, 2)
    y = np.zeros(n)
    assert progressive(state, nothing, y, tasks, np.ones(n), ends, *steps, 0.0, mean, np.empty(0)) == n
    assert state.guarded[0] > 0
    assert state.covariance[0, 0, 0] * state.totals[0, step.SCALE] < 1e12


@pytest.mark.parametrize("room", [0, 8])
def test_a_refused_sample_is_learned_by_a_covariance_made_anew_or_leaves_no_trace(room):
    u, v = np.array([1.0, 1.0]) / np.sqrt(2), np.array([1.0, -1.0]) / np.sqrt(2)
    wound_up, information = 1e16 * np.outer(v, v) + np.outer(u, u), 1e-16 * np.outer(v, v) + np.outer(u, u)
    steps = np.ones((1, 3)), np.zeros(1), 1.0, np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1))
    for x, learned in ((u, 1), (np.array([1e200, 0.0]), 0)):
        state = fs.fresh_filters(np.ones((1, 2)), wound_up[None], information[None], 2, room=room)
        before = [array.copy() for array in state]
        done = progressive(
            state,
            x[None],
            np.ones(1),
            np.zeros(1, np.int64),
            np.ones(1),
            np.ones(1, np.int64),
            *steps,
            0.0,
            np.empty(1),
            np.empty(0),
        )
        assert done == state.guarded[0] == learned
        if not learned:
            for array, old in zip(state, before, strict=True):
                np.testing.assert_array_equal(array, old)


def test_variances_are_the_diagonals():
    state, P = filters(np.random.default_rng(11), 3, 2)
    state.totals[:, step.SCALE] = [1.0, 2.0, 3.0]
    expected = np.concatenate([k * np.diag(part) for k, part in enumerate(P, 1)])
    np.testing.assert_allclose(fs.variances(state), expected)


@pytest.mark.parametrize("along", [1.0, 0.3])
def test_an_unusual_innovation_is_given_the_weight_that_makes_it_one_of_k_deviations(along):
    rng = np.random.default_rng(12)
    P, w, x, k = symmetric(rng, 4), rng.normal(size=4), rng.normal(size=2), 3.0
    z = np.append(x, [0.0, 0.0])
    totals, errors = np.array([1.0, 8.0, 4.0]), np.array([[3.0, 20.0, 7.0], [9.0, 9.0, 9.0], [2.0, 150.0, 8.0]])
    usual = (20.0 * 3.0 + step.POOLED_WEIGHT * 2.0) / (20.0 + step.POOLED_WEIGHT)
    assert step.typical_square(errors, 0) == pytest.approx(usual)
    r = z @ P @ z
    for y in (z @ w + 2.9 * np.sqrt(usual * (along + r) / along), z @ w + 1e3, z @ w - 1e200):
        half, weights, counts, seen = np.tril(P), w.copy(), totals.copy(), errors.copy()
        assert learn(half, weights, counts, 0, x, y, along=along, robust=k, errors=seen)
        e = y - z @ w
        noise = max(along, along * e * (e / (k * k * usual)) - r) if abs(e) < 1e150 else np.inf  # over the weight
        gain = P @ z / (noise + r)
        np.testing.assert_allclose(weights, w + (gain * e if np.isfinite(noise) else 0.0), rtol=1e-10)
        kept = 1.0 - noise / along * (1.0 - along) / r if along < 1.0 and np.isfinite(noise) else 1.0
        if np.isfinite(noise):
            np.testing.assert_allclose(whole(half), P - kept * np.outer(gain, P @ z), rtol=1e-9, atol=1e-12)
        square = min(along * e * e / (along + r), k * k * usual) if abs(e) < 1e150 else k * k * usual
        faded = along**0.5
        np.testing.assert_allclose(counts, [1.0, faded * 8.0 + square, faded * 4.0 + 1.0])
        unusual = noise > along * (1 + 1e-9)
        np.testing.assert_allclose(seen[0], [3.0 + (square - 3.0) / 21.0, 21.0, 7.0 + unusual])
        np.testing.assert_array_equal(seen[1], errors[1])
        np.testing.assert_allclose(seen[2], [2.0 + (square - 2.0) / 151.0, 151.0, 8.0 + unusual])


def test_before_the_first_sample_nothing_is_unusual_unless_noise_is_expected():
    assert step.typical_square(step.fresh_errors(1), 0) == 0.0
    w, errors = np.zeros(2), step.fresh_errors(1)
    assert learn(np.eye(2), w, np.array([1.0, 0.0, 0.0]), 0, np.array([1.0, 0.0]), 1e6, robust=3.0, errors=errors)
    assert w[0] == pytest.approx(5e5)
    assert errors[0].tolist() == errors[1].tolist() == [pytest.approx(5e11), 1.0, 0.0]
    assert step.typical_square(step.fresh_errors(1, noise=2.0), 0) == 4.0


def test_what_is_usual_is_what_was_so_lately():
    totals, errors = np.array([1.0, 1e6, 1e6]), np.array([[1.0, step.ERROR_WINDOW, 0.0], [1.0, step.ERROR_WINDOW, 0.0]])
    learn(np.zeros((1, 1)), np.zeros(1), totals, 0, np.zeros(1), 1.5, robust=3.0, errors=errors)
    assert errors[0].tolist() == [pytest.approx(1.0 + 1.25 / step.ERROR_WINDOW), step.ERROR_WINDOW, 0.0]


def test_no_variance_turns_negative():
    """From 1e10 to less than rounding of it by one sample."""
    P = np.diag([1e10, 1.0])
    assert learn(P, np.zeros(2), np.array([1.0, 0.0, 0.0]), 0, np.array([1e6, 0.0]))
    assert 0.0 < P[0, 0] < 1e-5
    assert P[1, 1] == 1.0


def test_own_clocks_that_run_on_nothing_are_settled():
    """A task whose inputs are 0 fades by itself; the scale of all does not, so nothing is folded."""
    state = fs.fresh_filters(np.ones((1, 2)), np.eye(2)[None], np.eye(2)[None], 1)
    n, relation, limits = 400, np.eye(2)[None], np.ones((1, 2))
    where = np.zeros(n, np.int64), np.ones(n), np.arange(1, n + 1)
    for kept in (slice(None), slice(0)):
        steps = np.tile([1.0, 0.01, 1.0], (n, 1)), np.zeros(n), 1.0, np.zeros((1, 2, 2)), relation[kept], limits[kept]
        done = progressive(state, np.zeros((n, 1)), np.zeros(n), *where, *steps, 0.0, np.empty(n), np.empty(0))
        assert done == n
        largest = np.abs(state.covariance).max()
        assert largest <= (guard.WOUND_UP_AT * 1e4 if kept.stop is None else step.LARGEST_ENTRY)
        assert state.guarded[0] > 0


def test_what_is_too_large_is_refused_before_anything_changes():
    for x, y in (([1e150, 1.0], 1.0), ([1.0, 1.0], 1e150), ([1e-130, 0.0], 1e120)):
        P, w, totals = 1e200 * np.eye(2), np.ones(2), np.array([1.0, 0.0, 0.0])
        assert not learn(P, w, totals, 0, np.array(x), y)
        assert (w == 1.0).all()
        assert (1e200 * np.eye(2) == P).all()


def test_evidence_fades_no_further_than_it_can_be_told():
    totals = np.array([1.0, 6.0, 2.0])
    for _ in range(2000):
        step.fade_evidence_inplace(totals, 0.5)
    assert step.noise_variance(totals[None])[0] == 3.0
    assert totals[step.COUNT] > 0.0


def test_a_rescue_knows_whose_errors_are_whose():
    u, v = np.array([1.0, 1.0]) / np.sqrt(2), np.array([1.0, -1.0]) / np.sqrt(2)
    wound_up, information = 1e16 * np.outer(v, v) + np.outer(u, u), 1e-16 * np.outer(v, v) + np.outer(u, u)
    state = fs.fresh_filters(np.ones((2, 2)), np.stack([wound_up] * 2), np.stack([information] * 2), 2)
    steps = np.ones((1, 3)), np.zeros(1), 1.0, np.zeros((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1))
    where = np.ones(1, np.int64), np.ones(1), np.ones(1, np.int64)
    assert progressive(state, u[None], np.ones(1), *where, *steps, 3.0, np.empty(1), np.empty(0)) == 1
    assert state.guarded.tolist() == [0, 1]
    assert state.errors[:, step.SEEN].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("n", [1, 2, 5, 18, 301])
@pytest.mark.parametrize("room", [8, 24])
def test_terms_that_wait_are_taken_up_together(n, room):
    rng = np.random.default_rng(20)
    P, G, losses = symmetric(rng, n), 0.1 * rng.normal(size=(room, n)), rng.normal(size=room)
    losses[-3:] = 0.0  # fewer may be waiting than there is room for
    half = np.tril(P)
    fs.flush_inplace(half, G, losses_left := losses.copy(), np.empty(n + room * pending.WIDE))
    np.testing.assert_allclose(half, np.tril(P - G.T @ (losses[:, None] * G)), rtol=1e-12, atol=1e-12)
    assert not losses_left.any()


def test_no_variance_turns_negative_when_terms_are_taken_up():
    half, G = np.tril(np.ones((3, 3))), np.zeros((8, 3))
    G[0], G[1] = [1.0, 1.0, 0.5], [0.1, 0.0, 0.0]
    fs.flush_inplace(half, G, np.array([1.0, 1.0, 0, 0, 0, 0, 0, 0]), np.empty(3 + 8 * pending.WIDE))
    np.testing.assert_allclose(np.diag(half), [2.0**-52 * 1.01, 2.0**-52, 0.75])


@pytest.mark.parametrize("room", [0, 8])
def test_what_waits_is_taken_up_before_the_scale_is_folded(room):
    rng = np.random.default_rng(21)
    state, P = filters(rng, 1, 4, room=room)
    X, y, n = rng.normal(size=(40, 2)), rng.normal(size=40), 40
    fades = np.tile([0.7, 1.0, 1.0], (n, 1))
    steps = fades, np.zeros(n), 1.0, np.zeros((1, 2, 2)), np.zeros((0, 1, 1)), np.zeros((0, 1))
    tasks = np.arange(n) % 2
    mean, ends = np.empty(n), np.arange(1, n + 1)
    assert progressive(state, X, y, tasks, np.ones(n), ends, *steps, 0.0, mean, np.empty(0)) == n
    information = np.linalg.inv(P[0])
    for x, t in zip(X, tasks, strict=True):
        z = stack(x, t, 2)
        information = 0.7 * information + np.outer(z, z)
    np.testing.assert_allclose(whole(fs.covariances(state)[0]), np.linalg.inv(information), rtol=1e-9)


def test_all_filters_that_wind_up_are_made_anew_at_once():
    state = fs.fresh_filters(np.ones((3, 2)), np.tile(np.eye(2), (3, 1, 1)), np.tile(np.eye(2), (3, 1, 1)), 2)
    state.covariance[[0, 2]] *= 1e9
    state.base[[0, 2]] *= 1e-9
    guard.unwind_inplace(state, -1, 2, np.ones((3, 1, 1)), np.ones((3, 1)))
    assert state.guarded.tolist() == [1, 0, 1]
    assert state.covariance.max() < 1e7
    n = 6  # and so are they where the clock makes them wind up
    moves = np.where(np.arange(n) % 3 == 0, 1e-9, 0.0)
    steps = np.ones((n, 3)), moves, 1.0, np.zeros((3, 1, 1)), np.ones((3, 1, 1)), np.ones((3, 1))
    mean, nothing, tasks = np.empty(n), np.zeros((n, 2)), np.arange(n) % 3
    ends, ones = np.array([3, 6]), np.ones(n)
    assert progressive(state, nothing, ones, tasks, ones, ends, *steps, 0.0, mean, np.empty(0)) == n
    assert state.guarded.min() >= 1
    assert state.covariance.max() < 1e8


@pytest.mark.parametrize(("x", "learned"), [(1.0, 2), (1e200, 1)])
def test_what_waits_is_taken_up_where_it_hides_the_digits_of_a_sample(x, learned):
    """1e16 of a variance is lost by the first sample; before P shows that, the second seems to be all rounding."""
    P, X = np.diag([1e16, 1.0]), np.array([[1.0, 0.0], [x, 0.0]])
    state, alone = (fs.fresh_filters(np.zeros((1, 2)), P[None], np.linalg.inv(P)[None], 2, room=8) for _ in range(2))
    for filters_, n in ((alone, 1), (state, 2)):
        steps = np.ones((n, 3)), np.zeros(n), 1.0, np.zeros((1, 1, 1)), np.zeros((0, 1, 1)), np.zeros((0, 1))
        given = X[:n], np.ones(n), np.zeros(n, np.int64), np.ones(n), np.arange(1, n + 1)
        done = progressive(filters_, *given, *steps, 0.0, np.empty(n), np.empty(0))
    assert done == learned
    if learned == 1:
        for array, expected in zip(state, alone, strict=True):
            np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("room", [0, 8])
def test_a_sample_that_had_to_wait_for_its_digits_may_wind_up_like_any_other(room):
    P, X = np.diag([1e16, 1e16]), np.array([[1.0, 0.0], [1.0, 0.0]])
    state = fs.fresh_filters(np.zeros((1, 2)), P[None], np.linalg.inv(P)[None], 2, room=room)
    fades = np.array([[1.0, 1.0, 1.0], [1.0 / 2000.0, 1.0, 1.0]])
    steps = fades, np.zeros(2), 1.0, np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1))
    given = X, np.ones(2), np.zeros(2, np.int64), np.ones(2), np.array([1, 2])
    assert progressive(state, *given, *steps, 0.0, np.empty(2), np.empty(0)) == 2
    assert state.guarded.tolist() == [1]
    assert fs.variances(state).max() <= guard.WOUND_UP_AT


@pytest.mark.parametrize("room", [0, 8])
@pytest.mark.parametrize("fade", [1.0, 0.5])
def test_one_sample_at_once_is_as_one_of_many(room, fade):
    """Also where the scale is folded, and where P winds up: task 1 is never seen."""
    rng = np.random.default_rng(22)
    n, relation, limits = 60, np.eye(2)[None], np.ones((1, 2))
    many, one = (fs.fresh_filters(np.zeros((1, 4)), np.eye(4)[None], np.eye(4)[None], 2, room=room) for _ in range(2))
    X, y, tasks, ones = rng.normal(size=(n, 2)), rng.normal(size=n), np.zeros(n, np.int64), np.ones(n)
    steps = np.tile([fade, 1.0, 1.0], (n, 1)), np.zeros(n), 1.0, np.zeros((1, 2, 2)), relation, limits
    ends = np.arange(1, n + 1)
    assert progressive(many, X, y, tasks, ones, ends, *steps, 0.0, np.empty(n), np.empty(0)) == n
    for i in range(n):
        assert learn_one(one, X[i], y[i], 0, 1.0, steps[0][:1], steps[1][:1], *steps[2:], 0.0)
    for array, expected in zip(one, many, strict=True):
        np.testing.assert_array_equal(array, expected)
    assert (many.guarded[0] > 0) == (fade < 1.0)
    moves = np.array([0.5])
    assert not learn_one(one, X[0], 1e200, 0, 1.0, steps[0][:1], steps[1][:1], *steps[2:], 0.0)
    assert not learn_one(one, X[0], 1.0, 0, 1.0, steps[0][:1], moves, *steps[2:], 0.0)
    for array, expected in zip(one, many, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("F", [1, 3], ids=["one filter", "one per task"])
@pytest.mark.parametrize("room", [0, 8])
@pytest.mark.parametrize("robust", [0.0, 2.0])
def test_gains_are_what_innovations_are_multiplied_by(F, room, robust):
    rng = np.random.default_rng(23)
    m, d, n = 3, 2, 40
    state, _ = filters(rng, F, m * d // F, room=room)
    X, y, tasks, weights = rng.normal(size=(n, d)), 3.0 * rng.normal(size=n), rng.integers(0, m, n), rng.uniform(size=n)
    weights[::5] = 0.0
    fades = np.column_stack([rng.uniform(0.5, 1.0, n), np.where(F == 1, rng.uniform(0.5, 1.0, n), 1.0), np.ones(n)])
    steps = Steps(fades, np.zeros(n), 1.0, np.zeros((F, m // F, m // F)), np.zeros((0, 1, 1)), np.zeros((0, 1)))
    batch = as_batch(X, y, tasks, np.arange(1, n + 1), weights)._replace(gains=np.zeros((n, m * d // F)))
    w, mean = state.weights.copy(), np.empty(n)
    assert rls.progressive_inplace(state, batch, steps, robust, mean, np.empty(0)) == n
    for i, t in enumerate(tasks):
        w[0 if F == 1 else t] += (y[i] - mean[i]) * batch.gains[i]
    np.testing.assert_allclose(w, state.weights, rtol=1e-12, atol=1e-12)
    assert ((batch.gains == 0.0).all(axis=1) == (weights == 0.0)).all()
