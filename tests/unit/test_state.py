"""Saved models: identical when loaded, and refused when anything is wrong with the file."""

import json
import os
import pickle
import stat

import numpy as np
import pytest

import braided as bd
from braided.state import CHECKSUM_SIZE, MAGIC, dumps, loads
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
    monkeypatch.setattr("braided.state.VERSION", 99)
    data = dumps(model)
    monkeypatch.undo()
    with pytest.raises(bd.FileError, match=r"file\.braided has version 99, this braided reads up to 2: update braided"):
        loads(data, "file.braided")


def test_an_older_version_is_refused(model, monkeypatch):
    monkeypatch.setattr("braided.state.VERSION", 1)
    data = dumps(model)
    monkeypatch.undo()
    with pytest.raises(bd.FileError, match="has version 1, this braided reads 2: learn the model anew"):
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
    data = dumps(model)
    with pytest.raises(bd.FileError, match="holds a XTWRLS, which is not known here: import the module"):
        loads(_signed(data[:-CHECKSUM_SIZE].replace(b'"MTWRLS"', b'"XTWRLS"')))


def _signed(content):
    import hashlib

    return content + hashlib.sha256(content).digest()


def test_only_learners_are_saved_and_only_where_there_is_a_folder(model, tmp_path):
    with pytest.raises(bd.FileError, match="TaskGraph is no learner and no forecaster"):
        bd.save(model.graph, tmp_path / "graph")
    with pytest.raises(bd.FileError, match="nowhere' does not exist: make it first"):
        bd.save(model, tmp_path / "nowhere" / "model")


def test_a_file_whose_arrays_do_not_fit_is_refused_before_compiled_code_reads_past_them(model):
    content = dumps(model)[:-CHECKSUM_SIZE]
    with pytest.raises(bd.FileError, match="do not fit its tasks and features"):
        loads(_signed(content.replace(b'"n_features": 2', b'"n_features": 3')))
    with pytest.raises(bd.FileError, match="no complete model"):
        loads(_signed(content.replace(b'"samples"', b'"sampled"')))
    kernel = bd.MTOSLSSVR(model.graph, 2)
    kernel.learn_one([1.0, 2.0], 1.0, task=0)
    kernel.state.sizes[0] = 99
    with pytest.raises(bd.FileError, match="do not fit"):
        loads(dumps(kernel))


def test_a_saved_file_has_the_permissions_of_any_other(model, tmp_path):
    (tmp_path / "plain").write_text("")
    bd.save(model, tmp_path / "model")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "model")]
    assert modes[0] == modes[1]


def test_the_header_is_plain_json(model):
    data = dumps(model)
    size = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    header = json.loads(data[len(MAGIC) + 8 : len(MAGIC) + 8 + size])
    assert header["version"] == 2
    assert header["model"]["learner"] == "MTWRLS"
