"""What the soak tests run, and what they look at: every learner with every policy, and the soundness of a state."""

import numpy as np

import braided as bd
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.kernels import linear, polynomial, rbf
from tests.soak import either
from tests.streams import random_graph

SIGMAS = (0.01, 0.2, 0.4, 0.6, 0.8, 1.0)  # the paper's


def half_life(sigma):
    """The half-life that fades by sigma a round."""
    return HalfLife(1e150 if sigma == 1.0 else np.log(0.5) / np.log(sigma))


def shared_policies(sigma, n_tasks):
    """Every policy of MTWRLS, as strong as sigma a sample, round or tick."""
    other = random_graph(np.random.default_rng(9), n_tasks)
    return own_policies(sigma) | {
        "sample": Exponential(sigma),
        "round": Exponential(sigma, per="round"),
        "drift by another graph": Drift(1.0 / sigma - 1.0 + 1e-6, other),
    }


def own_policies(sigma):
    """Every policy of WRLS."""
    return {
        "task": Exponential(sigma, per="task"),
        "half-life": half_life(sigma),
        "restore": Restore(sigma),
        "directional": Directional(sigma),
        "drift": Drift(1.0 / sigma - 1.0 + 1e-6),
    }


def linear_learners(sigma, n_tasks):
    """MTWRLS and WRLS with every policy: name → make(graph, n_features)."""
    makers = {}
    for kind, policies in ((bd.MTWRLS, shared_policies(sigma, n_tasks)), (bd.WRLS, own_policies(sigma))):
        for name, policy in policies.items():
            makers[f"{kind.__name__} {name} {sigma}"] = _maker(kind, forgetting=policy)
            more = {"solver": "blocked"} if kind is bd.MTWRLS else {}
            makers[f"{kind.__name__} {name} {sigma} robust"] = _maker(kind, forgetting=policy, robust=4.0, **more)
    return makers


def local_learners(sigma):
    """MTWRLS for many tasks: name → make(graph, n_features)."""
    policies = {"sample": Exponential(sigma), "round": Exponential(sigma, per="round"), "half-life": half_life(sigma)}
    return {
        f"MTWRLS local {name} {sigma} robust={robust}": _maker(
            bd.MTWRLS, forgetting=policy, robust=robust, solver="local"
        )
        for name, policy in policies.items()
        for robust in (None, 4.0)
    }


def unguarded_learners(sigma):
    """What may stop with a NumericalError where it winds up."""
    return {
        f"MTWRLS {per} {sigma} unguarded": _maker(bd.MTWRLS, forgetting=Exponential(sigma, per=per, guard=False))
        for per in ("sample", "round", "task")
    }


def kernel_learners(**given):
    """MTOSLSSVR and OSLSSVR with every kernel and whatever else they take: name → make(graph, n_features)."""
    more = {
        "": {},
        " restore": {"forgetting": Restore(0.9)},
        " directional": {"forgetting": Directional(0.9)},
        " robust": {"robust": 4.0},
        " coherence": {"coherence": 0.9},
    }
    return {
        f"{kind.__name__} {kernel!r}{name}": _maker(kind, kernel=kernel, **given, **extra)
        for kind in (bd.MTOSLSSVR, bd.OSLSSVR)
        for kernel in (linear(), rbf(), polynomial(3))
        for name, extra in more.items()
    }


def contenders():
    """The learners without a covariance; those that take seconds to compile in the long form only."""
    slow = {
        "MADMM": _maker(bd.MADMM),
        "MADMM 0.2": _maker(bd.MADMM, forgetting=0.2),
        "L21": _maker(bd.L21),
        "TraceNorm": _maker(bd.TraceNorm),
    }
    return either({}, slow) | {
        "MOGD": _maker(bd.MOGD, penalty=0.1, step=0.01),
        "GraphRidge": _maker(bd.GraphRidge),
        "Persistence": _maker(bd.Persistence),
        "ELM MTWRLS": lambda graph, d: bd.ELM(hidden=4) | bd.MTWRLS(graph, d, 1.0, 0.9),
    }


def _maker(kind, **parameters):
    return lambda graph, d: kind(graph, d, **parameters)


def held(model):
    """All that the model holds, as bytes; of dictionaries, what is in use."""
    arrays = model.state._asdict()
    held = {name: array.tobytes() for name, array in arrays.items()}
    if "sizes" in arrays:
        capacity = arrays["inputs"].shape[1]
        for name, array in arrays.items():
            sides = array.shape[1:].count(capacity)
            used = [each[(slice(m),) * sides] for each, m in zip(array, arrays["sizes"], strict=False)]
            held[name] = b"".join(each.tobytes() for each in used) if sides else held[name]
    return held | {"samples": model.samples, "last round": model._last_round, "tasks": model.tasks}


def insist_finite(model):
    """No number of the state is NaN or infinite."""
    for name, array in model.state._asdict().items():
        assert np.isfinite(array).all(), f"{name} of {model!r} is not finite"


def least_eigenvalue(P):
    """The smallest eigenvalue of P, or of several, scaled to a unit diagonal."""
    variances = np.diagonal(P, axis1=-2, axis2=-1)
    assert (variances > 0.0).all(), f"the smallest variance is {variances.min()}"
    sizes = np.sqrt(variances)
    return float(np.linalg.eigvalsh(P / sizes[..., :, None] / sizes[..., None, :])[..., 0].min())
