"""The tuning period, and the search on it."""

import itertools
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from joblib import effective_n_jobs

import braided as bd
from braided.report import Summary
from braided.runs import Settings, Trial, TuningPeriod, choose, run_in_memory, search, trials
from braided.runs.start import start
from braided.runs.trials import FORGETTING, methods_for, rank
from braided.study import METHODS
from braided.tables import Chunk
from tests.runs.tables import field

MT = {"forgetting": 1.0, "penalty": 1.0, "ridge": 0.1}


def head_of(panel, lags=3, extras=0, **options):
    shape = (*panel.values.shape, extras)
    more = np.random.default_rng(0).normal(size=shape)
    return TuningPeriod.of(Chunk(panel.times, panel.tasks, panel.values, more), lags, **options)


@pytest.fixture(scope="module")
def head():
    return head_of(field(steps=350))


def test_the_grid_finds_the_best_of_all_candidates(head):
    method = METHODS["wrls"]
    choice = search(head, [method], "grid")
    scores = {}
    for known, level in itertools.product(method.candidates(method.stages[0], {}, FORGETTING), ({}, {"level": 1.0})):
        candidate = known | level
        run = bd.evaluate(head.build(method, candidate), head.samples(bd.Lags(3, fill=True, level=bool(level)), 350))
        score = run.scores.mean("rmse_to_no_change") if run.broke_at is None else np.inf
        scores[json.dumps(candidate)] = Trial("wrls", candidate, 350, score, 349 * 4)
    best = min(scores.values(), key=lambda trial: rank(trial))
    assert choice.best == best
    assert choice.tried == len(scores) == 132
    assert choice.single == choice.best


def independent(steps=400, tasks=6, memory=0.7, summed=False):
    """Streams that have nothing to do with each other, and return to a mean, or their changes do."""
    rng = np.random.default_rng(3)
    values = np.zeros((steps, tasks))
    for step in range(1, steps):
        values[step] = memory * values[step - 1] + rng.normal(size=tasks)
    values = values.cumsum(axis=0) if summed else values
    return bd.tables.Panel("independent", tuple("abcdef"), np.arange(steps), values, "synthetic")


@pytest.mark.parametrize("level", [True, False])
def test_the_level_is_a_feature_where_it_helps_one_filter_per_stream(level):
    head = head_of(independent(summed=not level))
    choice = search(head, methods_for(()))
    assert len(choice.trials) == 4
    assert all(("level" in trial.parameters) == level for trial in (choice.single, *choice.trials))
    forecaster = start(head, choice, Settings(()), "")
    assert forecaster.preparation.lags.level == level
    assert json.loads(json.dumps(asdict(choice)))["single"]["parameters"].get("level") == (1.0 if level else None)


def test_nothing_is_gained_where_there_is_nothing_to_share():
    forecaster, _ = run_in_memory(independent(1000), Settings((), lags=3))
    assert forecaster.preparation.lags.level
    gains = Summary.of(forecaster).gains if forecaster.single else np.zeros(6)
    assert abs(gains.mean()) < 1.0  # per cent; with a yardstick that is not told the level it was 4


def test_streams_that_return_nowhere_are_not_expected_to():
    """The mean of the tuning period tells where a stream went in it; knowing it, one would forecast a return."""
    forecaster, _ = run_in_memory(independent(1000, memory=1.0), Settings((), lags=3))
    assert Summary.of(forecaster).means["to_no_change"] < 1.002


def test_the_level_can_be_given(head):
    single = {"forgetting": 1.0, "penalty": 1.0}
    for given, level in (({}, False), ({"level": 0.0}, False), ({"level": 1.0}, True)):
        for more in ({"single": single}, {}):
            choice = choose(head, Settings(("mt-wrls",), parameters=MT | given, **more))
            assert ("level" in choice.best.parameters) == ("level" in choice.single.parameters) == level
    assert choose(head, Settings(("wrls",), parameters=single | {"level": 1.0})).single.parameters == single | {
        "level": 1.0
    }
    with pytest.raises(bd.InputError, match=r"level is 0\.5: 1 makes a stream's own level a feature"):
        choose(head, Settings(("mt-wrls",), parameters=MT | {"level": 0.5}))


def test_halving_ends_near_the_best_for_a_part_of_the_work():
    head = head_of(field(steps=1000))
    methods = [METHODS["mt-wrls"]]
    grid, halving = search(head, methods, "grid"), search(head, methods, "halving")
    assert halving.best.score <= 1.005 * grid.best.score
    assert halving.best.rounds == grid.best.rounds == 1000


def test_the_best_of_several_methods_is_taken_and_one_filter_per_stream_always_tuned(head):
    choice = search(head, methods_for(("mt-wrls", "mogd")))
    assert {trial.method for trial in choice.trials} == {"mt-wrls", "mogd", "wrls"}
    assert choice.best == min((t for t in choice.trials if t.method != "wrls"), key=lambda t: t.score)
    assert choice.single.method == "wrls"
    assert json.loads(json.dumps(asdict(choice)))["best"]["method"] == choice.best.method


@pytest.mark.slow
def test_several_processes_choose_the_same(head):
    methods = methods_for(("wrls", "wrls-neighbours"))
    assert search(head, methods, jobs=2) == search(head, methods, jobs=1)


@pytest.mark.parametrize(("worth", "jobs"), [(0.0, effective_n_jobs(-1)), (1e9, 1)])
def test_several_processes_are_started_where_they_are_worth_it(head, worth, jobs, monkeypatch):
    asked = []

    def parallel(jobs, **_):
        asked.append(jobs)
        return lambda calls: [function(*args, **more) for function, args, more in calls]

    monkeypatch.setattr("joblib.Parallel", parallel)
    monkeypatch.setattr(trials, "PARALLEL_SECONDS", worth)
    choice = search(head, methods_for(("wrls",)), jobs=None)
    assert set(asked) == {jobs}
    asked.clear()
    assert search(head, methods_for(("wrls",)), jobs=3) == choice
    assert set(asked) == {3}


def test_a_search_that_was_stopped_goes_on(head, tmp_path, monkeypatch):
    methods, log = methods_for(("wrls",)), tmp_path / "new" / "trials"
    expected = search(head, methods)
    done = []

    def stop(what, share):
        done.append(share)
        if share > 0.35:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(head, methods, log=log, progress=stop)
    kept = log.read_text()
    with log.open("a") as file:
        file.write('{"method": "wr')  # cut short
    ran = []
    monkeypatch.setattr("braided.runs.trials._trials", _counting(ran))
    assert search(head, methods, log=log) == expected
    assert 0 < sum(ran) <= expected.tried - 30
    assert log.read_text().startswith(kept)
    ran.clear()
    assert search(head, methods, log=log) == expected
    assert sum(ran) == 0
    with pytest.raises(bd.FileError, match="holds trials of other data or settings"):
        search(head_of(field(steps=300)), methods, log=log)
    log.write_text("{}\n[1]\n")
    with pytest.raises(bd.FileError, match="is not a file of trials"):
        search(head, methods, log=log)


def _counting(ran):
    from braided.runs.trials import _trials

    def counted(head, method, pool, rounds):
        ran.append(len(pool))
        return _trials(head, method, pool, rounds)

    return counted


def test_a_hidden_layer_and_a_kernel_can_be_chosen(head):
    for name in ("mt-wrls-elm", "oslssvr", "madmm-tuned"):
        method = METHODS[name]
        grid = {key: (values or FORGETTING)[0] for stage in method.stages for key, values in stage.items()}
        parameters = grid | ({"forgetting": 1.0} if "forgetting" in grid else {})
        choice = choose(head, Settings((name,), parameters=parameters, single={"forgetting": 1.0, "penalty": 1.0}))
        forecaster = start(head, choice, Settings(()), "")
        forecaster.advance(head.times, head.values, head.tasks)
        assert (forecaster.record.counts == 350 - 1).all()
        assert np.isfinite(forecaster.ahead().forecast).all()


def test_lags_are_fewer_in_a_short_head():
    panel = field(steps=20)
    assert head_of(panel, lags=None).lags == 5
    assert head_of(field(steps=100), lags=None).lags == 9


def test_a_task_with_too_few_values_is_left_to_join_later():
    panel = field(steps=100)
    values = panel.values.copy()
    values[5:, 1] = np.nan
    head = TuningPeriod.of(Chunk(panel.times, panel.tasks, values, np.empty((100, 4, 0))), 3)
    assert head.tasks == (panel.tasks[0], *panel.tasks[2:])


def test_what_can_not_be_tuned_on_is_refused():
    panel = field(steps=60)

    def head(change=lambda values: values, steps=60, lags=3, tasks=4):
        values = change(panel.values[:steps, :tasks].copy())
        return TuningPeriod.of(
            Chunk(panel.times[:steps], panel.tasks[:tasks], values, np.empty((steps, tasks, 0))), lags
        )

    def constant(values):
        values[:, 2] = 7.0
        return values

    with pytest.raises(
        bd.InputError, match="has 5 rounds, the longest stream in it 5 values; a model with 3 lags needs 6"
    ):
        head(steps=5)
    with pytest.raises(bd.InputError, match="'site 3' never changes in the tuning period"):
        head(constant)
    with pytest.raises(bd.InputError, match="only one stream, 'site 1',"):
        head(tasks=1)
    whole = head()
    with pytest.raises(
        bd.InputError, match=r"graph-ridge can't be run by itself, as it is refitted on all data.*choose among mt-wrls"
    ):
        methods_for(("graph-ridge",))
    with pytest.raises(bd.InputError, match="no-change can't be run by itself, as it is a baseline"):
        methods_for(("no-change",))
    with pytest.raises(bd.InputError, match="did you mean 'mt-wrls'"):
        methods_for(("mt-wrl",))
    with pytest.raises(bd.InputError, match="jobs is 0"):
        search(whole, methods_for(()), jobs=0)
    with pytest.raises(bd.InputError, match="mt-wrls lacks forgetting, ridge: give all of its parameters"):
        choose(whole, Settings(("mt-wrls",), parameters={"penalty": 1.0}))
    with pytest.raises(bd.InputError, match="parameters belong to one method"):
        Settings((), parameters={"penalty": 1.0})
    for change, message in (
        ({"tune": 1.0}, "tune is 1"),
        ({"coverage": 0.0}, "coverage is 0"),
        ({"lags": 0}, "lags"),
    ):
        with pytest.raises(bd.InputError, match=message):
            Settings((), **change)


def test_many_streams_are_tied_to_those_they_are_most_alike_to():
    few, many = (head_of(field(steps=60, sites=sites), lags=9) for sites in (30, 31))
    assert not few.graph.is_sparse
    assert few.build(METHODS["mt-wrls"], MT).uses == "blocked"
    assert many.graph.is_sparse
    expected = bd.TaskGraph.from_history(many.units.inward(many.values), many.tasks, k=20).similarity
    np.testing.assert_array_equal(many.graph.similarity.toarray(), expected.toarray())
    assert many.build(METHODS["mt-wrls"], MT).uses == many.build(METHODS["mt-wrls-neighbours"], MT).uses == "local"


def test_many_streams_are_tuned_on_regions_of_their_graph(monkeypatch):
    panel = bd.datasets.wind_field(seed=1, steps=40, sites=500)
    head = head_of(panel, lags=3, extras=2)
    part = head.sample
    assert part.sample is part
    assert len(part.tasks) == 300
    assert part.scale is head.scale
    kept = head.graph.indices(part.tasks)
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(part.values, head.values[:, kept])
    np.testing.assert_array_equal(part.extras, head.extras[:, kept])
    inside = head.graph.similarity[kept][:, kept].nnz / head.graph.similarity[kept].nnz
    spread = np.random.default_rng(0).permutation(500)[:300]
    assert inside > 1.1 * head.graph.similarity[spread][:, spread].nnz / head.graph.similarity[spread].nnz
    monkeypatch.setattr(trials, "SHORTEST_PIECE", 10)
    monkeypatch.setattr(trials, "TRIAL_SECONDS", 0.01)
    choice = search(head, methods_for(("wrls",)))
    assert choice.best.rounds == trials.affordable(part, [METHODS["wrls"]]) == 25
    assert choice.streams == 300
    assert choice == replace(search(part, methods_for(("wrls",))), streams=300)
    assert search(part, methods_for(("wrls",))).streams == 0


def test_regions_are_spread_over_the_graph_and_the_first_ones_whole():
    rng, sizes = np.random.default_rng(2), (99, 201, 300, 100, 200)
    of = np.repeat(np.arange(5), sizes)
    values = (rng.normal(size=(60, 5))[:, of] + 0.05 * rng.normal(size=(60, 900))).cumsum(axis=0)
    head = TuningPeriod.of(Chunk(np.arange(60), tuple(f"s{k}" for k in range(900)), values, np.empty((60, 900, 0))), 3)
    head.__dict__["graph"] = bd.TaskGraph((of[:, None] == of) * 1.0, head.tasks)
    kept = of[head.graph.indices(head.sample.tasks)]
    assert np.bincount(kept).tolist() == [99, 1, 100, 100]  # from streams 0, 300 and 600, and then one more


def test_streams_that_are_like_none_are_tuned_on_as_well():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 400)).cumsum(axis=0)
    values[:, 10:] = np.where(np.arange(30)[:, None] % 2, np.nan, values[:, 10:])  # no change known, so alike to none
    chunk = Chunk(np.arange(30), tuple(f"s{k}" for k in range(400)), values, np.empty((30, 400, 0)))
    head = TuningPeriod.of(chunk, 9)
    assert head.graph.similarity[10:].nnz == 0
    assert len(head.sample.tasks) == 300


def test_a_trial_on_some_rounds_knows_the_first_ones_only():
    panel = field(steps=300)
    later = panel.values.copy()
    later[150:] += 3.0 * np.random.default_rng(9).normal(size=(150, 4)).cumsum(axis=0)
    one, other = (head_of(replace(panel, values=values)) for values in (panel.values, later))
    other.__dict__["units"], other.__dict__["graph"] = one.units, one.graph  # which all of the head decides
    parameters = {"forgetting": 1.0, "penalty": 1.0}
    a, b = (trials._trials(head, METHODS["wrls"], [parameters], 100)[0] for head in (one, other))
    assert a == b
    assert a.samples == 99 * 4


def test_rounds_are_counted_without_the_rows_that_stand_for_gaps():
    panel = field(steps=200)
    times = np.arange(200) + np.repeat(np.arange(20), 10) * 5  # a gap after every tenth round
    head = TuningPeriod.of(Chunk(times, panel.tasks, panel.values, np.empty((200, 4, 0))), 2)
    assert len(head.samples(bd.Lags(2, fill=True), 200).y) == 20 * 9 * 4
    assert len(head.samples(bd.Lags(2, fill=True), 100).y) == 10 * 9 * 4


def test_neither_units_nor_graph_reach_across_a_gap():
    panel = field(steps=200)
    times, shifted = np.arange(200), panel.values.copy()
    times[60:] += 500
    shifted[60:, 0] += 300.0
    plain, moved = (
        TuningPeriod.of(Chunk(times, panel.tasks, values, np.empty((200, 4, 0))), 2)
        for values in (panel.values, shifted)
    )
    np.testing.assert_allclose(moved.units.scale, plain.units.scale)
    np.testing.assert_allclose(moved.graph.similarity, plain.graph.similarity)


def test_halving_starts_on_short_pieces(tmp_path):
    search(head_of(field(steps=300)), [METHODS["wrls"]], log=tmp_path / "log")
    rounds = [json.loads(line)["rounds"] for line in (tmp_path / "log").read_text().splitlines()[1:]]
    assert (rounds.count(100), rounds.count(300), rounds[0], rounds[-1]) == (132, 44, 100, 300)


def test_trials_of_other_times_are_of_no_use(tmp_path):
    panel = field(steps=120)
    search(head_of(panel), [METHODS["wrls"]], log=tmp_path / "log")
    times = panel.times.copy()
    times[50:] += np.timedelta64(1, "D")
    with pytest.raises(bd.FileError, match="trials of other data"):
        search(head_of(replace(panel, times=times)), [METHODS["wrls"]], log=tmp_path / "log")


def test_short_memories_win_only_by_more_than_luck():
    long, short = (
        Trial("wrls", {"forgetting": sigma, "penalty": 1.0}, 100, score, 400)
        for sigma, score in ((1.0, 0.99), (0.95, 0.96))
    )
    assert rank(long) == 0.99
    assert rank(short) == pytest.approx(0.96 + 1.0 / np.sqrt(400))
    assert rank(Trial("wrls", short.parameters, 100, 0.96, 40_000)) < rank(long)
    assert rank(Trial("mogd", {"step": 1.0}, 100, 0.5, 4)) == 0.5


@pytest.mark.parametrize(("sites", "telling"), [(4, 4), (10, 10), (40, 10)])
def test_of_many_streams_ten_tell_how_much_is_luck(sites, telling):
    head = head_of(field(steps=60, sites=sites))
    (trial,) = trials._trials(head, METHODS["wrls"], [{"forgetting": 0.95, "penalty": 1.0}], 60)
    assert trial.samples == 59 * telling
    assert rank(trial) == pytest.approx(trial.score + 1.0 / np.sqrt(59 * telling))


def test_the_slowest_method_decides_how_much_is_affordable():
    head = head_of(field(steps=3000, sites=30), lags=9)
    fast, slow = METHODS["wrls"], METHODS["mt-wrls-neighbours"]
    assert trials.affordable(head, [fast, slow]) == trials.affordable(head, [slow]) < trials.affordable(head, [fast])
    assert trials.affordable(head, [fast]) == 3000


def test_what_tied_streams_cost_does_not_grow_with_their_number():
    costs = [trials._seconds(head_of(field(steps=60, sites=n), lags=9), METHODS["mt-wrls"]) for n in (10, 30, 40, 80)]
    assert costs[0] < costs[1] > costs[2] == costs[3]
    other = trials._seconds(head_of(field(steps=60, sites=40), lags=9), METHODS["mt-oslssvr"])
    assert other > 5.0 * costs[2]


def test_a_feature_that_stands_still_is_refused():
    panel = field(steps=60)
    more = np.random.default_rng(0).normal(size=(60, 4, 2))
    more[:, :, 1] = 7.0
    with pytest.raises(bd.InputError, match="feature 2 never changes in the tuning period: leave it out"):
        TuningPeriod.of(Chunk(panel.times, panel.tasks, panel.values, more), 3)
    with pytest.raises(bd.InputError, match="never all present"):
        TuningPeriod.of(Chunk(panel.times, panel.tasks, panel.values, more * np.nan), 3)


def test_a_task_that_stands_still_may_join_later():
    panel = field(steps=60)
    values = panel.values.copy()
    values[:, 1] = 0.0
    chunk = Chunk(panel.times, panel.tasks, values, np.empty((60, 4, 0)))
    assert TuningPeriod.of(chunk, 3, keep_constant=True).tasks == ("site 1", "site 3", "site 4")
    values[:, 2] = 1.0
    with pytest.raises(bd.InputError, match=r"'site 2', 'site 3' never change in .*\(--keep-constant\)"):
        TuningPeriod.of(chunk, 3)


def test_a_value_without_a_logarithm_is_named():
    panel = field(steps=60)
    values = np.abs(panel.values) + 1.0
    values[7, 2] = -0.5
    chunk = Chunk(panel.times, panel.tasks, values, np.empty((60, 4, 0)))
    with pytest.raises(bd.InputError, match=f"'site 3' is -0.5 at {panel.times[7]}, which has no logarithm"):
        TuningPeriod.of(chunk, 3, logarithm=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"methods": ("nope",)}, "unknown method 'nope'"),
        ({"methods": ("graph-ridge",)}, "graph-ridge can't be run by itself, as it is refitted on all data"),
        ({"methods": ("wrls",), "parameters": {"foo": 1.0}}, "wrls lacks .* and does not know foo"),
    ],
)
def test_settings_that_no_run_can_use_are_refused_before_anything_is_read(given, said):
    with pytest.raises(bd.InputError, match=said):
        Settings(**given)


@pytest.mark.parametrize("change", ["extras", "robust", "logarithm"])
def test_trials_of_other_features_or_settings_are_of_no_use(tmp_path, change):
    head, log = head_of(field(steps=120), extras=1), tmp_path / "log"
    search(head, [METHODS["wrls"]], log=log)
    other = {"extras": head.extras + 1.0, "robust": not head.robust, "logarithm": not head.logarithm}[change]
    with pytest.raises(bd.FileError, match="trials of other data"):
        search(replace(head, **{change: other}), [METHODS["wrls"]], log=log)
