"""FilterLearner: what MTWRLS and WRLS share; their solver decides how the state is held."""

from abc import abstractmethod
from typing import Any, ClassVar

from braided._compiled.batch import Batch
from braided.forgetting import Policy
from braided.graph import TaskGraph
from braided.learners.base import Health, Learner
from braided.learners.solvers import Setting, Solver
from braided.types import Floats, Ints
from braided.validate import positive


class FilterLearner(Learner):
    """A learner by recursive least squares."""

    parameters: ClassVar[tuple[str, ...]] = ("penalty", "forgetting", "robust", "noise")
    has_std = True
    _solver: Solver

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        penalty: float,
        forgetting: Policy,
        robust: float | None,
        noise: float | None,
    ) -> None:
        self.penalty = positive(penalty, "penalty")
        self.forgetting = forgetting
        self.robust = None if robust is None else positive(robust, "robust")
        self.noise = None if noise is None else positive(noise, "noise")
        super().__init__(graph, n_features)

    @property
    def coef(self) -> Floats:
        """w, the weights (T, d)."""
        return self._solver.coef(self.state)

    @property
    def covariance(self) -> Floats:
        """P, up to the noise: of the stacked weights (dT, dT), or of each task (T, d, d)."""
        return self._solver.covariance(self.state)

    @property
    def gain_size(self) -> int:
        """How many weights a sample moves: those of its filter; 0 with solver="local", which has no gains."""
        return self._solver.gain_size

    @property
    def health(self) -> Health:
        """Samples learned and numerical condition; with solver="local", variances are given the neighbours' weights."""
        return self._solver.health(self.state, self.samples)

    @abstractmethod
    def _solver_of(self, setting: Setting) -> Solver:
        """Return the solver."""

    def _derive(self, graph: TaskGraph) -> None:
        given = self.penalty, self.forgetting, self.robust or 0.0, self.noise or 0.0
        self._solver = self._solver_of(Setting(graph, self.n_features, *given))

    def _start(self) -> Any:
        return self._solver.start()

    def _predict(self, X: Floats, tasks: Ints, mean: Floats, std: Floats) -> None:
        self._solver.predict(self.state, X, tasks, mean, std)

    def _progressive(self, batch: Batch, mean: Floats, std: Floats) -> int:
        if self._solver.moves_weights and batch.opens.any():
            return self._run_or_replay(self._run, batch, mean, std)
        return self._run(batch, mean, std)

    def _run(self, batch: Batch, mean: Floats, std: Floats) -> int:
        return self._solver.progressive(self.state, batch, mean, std)

    def _learn_one(self, x: Floats, y: float, position: int, weight: float, opens: bool) -> bool:
        return self._solver.learn_one(self.state, x, y, position, weight, opens)

    def _joined(self, graph: TaskGraph) -> Any:
        return self._solver.join(self.state, graph)

    def _left(self, graph: TaskGraph, position: int) -> Any:
        return self._solver.leave(self.state, position)

    def _fits(self, state: Any) -> bool:
        return not self._solver.has_fixed_shapes or super()._fits(state)
