"""The named methods: what each is, what it sees, and the grid that its parameters are tuned on.

A method is tuned in stages: the first goes through all combinations of its grid; a later one goes through those of its
own parameters, with the others held at the best so far. Grids are those of the paper where it has them.

Add your own with `register`; `run`, `tune` and `study` then know it by name, also in their worker processes:

>>> import braided as bd
>>> grid = {"penalty": (0.1, 1.0, 10.0), "ridge": (0.1,)}
>>> bd.methods.register(bd.methods.Method("my-ridge", "My ridge", "MT-WRLS that never forgets", bd.MTWRLS, (grid,)))
>>> panel = bd.datasets.wind_field(seed=1, steps=300, sites=3)     # synthetic
>>> forecaster, _ = bd.runs.run_in_memory(panel, bd.runs.Settings(("my-ridge",), lags=3))
>>> forecaster.origin.choice.best.method
'my-ridge'
>>> _ = METHODS.pop("my-ridge")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import product
from typing import Any, Literal, TypeAlias, final

import numpy as np

from braided.errors import InputError
from braided.evaluation import PROTOCOLS, Protocol
from braided.features import Lags
from braided.features.lags import Samples
from braided.forecasting import Engine, Parameters
from braided.forecasting.auto import AutoEngine
from braided.forgetting import Exponential
from braided.graph import TaskGraph
from braided.kernels import rbf
from braided.learners import L21, MADMM, MOGD, MTOSLSSVR, MTWRLS, OSLSSVR, WRLS, GraphRidge, Learner, TraceNorm
from braided.types import Floats
from braided.validate import count, real

Make: TypeAlias = Callable[..., Learner]  # (graph, n_features, **parameters)
Clock: TypeAlias = Literal["sample", "round"]
Grid: TypeAlias = Mapping[str, tuple[float, ...]]

PENALTY = (1e-10, *(10.0**k for k in range(-4, 5)), 1e10)  # λ, of all methods
FROM_PLAN: tuple[float, ...] = ()  # σ, replaced by the forgetting factors of the plan
NOVELTY = (1e-3, 1e-2, 1e-1)  # ν, of kernel methods
RIDGE = (1.0, 0.1, 0.01)  # γ, of methods with a graph; the paper has none
STEP = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # η₀, of gradient descent
ELSEWHERE = ("hidden", "level", "ridge")  # parameters of the inputs and the graph, not of the learner
HIDDEN_SEEDS = 3  # hidden layers over which the scores of an ELM are averaged


def with_level(level: bool) -> Parameters:
    """Return the parameter that makes a stream's own level a feature, or none."""
    return {"level": 1.0} if level else {}


def sees_level(parameters: Mapping[str, float]) -> bool:
    """Whether a stream's own level is a feature."""
    return bool(parameters.get("level"))


@final
@dataclass(frozen=True)
class Inputs:
    """Which features a method sees."""

    neighbours: bool = False  # also the neighbours' changes, and the gap to their level
    scaled: bool = False  # standardised on the tuning period
    bias: bool = True

    def lags(self, count: int, fill: bool = False, level: bool = False) -> Lags:
        """Return the features, with `count` own lags."""
        neighbours = max(count // 3, 1) if self.neighbours else 0
        return Lags(count, neighbours=neighbours, gap=self.neighbours, bias=self.bias, fill=fill, level=level)


@final
@dataclass(frozen=True, eq=False)
class Method:
    """A way to forecast: a learner with its grid, a rule without a model (a baseline), or a forecaster.

    A learner and a rule see samples, which `inputs` make; a forecaster takes the streams' values as they are.
    """

    name: str
    title: str
    about: str
    make: Make | None = None
    stages: tuple[Grid, ...] = ({},)
    inputs: Inputs = Inputs()
    _: KW_ONLY
    naive: Callable[[Samples], Floats] | None = None
    forecaster: Callable[..., Engine] | None = None  # made by a `braided.forecasting.Auto` and options of its engine
    paper: bool = False  # among the nine methods of the paper's tables
    shares: bool = True  # whether tasks learn from each other
    robust: bool = False  # whether `make` takes `robust` and `noise`, so that wild values have little weight
    every: int = 1  # rounds between refits of a batch method, in a window of the paper's length
    tuned_by: Make | None = None  # makes the same forecasts, faster
    batch: bool = False  # refitted on all data, so that it has no interleaved form

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols in which it forecasts."""
        return PROTOCOLS[:1] if self.batch else PROTOCOLS

    @property
    def sees_samples(self) -> bool:
        """Whether it can be tuned, and run in a study."""
        return self.forecaster is None

    @property
    def family(self) -> str:
        """What kind of method it is; the report has a colour for each."""
        learned = "batch" if self.batch else "multi-task" if self.shares else "single-task"
        return "baseline" if self.naive else learned

    @property
    def hidden_seeds(self) -> int:
        """The number of hidden layers to average over; 1 for a method without one."""
        return HIDDEN_SEEDS if any("hidden" in stage for stage in self.stages) else 1

    def build(
        self,
        parameters: Parameters,
        graph: TaskGraph,
        n_features: int,
        per: Clock,
        make: Make | None = None,
        guard: bool = True,
        robust: float | None = None,
    ) -> Learner:
        """Return the learner with these parameters, without a hidden layer.

        MT-WRLS forgets per sample or per round (`per`). Without `guard`, recursive least squares may wind up and break
        down. `robust` is for methods that can be; their targets are expected to be about 1.
        """
        rest: dict[str, Any] = {name: value for name, value in parameters.items() if name not in ELSEWHERE}
        make = make or self.make
        if make is None:
            raise InputError(f"{self.name} has no model: name a method that learns")
        if make in (MTWRLS, WRLS) and "forgetting" in rest:
            rest["forgetting"] = Exponential(rest["forgetting"], per if make is MTWRLS else "task", guard)
        if make is MTWRLS:  # a graph is sparse only where exact sharing is too slow (`tuning_period.EXACT_UP_TO`)
            rest["solver"] = "local" if graph.is_sparse else "auto"
        if self.robust and robust is not None:
            rest |= {"robust": robust, "noise": 1.0}
        return make(graph_with(graph, parameters.get("ridge")), n_features, **rest)

    def candidates(self, stage: Grid, best: Parameters, forgetting: tuple[float, ...]) -> Iterator[Parameters]:
        """Go through the grid of a stage, with the other parameters at the best so far."""
        grid = {name: values or forgetting for name, values in stage.items()}
        for values in product(*grid.values()):
            yield best | dict(zip(grid, values, strict=True))


@lru_cache(maxsize=16)
def graph_with(graph: TaskGraph, ridge: float | None) -> TaskGraph:
    """Return the graph with another ridge; without one, the graph without edges."""
    return TaskGraph.independent(graph) if ridge is None else replace(graph, ridge=ridge)


def _rbf(tasks: TaskGraph, n_features: int, width: float, **given: Any) -> Learner:
    return OSLSSVR(tasks, n_features, rbf(width * np.sqrt(n_features)), **given)  # scaled inputs are about √d long


def _no_change(samples: Samples) -> Floats:
    return np.zeros(len(samples.y))


def _last_change(samples: Samples) -> Floats:
    return samples.previous.copy()


def _mean_change(samples: Samples) -> Floats:
    _, of = np.unique(samples.steps, return_inverse=True)
    mean: Floats = np.bincount(of, samples.previous) / np.bincount(of)
    return mean[of]


def _methods() -> Iterator[Method]:
    own, graph, penalty = {"forgetting": FROM_PLAN, "penalty": PENALTY}, {"ridge": RIDGE}, {"penalty": PENALTY}
    descent, kernel = {"step": STEP} | penalty, {"novelty": NOVELTY} | penalty
    hidden, neighbours = Inputs(scaled=True, bias=False), Inputs(neighbours=True)
    first, then = {"hidden": (20.0,)}, {"hidden": (10.0, 50.0, 100.0)}
    mt_linear, linear = partial(MTOSLSSVR, kernel="linear"), partial(OSLSSVR, kernel="linear")
    # fmt: off
    yield Method("auto", "Auto", "the default: rules and learners, seasonal or not, mixed by their past errors",
                 forecaster=AutoEngine)
    yield Method("mt-wrls", "MT-WRLS", "multi-task weighted recursive least squares: exact after every sample",
                 MTWRLS, (own | graph,), robust=True, paper=True)
    yield Method("mt-oslssvr", "MT-OSLSSVR", "the kernel form of MT-WRLS on a sparse dictionary, linear kernel",
                 mt_linear, (kernel | graph,), robust=True, paper=True)
    yield Method("mt-wrls-elm", "MT-WRLS + ELM", "MT-WRLS behind a random hidden layer",
                 MTWRLS, (first | own | graph, then | penalty), hidden, robust=True, paper=True)
    yield Method("wrls", "WRLS", "one recursive least squares filter per task",
                 WRLS, (own,), robust=True, paper=True, shares=False)
    yield Method("wrls-elm", "WRLS + ELM", "one filter per task behind a random hidden layer",
                 WRLS, (first | own, then | penalty), hidden, robust=True, paper=True, shares=False)
    yield Method("oslssvr", "OSLSSVR", "one kernel filter per task, RBF kernel",
                 _rbf, ({"width": (2.0,)} | kernel, {"width": (1.0, 4.0)} | penalty), hidden,
                 robust=True, paper=True, shares=False)
    yield Method("mogd-elm", "MOGD + ELM", "MOGD behind a random hidden layer",
                 MOGD, (first | descent | graph, then | descent), hidden, paper=True)
    yield Method("mogd", "MOGD", "multi-task online gradient descent", MOGD, (descent | graph,), paper=True)
    yield Method("madmm", "MADMM", "multi-task online ADMM, ρ = 1e-4 untuned as in the paper",
                 partial(MADMM, rho=1e-4), (own | graph,), paper=True)
    yield Method("madmm-tuned", "MADMM, ρ tuned", "multi-task online ADMM, ρ tuned",
                 MADMM, ({"rho": (1.0,)} | own | graph, {"rho": (0.01, 0.1, 10.0, 100.0)} | penalty))
    yield Method("oslssvr-linear", "OSLSSVR, linear",
                 "one kernel filter per task, linear kernel: WRLS without forgetting",
                 linear, (kernel,), robust=True, shares=False)
    yield Method("mt-wrls-neighbours", "MT-WRLS + neighbours", "MT-WRLS that also sees what the neighbours just did",
                 MTWRLS, (own | graph,), neighbours, robust=True)
    yield Method("wrls-neighbours", "WRLS + neighbours",
                 "one filter per task that also sees what the neighbours just did",
                 WRLS, (own,), neighbours, robust=True, shares=False)
    yield Method("graph-ridge", "Graph ridge, batch",
                 "the batch solution on the graph, refitted each round: MT-WRLS without forgetting",
                 GraphRidge, (penalty | graph,), tuned_by=partial(MTWRLS, forgetting=1.0), batch=True)
    yield Method("l21", "ℓ2,1 norm, batch",
                 "joint feature selection by the ℓ2,1 norm, refitted now and then (every 20 rounds of 400)",
                 L21, (penalty,), every=20, batch=True)
    yield Method("trace", "Trace norm, batch",
                 "low-rank weights by the trace norm, refitted now and then (every 20 rounds of 400)",
                 TraceNorm, (penalty,), every=20, batch=True)
    yield Method("no-change", "No change", "the next value equals the last", naive=_no_change, shares=False)
    yield Method("last-change", "Last change", "the last change repeats", naive=_last_change, shares=False)
    yield Method("mean-change", "Mean last change", "the mean of all tasks' last changes repeats",
                 naive=_mean_change, shares=False)
    # fmt: on


METHODS = {method.name: method for method in _methods()}
AUTO = METHODS["auto"]


def register(method: Method) -> None:
    """Add a method to those known by name: its `make(graph, n_features, **parameters)` returns a learner.

    For several processes (`jobs`), joblib must be able to pickle it.
    """
    if not isinstance(method, Method):
        raise InputError(f"{method!r:.80} is a {type(method).__name__}: give a braided.methods.Method")
    if method.name in METHODS:
        raise InputError(f"there is a method {method.name!r} already: choose another name")
    if not isinstance(method.name, str) or not re.fullmatch(r"[\w.+-]+", method.name):
        raise InputError(f"the name of a method is {method.name!r:.80}: use letters, digits, '-', '_', '+' and '.'")
    if sum(map(callable, (method.make, method.naive, method.forecaster))) != 1:
        raise InputError(f"{method.name} has not one of make, naive and forecaster: give one of them")
    if not isinstance(method.stages, tuple) or not all(isinstance(stage, Mapping) for stage in method.stages):
        raise InputError(f"{method.name}: stages is {method.stages!r:.80}: give a tuple of grids, one a stage")
    for name, values in (item for stage in method.stages for item in stage.items()):
        if not isinstance(values, tuple) or (values == FROM_PLAN and name != "forgetting"):
            raise InputError(f"{method.name}: the grid of {name} is {values!r:.80}: give a tuple of numbers")
        for value in values:
            real(value, f"{method.name}: {name}")
    count(method.every, "every")
    METHODS[method.name] = method


def methods_on_samples() -> tuple[str, ...]:
    """Return the names of the methods that can be tuned, and run in a study."""
    return tuple(name for name, method in METHODS.items() if method.sees_samples)


def find_method(name: str) -> Method:
    """Return a method by its name; the error for an unknown one suggests the nearest."""
    if name not in METHODS:
        near = get_close_matches(name.lower(), METHODS, n=1, cutoff=0.0)[0]
        raise InputError(f"unknown method {name!r}: did you mean {near!r}? `braided methods` lists them all")
    return METHODS[name]
