"""Notes: what a run says of its choice, in a line."""

from __future__ import annotations

from braided.forecasting import Engine
from braided.study import METHODS


def chosen(forecaster: Engine) -> str:
    """Say which method was chosen, and how good it was in the tuning period."""
    choice = forecaster.origin.choice
    if choice is None:
        return f"Made by hand: {type(forecaster.learner).__name__}."
    best, single = choice.best, choice.single
    given = ", ".join(f"{name} {value:g}" for name, value in best.parameters.items())
    said = f"{METHODS[best.method].title} ({given})"
    if best.score is None:
        return f"As given: {said}."
    where = f" of {choice.streams:,} streams" if choice.streams else ""
    said = f"Chosen on the first {best.rounds:,} rounds{where}, of {choice.tried:,} trials: {said}, "
    said += f"{best.score:.3f} of the error of “no change” there"
    return said + (f"; one filter per stream {single.score:.3f}." if best != single else ".")
