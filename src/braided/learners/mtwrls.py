"""MTWRLS: multi-task weighted recursive least squares, Algorithm 1 of the paper.

One recursive least squares filter on the stacked weights of all tasks, whose starting covariance carries the graph:
after every sample it holds the exact solution of the graph-regularised problem.

| symbol | name         | shape    | meaning                                                      |
|--------|--------------|----------|--------------------------------------------------------------|
| λ      | `penalty`    |          | weight of the graph and its ridge against the data           |
| σ      | `forgetting` |          | factor by which the past fades, per sample (or a policy)     |
| A      | `relation`   | (T, T)   | relation matrix of the graph                                 |
| w      | `coef`       | (T, d)   | the tasks' weights, Eq. 17                                   |
| P      | `covariance` | (dT, dT) | inverse of the information, starts as (λA)⁻¹ ⊗ I, Eq. 18     |
| s²     | `noise_variance` |      | minimum of the objective over the effective number of samples|

Costs O(d²T²) time per sample, and O(d²T²) memory. For many tasks on a sparse graph, solver="local" holds the same
weights within a tolerance, at O(d² + d · neighbours) for each task whose weights move, however many tasks there are.
The variance of a forecast is s² (1 + z'Pz); while samples are few, s² is only as good as the prior.

>>> import braided as bd
>>> graph = bd.TaskGraph([[0, 1], [1, 0]], tasks=["north", "south"], ridge=0.1)
>>> model = bd.MTWRLS(graph, n_features=2, penalty=0.5)
>>> model.learn_one([1.0, 2.0], 5.0, task="north")
>>> round(model.predict_one([1.0, 2.0], task="south"), 3)  # no sample yet, but no longer zero
4.46
>>> model.coef.round(3)
array([[0.981, 1.963],
       [0.892, 1.784]])

Reference: Lencione & Von Zuben, arXiv 2308.01938, Algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, final, get_args

from braided._compiled.rls_step import noise_variance
from braided.forgetting import Forgetting, Policy
from braided.forgetting.custom import as_policy
from braided.graph import TaskGraph
from braided.learners import solvers
from braided.learners.parts.filter_learner import FilterLearner
from braided.learners.solvers import CONCRETE_SOLVERS, Setting, Solver, SolverName
from braided.validate import choice, fraction


@final
class MTWRLS(FilterLearner):
    """Multi-task weighted recursive least squares.

    Parameters
    ----------
    graph
        Similarities of the tasks.
    n_features
        d, the length of every input.
    penalty
        λ, above 0: the weight of the graph against the data. The best value depends on the units and the noise of the
        data, so choose it by a progressive run over past data, among powers of ten.
    forgetting
        A number in (0, 1] is the paper's factor: the past fades by it at every sample, of any task, so by its T-th
        power per round. A policy of `braided.forgetting` fades by round, by the clock, or without losing the prior
        (`Restore`, `Directional`, `Drift`). Strong exponential forgetting also fades the prior, and with it the
        coupling between the tasks; a guard (see `Exponential`) keeps the arithmetic sound.
    robust
        k, above 0: an innovation of more than k standard deviations, estimated from its task's innovations so far, is
        given the weight that makes it one of k. Then no sample, however wild, moves any forecast by more than k of that
        forecast's own standard deviations (without the noise). Typical values are 4 and 5; None takes every value as it
        is. The first sample can't be compared with others, unless `noise` is given.
    noise
        The expected standard deviation of the noise, used until there are samples to estimate it from.
    solver
        "dense" updates P at every sample; "blocked" once for several, which is faster from about dT = 64 on and gives
        the same forecasts to rounding. "local" is for thousands of tasks on a sparse graph: instead of P it keeps the
        covariance of each task given its neighbours, and finds the weights by iteration. It needs forgetting that fades
        all tasks alike (`Exponential` per sample or round, `HalfLife`). Its deviations are slightly too small, because
        they take neighbours' neighbours as known (but too large where a loose tolerance leaves error in the noise).
        "auto" selects "local" on a sparse graph from 2,000 weights on if the policy allows it; else "blocked" from 64
        on, unless tasks forget by their own clocks, which would leave nothing pending; else "dense". `uses` is the
        solver in use.
    tolerance
        For solver="local": iterations end when the next would move the forecasts of typical inputs, in the mean square
        over all tasks, by at most this share of the typical innovation. The distance to the exact solution is then of
        that order once the typical innovation has settled. After the first round, whose innovations are those of a
        model that knows nothing, it can be hundreds of times larger, and after the second ten times.
    """

    parameters = (*FilterLearner.parameters, "solver", "tolerance")
    uses: str  # the solver in use: "dense", "blocked" or "local"

    def __init__(
        self,
        graph: TaskGraph,
        n_features: int,
        penalty: float = 1.0,
        forgetting: float | Policy | Forgetting = 1.0,
        *,
        robust: float | None = None,
        noise: float | None = None,
        solver: SolverName = "auto",
        tolerance: float = 2e-4,
    ) -> None:
        self.solver = choice(solver, "solver", get_args(SolverName))
        self.tolerance = fraction(tolerance, "tolerance")
        self.uses = ""
        super().__init__(graph, n_features, penalty, as_policy(forgetting, "MTWRLS"), robust, noise)
        self.forgetting.insist_tasks(self.tasks)

    @property
    def noise_variance(self) -> float:
        """s², the estimated variance of the noise; infinite before the first sample."""
        return float(noise_variance(self.state.totals)[0])

    def _solver_of(self, setting: Setting) -> Solver:
        setting = replace(setting, tolerance=self.tolerance)
        if not self.uses:  # it stays, though tasks may join and leave
            self.uses = solvers.select(setting) if self.solver == "auto" else self.solver
        return solvers.make(self.uses, setting)

    @classmethod
    def _check_arrays(cls, arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
        solvers.check(arrays, n_tasks, d)

    def __repr__(self) -> str:
        """Show the parameters, the number of samples, and the solver in use."""
        return f"{super().__repr__()}, {self.uses}"

    def dump(self) -> dict[str, Any]:
        """Return the content of this learner, and the solver in use."""
        return super().dump() | {"uses": self.uses}

    @classmethod
    def restore(cls, dumped: Mapping[str, Any]) -> Self:
        """Return the learner whose `dump` this is, with the same solver, whatever "auto" would select now."""
        parameters = dumped["parameters"]
        solver = choice(parameters["solver"], "solver", get_args(SolverName))
        policy = as_policy(parameters["forgetting"], "MTWRLS")
        uses = choice(dumped["uses"], "uses", CONCRETE_SOLVERS)
        changed = {"solver": uses, "forgetting": policy.for_any_tasks()}
        model = super().restore({**dumped, "parameters": parameters | changed})
        model.solver, model.forgetting = solver, policy
        model._derive(model.graph)
        return model
