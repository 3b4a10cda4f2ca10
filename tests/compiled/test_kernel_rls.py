"""Each compiled function of kernels.py, dictionary.py and kernel_rls.py against its twin in plain NumPy."""

import numpy as np
import pytest

from braided._compiled import dictionary as dc
from braided._compiled import kernel_rls as kr
from braided._compiled import kernels as kn
from braided.kernels import linear, polynomial, rbf
from tests.compiled.batches import as_batch
from tests.reference.kernel import Bounded, Defined, learned_along

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
LIMITS = dc.Limits(0.3, 1e-4, False, dc.UNBOUNDED, 1.0, 1.0, 1.0, 0.0)


def empty(capacity, d=2, F=1):
    return dc.Dictionaries(
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
    batch = as_batch(X, y, tasks, ends, weights, opens)
    answer = kr.progressive_inplace(state, limits, np.array(kernel.program), batch, mean, std)
    return answer, mean, std


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_program_evaluates_to_the_kernel(kernel):
    X, _, _ = stream()
    program, stack = np.array(kernel.program), np.empty((len(kernel.program), 12))
    for x in X:
        for m in range(12):
            kn.evaluate_inplace(stack, program, X[:m], x)
            np.testing.assert_allclose(stack[0, :m], kernel(X[:m], x), rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_inner_products_and_distances_are_those_of_all_inputs(d):
    rng = np.random.default_rng(4)
    x, k = rng.normal(size=d), np.empty(12)
    for m in range(11):
        inputs = rng.normal(size=(m, d))
        kn.inner_inplace(k, inputs, x)
        np.testing.assert_allclose(k[:m], inputs @ x, rtol=1e-12, atol=1e-14)
        kn.gaps_inplace(k, inputs, x)
        np.testing.assert_allclose(k[:m], ((inputs - x) ** 2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_coordinates_and_novelty_are_those_of_the_kernel_matrix(kernel):
    X, _, _ = stream(6)
    program, rows = np.array(kernel.program), np.arange(5) % 2
    stack, phi, k, novel = np.empty((len(program), 5)), np.empty(5), np.empty(5), np.empty(2)
    K = PRIOR[np.ix_(rows, rows)] * np.array([kernel(X[:5], x) for x in X[:5]]) + np.eye(5)
    elements = dc.Elements(X[:5], rows, np.linalg.cholesky(K).T)
    for row in (0, 1):
        expected = PRIOR[row, rows] * kernel(X[:5], X[5])
        kxx = PRIOR[row, row] * kernel(X[5:], X[5])[0]
        kn.kernel_inplace(k, X[:5], rows, PRIOR[row], program, stack, X[5])
        np.testing.assert_allclose(k, expected, rtol=1e-12)
        kr.coordinates_inplace(phi, novel, elements, PRIOR[row], program, stack, X[5:], row)
        np.testing.assert_allclose(phi, np.linalg.solve(elements.factor.T, expected), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(novel, [kxx - phi @ phi, kxx], rtol=1e-10)
        nearest = np.abs(expected) / np.sqrt(K.diagonal() * kxx)
        assert kn.coherent(k, K.diagonal().copy(), kxx) == pytest.approx(nearest.max())
    assert kn.coherent(k, K.diagonal().copy(), 0.0) == 0.0
    kr.coordinates_inplace(phi, novel, elements, -PRIOR[0], program, stack, X[5:], 0)
    assert novel[0] == 0.0  # and not below


@pytest.mark.parametrize("m", range(10))
def test_whitening_solves_the_triangular_system(m):
    rng = np.random.default_rng(1)
    U = np.triu(rng.normal(size=(m + 1, m + 1))) + 4 * np.eye(m + 1)
    k = rng.normal(size=m + 1)
    phi = k.copy()
    explained = dc.whiten_inplace(phi, U, m)
    np.testing.assert_allclose(phi[:m], np.linalg.solve(U[:m, :m].T, k[:m]), rtol=1e-10)
    assert phi[m] == k[m]
    assert explained == pytest.approx(phi[:m] @ phi[:m])


@pytest.mark.parametrize("m", range(10))
def test_the_product_reads_the_lower_triangle_only(m):
    rng = np.random.default_rng(5)
    P, x, g = rng.normal(size=(m + 2, m + 2)), rng.normal(size=m), np.full(m + 1, 7.0)
    whole = np.tril(P) + np.tril(P, -1).T
    own = dc.product_inplace(g[:m], P, x)
    assert own == pytest.approx(x**2 @ np.diag(whole)[:m])
    np.testing.assert_allclose(g[:m], whole[:m, :m] @ x, rtol=1e-10)
    assert g[m] == 7.0


@pytest.mark.parametrize("along", [1.0, 0.8])
def test_learning_adds_the_information_of_a_sample(along):
    rng = np.random.default_rng(6)
    m, y, weight = 6, 0.7, 1.5
    half, w, phi, g = rng.normal(size=(m, m)), rng.normal(size=m), rng.normal(size=m), np.empty(m)
    P, totals, errors = half @ half.T + np.eye(m), np.array([2.0, 0.3, 4.0]), np.zeros((2, 3))
    lower, learned = np.tril(P), w.copy()
    known, limits = dc.Known(learned, lower, totals, errors), LIMITS._replace(along=along)
    given = dc.learn_inplace(known, limits, g, phi, y, weight, 0)
    expected, covariance = learned_along(w, 2.0 * P, phi, y, weight, along)
    assert given == weight
    np.testing.assert_allclose(g, P @ phi, rtol=1e-12)
    np.testing.assert_allclose(learned, expected, rtol=1e-10)
    np.testing.assert_allclose(totals[0] * lower, np.tril(covariance), rtol=1e-9, atol=1e-11)
    before = lower.copy()
    assert dc.learn_inplace(known, limits, g, phi, 1e200, weight, 0) == -1.0
    np.testing.assert_array_equal(lower, before)


def test_the_usage_is_the_mean_square_of_late_shares():
    a = np.array([0.5, -2.0, 0.0])
    usage, age = np.array([1.0, 3.0, 0.2, 9.0]), np.array([1.0, 4.0, 7.0, 9.0])
    dc.use_inplace(usage, age, a, 1.0, 5.0)
    np.testing.assert_allclose(age, [2.0, 5.0, 5.0, 9.0])
    np.testing.assert_allclose(usage, [0.625, 3.2, 0.16, 9.0])
    dc.use_inplace(usage, age, a, 0.0, 5.0)
    np.testing.assert_allclose(usage, [0.625 * 2 / 3, 3.2 * 0.8, 0.16 * 0.8, 9.0])


def test_unwhitening_solves_the_other_one():
    rng = np.random.default_rng(2)
    U = np.triu(rng.normal(size=(5, 5))) + 4 * np.eye(5)
    phi = rng.normal(size=6)
    np.testing.assert_allclose(dc.unwhitened(U, phi, 5), np.linalg.solve(U, phi[:5]), rtol=1e-12)
    assert dc.unwhitened(U, phi, 0).size == 0


def test_turning_two_coordinates_is_a_change_of_basis():
    rng = np.random.default_rng(3)
    m, c, cos, sin = 5, 1, 0.8, 0.6
    U, w, half = np.triu(rng.normal(size=(m, m))), rng.normal(size=m), rng.normal(size=(m, m))
    P = np.tril(half) + np.tril(half, -1).T
    Q = np.eye(m)
    Q[c : c + 2, c : c + 2] = [[-cos, sin], [sin, cos]]
    turned, weights, lower = U.copy(), w.copy(), np.tril(P)
    dc.turn_inplace(turned, weights, lower, m, c, cos, sin)
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
@pytest.mark.parametrize(
    "change", [{"shrink": 0.9}, {"shrink": 0.01}, {"along": 0.7}, {"coherence": 0.6}, {"novelty": 0.3}, {}], ids=str
)
@pytest.mark.parametrize("budget", [1, 5, dc.UNBOUNDED])
def test_budget_and_forgetting_are_those_of_the_function_at_the_dictionary(kernel, change, budget):
    X, y, tasks = stream(60)
    limits = LIMITS._replace(**{"budget": budget, "novelty": 1e-2} | change)
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
        if budget < dc.UNBOUNDED:
            np.testing.assert_allclose(state.usage[0, :m], defined.usage, rtol=1e-6, atol=1e-9)
    assert (state.evicted[0] > 0) == (budget < dc.UNBOUNDED)


def test_an_evicted_element_leaves_the_rest_of_the_function_alone():
    X, y, tasks = stream()
    state = empty(16)
    run(state, rbf(0.8), X, y, tasks, range(1, 13))
    U, mean, covariance = values(state)
    K = U.T @ U
    least = dc.least_relevant(state._replace(usage=np.ones((1, 16))), 0)
    inverse = np.linalg.inv(K)
    assert least == np.argmin(np.abs(inverse @ mean) / inverse.diagonal())
    for gone in (0, 3, state.sizes[0] - 3):
        dc.evict_inplace(state, 0, gone)
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
        dc.restore_inplace(state, limits)
    for f, (U, mean, covariance) in enumerate(before):
        one = {n: getattr(state, n)[f:] for n in ("factor", "weights", "covariance", "totals", "sizes")}
        _, left, spread = values(state._replace(**one))
        np.testing.assert_allclose(left, 0.9**5 * mean)
        np.testing.assert_allclose(spread, 0.9**10 * covariance + (1 - 0.9**10) * U.T @ U / 0.3, rtol=1e-10)
    for _ in range(500):
        dc.restore_inplace(state, limits)
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
    kr.forecast_inplace(again, spread, state, LIMITS, np.array(kernel.program), X, tasks)
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


@pytest.mark.parametrize("F", [1, 2])
@pytest.mark.parametrize("change", [{}, {"budget": 4}, {"shrink": 0.9}, {"budget": 4, "shrink": 0.9}], ids=str)
def test_what_is_kept_of_a_group_is_made_anew_where_its_dictionary_has_changed(F, change):
    """By a group, its samples are forecast first, and then learned as if each came alone."""
    X, y, tasks = stream(40)
    limits, opens = LIMITS._replace(novelty=0.05, **change), np.arange(40) % 8 == 0
    alone, ends = empty(41, F=F), [8, 16, 24, 32, 40]
    expected = np.empty((2, 40))
    for i in range(40):
        if opens[i]:
            part = slice(i, i + 8)
            rest = (alone, limits, np.array(rbf(0.8).program), X[part], tasks[part])
            kr.forecast_inplace(*expected[:, part], *rest)
        one = slice(i, i + 1)
        run(alone, rbf(0.8), X[one], y[one], tasks[one], [1], limits, opens[one])
    together = empty(41, F=F)
    answer, mean, std = run(together, rbf(0.8), X, y, tasks, ends, limits, opens)
    assert answer == (40, False)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(std, expected[1], rtol=1e-9)
    for name, array in together._asdict().items():
        np.testing.assert_allclose(array, getattr(alone, name), rtol=1e-8, atol=1e-10, err_msg=name)


def test_a_group_larger_than_what_is_kept_of_it_learns_the_same():
    n = 2 * kr.KEPT_SAMPLES + 3
    X, y, tasks = stream(n)
    program, whole, alone = np.array(linear().program), empty(16), empty(16)
    for state in (whole, alone):
        run(state, linear(), X[:12], y[:12], tasks[:12], range(1, 13))
    expected = np.empty(n)
    kr.forecast_inplace(expected, np.empty(0), alone, LIMITS, program, X, tasks)
    capacious = empty(n + 16)
    for name in ("inputs", "rows", "norms", "precision", "usage", "age", "weights"):
        getattr(capacious, name)[:, :16] = getattr(whole, name)
    capacious.factor[:, :16, :16], capacious.covariance[:, :16, :16] = whole.factor, whole.covariance
    capacious.totals[:], capacious.sizes[:] = whole.totals, whole.sizes
    answer, mean, _ = run(capacious, linear(), X, y, tasks, [n])
    run(alone, linear(), X, y, tasks, range(1, n + 1))
    assert answer == (n, False)
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(capacious.weights[0, :4], alone.weights[0, :4], rtol=1e-9)


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


def test_what_is_refused_changes_nothing_of_an_element_in_use():
    """Whether it would be news, has no finite kernel, or is an input like those before."""
    X, y, tasks = stream()
    state, phi = empty(16), np.zeros(16)
    run(state, rbf(0.8), X, y, tasks, range(1, 13))
    before = [array.copy() for array in state]
    m, sample = state.sizes[0], dc.Sample(X[0], 0, y[0], 1.0, phi, delta=1.0, kxx=1.0, coherence=0.0)
    assert not dc.absorb_inplace(state, LIMITS, sample._replace(kxx=np.inf))
    assert not dc.absorb_inplace(state, LIMITS, sample._replace(y=1e200))
    (learned, full), _, _ = run(state, rbf(0.8), X[:1], np.array([1e200]), tasks[:1], [1])
    assert (learned, full) == (0, False)
    state.covariance[0, m], state.weights[0, m] = before[8][0, m], before[7][0, m]  # the room of the next is free
    for array, old in zip(state, before, strict=True):
        np.testing.assert_array_equal(array, old)
    (learned, full), _, _ = run(state, rbf(0.8), X[:1] + 9.0, np.array([1e200]), tasks[:1], [1])
    assert (learned, full) == (0, False)
    assert state.sizes[0] == m


@pytest.mark.parametrize(("gap", "grows"), [(1e-3, True), (1e-10, False)])
def test_an_input_that_rounding_tells_from_another_is_no_news(gap, grows):
    X, y, _ = stream()
    X[1] = X[0] + gap
    state = empty(16)
    run(state, rbf(1.0), X[:2], y[:2], np.zeros(2, np.int64), range(1, 3), LIMITS._replace(novelty=0.0))
    assert state.sizes[0] == 1 + grows
