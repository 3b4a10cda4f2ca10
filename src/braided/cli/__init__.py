"""The command line: one file per command, which parses, calls and prints."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from braided.cli import data, forecast, inspect, live, methods, run, stopping, study, tune
from braided.cli.console import say
from braided.cli.encoding import replace_what_terminals_lack
from braided.errors import BraidedError, FileWarning, InputError
from braided.printable import printable
from braided.version import __version__

app = typer.Typer(
    name="braided",
    help="Online multi-task regression: many related streams learned together, one sample at a time.",
    epilog="Exit codes: 0 success, 1 failure, 2 an option or the data can't be used, 130 stopped.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run.run, live.live, tune.tune, forecast.forecast, inspect.inspect, study.study, methods.methods):
    app.command()(command)
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
        code = app(_current(sys.argv[1:]), standalone_mode=False)
        if code == Exit.INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except TyperException as error:
        _fail(f"{error.format_message().replace('Value error, ', '')} (see --help)", Exit.MISUSED)
    except BraidedError as error:
        _fail(str(error), Exit.MISUSED if isinstance(error, InputError) else Exit.FAILED)
    except KeyboardInterrupt:
        stopping.heard()
        _fail("stopped; the same command, without --fresh, resumes from here", Exit.INTERRUPTED)
    except Exception as error:
        _fail(f"{type(error).__name__}: {error}; --debug shows where", Exit.FAILED)


FLAGS = ("--as-is", "--debug", "--fresh", "--keep-constant", "--log")  # options without a value


def _current(arguments: list[str]) -> list[str]:
    """Return the arguments in today's spelling; former ones are noted, and will be refused by the next version."""
    before = ["", *arguments]  # a dash after an option, and not after a flag, is the option's value
    dashes = [k for k, one in enumerate(arguments) if one == "-" and (before[k][:2] != "--" or before[k] in FLAGS)]
    if arguments[:1] == ["run"] and dashes:
        say("`braided run -` is now `braided live`; the former spelling works in this version only")
        arguments = ["live", *(one for place, one in enumerate(arguments) if place not in (0, *dashes))]
    if arguments[:1] in (["run"], ["live"], ["tune"]) and any(one.split("=")[0] == "--task" for one in arguments):
        say("--task is now --stream; the former spelling works in this version only")
        arguments = [f"--stream{one[6:]}" if one.split("=")[0] == "--task" else one for one in arguments]
    return arguments


def _note(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return a `warnings.showwarning` that prints a FileWarning in one line; other warnings as before."""

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
