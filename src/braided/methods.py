"""The methods of the study: what each is, what it is given, and among which parameters it is tuned.

A method is tuned in stages: the first goes through all combinations of its grid; a later one goes through those of its
own parameters, with the others held at the best so far. Grids are those of the paper where it has them.

| grid         | values                               | of                                        |
|--------------|--------------------------------------|-------------------------------------------|
| `penalty`    | λ: 1e-10, 1e-4 … 1e4, 1e10           | all                                       |
| `forgetting` | σ: the plan's                        | recursive least squares, MADMM            |
| `novelty`    | ν: 1e-3, 1e-2, 1e-1                  | kernel methods                            |
| `ridge`      | γ: 1, 0.1, 0.01                      | methods with a graph; the paper has none  |
| `hidden`     | H: 10, 20, 50, 100                   | ELM                                       |
| `step`       | η₀: 1e-3 … 10                        | gradient descent                          |
| `rho`        | ρ: 1e-4 (the paper's), or 1e-2 … 100 | MADMM                                     |
| `width`      | 1, 2, 4 times √d of scaled inputs    | RBF kernel                                |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import product
from typing import Any, Literal, TypeAlias, final

import numpy as np

from braided.errors import InputError
from braided.evaluation import PROTOCOLS, Protocol
from braided.features import Lags
from braided.features.lags import Samples
from braided.forgetting import Exponential
from braided.graph import TaskGraph
from braided.kernels import rbf
from braided.learners import L21, MADMM, MOGD, MTOSLSSVR, MTWRLS, OSLSSVR, WRLS, GraphRidge, Learner, TraceNorm
from braided.types import Floats

Parameters: TypeAlias = dict[str, float]
Make: TypeAlias = Callable[..., Learner]  # (graph, n_features, **parameters)
Clock: TypeAlias = Literal["sample", "round"]
Grid: TypeAlias = Mapping[str, tuple[float, ...]]

PENALTY = (1e-10, *(10.0**k for k in range(-4, 5)), 1e10)
FROM_PLAN = (np.nan,)  # stands for the plan's own grid of forgetting factors
NOVELTY = (1e-3, 1e-2, 1e-1)
RIDGE = (1.0, 0.1, 0.01)
STEP = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
ELSEWHERE = ("hidden", "level", "ridge")  # parameters of the inputs and the graph, not of the learner
HIDDEN_SEEDS = 3  # hidden layers over which the scores of an ELM are averaged


def with_level(level: bool) -> Parameters:
    """Return the parameter that makes a stream's own level a feature; without it, it is none."""
    return {"level": 1.0} if level else {}


def sees_level(parameters: Mapping[str, float]) -> bool:
    """Whether a stream's own level is a feature."""
    return bool(parameters.get("level"))


@final
@dataclass(frozen=True)
class Inputs:
    """What a method sees of the lags."""

    neighbours: bool = False  # also what the neighbours did, and the gap to their level
    scaled: bool = False  # standardised on the training part
    bias: bool = True

    def lags(self, count: int, fill: bool = False, level: bool = False) -> Lags:
        """Return the features, of so many own lags."""
        neighbours = max(count // 3, 1) if self.neighbours else 0
        return Lags(count, neighbours=neighbours, gap=self.neighbours, bias=self.bias, fill=fill, level=level)


@final
@dataclass(frozen=True, eq=False)
class Method:
    """A way to forecast: a learner with its grid, or a naive rule."""

    name: str
    title: str
    about: str
    make: Make | None = None
    naive: Callable[[Samples], Floats] | None = None
    stages: tuple[Grid, ...] = ({},)
    inputs: Inputs = Inputs()
    paper: bool = False  # among the nine methods of the paper's tables
    shares: bool = True  # whether tasks learn from each other
    every: int = 1  # rounds between refits of a batch method, in a window of the paper's length
    tuned_by: Make | None = None  # what makes the same forecasts faster
    batch: bool = False  # refitted on all data, so that it has no interleaved form

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """In which protocols it forecasts."""
        return PROTOCOLS[:1] if self.batch else PROTOCOLS

    @property
    def family(self) -> str:
        """What kind of method it is: in the report, this decides its colour."""
        learned = "batch" if self.batch else "multi-task" if self.shares else "single-task"
        return "naive" if self.naive else learned

    @property
    def hidden_seeds(self) -> int:
        """Over how many hidden layers to average: one for a method without."""
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

        `per` is what MT-WRLS forgets by. Without `guard`, recursive least squares that winds up breaks down.
        `robust` is for learners that can be; their targets are expected to be about 1.
        """
        rest: dict[str, Any] = {name: value for name, value in parameters.items() if name not in ELSEWHERE}
        make = make or self.make
        if make is None:
            raise InputError(f"{self.name} has no model: name a method that learns")
        if make in (MTWRLS, WRLS):
            rest["forgetting"] = Exponential(rest["forgetting"], per if make is MTWRLS else "task", guard)
        if make is MTWRLS:  # a graph is made sparse only where exact sharing is too slow (`runs.head.EXACT`)
            rest["solver"] = "local" if graph.is_sparse else "auto"
        if make in ROBUST and robust is not None:
            rest |= {"robust": robust, "noise": 1.0}
        return make(graph_with(graph, parameters.get("ridge")), n_features, **rest)

    def candidates(self, stage: Grid, best: Parameters, forgetting: tuple[float, ...]) -> Iterator[Parameters]:
        """Go through the grid of a stage, with the other parameters as they are best so far."""
        grid = {name: forgetting if values is FROM_PLAN else values for name, values in stage.items()}
        for values in product(*grid.values()):
            yield best | dict(zip(grid, values, strict=True))


@lru_cache(maxsize=16)
def graph_with(graph: TaskGraph, ridge: float | None) -> TaskGraph:
    """Return the graph with another ridge; without one, the graph without edges."""
    return TaskGraph.independent(graph) if ridge is None else replace(graph, ridge=ridge)


def _rbf(tasks: TaskGraph, n_features: int, width: float, **given: Any) -> Learner:
    return OSLSSVR(tasks, n_features, rbf(width * np.sqrt(n_features)), **given)


MT_LINEAR, LINEAR = partial(MTOSLSSVR, kernel="linear"), partial(OSLSSVR, kernel="linear")
ROBUST: tuple[Make, ...] = (MTWRLS, WRLS, MT_LINEAR, LINEAR, _rbf)


def _mean_change(samples: Samples) -> Floats:
    """The mean of all tasks' last changes."""
    _, of = np.unique(samples.steps, return_inverse=True)
    mean: Floats = np.bincount(of, samples.previous) / np.bincount(of)
    return mean[of]


def _methods() -> Iterator[Method]:
    own, graph = {"forgetting": FROM_PLAN, "penalty": PENALTY}, {"ridge": RIDGE}
    penalty, descent = {"penalty": PENALTY}, {"step": STEP, "penalty": PENALTY}
    kernel = {"novelty": NOVELTY, "penalty": PENALTY}
    hidden = Inputs(scaled=True, bias=False)
    neighbours = Inputs(neighbours=True)
    first, then = {"hidden": (20.0,)}, {"hidden": (10.0, 50.0, 100.0)}

    yield Method(
        "mt-wrls",
        "MT-WRLS",
        "multi-task weighted recursive least squares: exact after every sample",
        MTWRLS,
        stages=(own | graph,),
        paper=True,
    )
    yield Method(
        "mt-oslssvr",
        "MT-OSLSSVR",
        "the kernel form of MT-WRLS on a sparse dictionary, linear kernel",
        MT_LINEAR,
        stages=(kernel | graph,),
        paper=True,
    )
    yield Method(
        "mt-wrls-elm",
        "MT-WRLS + ELM",
        "MT-WRLS behind a random hidden layer",
        MTWRLS,
        stages=(first | own | graph, then | penalty),
        inputs=hidden,
        paper=True,
    )
    yield Method(
        "wrls", "WRLS", "one recursive least squares filter per task", WRLS, stages=(own,), paper=True, shares=False
    )
    yield Method(
        "wrls-elm",
        "WRLS + ELM",
        "one filter per task behind a random hidden layer",
        WRLS,
        stages=(first | own, then | penalty),
        inputs=hidden,
        paper=True,
        shares=False,
    )
    yield Method(
        "oslssvr",
        "OSLSSVR",
        "one kernel filter per task, RBF kernel",
        _rbf,
        stages=({"width": (2.0,)} | kernel, {"width": (1.0, 4.0)} | penalty),
        inputs=hidden,
        paper=True,
        shares=False,
    )
    yield Method(
        "mogd-elm",
        "MOGD + ELM",
        "MOGD behind a random hidden layer",
        MOGD,
        stages=(first | descent | graph, then | descent),
        inputs=hidden,
        paper=True,
    )
    yield Method("mogd", "MOGD", "multi-task online gradient descent", MOGD, stages=(descent | graph,), paper=True)
    yield Method(
        "madmm",
        "MADMM",
        "multi-task online ADMM, ρ = 1e-4 untuned as in the paper",
        partial(MADMM, rho=1e-4),
        stages=(own | graph,),
        paper=True,
    )
    yield Method(
        "madmm-tuned",
        "MADMM, ρ tuned",
        "multi-task online ADMM, ρ tuned",
        MADMM,
        stages=({"rho": (1.0,)} | own | graph, {"rho": (0.01, 0.1, 10.0, 100.0)} | penalty),
    )
    yield Method(
        "oslssvr-linear",
        "OSLSSVR, linear",
        "one kernel filter per task, linear kernel: WRLS without forgetting",
        LINEAR,
        stages=(kernel,),
        shares=False,
    )
    yield Method(
        "mt-wrls-neighbours",
        "MT-WRLS + neighbours",
        "MT-WRLS that also sees what the neighbours just did",
        MTWRLS,
        stages=(own | graph,),
        inputs=neighbours,
    )
    yield Method(
        "wrls-neighbours",
        "WRLS + neighbours",
        "one filter per task that also sees what the neighbours just did",
        WRLS,
        stages=(own,),
        inputs=neighbours,
        shares=False,
    )
    yield Method(
        "graph-ridge",
        "Graph ridge, batch",
        "the batch solution on the graph, refitted each round: MT-WRLS without forgetting",
        GraphRidge,
        tuned_by=partial(MTWRLS, forgetting=1.0),
        stages=(penalty | graph,),
        batch=True,
    )
    yield Method(
        "l21",
        "ℓ2,1 norm, batch",
        "joint feature selection by the ℓ2,1 norm, refitted now and then (every 20 rounds of 400)",
        L21,
        stages=(penalty,),
        every=20,
        batch=True,
    )
    yield Method(
        "trace",
        "Trace norm, batch",
        "low-rank weights by the trace norm, refitted now and then (every 20 rounds of 400)",
        TraceNorm,
        stages=(penalty,),
        every=20,
        batch=True,
    )
    yield Method(
        "no-change", "No change", "the level stays: the forecast 0", naive=lambda s: np.zeros(len(s.y)), shares=False
    )
    yield Method(
        "last-change", "Last change", "the last change repeats", naive=lambda s: s.previous.copy(), shares=False
    )
    yield Method(
        "mean-change",
        "Mean last change",
        "the mean of all tasks' last changes repeats",
        naive=_mean_change,
        shares=False,
    )


METHODS = {method.name: method for method in _methods()}


def find_method(name: str) -> Method:
    """Return a method by its name; an unknown one is told the nearest."""
    if name not in METHODS:
        near = get_close_matches(name.lower(), METHODS, n=1, cutoff=0.0)[0]
        raise InputError(f"unknown method {name!r}: did you mean {near!r}? `braided methods` lists them all")
    return METHODS[name]
