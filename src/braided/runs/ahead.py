"""Ahead: rounds whose times lie too far in the future are set aside until enough of them have arrived.

One line with a wrong date must not move the clock of a run, or all correct lines after it would be late. But after an
outage, or when a sender changes its step, far times are correct: then no other line arrives between them.
"""

from __future__ import annotations

from typing import NamedTuple, final

from braided.errors import InputError
from braided.tables.lines import Row

ROUNDS_TO_BELIEVE = 3  # in a row, each at most the limit after the one before
MAX_ROUNDS_ASIDE = 10  # then accepted whatever their steps, so that no input is set aside for ever


class SetAsideError(InputError):
    """A line is not used yet, as its time lies too far ahead."""


class Kept(NamedTuple):
    """A round that was set aside, and its number of lines."""

    row: Row
    lines: int


@final
class Ahead:
    """The rounds that were set aside since the last line that was not."""

    def __init__(self, rows: list[Row]) -> None:
        self.rounds = [Kept(row, 0) for row in rows]

    def keep(self, row: Row, number: int, limit: int) -> list[Kept]:
        """Set a row aside, or return the rounds to accept now, with this one as the last."""
        rounds = [kept for kept in self.rounds if kept.row.time <= row.time]  # a later one was wrong
        if rounds and rounds[-1].row.time == row.time:
            last = rounds.pop()
            last.row.insist_new(row, number)
            rounds.append(Kept(last.row.with_more(row), last.lines + 1))
        else:
            rounds.append(Kept(row, 1))
        self.rounds = rounds
        first = len(rounds) - 1
        while first and rounds[first].row.time - rounds[first - 1].row.time <= limit:
            first -= 1
        if len(rounds) - first >= ROUNDS_TO_BELIEVE or len(rounds) >= MAX_ROUNDS_ASIDE:
            self.rounds = []
            return rounds[first if len(rounds) - first >= ROUNDS_TO_BELIEVE else 0 :]
        return []
