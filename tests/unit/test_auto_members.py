"""Members of one's own: in a run, in lines, saved and loaded; and those that do not work."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import braided as bd
from braided.forecasting.auto import Auto, AutoEngine, Linear, Member, Runner, default_members
from braided.runs import Live, Settings, run_in_memory
from braided.state import dumps, loads
from tests.auto import FULL, OWN, TIED, in_pieces, insist_sound, same, walks
from tests.runs.tables import field, lines_of

LONGEST = 9


@dataclass(frozen=True)
class RunningMedian(Member):
    """Forecasts the median of a stream's last changes."""

    window: int = 5

    def start(self, start):
        return RunningMedianRunner(self, start)


class RunningMedianRunner(Runner):
    def __init__(self, member, start):
        self.window, self.changes = member.window, np.full((LONGEST, start.graph.n_tasks), np.nan)

    def forecast(self, rounds):
        last = self.changes[-self.window :]
        known = ~np.isnan(last).all(axis=0)
        made = np.full((1, last.shape[1]), np.nan)
        made[0, known] = np.nanmedian(last[:, known], axis=0)
        return made

    def learn(self, rounds):
        self.changes = np.vstack([self.changes[1:], rounds.y])

    def join(self, graph, links):
        self.changes = np.hstack([self.changes, np.full((LONGEST, 1), np.nan)])

    def dump(self):
        return {"changes": self.changes}

    def restore(self, dumped):
        if dumped["changes"].shape != self.changes.shape:
            raise bd.InputError("the changes of a running median are of other streams")
        self.changes = dumped["changes"]


MEDIAN = RunningMedian("median", 5)


def test_a_member_of_ones_own_forecasts_what_it_says():
    times, values, tasks = walks(300, 3, missing=0.1)
    engine = AutoEngine(Auto((MEDIAN,)))
    made = engine.advance(times, values, tasks)
    insist_sound(engine, made)
    assert "median" in engine.record.contenders
    unit = engine.ensemble.views[0].units.scale
    changes = np.diff(values, axis=0, prepend=np.nan)
    shown, last = engine.ensemble.runners[0]["median"].changes, changes[-LONGEST:]
    np.testing.assert_allclose(shown * unit, last, rtol=1e-9)
    squares = np.zeros(3)
    for row, place in zip(np.searchsorted(times, made.times), made.places, strict=True):
        if row >= 20:
            known = values[:row, place][~np.isnan(values[:row, place])][-1]
            recent = changes[row - 5 : row, place]
            said = np.nanmedian(recent) if (~np.isnan(recent)).any() else 0.0
            squares[place] += (values[row, place] - known - said) ** 2
    expected = np.sqrt(squares / engine.record.counts) / engine.record.scale
    np.testing.assert_allclose(engine.record.rmse_of("median"), expected, rtol=1e-9)


@pytest.mark.parametrize("members", [(MEDIAN,), (OWN, TIED, MEDIAN), (*FULL, MEDIAN)], ids=["it", "few", "all"])
def test_a_member_of_ones_own_is_saved_and_goes_on_to_the_bit(members):
    times, values, tasks = walks(260, 4, missing=0.05)
    values[:210, 3] = np.nan  # joins late
    whole = AutoEngine(Auto(members))
    expected = whole.advance(times, values, tasks)
    again, made = in_pieces(AutoEngine(Auto(members)), times, values, tasks, [7, 20, 150, 205, 230, 240], saves=True)
    same(expected, made)
    same(whole.ahead(), again.ahead())
    assert isinstance(again.ensemble.runners[0]["median"], RunningMedianRunner)
    assert again.auto == whole.auto


def test_a_member_of_ones_own_runs_tables_and_lines():
    panel = field(steps=60)
    settings = Settings(auto=Auto((OWN, MEDIAN)))
    forecaster, made = run_in_memory(panel, settings)
    live = Live(settings)
    lines = [made for number, line in enumerate(lines_of(panel), 1) for made in live.feed(line, number)] + live.end()
    same(forecaster.ahead(), lines[-1])
    assert len(made.forecast) == 59 * 4
    assert forecaster.record.has("median")


def test_a_saved_member_that_is_not_known_is_named():
    times, values, tasks = walks(60)
    engine = AutoEngine(Auto((MEDIAN,)))
    engine.advance(times, values, tasks)
    data = dumps(engine)
    RunningMedian.__name__ = "Other"
    try:
        with pytest.raises(bd.FileError, match="holds a 'RunningMedian', which is not known here: import the module"):
            loads(data)
    finally:
        RunningMedian.__name__ = "RunningMedian"
    assert loads(data).auto == engine.auto


@dataclass(frozen=True)
class Odd(Member):
    """Forecasts whatever it is told to."""

    makes: str = "nan"

    def start(self, start):
        return OddRunner(self, start)


class OddRunner(RunningMedianRunner):
    def __init__(self, member, start):
        super().__init__(replace(MEDIAN), start)
        self.makes = member.makes

    def forecast(self, rounds):
        made = super().forecast(rounds)
        T = made.shape[1]
        return {
            "nan": np.full((1, T), np.nan),
            "infinity": np.full((1, T), np.inf),
            "absurd": np.full((1, T), -1e200),
            "a vector": np.zeros(T),
            "a number": 0.0,
            "too many streams": np.zeros((1, T + 1)),
            "words": [["a"] * T],
            "nothing": None,
        }[self.makes]


class BatchRunner(OddRunner):
    def progressive(self, rounds):
        return np.zeros((len(rounds.y) + 1, rounds.y.shape[1]))


@dataclass(frozen=True)
class Batch(Member):
    """Forecasts another number of rounds than it was given."""

    def start(self, start):
        return BatchRunner(Odd("odd"), start)


@pytest.mark.parametrize("makes", ["nan", "infinity", "absurd"])
def test_a_member_without_forecasts_sleeps(makes):
    times, values, tasks = walks(120, missing=0.05)
    engine = AutoEngine(Auto((OWN, Odd("odd", makes))))
    made = engine.advance(times, values, tasks)
    insist_sound(engine, made)
    assert not engine.ensemble.used[:, engine.ensemble.names.index("odd")].any()
    assert engine.ensemble.used[:, 0].all()


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (Odd("odd", "a vector"), r"OddRunner made forecasts of shape \(3,\): return \(1, 3\), rounds and streams"),
        (Odd("odd", "a number"), r"OddRunner made forecasts of shape \(\): return \(1, 3\)"),
        (Odd("odd", "too many streams"), r"OddRunner made forecasts of shape \(1, 4\): return \(1, 3\)"),
        (Odd("odd", "words"), r"OddRunner forecast \[\['a', 'a', 'a'\]\]: return numbers of shape \(1, 3\)"),
        (Odd("odd", "nothing"), "OddRunner"),
        (Batch("odd"), r"member 'odd' made forecasts of shape \(21, 3\): return \(20, 3\), rounds and streams"),
    ],
    ids=lambda one: getattr(one, "makes", None),
)
def test_a_member_that_makes_nonsense_is_named(member, said):
    times, values, tasks = walks(60)
    with pytest.raises(bd.InputError, match=said):
        AutoEngine(Auto((member,))).advance(times, values, tasks)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Linear("x", "separate", ("level", "wind")),
            "no features 'wind': there are bias, recent, older, level",
        ),
        (lambda: Linear("x", "all", ("level",)), "sharing is 'all': choose one of 'tied', 'separate', 'pooled'"),
        (lambda: Linear("x", "pooled", ("level",), by="hour"), "by is 'hour': choose one of"),
        (lambda: Linear("x", "pooled", ("level",), on="log"), "on is 'log': choose one of 'plain', 'asinh'"),
        (lambda: Linear("x", "pooled", ("level",), penalty=0.0), "penalty is 0: it must be above 0"),
        (lambda: Linear("x", "pooled", ("level",), forgetting=2.0), "forgetting is 2: it must be above 0"),
        (lambda: Linear("x", "pooled", ("level",), after=3), "after of a Linear is 3"),
        (
            lambda: Linear("x", "tied", ("level",), by="phase"),
            "x is tied and split by phase: only filters that are not",
        ),
        (lambda: Auto((replace(OWN, name="no change"),)), "the name 'no change' is taken by another member or a rule"),
        (lambda: Auto((replace(OWN, name="model"),)), "the name 'model' is taken by another member or a rule"),
        (lambda: Auto((replace(OWN, after="tied"), TIED)), "own past follows 'tied': put that before it"),
        (lambda: Auto((TIED, replace(OWN, after="tied", on="asinh"))), "follows 'tied': put that before it, on the"),
    ],
)
def test_members_that_can_not_work_are_refused_at_once(make, said):
    with pytest.raises(bd.InputError, match=said):
        make()


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("n_seasons", [0, 1, 2])
@pytest.mark.parametrize("n_alike", [0, 3])
@pytest.mark.parametrize(("are_few", "are_many"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("sharing", [False, True])
def test_default_members_fit_together(is_short, n_seasons, n_alike, are_few, are_many, sharing):
    members = default_members(n_seasons, is_short, n_alike, are_few, are_many, sharing)
    assert any(one.looks_ahead for one in members)
    assert Auto(members).members == members
    assert not any(one.plain().is_robust for one in members)
    apart = [one.alone() for one in members]
    assert {one.sharing for one in apart if one is not None} == {"separate"}
    assert sharing or None not in apart
    assert n_seasons or not any(one.by for one in members)


def test_members_of_ones_own_share_nothing_without_sharing():
    times, values, tasks = walks(120)
    other = values.copy()
    other[:, 1] = np.random.default_rng(9).normal(size=120).cumsum()
    pooled = Linear("pooled", "pooled", ("bias", "recent", "mean"))
    for sharing in (True, False):
        made = [AutoEngine(Auto((pooled,), sharing=sharing)).advance(times, one, tasks) for one in (values, other)]
        first = [one.forecast[one.places == 0] for one in made]
        assert np.array_equal(*first, equal_nan=True) == (not sharing)


def test_without_robust_members_a_wild_value_does_more():
    times, values, tasks = walks(300)
    values[150, 0] = 1e4
    errors = []
    for robust in (True, False):
        made = AutoEngine(Auto(robust=robust, seasons=())).advance(times, values, tasks)
        own = (made.places == 0) & (made.times > times[165])
        errors.append(np.sqrt(np.mean((made.actual - made.forecast)[own] ** 2)))
    assert errors[0] < errors[1]
