"""`braided methods`: what there is to choose among."""

from __future__ import annotations

from braided.cli.console import console
from braided.cli.options import Debug


def methods(debug: Debug = False) -> None:
    """List the methods, one line each."""
    from rich.table import Table as RichTable

    from braided.study import METHODS

    table = RichTable(box=None, show_header=False, pad_edge=False)
    for method in METHODS.values():
        table.add_row(f"[bold]{method.name}[/]", method.about)
    console().print(table)
