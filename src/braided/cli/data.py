"""`braided data`: the data that come with the package, and loaders for other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braided.cli.console import show_names
from braided.cli.options import BUILT_IN, Debug
from braided.errors import InputError
from braided.printable import printable

app = typer.Typer(help="List the data that come with the package, write them as a table, load WIND Toolkit files.")


@app.callback(invoke_without_command=True)
def _list(context: typer.Context) -> None:
    """List the data that come with the package, and the loaders."""
    if context.invoked_subcommand is not None:
        return
    from braided.datasets import EMBEDDED, open_panel

    panels = [open_panel(name) for name in (*EMBEDDED, "synthetic")]
    show_names(
        {panel.name: f"{panel!r}; {panel.source}" for panel in panels}
        | {"a file": "CSV or Parquet, long or wide: braided run FILE, braided study --data FILE"}
        | {"wind-toolkit": "NREL's CSV, SAM .srw or HDF5: braided data wind-toolkit --help"}
    )


@app.command()
def export(
    name: Annotated[str, typer.Argument(help=f"{BUILT_IN}.")],
    out: Annotated[Path, typer.Argument(help="A CSV or Parquet file to write.")],
    debug: Debug = False,
) -> None:
    """Write data that come with the package as a long table."""
    from braided.datasets import open_panel
    from braided.tables import write_table

    panel = open_panel(name)
    write_table(panel, out)
    print(f"{panel!r} written to {printable(out.resolve())}")


@app.command()
def wind_toolkit(
    files: Annotated[list[Path], typer.Argument(help="Files of NREL's WIND Toolkit (CSV, .srw, HDF5), or folders.")],
    out: Annotated[Path, typer.Option(help="A CSV or Parquet file to write.")] = Path("wind-toolkit.parquet"),
    height: Annotated[int, typer.Option(help="Metres above ground.")] = 100,
    near: Annotated[str, typer.Option(help="A point: latitude,longitude in degrees.")] = "",
    sites: Annotated[int | None, typer.Option(help="Number of sites, the nearest to the point.", min=1)] = None,
    within_km: Annotated[float | None, typer.Option(help="Sites within this distance of the point.")] = None,
    start: Annotated[str | None, typer.Option(help="First day or moment, such as 2012-01-01.")] = None,
    end: Annotated[str | None, typer.Option(help="Last day or moment, such as 2012-03-31.")] = None,
    debug: Debug = False,
) -> None:
    """Turn WIND Toolkit files into a long table that `run` and `study` read."""
    from braided.datasets import read_wind_toolkit
    from braided.tables import write_table

    where = None
    try:
        if near:
            latitude, longitude = map(float, near.split(","))
            where = latitude, longitude
    except ValueError as error:
        raise InputError(f"--near is {near!r}: write latitude,longitude, such as 25.76,-80.19") from error
    panel = read_wind_toolkit(files, height=height, near=where, sites=sites, within_km=within_km, start=start, end=end)
    write_table(panel, out)
    print(f"{panel!r} written to {printable(out.resolve())}")
