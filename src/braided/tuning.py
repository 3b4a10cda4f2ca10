"""Tuning: one search over the grid of a method, exhaustive or by successive halving.

A *grid* search lets every candidate run to the end. *Halving* starts all of them on a short piece, and lets the better
third go on to a piece three times as long, until a few run to the end: mostly the same choice, for a small part of the
time (successive halving, Jamieson & Talwalkar, arXiv 1502.07943). Each run starts from scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final

import numpy as np

from braided.forecasting import Parameters, Trial
from braided.methods import Method

How: TypeAlias = Literal["halving", "grid"]
Attempt: TypeAlias = Callable[[list[Parameters], int], list[Trial]]  # runs candidates on that many rounds

KEEP_ONE_IN = 3  # candidates, for the next piece
FINALISTS = 5  # that run to the end, about
SHORTEST_PIECE = 100  # rounds


def by_score(trial: Trial) -> float:
    """Return the score, infinite for a candidate that broke down."""
    return np.inf if trial.score is None else trial.score


@final
@dataclass(frozen=True)
class Tuner:
    """How to search: which forgetting factors, on how many rounds, and which trial is better (the lower rank)."""

    forgetting: tuple[float, ...]
    rounds: int
    how: How = "grid"
    rank: Callable[[Trial], float] = field(default=by_score)

    def pieces(self, candidates: int) -> list[tuple[int, int]]:
        """Return how many candidates run on how many rounds, the shortest piece first."""
        rungs = 0
        while (
            self.how == "halving"
            and candidates // KEEP_ONE_IN ** (rungs + 1) >= FINALISTS
            and self.rounds // KEEP_ONE_IN ** (rungs + 1) >= SHORTEST_PIECE
        ):
            rungs += 1
        shares = [KEEP_ONE_IN**rung for rung in range(rungs + 1)]
        return [(-(-candidates // share), self.rounds // shares[-1 - rung]) for rung, share in enumerate(shares)]

    def n_trials(self, method: Method) -> int:
        """Return how many trials a method takes."""
        pools = (len(list(method.candidates(stage, {}, self.forgetting))) for stage in method.stages)
        return sum(candidates for pool in pools for candidates, _ in self.pieces(pool))

    def tune(self, method: Method, attempt: Attempt, fixed: Parameters | None = None) -> Trial:
        """Return the best candidate, stage by stage; all have the `fixed` parameters, too. The first of equals wins."""
        best = Trial(method.name, {})
        for stage in method.stages:
            pool = [one | (fixed or {}) for one in method.candidates(stage, best.parameters, self.forgetting)]
            trials: list[Trial] = []
            for candidates, rounds in self.pieces(len(pool)):
                trials = sorted(attempt(pool[:candidates], rounds), key=self.rank)
                pool = [trial.parameters for trial in trials]
            best = min([best, *trials[:1]], key=self.rank)
        return best
