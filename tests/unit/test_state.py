"""Saved models: identical when loaded, and refused when anything is wrong with the file."""

import json
import os
import pickle
import stat
from dataclasses import replace

import numpy as np
import pytest

import braided as bd
from braided.forecasting import Choice, LiveRounds, Origin, Position, Trial
from braided.state import CHECKSUM_SIZE, MAGIC, dumps, loads
from braided.tables import Columns
from tests.model_files import parts_of, signed
from tests.streams import random_graph, random_stream


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 3)
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=10)
    model = bd.MTWRLS(graph, 2, 0.5, bd.Exponential(0.99, per="round"))
    model.learn_many(X, y, tasks, rounds=rounds)
    return model


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["laplacian", "penalty"])
def test_everything_comes_back(tmp_path, storage, form):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 4, storage=storage, form=form)
    model = bd.Scale(np.zeros(3), np.ones(3)) | bd.ELM(5, seed=3) | bd.MTOSLSSVR(graph, 3, 2 * bd.kernels.rbf(0.3))
    X, y, tasks, rounds = random_stream(rng, 4, 3, n_rounds=30)
    model.learn_many(X, y, tasks, rounds=rounds)
    path = tmp_path / "model.braided"
    bd.save(model, path)
    loaded = bd.load(path)
    assert repr(loaded) == repr(model)
    assert (loaded.samples, loaded.n_features) == (120, 3)
    assert loaded.predict_many(X, tasks).tobytes() == model.predict_many(X, tasks).tobytes()
    assert loaded.graph.is_sparse == (storage == "sparse")
    assert loaded.graph.form == form
    loaded.add_task("new", {0: 0.5})


def test_keys_keep_their_types(tmp_path):
    model = bd.WRLS(["1", 1, "ä"], 1)
    bd.save(model, tmp_path / "m")
    assert bd.load(tmp_path / "m").tasks == ("1", 1, "ä")


def test_a_flipped_bit_anywhere_is_found(model):
    data = dumps(model)
    rng = np.random.default_rng(2)
    for place in {0, len(MAGIC), len(MAGIC) + 9, len(data) - 1, *map(int, rng.integers(0, len(data), 60))}:
        for bit in (0, 7):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            with pytest.raises(bd.FileError, match=r"not a braided model|damaged or cut short"):
                loads(bytes(damaged))


def test_a_file_cut_short_is_found(model):
    data = dumps(model)
    for size in (0, 3, len(MAGIC), len(MAGIC) + 4, len(data) // 2, len(data) - CHECKSUM_SIZE, len(data) - 1):
        with pytest.raises(bd.FileError):
            loads(data[:size])
    with pytest.raises(bd.FileError, match="damaged"):
        loads(data + b"x")


def test_a_newer_version_is_refused(model, monkeypatch):
    monkeypatch.setattr("braided.state.FILE_VERSION", 99)
    data = dumps(model)
    monkeypatch.undo()
    with pytest.raises(bd.FileError, match=r"file\.braided has version 99, this braided reads 2 to 3: update braided"):
        loads(data, "file.braided")


def test_an_older_version_is_refused(model, monkeypatch):
    monkeypatch.setattr("braided.state.FILE_VERSION", 1)
    data = dumps(model)
    monkeypatch.undo()
    with pytest.raises(bd.FileError, match="has version 1, this braided reads 2 to 3: learn the model again"):
        loads(data)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_pickle_is_refused_and_never_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb()))
    np.save(tmp_path / "bomb.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    for name in ("bomb", "bomb.npy"):
        with pytest.raises(bd.FileError, match="is not a braided model"):
            bd.load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


def test_an_unknown_learner_is_named(model):
    header, arrays = parts_of(dumps(model))
    header["model"]["learner"] = "XTWRLS"
    with pytest.raises(bd.FileError, match="data holds a 'XTWRLS', which is not known here: import the module"):
        loads(signed(header, arrays))


def test_only_learners_are_saved_and_only_where_there_is_a_folder(model, tmp_path):
    with pytest.raises(bd.FileError, match="TaskGraph is neither a learner nor a forecaster"):
        bd.save(model.graph, tmp_path / "graph")
    with pytest.raises(bd.FileError, match="nowhere' does not exist: make it first"):
        bd.save(model, tmp_path / "nowhere" / "model")


def test_a_file_whose_arrays_do_not_fit_is_refused_before_compiled_code_reads_past_them(model):
    header, arrays = parts_of(dumps(model))
    header["model"]["value"]["dict"]["n_features"] = 3
    with pytest.raises(bd.FileError, match=r"weights is float64 of shape .* must be numbers of shape"):
        loads(signed(header, arrays))
    header["model"]["value"]["dict"]["n_features"] = 2
    del header["model"]["value"]["dict"]["samples"]
    with pytest.raises(bd.FileError, match=r"does not hold a valid model \(KeyError\('samples'\)\)"):
        loads(signed(header, arrays))


SPOILT = {  # what compiled code or SciPy takes on trust: learner, its array, the value put there
    "pending terms": (lambda graph: bd.MTWRLS(graph, 2, solver="blocked"), "pending", 9),
    "pending below 0": (lambda graph: bd.MTWRLS(graph, 2, solver="blocked"), "pending", -1),
    "size of a dictionary": (lambda graph: bd.MTOSLSSVR(graph, 2), "sizes", 99),
    "size beyond the budget": (lambda graph: bd.MTOSLSSVR(graph, 2, "rbf", budget=3), "sizes", 5),
    "row of the prior": (lambda graph: bd.MTOSLSSVR(graph, 2), "rows", 3),
    "place of a task": (lambda graph: bd.OSLSSVR(graph, 2), "places", 7),
    "size of an element": (lambda graph: bd.MTOSLSSVR(graph, 2), "factor", 0.0),
    "start of the neighbours": (lambda graph: bd.MTWRLS(graph, 2, solver="local"), "starts", 10**9),
    "neighbour": (lambda graph: bd.MTWRLS(graph, 2, solver="local"), "neighbours", 3),
    "two tasks in a place": (lambda graph: bd.MTWRLS(graph, 2, solver="local"), "places", 1),
    "steps": (lambda graph: bd.MOGD(graph, 2), "steps", -1),
    "not a number": (lambda graph: bd.WRLS(graph, 2), "weights", np.nan),
}


@pytest.mark.parametrize(("make", "name", "value"), SPOILT.values(), ids=list(SPOILT))
def test_no_number_in_a_file_leads_out_of_an_array(make, name, value):
    rng = np.random.default_rng(0)
    model = make(random_graph(rng, 3, storage="sparse", density=1.0))
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=4)
    model.learn_many(X, y, tasks, rounds=rounds)
    array = getattr(model.state, name)
    array[(0,) * array.ndim] = value
    with pytest.raises(bd.FileError, match="does not hold a valid model"):
        loads(dumps(model))


FIRST_BEYOND = {  # the smallest index that leads out
    "dictionary of a task": (lambda graph: bd.MTOSLSSVR(graph, 2), "places", (0, 0), 1),
    "row of a task": (lambda graph: bd.OSLSSVR(graph, 2), "places", (0, 1), 1),
    "start that falls": (lambda graph: bd.MTWRLS(graph, 2, solver="local"), "starts", 1, 5),
}


@pytest.mark.parametrize(("make", "name", "place", "value"), FIRST_BEYOND.values(), ids=list(FIRST_BEYOND))
def test_the_first_index_beyond_is_refused(make, name, place, value):
    rng = np.random.default_rng(0)
    model = make(random_graph(rng, 3, storage="sparse", density=1.0))
    X, y, tasks, rounds = random_stream(rng, 3, 2, n_rounds=4)
    model.learn_many(X, y, tasks, rounds=rounds)
    getattr(model.state, name)[place] = value
    with pytest.raises(bd.FileError):
        loads(dumps(model))


def test_a_dictionary_beyond_its_budget_is_refused():
    rng = np.random.default_rng(0)
    model = bd.MTOSLSSVR(random_graph(rng, 3), 2, "rbf", budget=5)
    X, y, tasks, _ = random_stream(rng, 3, 2, n_rounds=4)
    model.learn_many(X, y, tasks)
    header, arrays = parts_of(dumps(model))
    header["model"]["value"]["dict"]["parameters"]["dict"]["budget"] = 4
    with pytest.raises(bd.FileError, match="do not fit"):
        loads(signed(header, arrays))


def test_bytes_that_belong_to_no_array_are_refused(model):
    header, arrays = parts_of(dumps(model))
    with pytest.raises(bd.FileError, match="belong to no array"):
        loads(signed(header, arrays + bytes(8)))


@pytest.mark.parametrize(("place", "value"), [("indices", 3), ("indices", 2_000_000_000), ("indptr", 2_000_000_000)])
def test_a_sparse_graph_stays_within_itself(place, value):
    model = bd.MOGD(random_graph(np.random.default_rng(0), 3, storage="sparse", density=1.0), 2)
    array = getattr(model.graph.similarity, place)
    array.flags.writeable = True
    array[1] = value
    with pytest.raises(bd.FileError, match=place):
        loads(dumps(model))


@pytest.mark.parametrize(
    "program",
    [
        [[4.0, 0.0, 0.0]],
        [[1.0, 0.0, 0.0]] * 2,
        [[9.0, 0.0, 0.0]],
        [[2.0, 0.0, 0.0]],
        [],
        [[4.0, 0, 0], [1.0, 0, 0], [1.0, 0, 0]],
    ],
)
def test_a_kernel_is_a_program_that_leaves_one_value(program):
    with pytest.raises(bd.InputError):
        bd.kernels.Kernel(program)
    header, arrays = parts_of(dumps(bd.OSLSSVR(["a"], 1, bd.kernels.rbf(2.0))))
    header["model"]["value"]["dict"]["parameters"]["dict"]["kernel"]["value"]["dict"]["program"] = program
    with pytest.raises(bd.FileError, match=r"not a kernel|parameter of a kernel"):
        loads(signed(header, arrays))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"n_features": 2', b'"n_features": 30000'),
        (b'"shape": [1, 6]', b'"shape": [-1, 6]'),
        (b'"shape": [1, 6]', b'"shape": [9223372036854775808, 6]'),
        (b'"dtype": "<f8"', b'"dtype": "|O"'),
        (b'"dtype": "<f8"', b'"dtype": "<f16"'),
        (b'"shape": [1, 6]', b'"shape": [0, 1000000000000000000]'),
        (b'"array": 3', b'"array": 2'),
        (b'"samples": 30', b'"samples": -1'),
        (b'"samples": 30', b'"samples": NaN'),
        (b'"uses": "dense"', b'"uses": "auto"'),
        (b'"model": {', b'"model": ' + b"[" * 100_000 + b"{"),
    ],
)
def test_no_claim_of_the_header_is_believed(model, old, new):
    header, arrays = parts_of(dumps(model))
    text = json.dumps(header).encode()
    assert text.count(old)
    with pytest.raises(bd.FileError):
        loads(signed(text.replace(old, new, 1), arrays))


def test_a_saved_file_has_the_permissions_of_any_other(model, tmp_path):
    (tmp_path / "plain").write_text("")
    bd.save(model, tmp_path / "model")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "model")]
    assert modes[0] == modes[1]


def test_the_header_is_plain_json(model):
    data = dumps(model)
    size = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    header = json.loads(data[len(MAGIC) + 8 : len(MAGIC) + 8 + size])
    assert header["version"] == 3
    assert header["model"]["learner"] == "MTWRLS"


def live_rounds(**changed):
    parts = {
        "times": np.array([1, 2]),
        "tasks": ("a", "b"),
        "values": np.array([[5.0, 7.0], [6.0, np.nan]]),
        "extras": np.empty((2, 2, 0)),
        "came": np.array([[True, True], [True, False]]),
        "n_complete": 1,
        "is_open": True,
        "expected": ("a", "b"),
        "columns": Columns("when", "site", "value", (), "long", True),
    }
    return LiveRounds(**parts | changed)


def test_live_rounds_come_back_whole():
    saved = live_rounds()
    again = loads(dumps(saved))
    for name in ("times", "values", "extras", "came"):
        np.testing.assert_array_equal(getattr(again, name), getattr(saved, name))
    assert (again.tasks, again.n_complete, again.is_open, again.expected) == (("a", "b"), 1, True, ("a", "b"))
    assert dumps(again) == dumps(saved)


@pytest.mark.parametrize(
    "changed",
    [
        {"times": np.array([2, 1])},
        {"times": np.array([1, 1])},
        {"times": np.array([-(2**63), 2**62])},
        {"times": np.array([1.0, 2.0])},
        {"times": (1, 2)},
        {"times": np.array([1, 2, 3])},
        {"tasks": ("a", "a")},
        {"tasks": ("a", 2)},
        {"tasks": "ab"},
        {"values": np.array([[5.0, np.inf], [6.0, 1.0]])},
        {"values": np.zeros((2, 3))},
        {"extras": np.zeros((2, 2))},
        {"extras": np.full((2, 2, 1), -np.inf)},
        {"came": np.ones((2, 2))},
        {"came": np.array([[True, True], [False, False]])},
        {"n_complete": 2},
        {"n_complete": -1},
        {"n_complete": True},
        {"is_open": 1},
        {"failed_starts": 10**9},
        {"columns": ("time",)},
    ],
    ids=str,
)
def test_live_rounds_that_do_not_fit_are_refused(changed):
    with pytest.raises(bd.InputError):
        live_rounds(**changed)
    bad = live_rounds()
    for name, value in changed.items():
        object.__setattr__(bad, name, value)  # as another program might write it
    with pytest.raises(bd.FileError):
        loads(dumps(bad))


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (Origin, {"source": 3}),
        (Origin, {"columns": ("time",)}),
        (Origin, {"choice": {}}),
        (Origin, {"is_utc": 1}),
        (Origin, {"without": ("a", 2)}),
        (Origin, {"without": "ab"}),
        (Origin, {"position": 7}),
        (Origin, {"live": {}}),
        (Position, {"tuning_end": 2**63}),
        (Position, {"tuning_rounds": -1}),
        (Position, {"tuning_streams": 1.5}),
        (Position, {"parts": True}),
        (Position, {"is_finished": 0}),
        (Choice, {"best": None}),
        (Choice, {"trials": ("a",)}),
        (Choice, {"tried": -1}),
        (Choice, {"streams": "x"}),
        (Trial, {"method": 3}),
        (Trial, {"parameters": (1.0,)}),
        (Trial, {"parameters": {"penalty": "x"}}),
        (Trial, {"score": "x"}),
        (Trial, {"rounds": -1}),
        (Trial, {"samples": 0.5}),
    ],
    ids=str,
)
def test_an_origin_that_does_not_fit_is_refused(model, kind, changed):
    trial = Trial("wrls", {"penalty": 1.0}, 100, 0.5, 300)
    parts = {"choice": Choice(trial, trial, (trial,), 3), "position": Position(7, 100, 3)}
    parts |= {"columns": Columns("when", "site", "value", (), "long", True)}
    units = bd.forecasting.Units(np.zeros(3), np.ones(3))
    preparation = bd.forecasting.Preparation(bd.Lags(1), model.graph, units)
    forecaster = bd.forecasting.LearnerEngine(model, preparation, origin=Origin("table", **parts))
    assert loads(dumps(forecaster)).origin == forecaster.origin
    origin = forecaster.origin
    part = {Origin: origin, Position: origin.position, Choice: origin.choice, Trial: origin.choice.single}[kind]
    with pytest.raises(bd.InputError):
        replace(part, **changed)
    for name, value in changed.items():
        object.__setattr__(part, name, value)  # as another program might write it
    with pytest.raises(bd.FileError):
        loads(dumps(forecaster))
