"""Origin: where a forecaster comes from, which method was chosen for it, and how far its run has got.

All of it is saved with the model. As a file may come from anywhere, every part checks its own fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from braided.errors import InputError
from braided.forecasting.live_rounds import LiveRounds
from braided.tables import Columns
from braided.validate import count, insist_kinds, real, stored_integer

Parameters: TypeAlias = dict[str, float]


@final
@dataclass(frozen=True)
class Trial:
    """A candidate and how well it did."""

    method: str
    parameters: Parameters
    rounds: int = 0  # of the tuning period; 0 where nothing was tried
    score: float | None = None  # mean over the streams of RMSE over that of "no change"; None if it broke down
    samples: int = 0  # of `trials.INFORMATIVE_STREAMS` streams, if there are more

    def __post_init__(self) -> None:
        insist_kinds(self, method=str, parameters=dict)
        for name, value in (*self.parameters.items(), ("score", 0.0 if self.score is None else self.score)):
            real(value, name)
        for name in ("rounds", "samples"):
            count(getattr(self, name), f"{name} of a trial", least=0)


@final
@dataclass(frozen=True)
class Choice:
    """The method and parameters that a search found."""

    best: Trial
    single: Trial  # the best of one filter per stream
    trials: tuple[Trial, ...] = ()  # the best of each method, the best first
    tried: int = 0
    streams: int = 0  # that were tuned on; 0 if all were

    def __post_init__(self) -> None:
        insist_kinds(self, best=Trial, single=Trial, trials=tuple)
        for name in ("tried", "streams"):
            count(getattr(self, name), name, least=0)
        if not all(isinstance(trial, Trial) for trial in self.trials):
            raise InputError("the trials of a choice hold something else")


@final
@dataclass(frozen=True)
class Position:
    """How far a run has got; forecasts are scored from the end of the tuning period on."""

    tuning_end: int  # its last time, as an integer
    tuning_rounds: int  # 0 where a saved model goes on with another table
    tuning_streams: int
    parts: int = 0  # files of forecasts that are complete
    is_finished: bool = False

    def __post_init__(self) -> None:
        stored_integer(self.tuning_end, "tuning_end")
        for name in ("tuning_rounds", "tuning_streams", "parts"):
            count(getattr(self, name), name, least=0)
        insist_kinds(self, is_finished=bool)


@final
@dataclass(frozen=True)
class Origin:
    """What a forecaster remembers of its origin; changed with `dataclasses.replace`.

    >>> Origin(source="wind.csv", without=("north",)).position is None     # made by hand: no run drives it
    True
    """

    source: str = "made by hand"
    columns: Columns | None = None  # of the table or the lines
    choice: Choice | None = None
    is_utc: bool | None = None  # None where it is not known
    without: tuple[str, ...] = ()  # streams that are left out
    position: Position | None = None
    live: LiveRounds | None = None  # received by a live run, and not learned yet

    def __post_init__(self) -> None:
        insist_kinds(self, source=str, columns=Columns | None, choice=Choice | None, is_utc=bool | None)
        insist_kinds(self, without=tuple, position=Position | None, live=LiveRounds | None)
        if not all(isinstance(name, str) for name in self.without):
            raise InputError(f"without is {self.without!r:.80}: it must hold names")
