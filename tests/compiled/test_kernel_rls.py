"""Each compiled function of kernel_rls.py against its twin in plain NumPy."""

import numpy as np
import pytest

from braided._compiled import kernel_rls as kr
from braided.kernels import linear, polynomial, rbf
from tests.reference.kernel import Defined

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
LIMITS = kr.Limits(0.3, 1e-4, False, 10**9)


def empty(capacity, d=2, F=1):
    return kr.Dictionaries(
        inputs=np.zeros((F, capacity, d)),
        rows=np.zeros((F, capacity), np.int64),
        factor=np.zeros((F, capacity, capacity)),
        weights=np.zeros((F, capacity)),
        covariance=np.zeros((F, capacity, capacity)),
        totals=np.tile([1.0, 0.0, 0.0], (F, 1)),
        sizes=np.zeros(F, np.int64),
        prior=PRIOR if F == 1 else np.ones((1, 1)),
        places=np.array([[0, 0], [0, 1]]) if F == 1 else np.array([[0, 0], [1, 0]]),
    )


def stream(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=n), np.arange(n) % 2


def run(state, kernel, X, y, tasks, ends, limits=LIMITS):
    mean, std = np.empty(len(y)), np.empty(len(y))
    program = np.array(kernel.program)
    answer = kr.progressive_inplace(state, limits, program, X, y, tasks, np.ones(len(y)), np.array(ends), mean, std)
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


def test_rounding_grows_with_the_coefficients():
    rng = np.random.default_rng(2)
    U = np.triu(rng.normal(size=(5, 5))) + 4 * np.eye(5)
    phi = rng.normal(size=6)
    a = np.linalg.solve(U, phi[:5])
    assert kr.rounding(U, phi, 5) == pytest.approx(16 * 2.0**-52 * (1 + a @ a))
    assert kr.rounding(U, phi, 0) == 16 * 2.0**-52


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
    within_budget = empty(6)
    (learned, full), _, _ = run(within_budget, rbf(0.1), X, y, tasks, [4, 8, 12], LIMITS._replace(budget=6))
    assert (learned, full) == (12, False)
    assert within_budget.sizes[0] == 6


def test_relative_novelty_weight_zero_and_overflow():
    X, y, tasks = stream()
    state = empty(16)
    run(state, linear(), X / 1e3, y, tasks, range(1, 13), LIMITS._replace(relative=True))
    assert state.sizes[0] == 4
    nothing = empty(16)
    mean = np.empty(12)
    program = np.array(linear().program)
    kr.progressive_inplace(nothing, LIMITS, program, X, y, tasks, np.zeros(12), np.arange(1, 13), mean, np.empty(0))
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
