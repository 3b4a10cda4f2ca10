"""How MT-WRLS holds its state: exactly, as one filter of all weights, or locally, task by task."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from braided._compiled.local_solve import Local
from braided.learners.solvers.exact import ExactSolver
from braided.learners.solvers.filter_solver import SeparateSolver, Setting
from braided.learners.solvers.local import LocalSolver

Solver: TypeAlias = ExactSolver | SeparateSolver | LocalSolver  # all have the same methods
SolverName: TypeAlias = Literal["auto", "dense", "blocked", "local"]
CONCRETE_SOLVERS = ("dense", "blocked", "local")  # "auto" selects one of them
BLOCKED_FROM = 64  # weights of all tasks
LOCAL_FROM = 2000


def select(setting: Setting) -> str:
    """Return the solver for solver="auto": by the number of weights, the graph and the policy."""
    n_weights, policy = setting.graph.n_tasks * setting.n_features, setting.forgetting
    if setting.graph.is_sparse and n_weights >= LOCAL_FROM and policy.is_uniform:
        return "local"
    return "blocked" if n_weights >= BLOCKED_FROM and not policy.has_own_clocks else "dense"


def make(name: str, setting: Setting) -> Solver:
    """Return the solver of that name."""
    return LocalSolver(setting) if name == "local" else ExactSolver(setting, is_blocked=name == "blocked")


def check(arrays: Mapping[str, Any], n_tasks: int, d: int) -> None:
    """Refuse loaded arrays that are not the state of a solver."""
    kind = LocalSolver if arrays.keys() == set(Local._fields) else ExactSolver
    kind.check(arrays, n_tasks, d)


__all__ = ["CONCRETE_SOLVERS", "SeparateSolver", "Setting", "Solver", "SolverName", "check", "make", "select"]
