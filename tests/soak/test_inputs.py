"""Inputs, targets and parameters that nobody would wish for: constant, missing, alike, and of any size.

Nothing that a model holds or forecasts is ever NaN or infinite. A sample may be refused, which leaves the model as it
was, to the bit: by most learners only where squares overflow, by those that keep nothing beside P (or have no P) also
once samples far from 1 have taken its digits.
"""

import contextlib

import numpy as np
import pytest

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.kernels import polynomial, rbf
from tests.soak import LONG, either
from tests.soak.configurations import (
    contenders,
    held,
    insist_finite,
    kernel_learners,
    linear_learners,
    local_learners,
    unguarded_learners,
)

T, D = 3, 2
GRAPH = bd.TaskGraph.pooled(range(T), ridge=0.1)
OVERFLOWS = 1e140  # no sample below this is refused by a learner that can make P anew
TAME = 1e3  # samples between one over this and this are refused by nobody
SIZES = either(
    (1e-150, 1e20, 1e150, 1e300),
    (1e-300, 1e-150, 1e-75, 1e-20, 1e-8, 1e-4, 1e4, 1e8, 1e20, 1e75, 1e150, 1e155, 1e200, 1e300),
)
STRENGTHS = either((0.6, 1.0), (0.01, 0.6, 0.99, 1.0))

LINEAR = {name: make for sigma in STRENGTHS for name, make in linear_learners(sigma, T).items()}
HERE = {name: make for name, make in LINEAR.items() if LONG or "1.0 robust" not in name}
LOCAL = {name: make for sigma in STRENGTHS for name, make in local_learners(sigma).items()}
MAKERS = HERE | LOCAL | unguarded_learners(0.6) | kernel_learners(novelty=1e-3) | contenders()


def is_sturdy(name):
    """Whether a learner can make P anew, or brings the prior back, so that no size of input wears it out."""
    if "local" in name:
        return False
    if any(word in name for word in ("drift", "half-life", "Persistence")):
        return True
    return name in LINEAR and "1.0" not in name and "directional" not in name


def scenarios(n):
    """Name → inputs, targets and weights of n samples."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    y, ones = X.sum(axis=1) + 0.1 * rng.normal(size=n), np.ones(n)
    yield "constant", np.ones((n, D)), y, ones
    yield "zeros", np.zeros((n, D)), y, ones
    yield "zeros throughout", np.zeros((n, D)), np.zeros(n), ones
    yield "a zero column", X * [1.0, 0.0], y, ones
    yield "a column twice", X[:, [0, 0]], y, ones
    yield "nothing weighs", X, y, np.zeros(n)
    now_and_then = np.where(np.arange(n) % 7 == 1, 1.0, 0.0)
    for size in SIZES:
        sizes = size**now_and_then
        yield f"inputs of {size:g}", X * size, y, ones
        yield f"targets of {size:g}", X, y * size, ones
        yield f"both of {size:g}", X * size, y * size, ones
        yield f"weights of {size:g}", X, y, ones * size
        yield f"a column of {size:g}", X * [1.0, size], y, ones
        yield f"columns of {size:g} and its inverse", X * [1.0 / size, size], y, ones
        yield f"now and then inputs of {size:g}", X * sizes[:, None], y, ones
        yield f"now and then targets of {size:g}", X, y * sizes, ones
        yield f"now and then weights of {size:g}", X, y, sizes


def insist_forecasts(model, is_tame):
    """Forecasts of all tasks are finite, and their deviations not NaN; none is refused while all has been tame."""
    try:
        made = model.predict_many(np.ones((T, D)), range(T), with_std=model.has_std)
    except bd.NumericalError:
        assert not is_tame
        return
    mean, std = made if model.has_std else (made, np.zeros(T))
    assert np.isfinite(mean).all()
    assert (std >= 0.0).all()


def learn(model, x, target, weight, i):
    """Learn one sample; whether it was taken. One that is refused leaves the model as it was, to the bit."""
    before = held(model)
    try:
        model.learn_one(x, target, task=i % T, weight=weight, round=i // T)
    except bd.NumericalError:
        after = held(model)
        assert [name for name in before if before[name] != after[name]] == [], "a refused sample left a trace"
        return False
    insist_finite(model)
    return True


def insist_all_goes_well(name, X, y, weights):
    """Learn all samples, then tame ones, and look at everything after each."""
    model = MAKERS[name](GRAPH, D)
    tame = np.random.default_rng(1).normal(size=(3, D))
    samples = [*zip(X, y, weights, strict=True), *((x, 1.0, 1.0) for x in tame)]
    farthest = 1.0  # from 1, of all numbers in the samples that were taken
    for i, (x, target, weight) in enumerate(samples):
        given = np.abs([*x, target, weight])
        far = max(given.max(), 1.0 / given[given > 0.0].min(initial=1.0))
        if learn(model, x, target, weight, i):
            farthest = max(farthest, far)
        elif is_sturdy(name):
            assert given.max() > OVERFLOWS, f"sample {i} was refused: {x}, {target}, {weight}"
        else:
            assert max(far, farthest) > TAME, f"sample {i} was refused: {x}, {target}, {weight}"
        insist_forecasts(model, is_tame=farthest <= TAME)
        assert model.health.samples == model.samples


@pytest.mark.parametrize("name", MAKERS)
def test_no_size_of_a_sample_makes_anything_infinite(name):
    faults = {}
    for scenario, *samples in scenarios(either(8, 30)):
        try:
            insist_all_goes_well(name, *samples)
        except (AssertionError, ArithmeticError, RuntimeWarning) as error:
            faults[scenario] = f"{type(error).__name__}: {error}"
    assert faults == {}


@pytest.mark.parametrize("name", [*LINEAR, *LOCAL, *unguarded_learners(0.6), *unguarded_learners(0.01)])
@pytest.mark.parametrize("kind", ["constant", "zeros", "a zero column", "a column twice"])
def test_whatever_is_never_told_apart_stays_finite(name, kind):
    """Inputs that leave a direction unvisited for ever: P may wind up, and is finite all the time."""
    make = (LINEAR | LOCAL | unguarded_learners(0.6) | unguarded_learners(0.01))[name]
    n, step = either(480, 9000), 10
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    if kind in ("constant", "zeros"):
        X[:] = kind == "constant"
    else:
        X[:, 1] = 0.0 if kind == "a zero column" else X[:, 0]
    y, tasks, labels = rng.normal(size=n), np.arange(n) % T, np.arange(n) // T
    model = make(GRAPH, D)
    for start in range(0, n, step):
        part = slice(start, start + step)
        with contextlib.suppress(bd.NumericalError) if "unguarded" in name else contextlib.nullcontext():
            model.learn_many(X[part], y[part], tasks[part], rounds=labels[part])
        insist_finite(model)
        mean, std = model.predict_many(np.ones((T, D)), range(T), with_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()


ENDS = (
    {
        "MTWRLS λ=1e-150": lambda g: bd.MTWRLS(g, D, 1e-150),
        "MTWRLS λ=1e150": lambda g: bd.MTWRLS(g, D, 1e150),
        "MTWRLS λ=1e-150 σ=0.9": lambda g: bd.MTWRLS(g, D, 1e-150, 0.9),
        "MTWRLS λ=1e150 σ=0.9": lambda g: bd.MTWRLS(g, D, 1e150, 0.9),
        "MTWRLS λ=1e-150 local": lambda g: bd.MTWRLS(g, D, 1e-150, 0.9, solver="local"),
        "MTWRLS λ=1e150 local": lambda g: bd.MTWRLS(g, D, 1e150, 0.9, solver="local"),
        "MTWRLS λ=1e-150 blocked": lambda g: bd.MTWRLS(g, D, 1e-150, 0.9, solver="blocked"),
        "MTWRLS λ=1e150 blocked": lambda g: bd.MTWRLS(g, D, 1e150, 0.9, solver="blocked"),
        "WRLS λ=1e-150 σ=0.9": lambda g: bd.WRLS(g, D, 1e-150, 0.9),
        "WRLS λ=1e150 σ=0.9": lambda g: bd.WRLS(g, D, 1e150, 0.9),
        "MTWRLS λ=1e-150 restore": lambda g: bd.MTWRLS(g, D, 1e-150, Restore(0.9)),
        "MTWRLS λ=1e-150 drift": lambda g: bd.MTWRLS(g, D, 1e-150, Drift(1e150)),
        "MTOSLSSVR λ=1e-150": lambda g: bd.MTOSLSSVR(g, D, "rbf", 1e-150),
        "MTOSLSSVR λ=1e150": lambda g: bd.MTOSLSSVR(g, D, "rbf", 1e150),
        "OSLSSVR width 1e-150": lambda g: bd.OSLSSVR(g, D, rbf(1e-150), 1.0),
        "OSLSSVR width 1e150": lambda g: bd.OSLSSVR(g, D, rbf(1e150), 1.0, 0.0),
        "MTOSLSSVR degree 99": lambda g: bd.MTOSLSSVR(g, D, polynomial(99), 1.0),
        "MTOSLSSVR 1e-150 of a kernel": lambda g: bd.MTOSLSSVR(g, D, 1e-150 * rbf(), 1.0, 0.0),
        "MTOSLSSVR 1e150 of a kernel": lambda g: bd.MTOSLSSVR(g, D, 1e150 * rbf(), 1.0),
        "MOGD step 1e150": lambda g: bd.MOGD(g, D, 1.0, 1e150),
        "MADMM ρ=1e-150": lambda g: bd.MADMM(g, D, 1.0, 1e-150),
        "MADMM ρ=1e150": lambda g: bd.MADMM(g, D, 1.0, 1e150),
    }
    | {
        f"{kind.__name__} {policy!r}": lambda g, kind=kind, policy=policy: kind(g, D, 1.0, policy)
        for kind in (bd.MTWRLS, bd.WRLS)
        for policy in (
            *(Exponential(tiny, per="task") for tiny in (1e-9, 1e-3)),
            *(HalfLife(duration) for duration in (1e-150, 1e150)),
            *(one(tiny) for one in (Restore, Directional) for tiny in (1e-9, 1e-6, 1e-3)),
            *(Drift(variance) for variance in (1e-150, 1e150)),
        )
    }
    | {
        f"MTWRLS {per} {tiny}": lambda g, per=per, tiny=tiny: bd.MTWRLS(g, D, 1.0, Exponential(tiny, per=per))
        for per in ("sample", "round")
        for tiny in (1e-9, 1e-6, 1e-3)
    }
)


@pytest.mark.parametrize("ridge", [1e-12, 0.1, 1e150])
@pytest.mark.parametrize("name", ENDS)
def test_no_parameter_that_is_accepted_makes_anything_infinite(name, ridge):
    n = either(24, 300)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(n, D)), rng.normal(size=n)
    model = ENDS[name](bd.TaskGraph.pooled(range(T), ridge=ridge))
    insist_finite(model)
    for i in range(n):
        learn(model, X[i], y[i], 1.0, i)
        insist_forecasts(model, is_tame=False)
