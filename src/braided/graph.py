"""TaskGraph: the similarities of tasks, and the relation matrix A that every multi-task learner is built on.

| symbol | name         | shape  | meaning                                                     |
|--------|--------------|--------|-------------------------------------------------------------|
| S      | `similarity` | (T, T) | edge weights, zero diagonal                                 |
| γ      | `ridge`      |        | how strongly the weights of every task are drawn to zero    |
| A      | `relation`   | (T, T) | γI + D − S, D the row sums of S (`form="laplacian"`)        |
| A⁻¹    | `inverse`    | (T, T) | prior covariance between the tasks' weights, always dense   |

`form="penalty"` is the matrix of the penalty that the paper prints, Σ‖w_t s(t,j) − w_j s(j,t)‖² over both directions:
A_tt = γ + 2 Σ_j s(t,j)², A_tj = −2 s(t,j) s(j,t). There, similarities may be asymmetric or negative.

>>> import numpy as np
>>> graph = TaskGraph([[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]], tasks=["a", "b", "c"], ridge=0.1)
>>> graph.relation
array([[ 1.1, -1. ,  0. ],
       [-1. ,  1.6, -0.5],
       [ 0. , -0.5,  0.6]])
>>> graph.neighbours("b")
{'a': 1.0, 'c': 0.5}
>>> graph.join("d", {"c": 0.3}).tasks
('a', 'b', 'c', 'd')

Reference: Lencione & Von Zuben, arXiv 2308.01938, Eqs. 10 and 23.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, cast, final, runtime_checkable

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from braided.correlation import correlations, largest_correlations
from braided.errors import InputError
from braided.matrices import (
    Matrix,
    frozen,
    insist_it_fits,
    insist_positive_definite,
    inverse,
    numerical_errors,
    square,
    symmetric,
)
from braided.types import Floats, Ints
from braided.validate import choice, count, floats, not_negative, positive, real

TaskKey: TypeAlias = str | int
Tasks: TypeAlias = Iterable[TaskKey] | NDArray[Any]  # keys, one per sample
Form: TypeAlias = Literal["laplacian", "penalty"]
Sign: TypeAlias = Literal["reject", "clip", "absolute"]

GOLDEN = 0.6180339887  # its multiples, modulo 1, are spread evenly


@runtime_checkable
class Table(Protocol):
    """A data frame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The column names, one per task."""


@runtime_checkable
class Indexed(Protocol):
    """A data frame of pandas, whose rows have names."""

    @property
    def index(self) -> Any:
        """The row names."""


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class TaskGraph:
    """An immutable graph of tasks with weighted edges; dense or sparse like the similarities given.

    Parameters
    ----------
    similarity
        (T, T) array, data frame or SciPy sparse array; the diagonal is ignored.
    tasks
        One key per task, strings or integers; by default the columns of a data frame, else 0 … T−1.
    ridge
        γ, above 0. It matters: values from 0.01 to 1 span most of the effect of sharing.
    form
        "laplacian" (the paper's A) or "penalty" (the paper's printed penalty; similarities may be asymmetric).
    sign
        What to do with negative similarities: "clip" sets them to 0, "absolute" drops the sign, "reject" keeps them
        and raises an error if they make the relation matrix indefinite.
    """

    similarity: Matrix
    tasks: tuple[TaskKey, ...]
    ridge: float
    form: Form
    sign: Sign

    def __init__(
        self,
        similarity: Any,
        tasks: Iterable[TaskKey] | None = None,
        ridge: float = 0.1,
        form: Form = "laplacian",
        sign: Sign = "reject",
    ) -> None:
        """Check every argument, then freeze the arrays."""
        if tasks is None and isinstance(similarity, Table):
            tasks = _names(similarity)
        S = square(similarity)
        keys = task_keys(range(S.shape[0]) if tasks is None else tasks)
        if len(keys) != S.shape[0]:
            raise InputError(f"{len(keys)} tasks for a similarity of shape {S.shape}: give one key per row")
        choice(form, "form", ("laplacian", "penalty"))
        choice(sign, "sign", ("reject", "clip", "absolute"))
        if sign == "clip":
            S = S.maximum(0.0) if sparse.issparse(S) else S.clip(0.0)
        elif sign == "absolute":
            S = abs(S)
        if form == "laplacian":
            S = symmetric(S, keys)
        ridge = positive(ridge, "ridge")
        with np.errstate(over="ignore"):  # an infinite sum is refused below
            strongest = float((abs(S) if form == "laplacian" else 2.0 * (S * S)).sum(axis=1).max())
        if ridge < 1e-13 * strongest:
            what = "similarities" if form == "laplacian" else "squares of similarities"
            raise InputError(f"ridge {ridge:g} is too small beside {what} that add up to {strongest:g}: raise it")
        values = {"similarity": frozen(S), "tasks": keys, "ridge": ridge, "form": form, "sign": sign}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        what = "the eigenvalues of the relation matrix can't be found"
        with numerical_errors(what, 'raise ridge, or use sign="clip"'):
            insist_positive_definite(self.relation, S, form)

    @classmethod
    def from_history(
        cls,
        history: Any,
        tasks: Iterable[TaskKey] | None = None,
        *,
        measure: Literal["spearman", "pearson"] = "spearman",
        difference: bool = True,
        k: int | None = None,
        ridge: float = 0.1,
        form: Form = "laplacian",
        sign: Sign = "clip",
    ) -> TaskGraph:
        """Similarities are correlations of past values, an array or data frame (steps, tasks).

        `measure` is "spearman" or "pearson", of first differences unless `difference=False`. A missing value (NaN)
        leaves out that step for its pairs. A pair has similarity 0 if one series is constant or they share fewer than
        three steps; a warning names tasks without any similarity.

        With `k`, for many tasks, the graph is sparse: each task is joined with the k most similar ones, and with those
        that have it among theirs. Ranks are then among a task's own steps, and a missing one counts as its mean.

        >>> rng = np.random.default_rng(0)
        >>> common = rng.normal(size=(100, 1)).cumsum(axis=0)
        >>> graph = TaskGraph.from_history(common + 0.1 * rng.normal(size=(100, 2)), tasks=["a", "b"])
        >>> round(graph.neighbours("a")["b"], 2)
        0.97
        """
        choice(measure, "measure", ("spearman", "pearson"))
        if isinstance(history, Table):
            tasks = history.columns if tasks is None else tasks
            history = np.stack([_column(history, name) for name in history.columns], axis=1)
        ranks = measure == "spearman"
        similarity: Matrix
        if k is None:
            similarity = correlations(history, ranks, difference)
        else:
            similarity = largest_correlations(history, count(k, "k"), ranks, difference, absolute=sign != "clip")
        graph = cls(similarity, tasks, ridge=ridge, form=form, sign=sign)
        silent = [graph.tasks[place] for place in np.flatnonzero(abs(similarity).sum(axis=1) == 0.0)]
        if silent and graph.n_tasks > 1:
            what = "no similarity to any other task (constant, too short, or unlike all)"
            warnings.warn(f"{what}: {listed(silent)}", stacklevel=2)
        return graph

    @classmethod
    def nearest(
        cls,
        positions: Any,
        k: int = 6,
        tasks: Iterable[TaskKey] | None = None,
        *,
        scale: float | None = None,
        ridge: float = 0.1,
        form: Form = "laplacian",
    ) -> TaskGraph:
        """Sparse graph that joins each task with the k nearest (Euclidean), and with those that have it among theirs.

        `positions` is (T, dimensions), or a mapping from key to coordinates; project longitudes and latitudes
        first. Edges weigh 1, or exp(−½ (distance / scale)²) with a `scale`.

        >>> TaskGraph.nearest({"a": [0, 0], "b": [0, 1], "c": [5, 0]}, k=1).neighbours("a")
        {'b': 1.0, 'c': 1.0}
        """
        from scipy.spatial import KDTree  # slow to import, and only needed here

        if isinstance(positions, Mapping):
            tasks = list(positions) if tasks is None else tasks
            positions = list(positions.values())
        points = floats(positions, "positions", ndim=2)
        n_tasks = len(points)
        if n_tasks == 0:
            raise InputError("positions has no rows: a graph needs at least one task")
        k = min(count(k, "k"), n_tasks - 1)
        width = positive(scale, "scale") if scale is not None else np.inf
        distances, others = (a.reshape(n_tasks, k + 1) for a in KDTree(points).query(points, k=range(1, k + 2)))
        if not np.isfinite(distances).all():
            raise InputError("positions are so far apart that their distances overflow: give them in a larger unit")
        # With equal positions a task need not be its own first match: leave out itself, or else the farthest.
        itself = others == np.arange(n_tasks)[:, None]
        itself[~itself.any(axis=1), -1] = True
        weights = np.exp(-0.5 * (distances[~itself] / width) ** 2)
        rows = np.repeat(np.arange(n_tasks), k)
        directed = sparse.csr_array((weights, (rows, others[~itself])), shape=(n_tasks, n_tasks))
        return cls(directed.maximum(directed.T), tasks, ridge=ridge, form=form)

    @classmethod
    def independent(cls, tasks: Iterable[TaskKey] | TaskGraph, *, ridge: float = 1.0) -> TaskGraph:
        """No edges: every task on its own. Of a graph, only the keys are used; the default ridge makes A = I."""
        if isinstance(tasks, TaskGraph) and tasks.ridge == ridge and tasks.is_sparse and not tasks.similarity.nnz:
            return tasks
        keys = tasks.tasks if isinstance(tasks, TaskGraph) else task_keys(tasks)
        return cls(sparse.csr_array((len(keys), len(keys)), dtype=np.float64), keys, ridge=ridge)

    @classmethod
    def pooled(
        cls, tasks: Iterable[TaskKey], *, strength: float = 1.0, ridge: float = 0.1, form: Form = "laplacian"
    ) -> TaskGraph:
        """All pairs of tasks have similarity `strength`."""
        keys = task_keys(tasks)
        similarity = np.full((len(keys), len(keys)), not_negative(strength, "strength"))
        return cls(similarity, keys, ridge=ridge, form=form)

    def typical_links(self) -> dict[TaskKey, float]:
        """Return the average similarity, for a task that joins and is known no better.

        To all tasks, or on a sparse graph to as many as others have, spread over it.
        """
        n_tasks, links = self.n_tasks, self.similarity
        if not self.is_sparse:
            return dict.fromkeys(self.tasks, float(links.sum()) / max(n_tasks * (n_tasks - 1), 1))
        n_links = -(-links.nnz // (2 * n_tasks))
        phase = GOLDEN * n_tasks % 1.0  # so that the next task to join meets others
        places = (int(n_tasks * (k + phase) / n_links) for k in range(n_links))
        return {self.tasks[place]: float(links.sum()) / links.nnz for place in places}

    @property
    def n_tasks(self) -> int:
        """T."""
        return len(self.tasks)

    @property
    def is_sparse(self) -> bool:
        """Whether similarity and relation are SciPy sparse arrays."""
        return bool(sparse.issparse(self.similarity))

    @cached_property
    def relation(self) -> Matrix:
        """A, symmetric and positive definite; stored as the similarities are."""
        S = self.similarity
        if self.form == "laplacian":
            degrees, links = S.sum(axis=1), S  # Eq. 23
        else:
            degrees, links = 2.0 * (S * S).sum(axis=1), 2.0 * (S * S.T)  # Eq. 10, both directions
        diagonal = np.asarray(degrees) + self.ridge
        return frozen(sparse.diags_array(diagonal).tocsr() - links if self.is_sparse else np.diag(diagonal) - links)

    @property
    def dense_relation(self) -> Floats:
        """A, dense whatever the storage."""
        return cast(Floats, self.relation.toarray() if self.is_sparse else self.relation)

    @cached_property
    def inverse(self) -> Floats:
        """A⁻¹, dense."""
        insist_it_fits(self.n_tasks, "the inverse of the relation", 'use MTWRLS(solver="local"), which needs none')
        with numerical_errors("the relation matrix can't be inverted", "raise ridge, or scale similarities to about 1"):
            return cast(Floats, frozen(inverse(self.dense_relation)))

    @cached_property
    def _index(self) -> dict[TaskKey, int]:
        return {key: position for position, key in enumerate(self.tasks)}

    @cached_property
    def _keys_are_positions(self) -> bool:
        return all(type(key) is int and key == place for place, key in enumerate(self.tasks))

    def index(self, task: TaskKey) -> int:
        """Position of a task."""
        if type(task) in (str, int) or (isinstance(task, np.integer | str | int) and not isinstance(task, bool)):
            position = self._index.get(task)
            if position is not None:
                return position
        raise self._unknown(task, "")

    def indices(self, tasks: Tasks) -> Ints:
        """Positions of many tasks."""
        if isinstance(tasks, str) or not isinstance(tasks, Iterable):
            raise InputError(f"tasks is {tasks!r}: give one key per sample")
        if isinstance(tasks, np.ndarray):
            if tasks.dtype.kind not in "iuUOT":
                raise InputError(f"tasks has dtype {tasks.dtype}: keys are strings or integers")
            tasks = tasks.ravel()
            is_whole = tasks.dtype.kind == "i" and tasks.size > 0
            if is_whole and self._keys_are_positions and tasks.min() >= 0 and tasks.max() < self.n_tasks:
                return tasks.astype(np.int64)
            tasks = tasks.tolist()
        keys = list(tasks)
        try:
            return np.fromiter(map(self._index.__getitem__, keys), np.int64, len(keys))
        except (KeyError, TypeError):
            place, key = next((i, k) for i, k in enumerate(keys) if not _known(k, self._index))
            raise self._unknown(key, f" at position {place}") from None

    def _unknown(self, task: object, place: str) -> InputError:
        return InputError(f"unknown task {task!r}{place}: known are {listed(self.tasks)}; add_task adds a new one")

    def neighbours(self, task: TaskKey) -> dict[TaskKey, float]:
        """The neighbours of a task, with their similarities."""
        row = self.similarity[[self.index(task)]]
        columns = row.indices if self.is_sparse else np.flatnonzero(row)
        values = row.data if self.is_sparse else row[0, columns]
        return {self.tasks[j]: float(s) for j, s in sorted(zip(columns, values, strict=True))}

    def join(self, task: TaskKey, similar_to: Mapping[TaskKey, float] | None = None) -> TaskGraph:
        """Return the graph with one more task and its similarities to others; `sign` applies to them, too."""
        if similar_to is not None and not isinstance(similar_to, Mapping):
            raise InputError(f"similar_to is {similar_to!r}: give a dictionary from key to similarity")
        if _known(task, self._index):
            raise InputError(f"task {task!r} exists already: give the new one another key")
        links = np.zeros(self.n_tasks)
        for other, similarity in (similar_to or {}).items():
            links[self.index(other)] = real(similarity, f"similarity to {other!r}")
        if self.is_sparse:
            edge = sparse.csr_array(links[None, :])
            enlarged = sparse.block_array([[self.similarity, edge.T], [edge, None]], format="csr")
        else:
            enlarged = np.block([[self.similarity, links[:, None]], [links, np.zeros(1)]])
        return replace(self, similarity=enlarged, tasks=(*self.tasks, task))

    def leave(self, task: TaskKey) -> TaskGraph:
        """Return the graph without a task."""
        if self.n_tasks == 1:
            raise InputError(f"task {task!r} is the last one: a graph needs at least one task")
        stay = np.delete(np.arange(self.n_tasks), self.index(task))
        return replace(self, similarity=self.similarity[stay][:, stay], tasks=tuple(self.tasks[i] for i in stay))

    def __copy__(self) -> TaskGraph:
        """Return the graph itself: it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TaskGraph:
        """Return the graph itself: it is immutable."""
        return self

    def __repr__(self) -> str:
        """Show the numbers of tasks and edges, and the parameters."""
        edges = (self.similarity.nnz if self.is_sparse else np.count_nonzero(self.similarity)) // 2
        storage = "sparse" if self.is_sparse else "dense"
        return f"TaskGraph({self.n_tasks} tasks, {edges} edges, ridge={self.ridge:g}, form={self.form!r}, {storage})"


def insist_graph(graph: Any) -> None:
    """Refuse what is not a TaskGraph."""
    if not isinstance(graph, TaskGraph):
        raise InputError(f"graph is a {type(graph).__name__}: make a TaskGraph of it first")


def _names(table: Any) -> Any:
    """The columns of a table of similarities; rows with the same names (pandas) must be in the same order."""
    rows, columns = list(table.index) if isinstance(table, Indexed) else [], list(table.columns)
    if rows != columns and set(rows) == set(columns):
        raise InputError(f"similarity has rows {rows} and columns {columns}: give both the same order")
    return columns


def task_keys(tasks: Iterable[Any], what: str = "task") -> tuple[TaskKey, ...]:
    """Check that the keys are distinct strings or integers, and return them as Python objects.

    `what` is the word for a task in messages.
    """
    if isinstance(tasks, set | frozenset) or not isinstance(tasks, Iterable):
        raise InputError(f"{what}s is {tasks!r}: give the keys in order, as a list")
    keys: list[TaskKey] = []
    for key in [tasks] if isinstance(tasks, str) else tasks:
        plain = key.item() if isinstance(key, np.generic) else key
        if isinstance(plain, bool) or not isinstance(plain, str | int):
            raise InputError(f"{what} {key!r} is a {type(key).__name__}: a {what}'s key is a string or an integer")
        if isinstance(plain, str) and not plain.isascii() and any("\ud800" <= letter <= "\udfff" for letter in plain):
            raise InputError(f"{what} {key!r} holds half of a surrogate pair: its key must be text that UTF-8 holds")
        keys.append(plain)
    if not keys:
        raise InputError(f"no {what}s: a graph needs at least one")
    if len(set(keys)) < len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise InputError(f"{what} {twice!r} appears twice: give each {what} its own key")
    return tuple(keys)


def _column(table: Any, name: Any) -> Floats:
    column = np.asarray(table[name])
    if column.dtype.kind not in "fiuO" or any(isinstance(value, str) for value in column[:1]):
        raise InputError(f"column {name!r} of the history has dtype {column.dtype}: give numbers, one column per task")
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"column {name!r} of the history holds a value that is not a number: {error}") from error


def _known(key: object, index: Mapping[TaskKey, int]) -> bool:
    try:
        return key in index
    except TypeError:
        return False


def listed(keys: Iterable[object], most: int = 5) -> str:
    """Return the keys separated by commas, and how many there are if not all are shown."""
    names = [repr(key) for key in keys]
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
