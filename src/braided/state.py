"""Save and load: a JSON header and raw arrays, with a version and a checksum; nothing in a file is ever executed.

A file is: the line `braided model`, the length of the header (8 bytes, little endian), the header (JSON), the arrays'
bytes one after the other (little endian, C order), and the SHA-256 of all that.

>>> import braided as bd, tempfile, pathlib
>>> model = bd.WRLS(["a", "b"], n_features=1)
>>> model.learn_one([1.0], 2.0, task="a")
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder) / "model.braided"
...     bd.save(model, path)
...     again = bd.load(path)
>>> again.predict_one([1.0], task="a") == model.predict_one([1.0], task="a")
True
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias, cast

import numpy as np
import scipy.sparse as sparse

from braided import learners
from braided.errors import BraidedError, FileError, InputError, unreadable
from braided.features import ELM, Chain, Lags, Scale
from braided.files import insist_unlocked, write_whole
from braided.forecasting import (
    Choice,
    Clipping,
    Clock,
    Curve,
    Engine,
    LearnerEngine,
    LiveRounds,
    Origin,
    Plan,
    Position,
    Record,
    Trial,
    Units,
)
from braided.forecasting.auto import Auto, Member, Recipe, Seasons
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.graph import TaskGraph
from braided.kernels import Kernel
from braided.learners import Learner
from braided.tables import Columns
from braided.validate import count, insist_integers, insist_offsets

MODEL_MARK = "braided model\n"
MAGIC = MODEL_MARK.encode()
FILE_VERSION = 3  # of what a file holds; older ones from OLDEST_FILE_VERSION on are converted when they are loaded
OLDEST_FILE_VERSION = 2
CHECKSUM_SIZE = hashlib.sha256().digest_size
Model: TypeAlias = Learner | Engine | LiveRounds
MAPS = (ELM, Chain, Kernel, Lags, Scale, TaskGraph)
FORECASTING = (Choice, Clipping, Clock, Columns, Curve, LiveRounds, Origin, Plan, Position, Record, Trial, Units)
AUTO = (Auto, Seasons)
POLICIES = (Directional, Drift, Exponential, HalfLife, Restore)
PARTS = {part.__name__: part for part in (*MAPS, *FORECASTING, *AUTO, *POLICIES)}
RENAMED_PARTS = {"Usual": Clipping}  # under their names of version 2
PLAIN_TYPES = (type(None), bool, int, float, str)


class Front(Protocol):
    """What holds the engine that is saved: a `braided.Forecaster`."""

    @property
    def engine(self) -> Engine:
        """The engine."""


def save(model: Model | Front, path: str | os.PathLike[str]) -> None:
    """Write a learner or forecaster to a file, whole or not at all: a kill leaves the old file or the new one.

    Only a saved model is overwritten; any other file at the path is refused. Of a `braided.Forecaster`, the engine is
    saved.
    """
    if not isinstance(model, Model) and hasattr(type(model), "engine"):
        model = model.engine
    if not isinstance(model, Model):
        raise FileError(f"{type(model).__name__} is neither a learner nor a forecaster: only those are saved")
    target = Path(path)
    if not target.parent.is_dir():
        raise FileError(f"folder {str(target.parent)!r} does not exist: make it first")
    insist_unlocked(target)
    write_whole({target: dumps(model)}, MODEL_MARK, "choose another path (--save)")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a learner or an engine from a file; its forecasts equal those of the saved one to the bit.

    `braided.Forecaster.load` returns a `braided.Forecaster` with the engine.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error, "give a file made by braided.save") from error
    return loads(data, str(path))


def dumps(model: Model) -> bytes:
    """Return a model as bytes."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _pack(model, arrays)
    shapes = [{"dtype": array.dtype.str, "shape": array.shape} for array in arrays]
    header = json.dumps({"version": FILE_VERSION, "arrays": shapes, "model": tree}, allow_nan=False).encode()
    body: list[Any] = [MAGIC, len(header).to_bytes(8, "little"), header]
    body += [array.ravel().view(np.uint8) for array in arrays]  # no copies
    checksum = hashlib.sha256()
    for part in body:
        checksum.update(part)
    return b"".join([*body, checksum.digest()])


def loads(data: bytes, name: str = "data") -> Any:
    """Return the model that `dumps` turned into these bytes; `name` is for error messages.

    The checksum finds damage, not malice: anyone can compute one. So every number is checked before it is used, and
    any failure on the way is reported as a fault of the file.
    """
    if not data.startswith(MAGIC):
        raise FileError(
            f"{name} is not a braided model (it starts with {data[:8]!r}): give a file made by braided.save"
        )
    content, checksum = data[:-CHECKSUM_SIZE], data[-CHECKSUM_SIZE:]
    if hashlib.sha256(content).digest() != checksum:
        raise FileError(f"{name} is damaged or cut short (its checksum does not match): restore it from a copy")
    try:
        return _read(memoryview(content))
    except FileError as error:  # its message starts with a verb
        raise FileError(f"{name} {error}") from error
    except Exception as error:  # the bytes may come from anywhere
        reason = str(error) if isinstance(error, BraidedError) else repr(error)
        raise FileError(f"{name} does not hold a valid model ({reason:.300}): restore it from a copy") from error


def _read(data: memoryview) -> Model:
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(data[len(MAGIC) : start], "little")
    header = json.loads(bytes(data[start:stop]), parse_constant=_refuse_constant)
    version = count(header["version"], "version")
    if not OLDEST_FILE_VERSION <= version <= FILE_VERSION:
        remedy = "update braided" if version > FILE_VERSION else "learn the model again"
        raise FileError(f"has version {version}, this braided reads {OLDEST_FILE_VERSION} to {FILE_VERSION}: {remedy}")
    arrays = []
    for form in header["arrays"]:
        array = _array(data, stop, form["dtype"], form["shape"])
        arrays.append(array.astype(array.dtype.newbyteorder("=")))  # a copy, writeable and of this machine's byte order
        stop += array.nbytes
    if stop != len(data):
        raise InputError(f"{len(data) - stop} bytes belong to no array")
    model = _Unpacker(arrays, version).unpack(header["model"])
    if not isinstance(model, Model):
        raise InputError(f"it holds a {type(model).__name__}")
    return model


def _array(data: memoryview, start: int, dtype: Any, shape: Any) -> np.ndarray[Any, Any]:
    """Return the array that begins at `start`; numbers only, and no more of them than there are bytes."""
    kind = np.dtype(dtype if isinstance(dtype, str) else "O")
    if kind.kind not in "biuf" or kind.itemsize > 8:
        raise InputError(f"an array has dtype {dtype!r}")
    lengths = [count(length, "length of an array", least=0) for length in shape]
    size = math.prod(lengths)
    if size * kind.itemsize > len(data) - start or max(lengths, default=0) > len(data):
        raise InputError(f"an array of shape {lengths} is larger than the file")
    return np.frombuffer(data[start:], kind, size).reshape(lengths)


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"the header holds {name}")


def _pack(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Turn a value into JSON, with arrays set aside."""
    if isinstance(value, PLAIN_TYPES):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value.astype(value.dtype.newbyteorder("<"), order="C", copy=False))
        return {"array": len(arrays) - 1}
    if type(value) in PARTS.values():
        fields = value._asdict() if isinstance(value, Columns) else _fields(value)
        return {"part": type(value).__name__, "value": _pack(fields, arrays)}
    if isinstance(value, tuple | list):
        if set(map(type, value)) <= set(PLAIN_TYPES):  # in one go: tasks can be many
            return list(value)
        return [_pack(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {key: _pack(item, arrays) for key, item in value.items()}}
    if isinstance(value, sparse.csr_array):
        return {"csr": _pack([value.data, value.indices, value.indptr, value.shape], arrays)}
    if isinstance(value, Learner):
        return {"learner": type(value).__name__, "value": _pack(value.dump(), arrays)}
    if isinstance(value, Engine):
        kind = {} if isinstance(value, LearnerEngine) else {"engine": type(value).__name__}
        return {"forecaster": _pack(value.dump(), arrays)} | kind
    if isinstance(value, Recipe):
        return {"estimator": value.dump()}
    if isinstance(value, Member):
        return {"member": type(value).__name__, "value": _pack(_fields(value), arrays)}
    raise FileError(f"{value!r} can't be saved: of kernels, feature maps and policies, only those of braided can")


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


class _Unpacker:
    """Turns what `_pack` made back into values; every array is used once, in order, so that no two share memory."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]], version: int) -> None:
        self._arrays, self._used, self._version = arrays, 0, version

    def unpack(self, tree: Any) -> Any:
        """Return the value of a node and of all below it."""
        if isinstance(tree, list):
            return tuple(self.unpack(item) for item in tree)
        if not isinstance(tree, dict):
            return tree
        if "array" in tree:
            if tree["array"] != self._used:
                raise InputError(f"array {tree['array']!r} is not the next one")
            self._used += 1
            return self._arrays[self._used - 1]
        if "dict" in tree:
            return {key: self.unpack(item) for key, item in tree["dict"].items()}
        if "csr" in tree:
            return _sparse(*self.unpack(tree["csr"]))
        if "forecaster" in tree:
            dumped = self.unpack(tree["forecaster"])
            if "engine" in tree:
                return _named(Engine, tree["engine"]).restore(dumped)
            return LearnerEngine.restore(_engine_from_2(dumped) if self._version == 2 else dumped)
        if "estimator" in tree:
            return Recipe.restore(tree["estimator"])
        value = self.unpack(tree["value"])
        if "member" in tree:
            return _named(Member, tree["member"])(**value)
        if tree.get("part") == "Columns":
            return Columns.restore(value)
        if "part" in tree:
            if tree["part"] == "Record" and "over_time" not in value:  # as first written, also by version 3
                value["over_time"] = Curve(*(value.pop(name) for name in ("curve", "width", "rounds")))
            if self._version == 2 and tree["part"] == "LiveRounds":
                value["columns"] = Columns.restore(value["columns"]) if value["columns"] else None
            return (PARTS | RENAMED_PARTS)[tree["part"]](**value)
        return _learner(tree["learner"]).restore(value)


def _engine_from_2(dumped: dict[str, Any]) -> dict[str, Any]:
    """Convert a forecaster saved by version 2, in which its origin was a dictionary; unknown keys of it are dropped."""
    parts = dict(dumped["parts"])
    about = parts.pop("about")
    origin = {name: about[old] for name, old in _ORIGIN_IN_2.items() if old in about}
    if about.get("columns"):
        origin["columns"] = Columns.restore(about["columns"])
    if "choice" in about:
        held = about["choice"]
        best, single, *trials = (Trial(**trial) for trial in (held["best"], held["single"], *held["trials"]))
        origin["choice"] = Choice(best, single, tuple(trials), held["tried"], held["streams"])
    if "run" in about:
        origin["position"] = Position(*(about["run"][name] for name in _POSITION_IN_2))
    state = {name.removeprefix("_"): value for name, value in dumped["state"].items()}
    parts |= {"origin": Origin(**origin), "clips": parts.pop("tame")}
    return dumped | {"parts": parts, "state": state, "clipping": state.pop("usual")}


_ORIGIN_IN_2 = {"source": "source", "is_utc": "utc", "without": "without", "live": "live"}
_POSITION_IN_2 = ("head_end", "head_rounds", "head_tasks", "parts", "finished")


def _sparse(data: Any, indices: Any, indptr: Any, shape: Any) -> sparse.csr_array:
    """Return a sparse matrix; its indices are checked here, as SciPy does not check them."""
    rows, columns = (count(length, "length of a sparse matrix", least=0) for length in shape)
    insist_offsets(indptr, "indptr", rows, len(data))
    insist_integers(indices, "indices", (len(data),), 0, columns - 1)
    return sparse.csr_array((data, indices, indptr), shape=(rows, columns))


def _learner(name: str) -> type[Learner]:
    """Find a learner by its name: one of braided's, else the last one that was defined with that name."""
    return cast(type[Learner], getattr(learners, name) if name in learners.__all__ else _named(Learner, name))


def _named(base: Any, name: str) -> Any:
    """Return the last subclass of `base` that was defined with a name."""
    known = base.__subclasses__()
    for kind in known:
        known += kind.__subclasses__()
    named = [kind for kind in known if kind.__name__ == name]
    if not named:
        raise FileError(f"holds a {name!r}, which is not known here: import the module that defines it first")
    return named[-1]
