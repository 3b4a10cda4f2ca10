"""Each compiled function of kernel_rls.py against its twin in plain NumPy."""

import numpy as np
import pytest

from braided._compiled import kernel_rls as kr
from braided.kernels import linear, polynomial, rbf
from tests.reference.kernel import Bounded, Defined

# Without the JIT, NumPy warns of the overflows that compiled code lets pass and the functions detect.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid)")

KERNELS = [
    linear(),
    rbf(0.8),
    polynomial(3, 0.5),
    0.3 * linear() + rbf(2.0) * polynomial(2),
    (rbf(1.0) + linear()) * 2.0,
]
PRIOR = np.array([[2.0, 0.5], [0.5, 1.0]])
LIMITS = kr.Limits(0.3, 1e-4, False, kr.UNBOUNDED, 1.0, 1.0, 1.0, 0.0)


def empty(capacity, d=2, F=1):
    return kr.Dictionaries(
        inputs=np.zeros((F, capacity, d)),
        rows=np.zeros((F, capacity), np.int64),
        norms=np.zeros((F, capacity)),
        factor=np.zeros((F, capacity, capacity)),
        precision=np.zeros((F, capacity)),
        usage=np.zeros((F, capacity)),
        age=np.zeros((F, capacity)),
        weights=np.zeros((F, capacity)),
        covariance=np.zeros((F, capacity, capacity)),
        totals=np.tile([1.0, 0.0, 0.0], (F, 1)),
        sizes=np.zeros(F, np.int64),
        prior=PRIOR if F == 1 else np.ones((1, 1)),
        places=np.array([[0, 0], [0, 1]]) if F == 1 else np.array([[0, 0], [1, 0]]),
        errors=np.zeros((3, 3)),
        evicted=np.zeros(F, np.int64),
    )


def stream(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=n), np.arange(n) % 2


def run(state, kernel, X, y, tasks, ends, limits=LIMITS, opens=None, weights=None):
    mean, std = np.empty(len(y)), np.empty(len(y))
    opens = np.ones(len(y), np.bool_) if opens is None else np.array(opens)
    weights = np.ones(len(y)) if weights is None else weights
    program = np.array(kernel.program)
    answer = kr.progressive_inplace(state, limits, program, X, y, tasks, weights, np.array(ends), opens, mean, std)
    return answer, mean, std


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_program_evaluates_to_the_kernel(kernel):
    X, _, _ = stream()
    program, stack = np.array(kernel.program), np.empty(len(kernel.program))
    for x in X:
        assert kr.evaluate(program, stack, X[0], x) == pytest.approx(kernel(X[:1], x)[0], rel=1e-12)


def test_whitening_solves_the_triangular_system():
    rng = np.random.default_rng(1)
    U = np.triu(rng.normal(size=(5, 5))) + 4 * np.eye(5)
    k = rng.normal(size=6)
    phi = k.copy()
    explained = kr.whiten_inplace(phi, U, 5)
    np.testing.assert_allclose(phi[:5], np.linalg.solve(U.T, k[:5]), rtol=1e-12)
    assert phi[5] == k[5]
    assert explained == pytest.approx(phi[:5] @ phi[:5])


def test_unwhitening_solves_the_other_one():
    rng = np.random.default_rng(2)
    U = np.triu(rng.normal(size=(5, 5))) + 4 * np.eye(5)
    phi = rng.normal(size=6)
    np.testing.assert_allclose(kr.unwhitened(U, phi, 5), np.linalg.solve(U, phi[:5]), rtol=1e-12)
    assert kr.unwhitened(U, phi, 0).size == 0


def test_turning_two_coordinates_is_a_change_of_basis():
    rng = np.random.default_rng(3)
    m, c, cos, sin = 5, 1, 0.8, 0.6
    U, w, half = np.triu(rng.normal(size=(m, m))), rng.normal(size=m), rng.normal(size=(m, m))
    P = np.tril(half) + np.tril(half, -1).T
    Q = np.eye(m)
    Q[c : c + 2, c : c + 2] = [[-cos, sin], [sin, cos]]
    turned, weights, lower = U.copy(), w.copy(), np.tril(P)
    kr.turn_inplace(turned, weights, lower, m, c, cos, sin)
    np.testing.assert_allclose(turned, Q @ U, atol=1e-15)
    np.testing.assert_allclose(weights, Q @ w)
    np.testing.assert_allclose(lower, np.tril(Q @ P @ Q.T), atol=1e-15)


def bounded(kernel, limits):
    given = (limits.penalty, limits.novelty, limits.budget, limits.shrink, limits.along, limits.coherence)
    return Bounded(lambda a, b: PRIOR[a[1], b[1]] * kernel(a[0][None], b[0])[0], *given)


def values(state):
    """Mean and covariance of the function's values at the dictionary."""
    m = state.sizes[0]
    U = np.triu(state.factor[0, :m, :m])
    half = np.tril(state.covariance[0, :m, :m])
    return U, U.T @ state.weights[0, :m], U.T @ (half + np.tril(half, -1).T) @ U * state.totals[0, 0]


@pytest.mark.parametrize("kernel", [rbf(0.8), polynomial(3, 0.5)], ids=repr)
@pytest.mark.parametrize("change", [{"shrink": 0.9}, {"shrink": 0.01}, {"along": 0.7}, {"coherence": 0.6}, {}], ids=str)
@pytest.mark.parametrize("budget", [1, 5, kr.UNBOUNDED])
def test_budget_and_forgetting_are_those_of_the_function_at_the_dictionary(kernel, change, budget):
    X, y, tasks = stream(60)
    limits = LIMITS._replace(budget=budget, novelty=1e-2, **change)
    state, defined = empty(61), bounded(kernel, limits)
    for i in range(60):
        one = slice(i, i + 1)
        run(state, kernel, X[one], y[one], tasks[one], [1], limits, opens=[i % 3 == 0])
        defined.learn((X[i], tasks[i]), y[i], opens=i % 3 == 0)
        m = state.sizes[0]
        assert m == len(defined.dictionary) <= budget
        np.testing.assert_array_equal(state.inputs[0, :m], [x for x, _ in defined.dictionary])
        np.testing.assert_array_equal(state.rows[0, :m], [t for _, t in defined.dictionary])
        K = defined.gram(defined.dictionary)
        U, mean, covariance = values(state)
        np.testing.assert_allclose(U.T @ U, K, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(state.norms[0, :m], K.diagonal(), rtol=1e-12)
        np.testing.assert_allclose(state.precision[0, :m], np.linalg.inv(K).diagonal(), rtol=1e-6)
        np.testing.assert_allclose(mean, defined.mean, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(covariance, defined.covariance, rtol=1e-7, atol=1e-8)
        if budget < kr.UNBOUNDED:
            np.testing.assert_allclose(state.usage[0, :m], defined.usage, rtol=1e-6, atol=1e-9)
    assert (state.evicted[0] > 0) == (budget < kr.UNBOUNDED)


def test_an_evicted_element_leaves_the_rest_of_the_function_alone():
    X, y, tasks = stream()
    state = empty(16)
    run(state, rbf(0.8), X, y, tasks, range(1, 13))
    U, mean, covariance = values(state)
    K = U.T @ U
    least = kr.least_relevant(state._replace(usage=np.ones((1, 16))), 0)
    inverse = np.linalg.inv(K)
    assert least == np.argmin(np.abs(inverse @ mean) / inverse.diagonal())
    for gone in (0, 3, state.sizes[0] - 3):
        kr.evict_inplace(state, 0, gone)
        mean, covariance, K = (np.delete(part, gone, axis=0) for part in (mean, covariance, K))
        covariance, K = np.delete(covariance, gone, axis=1), np.delete(K, gone, axis=1)
        U, left, spread = values(state)
        np.testing.assert_allclose(U.T @ U, K, atol=1e-13)
        np.testing.assert_allclose(left, mean, atol=1e-12)
        np.testing.assert_allclose(spread, covariance, atol=1e-12)
        assert (U.diagonal() > 0.0).all()


def test_what_is_known_fades_towards_the_prior():
    X, y, tasks = stream()
    limits = LIMITS._replace(shrink=0.9)
    state = empty(16, F=2)
    run(state, rbf(0.8), X, y, tasks, range(1, 13))
    before = [
        values(
            state._replace(**{n: getattr(state, n)[f:] for n in ("factor", "weights", "covariance", "totals", "sizes")})
        )
        for f in (0, 1)
    ]
    for _ in range(5):
        kr.restore_inplace(state, limits)
    for f, (U, mean, covariance) in enumerate(before):
        one = {n: getattr(state, n)[f:] for n in ("factor", "weights", "covariance", "totals", "sizes")}
        _, left, spread = values(state._replace(**one))
        np.testing.assert_allclose(left, 0.9**5 * mean)
        np.testing.assert_allclose(spread, 0.9**10 * covariance + (1 - 0.9**10) * U.T @ U / 0.3, rtol=1e-10)
    for _ in range(500):
        kr.restore_inplace(state, limits)
    assert (state.totals[:, 0] > 1e-4).all()
    assert np.abs(state.weights).max() < 1e-20
    m = state.sizes[1]
    np.testing.assert_allclose(state.covariance[1, :m, :m].diagonal() * state.totals[1, 0], 1 / 0.3)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=repr)
@pytest.mark.parametrize("ends", [range(1, 13), [4, 8, 12]])
def test_progressive_solves_the_defining_problem(kernel, ends):
    X, y, tasks = stream()
    state = empty(16)
    (learned, full), mean, _ = run(state, kernel, X, y, tasks, list(ends))
    assert (learned, full) == (12, False)
    defined = Defined(lambda a, b: PRIOR[a[1], b[1]] * kernel(a[0][None], b[0])[0], 0.3, 1e-4)
    expected, first = [], 0
    for end in ends:
        for i in range(first, end):
            if defined.dictionary:
                alpha = np.linalg.solve(defined.gram(defined.dictionary), defined.fitted())
                expected.append(defined.gram([(X[i], tasks[i])])[0] @ alpha)
            else:
                expected.append(0.0)
        for i in range(first, end):
            defined.learn((X[i], tasks[i]), y[i])
        first = end
    np.testing.assert_allclose(mean, expected, rtol=1e-7, atol=1e-10)
    m = state.sizes[0]
    assert m == len(defined.dictionary)
    U = state.factor[0, :m, :m]
    np.testing.assert_allclose(U.T @ U, defined.gram(defined.dictionary), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(U.T @ state.weights[0, :m], defined.fitted(), rtol=1e-8, atol=1e-10)
    again, spread = np.empty(12), np.empty(12)
    kr.predict(state, LIMITS, np.array(kernel.program), X, tasks, again, spread)
    P = np.tril(state.covariance[0, :m, :m])
    P = P + np.tril(P, -1).T
    noise = state.totals[0, 1] / state.totals[0, 2]
    for i in range(12):
        k = defined.gram([(X[i], tasks[i])])[0]
        phi = np.linalg.solve(U.T, k)
        kxx = PRIOR[tasks[i], tasks[i]] * kernel(X[i : i + 1], X[i])[0]
        variance = 1 + phi @ P @ phi + max(kxx - phi @ phi, 0.0) / 0.3
        assert again[i] == pytest.approx(phi @ state.weights[0, :m], rel=1e-8, abs=1e-10)
        assert spread[i] == pytest.approx(np.sqrt(noise * variance), rel=1e-8)


def test_separate_dictionaries_do_not_meet():
    X, y, tasks = stream()
    both = empty(16, F=2)
    _, mean, _ = run(both, rbf(0.8), X, y, tasks, range(1, 13))
    for t in (0, 1):
        own = tasks == t
        alone = empty(16, F=2)
        _, expected, _ = run(alone, rbf(0.8), X[own], y[own], tasks[own], range(1, 7))
        np.testing.assert_array_equal(mean[own], expected)
        assert both.sizes[t] == alone.sizes[t]


def test_it_asks_for_room_before_a_group_and_not_inside():
    X, y, tasks = stream()
    state = empty(6)
    (learned, full), _, _ = run(state, rbf(0.1), X, y, tasks, [4, 8, 12])
    assert (learned, full) == (4, True)
    assert state.sizes[0] == 4
    within_budget = empty(7)
    (learned, full), _, _ = run(within_budget, rbf(0.1), X, y, tasks, [4, 8, 12], LIMITS._replace(budget=6))
    assert (learned, full) == (12, False)
    assert within_budget.sizes[0] == 6


def test_relative_novelty_weight_zero_and_overflow():
    X, y, tasks = stream()
    state = empty(16)
    run(state, linear(), X / 1e3, y, tasks, range(1, 13), LIMITS._replace(relative=True))
    assert state.sizes[0] == 4
    nothing = empty(16)
    run(nothing, linear(), X, y, tasks, range(1, 13), weights=np.zeros(12))
    assert nothing.sizes[0] == 0
    wild = y.copy()
    wild[7] = 1e200
    (learned, full), _, _ = run(empty(16), linear(), X, wild, tasks, range(1, 13))
    assert (learned, full) == (7, False)
    X[5] = 1e200
    (learned, full), _, _ = run(empty(16), linear(), X, y, tasks, range(1, 13))
    assert (learned, full) == (5, False)


@pytest.mark.parametrize(("gap", "grows"), [(1e-3, True), (1e-10, False)])
def test_an_input_that_rounding_tells_from_another_is_no_news(gap, grows):
    X, y, _ = stream()
    X[1] = X[0] + gap
    state = empty(16)
    run(state, rbf(1.0), X[:2], y[:2], np.zeros(2, np.int64), range(1, 3), LIMITS._replace(novelty=0.0))
    assert state.sizes[0] == 1 + grows
