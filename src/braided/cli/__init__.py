"""The command line: parse, call, print."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from braided.cli import data, stopping, streams, study
from braided.cli.console import say
from braided.cli.encoding import replace_what_terminals_lack
from braided.errors import BraidedError, FileWarning, InputError
from braided.printable import printable
from braided.version import __version__

app = typer.Typer(
    name="braided",
    help="Online multi-task regression: many related streams learned together, one sample at a time.",
    epilog="Exit codes: 0 all is well, 1 something failed, 2 an option or the data can't be used, 130 stopped.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (streams.run, streams.tune, streams.forecast, streams.inspect, study.study):
    app.command()(command)
app.command("methods")(study.list_methods)
app.add_typer(data.app, name="data")


class Exit(IntEnum):
    """How the program ends."""

    FAILED = 1
    MISUSED = 2
    INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(f"braided {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


def main() -> None:
    """Run the command line; an error is one line on standard error."""
    replace_what_terminals_lack()
    stopping.listen()
    warnings.showwarning = _note(warnings.showwarning)
    try:
        code = app(standalone_mode=False)
        if code == Exit.INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except TyperException as error:
        _fail(f"{error.format_message()} (--help says more)", Exit.MISUSED)
    except BraidedError as error:
        _fail(str(error), Exit.MISUSED if isinstance(error, InputError) else Exit.FAILED)
    except KeyboardInterrupt:
        stopping.heard()
        _fail("stopped; the same command, without --fresh, goes on from here", Exit.INTERRUPTED)
    except Exception as error:
        _fail(f"{type(error).__name__}: {error}; --debug shows where", Exit.FAILED)


def _note(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return a showwarning that prints a FileWarning in one line, and any other warning as before."""

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, FileWarning):
            say(str(message))
        else:
            otherwise(message, category, *rest)

    return show


def _fail(message: str, code: Exit) -> None:
    if "--debug" in sys.argv:
        raise  # the error being handled
    print(f"braided: {printable(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(code)
