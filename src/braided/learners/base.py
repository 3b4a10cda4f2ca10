"""Learner: the contract every learner keeps, and the boundary where inputs are checked, once.

A learner file says how to start, forecast and learn; wrong arguments are refused here, before anything changes.
Samples come in *groups*, which are forecast before any of their samples is learned: one sample each in the interleaved
protocol, a whole round in the synchronous one.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from braided._compiled.batch import NO_ROUND, Batch
from braided._compiled.rls_step import UNUSUAL
from braided.errors import InputError, NumericalError
from braided.features import FeatureMap
from braided.graph import TaskGraph, TaskKey, Tasks, insist_graph
from braided.learners.parts.samples import as_label, as_labels, as_weights, batch_of_one, grouping
from braided.matrices import numerical_errors
from braided.types import Floats, Ints
from braided.validate import count, floats, not_negative, real, same_length, stored_integer

LARGEST_SPREAD = 1e300  # beyond it, the ratio of variances is infinite
NOTHING: Floats = np.empty(0)
FLOAT = np.dtype(np.float64)
FILL_MISSING = "drop the sample, or fill the value, beforehand"
RESCALE = "scale features and targets to about 1, raise the penalty, or reset the model"


class Health(NamedTuple):
    """The condition of a learner: what to check after it has run unattended for a year."""

    samples: int  # learned
    guarded: int = 0  # interventions of the guard against wind-up
    largest_variance: float = np.nan  # of a weight, over the variance of the noise; NaN if the learner has none
    spread: float = np.nan  # the largest variance over the smallest: a lower bound of the condition number of P
    dictionary: int = 0  # inputs kept by a kernel learner
    unusual: int = 0  # samples that a robust learner has given less weight

    @classmethod
    def of(cls, samples: int, guarded: int, variances: Floats, errors: Floats, dictionary: int = 0) -> Health:
        """Return the health given the variances of the weights and the errors, as in `filters.Filters`."""
        largest, spread, unusual = np.nan, np.nan, int(errors[-1, UNUSUAL])
        if variances.size:
            largest, least = float(variances.max()), float(variances.min())
            spread = largest / least if largest < LARGEST_SPREAD * least else np.inf
        return cls(samples, guarded, largest, spread, dictionary, unusual)


class Options(TypedDict, total=False):
    """Options of `Learner.progressive`, for its overloads."""

    rounds: Any
    weights: ArrayLike | None
    interleaved: bool
    gains: Floats | None


class Learner(ABC):
    """An online learner of many tasks.

    Subclasses set their parameters, then call `super().__init__`, and implement `_start`, `_predict`, `_progressive`,
    `_joined` and `_left`. `state` is a named tuple of arrays, changed in place.
    """

    parameters: ClassVar[tuple[str, ...]] = ()  # arguments of __init__ after the first two; all are attributes
    has_std: bool = False  # whether forecasts come with a standard deviation
    shares: bool = True  # whether the edges of the graph matter

    graph: TaskGraph
    n_features: int
    state: Any
    samples: int  # learned so far
    _last_round: int = NO_ROUND  # label of the round learned last; a batch carries it to the policy of forgetting

    def __init__(self, graph: TaskGraph, n_features: int) -> None:
        """Check the arguments that all learners have, and start."""
        insist_graph(graph)
        self.graph, self.n_features = graph, count(n_features, "n_features")
        what = f"{type(self).__name__} can't start from this graph"
        with numerical_errors(what, "bring penalty and ridge closer to 1"):
            self._derive(graph)
            self.reset()

    # What a learner implements ---------------------------------------------------------------------------------

    def _derive(self, graph: TaskGraph) -> None:  # noqa: B027 (most learners derive nothing)
        """Compute what follows from the graph and the parameters alone."""

    @abstractmethod
    def _start(self) -> Any:
        """Return the state before the first sample."""

    @abstractmethod
    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        """Forecast into `mean`, and into `std` unless that is empty."""

    @abstractmethod
    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        """Forecast and learn group by group; return how many samples could be learned."""

    def _absorb(self, batch: Batch) -> int:
        """Learn without forecasts; overridden where that saves work."""
        return self._progressive(batch, np.empty(len(batch.X)), np.empty(0))

    def _learn_one(self, x: Floats, y: float, position: int, weight: float, opens: bool) -> bool:
        """Fast path for one sample; returns False, state unchanged, if unsupported."""
        return False

    def _run_or_replay(
        self, run: Callable[[Batch, Floats, Floats], int], batch: Batch, mean: Floats, std: Floats
    ) -> int:
        """Run a batch in which rounds open by moving all weights; undo the move if the round's first sample fails."""
        before = type(self.state)._make(array.copy() for array in self.state)
        learned = run(batch, mean, std)
        if learned < len(batch.X) and batch.opens[learned]:
            self.state = before
            run(batch.before(learned), mean, std)
        return learned

    @abstractmethod
    def _joined(self, graph: TaskGraph) -> Any:
        """Return the state after the last task of `graph` has joined."""

    @abstractmethod
    def _left(self, graph: TaskGraph, position: int) -> Any:
        """Return the state after the task at `position` has left, and `graph` remains."""

    # What a user calls -----------------------------------------------------------------------------------------

    @property
    def tasks(self) -> tuple[TaskKey, ...]:
        """The keys of the tasks."""
        return self.graph.tasks

    def reset(self) -> None:
        """Forget all samples; the tasks stay as they are now."""
        self.state = self._start()
        self.samples = 0
        self._last_round = NO_ROUND

    @overload
    def predict_one(self, x: ArrayLike, *, task: TaskKey, with_std: Literal[False] = False) -> float: ...
    @overload
    def predict_one(self, x: ArrayLike, *, task: TaskKey, with_std: Literal[True]) -> tuple[float, float]: ...
    @overload
    def predict_one(self, x: ArrayLike, *, task: TaskKey, with_std: bool) -> float | tuple[float, float]: ...
    def predict_one(self, x: ArrayLike, *, task: TaskKey, with_std: bool = False) -> float | tuple[float, float]:
        """Forecast one sample, x (n_features,); return the standard deviation too if `with_std`."""
        X, position = self._one_input(x).reshape(1, -1), np.array([self.graph.index(task)])
        mean, std = self._unfilled(1, with_std)
        self._predict(X, position, mean, std)
        if not math.isfinite(mean[0]):
            _finite(mean)
        return (float(mean[0]), float(std[0])) if with_std else float(mean[0])

    @overload
    def predict_many(self, X: ArrayLike, tasks: Tasks, *, with_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict_many(self, X: ArrayLike, tasks: Tasks, *, with_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @overload
    def predict_many(self, X: ArrayLike, tasks: Tasks, *, with_std: bool) -> Floats | tuple[Floats, Floats]: ...
    def predict_many(self, X: ArrayLike, tasks: Tasks, *, with_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Forecast many samples, X (n, n_features) and tasks (n,), learning nothing in between."""
        X = self._inputs(X)
        positions = self.graph.indices(tasks)
        same_length(positions, "tasks", len(X))
        mean, std = self._unfilled(len(X), with_std)
        self._predict(X, positions, mean, std)
        return (_finite(mean), std) if with_std else _finite(mean)

    def learn_one(self, x: ArrayLike, y: float, *, task: TaskKey, weight: float = 1.0, round: Any = None) -> None:
        """Learn one sample; `weight` w counts it w times, `round` is the label or time stamp of its round."""
        x, position = self._one_input(x), self.graph.index(task)
        y, weight = real(y, "y"), not_negative(weight, "weight")
        label = NO_ROUND if round is None else as_label(round)
        opens = label == NO_ROUND or label != self._last_round
        if self._learn_one(x, y, position, weight, opens):
            self.samples += 1
            self._last_round = label
            return
        batch = batch_of_one(x, y, position, weight, opens, label, self._last_round)
        self._account(batch, self._absorb(batch))

    def learn_many(
        self, X: ArrayLike, y: ArrayLike, tasks: Tasks, *, weights: ArrayLike | None = None, rounds: Any = None
    ) -> None:
        """Learn many samples in order; with `rounds`, learners that work round by round learn each as a whole."""
        batch = self._samples(X, y, tasks, weights, rounds, grouped=True)
        self._account(batch, self._absorb(batch))

    @overload
    def progressive(
        self, X: ArrayLike, y: ArrayLike, tasks: Tasks, *, with_std: Literal[False] = False, **options: Unpack[Options]
    ) -> Floats: ...
    @overload
    def progressive(
        self, X: ArrayLike, y: ArrayLike, tasks: Tasks, *, with_std: Literal[True], **options: Unpack[Options]
    ) -> tuple[Floats, Floats]: ...
    @overload
    def progressive(
        self, X: ArrayLike, y: ArrayLike, tasks: Tasks, *, with_std: bool, **options: Unpack[Options]
    ) -> Floats | tuple[Floats, Floats]: ...
    def progressive(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Tasks,
        *,
        rounds: Any = None,
        weights: ArrayLike | None = None,
        interleaved: bool = False,
        with_std: bool = False,
        gains: Floats | None = None,
    ) -> Floats | tuple[Floats, Floats]:
        """Forecast, then learn, all in one call.

        With `rounds` (labels or time stamps, in order) a whole round is forecast before any of it is learned: the
        synchronous protocol, as a forecaster in use must work. Without, or with `interleaved=True` (where `rounds` is
        only the clock), every sample is learned before the next is forecast: the paper's protocol, in which a forecast
        may already know other tasks' values of the same moment.

        Labels rise within a call. If the first equals that of the last round learned it continues that round, else it
        opens a new one. A round split over two calls is forecast in two parts, the second knowing the first. Columns
        are matched by position; the index of a data frame is ignored.

        `gains`, an array of zeros (n, `gain_size`), is filled with what the innovation of each sample is multiplied by
        before it is added to the weights. As gains depend on inputs alone, they also serve filters with the same inputs
        and other targets. Those of a sample that taught nothing stay 0.
        """
        batch = self._samples(X, y, tasks, weights, rounds, grouped=not interleaved)
        if gains is not None:
            batch = batch._replace(gains=self._room_for_gains(gains, len(batch.X)))
        mean, std = self._unfilled(len(batch.X), with_std)
        self._account(batch, self._progressive(batch, mean, std), mean, std)
        return (_finite(mean, std), std) if with_std else _finite(mean)

    def add_task(self, task: TaskKey, similar_to: Mapping[TaskKey, float] | None = None) -> None:
        """Add a task with these similarities to others; learners without a graph ignore `similar_to`."""
        graph = self.graph.join(task, similar_to)
        if not self.shares:
            graph = TaskGraph.independent(graph.tasks)
        with numerical_errors(f"task {task!r} can't join; the model is unchanged", RESCALE):
            self._settle(graph, self._joined(graph))

    def remove_task(self, task: TaskKey) -> None:
        """Remove a task."""
        position = self.graph.index(task)
        graph = self.graph.leave(task)
        with numerical_errors(f"task {task!r} can't leave; the model is unchanged", RESCALE):
            self._settle(graph, self._left(graph, position))

    @property
    def gain_size(self) -> int:
        """How many weights a sample moves: those of its filter; 0 if this learner has no gains."""
        return 0

    @property
    def health(self) -> Health:
        """The number of samples learned, and the numerical condition."""
        return Health(self.samples)

    @property
    def coef(self) -> Floats:
        """The weights (T, d) of a linear learner."""
        raise AttributeError(f"{type(self).__name__} has no coef: it is not linear in its features")

    def __copy__(self) -> Self:
        """Return a copy that shares no state."""
        return copy.deepcopy(self)

    def __ror__(self, features: FeatureMap) -> Learner:
        """Compose: `features | learner`; the learner's `n_features` counts the inputs of the features."""
        from braided.learners.composed import Composed  # a learner itself, so it can't be imported above

        return Composed(features, self) if isinstance(features, FeatureMap) else NotImplemented

    def __repr__(self) -> str:
        """Show the parameters and the number of samples."""
        given = "".join(f", {name}={value!r}" for name, value in self._parameters().items())
        name = type(self).__name__
        return f"{name}({self.graph!r}, n_features={self.n_features}{given}) after {self.samples} samples"

    # The boundary ----------------------------------------------------------------------------------------------

    def with_features(self, n_features: int) -> Self:
        """Return a fresh learner of the same kind and parameters for another number of features."""
        return type(self)(self.graph, n_features, **self._parameters())

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.parameters}

    def _one_input(self, x: Any) -> Floats:
        plain = type(x) is np.ndarray and x.dtype is FLOAT and x.shape == (self.n_features,) and x.flags.carray
        if plain and math.isfinite(sum(x.tolist())):  # the fast path of most calls; a sum may overflow without harm
            return x
        return self._inputs(x, "x", 1)

    def _inputs(self, values: Any, name: str = "X", ndim: int = 2) -> Floats:
        X = floats(values, name, ndim, FILL_MISSING)
        if X.shape[-1] != self.n_features:
            what = "columns" if ndim == 2 else "values"
            raise InputError(f"{name} has {X.shape[-1]} {what}, the model has n_features={self.n_features}")
        return X

    def _samples(self, X: Any, y: Any, tasks: Any, weights: Any, rounds: Any, grouped: bool) -> Batch:
        X, y, positions = self._inputs(X), floats(y, "y", 1, FILL_MISSING), self.graph.indices(tasks)
        weights = np.ones(len(X)) if weights is None else as_weights(weights)
        labels = np.full(len(X), NO_ROUND) if rounds is None else as_labels(rounds)
        for name, column in {"y": y, "tasks": positions, "weights": weights, "rounds": labels}.items():
            same_length(column, name, len(X))
        return Batch(X, y, positions, weights, *grouping(labels, self._last_round, grouped), labels, self._last_round)

    def _room_for_gains(self, gains: Floats, n: int) -> Floats:
        if not self.gain_size:
            raise InputError(f"{type(self).__name__} has no gains: leave them out")
        shape = n, self.gain_size
        if not isinstance(gains, np.ndarray) or gains.shape != shape or gains.dtype != FLOAT or not gains.flags.carray:
            raise InputError(f"gains can't be filled: give np.zeros({shape})")
        return gains

    def _account(self, batch: Batch, learned: int, mean: Floats = NOTHING, std: Floats = NOTHING) -> None:
        self.samples += int(learned)
        if learned:
            self._last_round = int(batch.labels[learned - 1])
        if learned < len(batch.X):
            task = self.tasks[batch.tasks[learned]]
            made = int(batch.ends[np.searchsorted(batch.ends, learned, side="right")])
            raise NumericalError(
                f"{type(self).__name__} broke down at sample {learned} (task {task!r}) and has learned those before "
                "it: scale features and targets to about 1, raise the penalty, or forget more slowly",
                forecasts=mean[:learned].tolist(),
                made=(mean[:made].tolist(), std[:made].tolist()),
            )

    def _unfilled(self, n: int, with_std: bool) -> tuple[Floats, Floats]:
        if with_std and not self.has_std:
            raise InputError(f"{type(self).__name__} has no variance: call it without with_std")
        return np.empty(n), np.empty(n if with_std else 0)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        """Refuse loaded arrays of wrong shapes or values, before a learner of their size is allocated."""
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise InputError(f"{name} is a {type(array).__name__}: it must be an array")

    def _fits(self, state: Any) -> bool:
        """Whether a loaded state has the shapes of a fresh one."""
        return all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(state, self.state, strict=True))

    def _settle(self, graph: TaskGraph, state: Any) -> None:
        self._derive(graph)
        self.graph, self.state = graph, state

    def dump(self) -> dict[str, Any]:
        """Return the content of this learner, parts, numbers and arrays, for `braided.save`."""
        return {
            "graph": self.graph,
            "n_features": self.n_features,
            "parameters": self._parameters(),
            "state": self.state._asdict(),
            "samples": self.samples,
            "last_round": self._last_round,
        }

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the learner whose `dump` this is; raise InputError if it is inconsistent."""
        graph, d = dumped["graph"], count(dumped["n_features"], "n_features")
        insist_graph(graph)
        cls._check_arrays(dumped["state"], graph.n_tasks, d)
        model = cls(graph, d, **dumped["parameters"])
        state = type(model.state)(**dumped["state"])
        if not model._fits(state):
            raise InputError(f"the arrays of this {cls.__name__} do not fit its tasks and features")
        model.state = state
        model.samples = count(dumped["samples"], "samples", least=0)
        model._last_round = stored_integer(dumped["last_round"], "last_round")
        return model


def _finite(mean: Floats, std: Floats = NOTHING) -> Floats:
    if not np.isfinite(mean).all():
        place = int(np.argmin(np.isfinite(mean)))
        message = f"the forecast of sample {place} is {mean[place]}: scale the features to about 1"
        before = mean[:place].tolist()
        raise NumericalError(message, forecasts=before, made=(before, std[:place].tolist()))
    return mean
