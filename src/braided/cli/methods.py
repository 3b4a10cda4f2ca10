"""`braided methods`: what there is to choose among."""

from __future__ import annotations

from braided.cli.console import show_names
from braided.cli.options import Debug


def methods(debug: Debug = False) -> None:
    """List the methods, one line each."""
    from braided.methods import METHODS

    show_names({method.name: method.about for method in METHODS.values()})
