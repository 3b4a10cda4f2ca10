"""What all engines have in common, shown with one that forecasts half the last change again."""

import copy

import numpy as np
import pytest

import braided as bd
from braided.forecasting import Clock, Engine
from braided.forecasting.auto.pending import Pending
from braided.report import Summary, in_words, write_run_report
from braided.report.run.kinds import report_of
from braided.runs import Live, Settings, load_forecaster, run, run_in_memory
from braided.runs.table import learn
from braided.state import dumps, loads
from braided.tables import open_rounds, write_table
from tests.model_files import parts_of, signed
from tests.runs.tables import field

CONTENDERS = ("model", "no change")


class Still(Engine):
    """Forecasts half the last change, from the last value that is known; a stream joins with its first value."""

    saved = Engine.saved | {"last": "_last", "change": "_change", "samples": "_samples"}

    def __init__(self, clock=Clock(), **given):  # noqa: B008 (a frozen dataclass)
        super().__init__((), np.empty(0), contenders=CONTENDERS, **given)
        self._clock, self._samples, self._joined = clock, 0, ()
        self._last, self._change = np.empty(0), np.empty(0)
        self._pending = Pending(1, self.coverage)

    @property
    def tasks(self):
        return self._joined

    @property
    def clock(self):
        return self._clock

    @property
    def samples(self):
        return self._samples

    def _meet(self, new):
        for task in new:
            self._join(task, 2.0)
            self._joined += (task,)
        self._pending.meet(len(new))
        room = np.full(len(new), np.nan)
        self._last, self._change = np.append(self._last, room), np.append(self._change, np.zeros(len(new)))

    def _advance(self, stamps, keys, table, extras, record):
        table, _ = self._arranged(keys, table, extras)
        return [self._step(stamps[[row]], values, record) for row, values in enumerate(table)]

    def _step(self, stamps, values, record):
        places = np.flatnonzero(~np.isnan(values) & ~np.isnan(self._last))
        last, actual, change = self._last[places].copy(), values[places], self._change[places].copy()
        error = actual - last - change
        rows = np.zeros(len(places), np.int64)
        forecast, last_known = (one[None, None] for one in (self._last + self._change, self._last))
        given = self._pending.advance(
            forecast, last_known, last_known, self.record.scale, values[None], np.arange(len(values))
        )
        widths = given.width[0, 0, places]
        if record:
            inside = np.where(np.isnan(widths), np.nan, np.abs(error) <= widths)
            both = np.stack([error, actual - last], axis=1) / self.record.scale[places, None]
            self._score(both, inside, places, rows, 1, int(np.isnan(values).sum()))
        self._count(stamps)
        self._samples += len(places)
        self._change[places] = 0.5 * (actual - last)
        self._last = np.where(np.isnan(values), self._last, values)
        return self._forecasts(stamps[rows], places, actual, last, change, widths)

    def _ahead(self, stamp):
        places = np.flatnonzero(~np.isnan(self._last))
        widths, stamps = self._pending.ahead(self.record.scale)[0][0, places], np.full(len(places), stamp)
        return self._forecasts(stamps, places, np.full(len(places), np.nan), self._last, self._change[places], widths)

    def _outward(self, levels, places):
        return levels

    def _is_silent(self):
        return np.isnan(self._last)

    def dump(self):
        common = super().dump()
        return common | {"parts": common["parts"] | {"clock": self._clock}, "pending": self._pending.dump()}

    @classmethod
    def restore(cls, dumped):
        engine = cls(**dumped["parts"])
        engine._joined = tuple(dumped["state"]["columns"])
        engine._resume(dumped["state"])
        engine._pending.restore(dumped["pending"], len(engine.columns))
        engine._insist_sound()
        return engine


def learned(rounds=100, **given):
    panel = field(missing=0.05)
    engine = Still(Clock.measure(panel.times), **given)
    return engine, panel, engine.advance(panel.times[:rounds], panel.values[:rounds], panel.tasks)


def test_any_engine_can_be_saved_and_goes_on_to_the_bit(tmp_path):
    engine, panel, _ = learned()
    bd.save(engine, tmp_path / "model")
    again, twin = bd.load(tmp_path / "model"), copy.copy(engine)
    assert isinstance(again, Still)
    assert dumps(again) == dumps(engine) == dumps(twin)
    rest = panel.times[100:], panel.values[100:], panel.tasks
    expected = engine.advance(*rest)
    for other in (again, twin):
        np.testing.assert_array_equal(other.advance(*rest).high, expected.high)
        np.testing.assert_array_equal(other.ahead().high, engine.ahead().high)
    assert repr(again) == repr(engine)
    assert repr(engine).startswith("Still() after 400 rounds up to ")


def test_a_file_with_the_record_of_another_engine_or_of_none_is_refused():
    header, arrays = parts_of(dumps(learned()[0]))
    header["model"]["engine"] = "LearnerEngine"
    with pytest.raises(bd.FileError, match="does not hold a valid model"):
        loads(signed(header, arrays))
    header["model"]["engine"] = "Unheard"
    with pytest.raises(bd.FileError, match="holds a 'Unheard', which is not known here"):
        loads(signed(header, arrays))
    header["model"]["engine"] = "Still"
    record = header["model"]["forecaster"]["dict"]["state"]["dict"]["record"]["value"]["dict"]
    for contenders in (["model", "nothing"], ["no change", "model"], [3, "no change"], "no change", None):
        record["contenders"] = contenders
        with pytest.raises(bd.FileError, match="contenders are"):
            loads(signed(header, arrays))
    record["contenders"] = ["model", "single", "no change"]
    with pytest.raises(bd.FileError, match="does not hold a valid model"):
        loads(signed(header, arrays))


def test_any_engine_takes_lines(tmp_path):
    engine, panel, _ = learned(rounds=50)
    twin, made = copy.copy(engine), []
    live = Live(Settings(), engine)
    lines = ["time,site,value"]
    for time, values in zip(panel.times[50:60], panel.values[50:60], strict=True):
        lines += [f"{time},{task},{value}" for task, value in zip(panel.tasks, values, strict=True)]
    for number, line in enumerate(lines, 1):
        made += live.feed(line.replace("nan", "NA"), number)
    live.end()
    twin.advance(panel.times[50:60], panel.values[50:60], panel.tasks)
    np.testing.assert_array_equal(live.forecaster.ahead().forecast, twin.ahead().forecast)
    assert live.samples == twin.samples
    assert len(made) >= 8
    live.save(tmp_path / "model")
    assert load_forecaster(tmp_path / "model").rounds == 60


def test_any_engine_runs_a_table_is_resumed_and_reported(tmp_path):
    engine, panel, _ = learned(rounds=50)
    bd.save(engine, tmp_path / "start")
    write_table(panel, tmp_path / "wind.csv")
    settings = Settings(model=str(tmp_path / "start"))
    done = run(open_rounds(tmp_path / "wind.csv"), settings, tmp_path / "forecasts.csv", tmp_path / "model", every=300)
    in_memory, made = run_in_memory(panel, settings)
    assert done.forecaster.record.counts.sum() == len(made.forecast)
    np.testing.assert_array_equal(done.forecaster.ahead().forecast, in_memory.ahead().forecast)
    learn(engine, open_rounds(panel))
    np.testing.assert_array_equal(engine.ahead().forecast, in_memory.ahead().forecast)
    page = write_run_report(done, tmp_path / "report").read_text("utf-8")
    assert "wind.csv" in page
    assert "One filter per stream" not in page
    assert "one filter" not in report_of(in_memory).errors().columns
    assert report_of(in_memory).facts()["Method"] == "Still"
    assert "Sharing" not in "".join(in_words(in_memory))
    summary, error = Summary.of(in_memory), made.actual - made.forecast
    expected = np.sqrt(np.bincount(made.places, error**2) / summary.counts)
    np.testing.assert_allclose(summary.rmse, expected)


def test_the_intervals_of_any_engine_hold_what_they_promise():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4000, 2)).cumsum(axis=0) * [1.0, 30.0]
    engine = Still(coverage=0.8)
    engine.advance(np.arange(4000), values, ("a", "b"))
    np.testing.assert_allclose(engine.record.covered / engine.record.intervals, 0.8, atol=0.02)
    np.testing.assert_allclose(engine.record.rmse_of("no change") * 2.0, [1.0, 30.0], rtol=0.05)


def test_what_is_refused_changes_no_engine():
    engine, panel, _ = learned()
    before = dumps(engine)
    for change in ({"values": [[np.inf] * 4]}, {"extras": np.zeros((1, 4, 1))}, {"times": panel.times[:1]}):
        given = {"times": panel.times[100:101], "values": panel.values[100:101], "tasks": panel.tasks}
        with pytest.raises(bd.InputError):
            engine.advance(**(given | change))
    assert dumps(engine) == before
    assert engine.advance(panel.times[:0], panel.values[:0]).forecast.size == 0
    with pytest.raises(bd.InputError, match="nothing is known yet"):
        Still().ahead()
