"""Origin: where a forecaster comes from, and how far the run that drives it has got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from braided.errors import InputError
from braided.forecasting.choice import Choice
from braided.forecasting.live_rounds import LiveRounds
from braided.tables import Columns
from braided.validate import count, stored_integer


@final
@dataclass(frozen=True)
class Position:
    """How far a run has got; forecasts count from the end of the tuning period."""

    tuning_end: int  # its last time, as an integer
    tuning_rounds: int  # 0 where a saved model goes on with another table
    tuning_streams: int
    parts: int = 0  # files of forecasts that are complete
    is_finished: bool = False

    def __post_init__(self) -> None:
        """Check everything: a file may come from anywhere."""
        stored_integer(self.tuning_end, "tuning_end")
        for name in ("tuning_rounds", "tuning_streams", "parts"):
            count(getattr(self, name), name, least=0)
        if not isinstance(self.is_finished, bool):
            raise InputError(f"is_finished is {self.is_finished!r:.80}")


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
        """Check everything: a file may come from anywhere."""
        kinds: dict[str, Any] = {"source": str, "columns": Columns | None, "choice": Choice | None, "without": tuple}
        kinds |= {"is_utc": bool | None, "position": Position | None, "live": LiveRounds | None}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name} of the origin is {getattr(self, name)!r:.80}")
        if not all(isinstance(name, str) for name in self.without):
            raise InputError(f"without is {self.without!r:.80}: it must hold names")
