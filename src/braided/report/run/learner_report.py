"""The report of a learner: tuned by a run or made by hand, beside one filter per stream."""

from __future__ import annotations

import json

import numpy as np

from braided.forecasting import Choice, LearnerEngine
from braided.forgetting import Exponential
from braided.kernels import Kernel
from braided.learners import MTWRLS, Learner
from braided.learners.composed import Composed
from braided.methods import METHODS, Method, sees_level
from braided.printable import counted
from braided.report.common.table import SYMBOLS, Table, brief, several, value_of
from braided.report.run.engine_report import NAMES_IN_FACTS, EngineReport, ties_of
from braided.report.run.versus import percent
from braided.runs.trials import FORGETTING, SINGLE
from braided.runs.tuning_period import ROBUST_BEYOND

MANY_UNUSUAL = 2.0  # per cent of the values
OUTER = {"penalty": {1e-10, 1e10}}  # not counted as ends of the range: they switch the penalty, or learning, off
NATURAL_ENDS = {"forgetting": 1.0, "ridge": 1.0}  # no value beyond them makes sense
HOMES: dict[type, str] = {Exponential: "bd.", Kernel: "bd.kernels."}  # of arguments of learners


class LearnerReport(EngineReport):
    """What is said of a learner, of the choice that led to it, and of one filter per stream."""

    engine: LearnerEngine

    @property
    def choice(self) -> Choice | None:
        """How it was chosen; None if it was made by hand."""
        return self.engine.origin.choice

    @property
    def method(self) -> Method:
        """The method that was chosen, if one was."""
        return super().method if self.choice is None else METHODS[self.choice.best.method]

    def sentences_of_page(self) -> list[str]:
        """Return what is found, and what may lie beyond the range searched."""
        return self.in_words() + ([] if self.choice is None else at_the_edge(self.choice))

    def _sharing(self) -> list[str]:
        said = super()._sharing()
        if "single" not in self.engine.contenders:
            if self.choice is not None and any(METHODS[trial.method].shares for trial in self.choice.trials):
                said = ["Sharing did not help in the tuning period, so each stream has its own filter."]
            elif not self.engine.learner.shares:
                said = ["Each stream has its own filter."]
        return said + self._parts()

    def _parts(self) -> list[str]:
        """Say what tied weights and the neighbours' changes gain by themselves, in the tuning period."""
        trials = self.choice.trials if self.choice else ()
        scores = {trial.method: trial.score for trial in trials if trial.score is not None}
        alone, names = scores.get("wrls"), {"mt-wrls": "tied weights alone"}
        names |= {
            "wrls-neighbours": "the neighbours' changes and the gap to their level alone",
            "mt-wrls-neighbours": "both",
        }
        if not alone or not all(scores.get(name) for name in names):
            return []
        parts = [f"{words} {percent(100.0 * (1.0 - scores[name] / alone))}" for name, words in names.items()]
        return [f"In the tuning period{', of logarithms' * self.engine.needs_positive}: {', '.join(parts)}."]

    def _trouble(self) -> list[str]:
        said, unusual = super()._trouble(), self.engine.learner.health.unusual
        if unusual:
            share = 100.0 * unusual / self.engine.samples
            hint = "; if they are right, try --as-is" * (share > MANY_UNUSUAL)
            off = f"More than {ROBUST_BEYOND:g} deviations off, and given less weight"
            said.append(f"{off}: {counted(unusual, 'value')} ({share:.1f} %){hint}.")
        return said

    def _baselines(self) -> dict[str, str]:
        lags = self.engine.preparation.lags
        beyond = ", and from where a stream is relative to its neighbours" * (lags.gap and not lags.level)
        return {
            "One filter per stream": f"{SINGLE.title} on the stream's own last changes{' and level' * lags.level}, "
            f"tuned in the same period: any further gain comes from the other streams{beyond}."
        }

    def python(self, model: str = '"model.braided"') -> str:
        """Return the Python that loads the model, and makes the same one from scratch."""
        learner, graph, ties = self.engine.learner, "old.tasks", []
        if learner.shares:
            graph = "graph"
            ties = [f"graph = bd.TaskGraph(old.graph.similarity, old.tasks, ridge={learner.graph.ridge!r})"]
        lines = [
            "from dataclasses import replace\n",
            super().python(model),
            *ties,
            f"learner = {_call(learner, graph)}",
            f"preparation = replace(old.preparation, lags=bd.{self.engine.preparation.lags!r})",
            "new = bd.forecasting.LearnerEngine(learner, preparation)  # the same from scratch",
        ]
        return "\n".join(lines)

    def tables_of_page(self) -> list[Table]:
        """Return what was tried."""
        return [] if self.choice is None else [trials(self.choice, self.engine.needs_positive)]

    def facts(self) -> dict[str, str]:
        """Return what the model is, what it has learned, and how healthy it is."""
        return super().facts() | {"Health": _health(self.engine.learner)}

    def _made_of(self) -> dict[str, str]:
        lags = self.engine.preparation.lags
        features = [f"the last {counted(lags.count, 'change')}"]
        features += ["its level"] * lags.level
        features += [f"the last {lags.neighbours} of the neighbours' mean"] * bool(lags.neighbours)
        features += ["the gap to their level"] * lags.gap + ["a constant"] * lags.bias
        extras = self.engine.n_extras
        features += [f"{counted(extras, 'further column')}, standardised"] * bool(extras)
        scale = "each stream's typical change is 1" + ", that of its logarithm" * self.engine.units.logarithm
        return super()._made_of() | {
            "Method": f"{self.method.title}: {self.method.about}",
            "Parameters": ", ".join(f"{name} {value}" for name, value in self._parameters()),
            "Ties": self._ties(),
            "Features": ", ".join(features),
            "Units": f"{scale} (measured in the tuning period)",
        }

    def _parameters(self) -> list[tuple[str, str]]:
        if self.choice is not None:
            return [(name, value_of(value)) for name, value in self.choice.best.parameters.items()]
        learner = self.engine.learner
        return [(name, repr(getattr(learner, name))) for name in learner.parameters]

    def _ties(self) -> str:
        """Say to how many others each stream is tied, and the solver in use."""
        learner = self.engine.learner
        solver = f', solver "{learner.uses}"' if isinstance(learner, MTWRLS) else ""
        if not learner.shares:
            return "none: each stream has its own weights"
        return f"each stream to {ties_of(self.engine.graph)}{solver}"


def facts_of_learner(learner: Learner) -> dict[str, str]:
    """Return what a learner is, and what it has learned, where no engine drives it."""
    return {"Learner": f"{learner!r}", "Streams": several(learner.tasks, NAMES_IN_FACTS), "Health": _health(learner)}


def _health(learner: Learner) -> str:
    health, said = learner.health, []
    if not np.isnan(health.largest_variance):
        size = f"{health.largest_variance:.2g} times that of the noise, {health.spread:.2g} times the smallest"
        said = [f"largest variance of a weight {size}"]
        said += [f"covariance rebuilt: {health.guarded:,}"] * bool(health.guarded)
    said += [f"{counted(health.dictionary, 'input')} kept"] * bool(health.dictionary)
    said += [f"far off, and given less weight: {counted(health.unusual, 'value')}"] * bool(health.unusual)
    return "; ".join(said) or "nothing to report"


def _call(learner: Learner, graph: str) -> str:
    if isinstance(learner, Composed):
        inner = learner.learner.with_features(learner.n_features)
        return f"bd.{learner.features!r} | {_call(inner, graph)}"
    values = {name: getattr(learner, name) for name in learner.parameters}
    given = "".join(f", {name}={HOMES.get(type(value), '')}{value!r}" for name, value in values.items())
    return f"bd.{type(learner).__name__}({graph}, n_features={learner.n_features}{given})"


def trials(choice: Choice, logarithm: bool = False) -> Table:
    """Return what a search tried in the tuning period, with the choice on top; `logarithm` says what errors are of."""
    listed = [choice.best, *choice.trials, choice.single]
    shown = {json.dumps([trial.method, trial.parameters]): trial for trial in listed}.values()
    rounds = choice.best.rounds
    names = [name for name in SYMBOLS if any(name in trial.parameters for trial in shown)]
    rows = []
    for trial in shown:
        given = trial.parameters
        score = "–" if not trial.rounds else "broke" if trial.score is None else brief(trial.score)
        values = (value_of(given[name]) if name in given else "" for name in names)
        rows.append((METHODS[trial.method].title, *values, score))
    error = "error of the logarithms" if logarithm else "error"
    symbols = ", ".join(f"{SYMBOLS[name]} {name}" for name in names if SYMBOLS[name] != name)
    tried = (
        f"The best of each method, of {counted(choice.tried, 'trial')}" if choice.tried else "The parameters were given"
    )
    return Table(
        name="tried",
        title=f"Tried on the first {counted(rounds, 'round')}" if rounds else "As given",
        group="other",
        columns=("Method", *(SYMBOLS[name] for name in names), "error"),
        rows=tuple(rows),
        note=f"{tried}; in bold the choice. {symbols}; {error} over “no change”, mean over the streams."
        + " All see the level of a stream as well as its last changes." * sees_level(choice.best.parameters),
        best_first=True,
    )


def at_the_edge(choice: Choice) -> list[str]:
    """Say which parameters lie at an end of the range searched."""
    best, said = choice.best, []
    for name, value in best.parameters.items() if choice.tried else ():
        grids = [stage[name] for stage in METHODS[best.method].stages if name in stage]
        offered = {value for grid in grids for value in (grid or FORGETTING)} - OUTER.get(name, set())
        ends = {min(offered): "smallest", max(offered): "largest"} if len(offered) > 1 else {}
        if value in ends and value != NATURAL_ENDS.get(name):
            beyond = [value_of(far) for far in OUTER.get(name, ()) if (far < value) == (ends[value] == "smallest")]
            but = "".join(f" but {far}" for far in beyond)
            said.append(f"{name} {value_of(value)} is the {ends[value]} tried{but}")
    return [f"{', '.join(said).capitalize()}: a better one may lie beyond."] if said else []
