"""Choice: the method and parameters that a search found, with the score of each method's best candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from braided.errors import InputError
from braided.validate import count, real

Parameters: TypeAlias = dict[str, float]


@final
@dataclass(frozen=True)
class Trial:
    """A candidate and how well it did."""

    method: str
    parameters: Parameters
    rounds: int = 0  # of the tuning period; 0 where nothing was tried
    score: float | None = None  # mean over the streams of RMSE over that of "no change"; None if it broke down
    samples: int = 0  # of `tuning.INFORMATIVE_STREAMS` streams, if there are more

    def __post_init__(self) -> None:
        """Check everything: a file may come from anywhere."""
        if not isinstance(self.method, str) or not isinstance(self.parameters, dict):
            raise InputError(f"a trial has method {self.method!r:.80} and parameters {self.parameters!r:.80}")
        for name, value in (*self.parameters.items(), ("score", 0.0 if self.score is None else self.score)):
            real(value, name)
        for name in ("rounds", "samples"):
            count(getattr(self, name), f"{name} of a trial", least=0)


@final
@dataclass(frozen=True)
class Choice:
    """The result of a search."""

    best: Trial
    single: Trial  # the best of one filter per stream
    trials: tuple[Trial, ...] = ()  # the best of each method, the best first
    tried: int = 0
    streams: int = 0  # that were tuned on; 0 if all were

    def __post_init__(self) -> None:
        """Check everything: a file may come from anywhere."""
        if not isinstance(self.trials, tuple) or not all(
            isinstance(trial, Trial) for trial in (self.best, self.single, *self.trials)
        ):
            raise InputError("a choice holds something other than trials")
        for name in ("tried", "streams"):
            count(getattr(self, name), name, least=0)
