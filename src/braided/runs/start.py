"""Start: from settings and a tuning period to a forecaster that has learned nothing yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, final

from braided.errors import FileError, InputError, unreadable
from braided.files import as_json, differing, mark_of, write_whole
from braided.forecasting import Choice, Engine, LearnerEngine, LiveRounds, Origin, Parameters, Position, Trial
from braided.forecasting.auto import Auto, AutoEngine
from braided.forecasting.clock import NEVER, as_stamps
from braided.methods import AUTO, Method, find_method, sees_level, with_level
from braided.printable import counted
from braided.runs.trials import SINGLE, Progress, methods_for, search, silent
from braided.runs.tuning_period import TuningPeriod
from braided.state import load
from braided.tables import Columns
from braided.tuning import How
from braided.validate import count, insist_kinds, share
from braided.version import __version__

CHOICE_MARK = mark_of("choice")
NOT_FOR_AUTO = {  # by option: the setting it gives, if it is one, and why Auto has no use for it
    "tune": ("tune", "which tunes nothing"),
    "search": ("how", "which tunes nothing"),
    "warm_up": ("", "which tunes nothing"),
    "lags": ("lags", "which has its own features"),
    "log": ("logarithm", "which has members that see growth, and scores in the values' own units"),
    "keep_constant": ("keep_constant", "which takes constant streams like any others"),
    "parameters": ("parameters", "which has none to give"),
}


@final
@dataclass(frozen=True)
class Settings:
    """What decides the forecasts of a table: by Auto, or by the best of some methods in a tuning period."""

    methods: tuple[str, ...] = (AUTO.name,)  # or those to choose among; () for `trials.DEFAULT_METHODS`
    auto: Auto = field(default_factory=Auto)
    parameters: Parameters = field(default_factory=dict)  # of the one method, instead of a search
    single: Parameters = field(default_factory=dict)  # of the baseline, likewise
    tune: float = 0.2  # the leading share
    how: How = "halving"
    lags: int | None = None  # nine, or fewer in a short tuning period
    logarithm: bool = False
    coverage: float = 0.9
    without: tuple[str, ...] = ()  # streams to leave out
    robust: bool = True  # wild values have little weight
    keep_constant: bool = False  # streams that never change in the tuning period join later, instead of being refused
    tuned_until: int | None = None  # end of a tuning period elsewhere, as an integer time: forecasts count after it
    model: str = ""  # path of a saved model to start from, instead of all that

    def __post_init__(self) -> None:
        insist_kinds(self, auto=Auto, parameters=dict, single=dict)
        share(self.tune, "tune")
        share(self.coverage, "coverage")
        if self.lags is not None:
            count(self.lags, "lags")
        if self.is_auto:
            self._insist_nothing_to_tune()
            return
        if self.auto != Auto():
            raise InputError(
                "horizon, quantiles, season, timezone, holidays, bounds, sharing, compare and members are options of "
                "Auto: leave them out, or use Auto"
            )
        methods = methods_for(self.methods)  # refuses an unknown one, before anything is read
        if self.parameters and len(self.methods) != 1:
            raise InputError("parameters belong to one method: name it (--method)")
        if self.parameters:
            _checked(methods[0], self.parameters)

    @property
    def is_auto(self) -> bool:
        """Whether Auto forecasts, which needs no tuning period."""
        return self.methods == (AUTO.name,)

    def _insist_nothing_to_tune(self) -> None:
        plain: dict[str, Any] = {one.name: {} if one.name == "parameters" else one.default for one in fields(self)}
        for option, (name, _) in NOT_FOR_AUTO.items():
            if name and getattr(self, name) != plain[name]:
                raise not_for_auto(option)


def not_for_auto(option: str) -> InputError:
    """Return the error of an option that Auto has no use for."""
    why = f"for Auto, {NOT_FOR_AUTO[option][1]}: leave it out, or name methods (--method)"
    return InputError(f"--{option.replace('_', '-')} has no meaning {why}")


def only_auto_knows(names: Sequence[str]) -> InputError:
    """Return the error for a method that can't use columns that are known ahead."""
    return InputError(f"only Auto uses what is known ahead, here {', '.join(names)} (--known): leave it out")


def options_of(settings: Settings) -> dict[str, Any]:
    """Return the options that decide the forecasts, under the names that a user knows."""
    auto = settings.auto
    return {
        "--method": settings.methods,
        "--season": auto.seasons,
        "--timezone": auto.timezone,
        "--holidays": auto.holidays,
        "--min": auto.low,
        "--max": auto.high,
        "--compare": auto.compares,
        "--horizon": auto.horizon,
        "--quantiles": auto.quantiles,
        "--parameters": settings.parameters | {f"{name} (single)": value for name, value in settings.single.items()},
        "--tune": settings.tune,
        "--lags": settings.lags,
        "--log": settings.logarithm,
        "--interval": settings.coverage,
        "--as-is": not settings.robust,
        "--without": settings.without,
        "--keep-constant": settings.keep_constant,
        "--model": settings.model,
    }


def insist_made_with(forecaster: Engine, path: Path, settings: Settings, given: Iterable[str]) -> None:
    """Refuse options of `options_of` that are given, and are not those that a saved forecaster was made with."""
    wanted = options_of(settings)
    held: dict[str, Any] = {"--interval": forecaster.coverage, "--without": forecaster.origin.without}
    if isinstance(forecaster, AutoEngine):
        auto = forecaster.auto
        of_auto = Settings(auto=auto, robust=auto.robust, coverage=forecaster.coverage)
        held = options_of(of_auto) | held
    elif isinstance(forecaster, LearnerEngine):
        preparation, choice = forecaster.preparation, forecaster.origin.choice
        held |= {"--lags": preparation.lags.count, "--log": forecaster.needs_positive, "--as-is": not preparation.clips}
        if choice is not None:
            known = choice.best.method in settings.methods
            held |= {"--method": settings.methods if known else (choice.best.method,)}
            held |= {"--parameters": choice.best.parameters}
        if settings.parameters:
            wanted["--parameters"] = _checked(find_method(settings.methods[0]), settings.parameters)
    for name in given:
        if held.get(name) != wanted[name]:
            raise InputError(
                f"{path} was made {differing(name, held.get(name), wanted[name])}: leave it out, choose another path "
                "(--save), or start again (--fresh)"
            )


def fresh_auto(settings: Settings, source: str, columns: Columns | None, timezone: str | None) -> Engine:
    """Return an engine of Auto that has learned nothing yet, with its origin; a table may know its own time zone."""
    auto = replace(settings.auto, timezone=settings.auto.timezone or timezone, robust=settings.robust)
    position = Position(NEVER, 0, 0)
    origin = Origin(source, columns, None, None, settings.without, position)
    n_extras, n_known = (0, 0) if columns is None else (len(columns.features), len(columns.known))
    return AutoEngine(auto, n_extras=n_extras, n_known=n_known, coverage=settings.coverage, origin=origin)


def choose(
    period: TuningPeriod, settings: Settings, jobs: int | None = 1, log: Path | None = None, progress: Progress = silent
) -> Choice:
    """Return the method and parameters that forecast the tuning period best, or those given."""
    methods = methods_for(settings.methods)
    if not settings.parameters:
        return search(period, methods, settings.how, jobs, log, progress)
    given = Trial(methods[0].name, _checked(methods[0], settings.parameters))
    level = sees_level(given.parameters)
    if settings.single:
        return Choice(given, Trial(SINGLE.name, _checked(SINGLE, settings.single | with_level(level))))
    if methods[0] is SINGLE:
        return Choice(given, given)
    return Choice(given, search(period, [SINGLE], settings.how, jobs, log, progress, [level]).single)


def _checked(method: Method, parameters: Parameters) -> Parameters:
    """Insist on all parameters of the method, and no others."""
    needed = list(dict.fromkeys(name for stage in method.stages for name in stage))
    faults = {
        "lacks": [name for name in needed if name not in parameters],
        "does not know": [name for name in parameters if name not in (*needed, "level")],
    }
    if any(faults.values()):
        said = " and ".join(f"{verb} {', '.join(names)}" for verb, names in faults.items() if names)
        such = ",".join(f"{name}=1" for name in needed)
        raise InputError(f"{method.name} {said}: give all of its parameters, such as {such}; level=1 or 0 may follow")
    level = parameters.get("level", 0.0)
    if level not in (0.0, 1.0):
        raise InputError(f"level is {level:g}: 1 makes a stream's own level a feature, 0 does not")
    return {name: float(parameters[name]) for name in needed} | with_level(bool(level))


def start(
    period: TuningPeriod,
    choice: Choice,
    settings: Settings,
    source: str,
    columns: Columns | None = None,
    is_utc: bool = False,
) -> LearnerEngine:
    """Return a forecaster that has learned nothing yet, beside its baseline, with its origin."""
    method = find_method(choice.best.method)
    alone = choice.best.method == SINGLE.name and choice.best.parameters == choice.single.parameters
    until = NEVER if settings.tuned_until is None else settings.tuned_until
    position = Position(max(int(as_stamps(period.times)[-1]), until), len(period.times), len(period.tasks))
    return LearnerEngine(
        period.build(method, choice.best.parameters),
        period.preparation(period.lags_of(method, choice.best.parameters)),
        single=None if alone else period.build(SINGLE, choice.single.parameters),
        coverage=settings.coverage,
        origin=Origin(source, columns, choice, is_utc, settings.without, position),
    )


def chosen(forecaster: Engine) -> str:
    """Say which method was chosen, and how good it was in the tuning period."""
    choice = forecaster.origin.choice
    if isinstance(forecaster, AutoEngine):
        return forecaster.in_words()
    if choice is None:
        return f"Made by hand: {forecaster.name}."
    best, single = choice.best, choice.single
    given = ", ".join(f"{name} {value:g}" for name, value in best.parameters.items())
    said = f"{find_method(best.method).title} ({given})"
    if best.score is None:
        return f"As given: {said}."
    where = f" of {counted(choice.streams, 'stream')}" if choice.streams else ""
    said = f"Chosen from {counted(choice.tried, 'trial')} on the first {counted(best.rounds, 'round')}{where}: {said}; "
    said += f"error{' of the logarithms' * forecaster.needs_positive} {best.score:.3f} times that of “no change”"
    alone = "broke down" if single.score is None else f"{single.score:.3f}"
    return said + (f", one filter per stream {alone}." if best != single else ".")


def load_forecaster(path: Path) -> Engine:
    """Return a forecaster that was saved; another model is refused."""
    loaded = load_live(path)
    if isinstance(loaded, LiveRounds):
        raise FileError(
            f"{path} holds {loaded.describe()}, and no model yet: send more lines to `braided live --save {path}`"
        )
    return loaded


def load_live(path: Path) -> Engine | LiveRounds:
    """Return a forecaster, or the warm-up of a live run, to resume from; another model is refused."""
    loaded = load(path)
    if isinstance(loaded, LiveRounds):
        return loaded
    if not isinstance(loaded, Engine):
        what = type(loaded).__name__
        raise FileError(f"{path} holds a {what}, not a forecaster: give a model that `braided run` saved")
    insist_origin(loaded, path)
    held = loaded.origin.live
    if held is not None and held.extras.shape[2] != loaded.n_extras:
        raise FileError(f"{path} holds live rounds that do not fit its model: restore it from a copy")
    return loaded


def insist_origin(forecaster: Engine, path: Path) -> None:
    """Refuse a loaded forecaster that was tuned with an unknown method."""
    choice = forecaster.origin.choice
    for trial in () if choice is None else (choice.best, choice.single, *choice.trials):
        try:
            find_method(trial.method)
        except InputError as error:
            raise FileError(f"{path} was tuned with an unknown method ({error}): register it first") from error


def write_choice(path: Path, choice: Choice, period: TuningPeriod) -> None:
    """Write a choice to a file, for `Settings`."""
    until = {"lags": period.lags, "tuned_until": int(as_stamps(period.times)[-1])}
    content = as_json({"braided": __version__} | until | asdict(choice), CHOICE_MARK)
    write_whole({path: content}, CHOICE_MARK, "choose another file (--out)")


def read_choice(path: Path) -> dict[str, Any]:
    """Return the settings that `write_choice` wrote."""
    try:
        held = json.loads(path.read_text("utf-8"))
        return {
            "methods": (held["best"]["method"],),
            "parameters": held["best"]["parameters"],
            "single": held["single"]["parameters"],
            "lags": held["lags"],
            "tuned_until": held["tuned_until"],
        }
    except OSError as error:
        raise unreadable(path, error, "give a file that `braided tune` wrote, or penalty=10,…") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{path} holds no choice that `braided tune` made ({error}): give such a file, or penalty=10,…"
        ) from error
