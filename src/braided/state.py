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
import os
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import scipy.sparse as sparse

from braided import learners
from braided.errors import FileError
from braided.features import ELM, Chain, Lags, Scale
from braided.files import write_whole
from braided.forecasting import Clock, Forecaster, Record, Units, Usual
from braided.forgetting import Directional, Drift, Exponential, HalfLife, Restore
from braided.graph import TaskGraph
from braided.kernels import Kernel
from braided.learners import Learner

MAGIC = b"braided model\n"
VERSION = 2  # of what the arrays mean
CHECKSUM_SIZE = hashlib.sha256().digest_size
Model: TypeAlias = Learner | Forecaster
MODELS = (Clock, ELM, Chain, Kernel, Lags, Record, Scale, TaskGraph, Units, Usual)
POLICIES = (Directional, Drift, Exponential, HalfLife, Restore)
PARTS = {part.__name__: part for part in (*MODELS, *POLICIES)}
PLAIN = (type(None), bool, int, float, str)


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a learner or forecaster to a file, whole or not at all: a kill leaves the old file or the new one."""
    if not isinstance(model, Learner | Forecaster):
        raise FileError(f"{type(model).__name__} is no learner and no forecaster: only those are saved")
    target = Path(path)
    if not target.parent.is_dir():
        raise FileError(f"folder {str(target.parent)!r} does not exist: make it first")
    write_whole({target: dumps(model)}, "choose another path")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a learner or forecaster from a file; its forecasts are those of the one saved, to the bit."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path} can't be read ({error.strerror}): give a file made by braided.save") from error
    return loads(data, str(path))


def dumps(model: Model) -> bytes:
    """Return a model as bytes."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _pack(model, arrays)
    shapes = [{"dtype": array.dtype.str, "shape": array.shape} for array in arrays]
    header = json.dumps({"version": VERSION, "arrays": shapes, "model": tree}, allow_nan=False).encode()
    body: list[Any] = [MAGIC, len(header).to_bytes(8, "little"), header]
    body += [array.ravel().view(np.uint8) for array in arrays]  # no copies
    checksum = hashlib.sha256()
    for part in body:
        checksum.update(part)
    return b"".join([*body, checksum.digest()])


def loads(data: bytes, name: str = "data") -> Any:
    """Return the model that `dumps` gave these bytes for; `name` is for error messages."""
    if not data.startswith(MAGIC):
        raise FileError(
            f"{name} is not a braided model (it starts with {data[:8]!r}): give a file made by braided.save"
        )
    content, checksum = data[:-CHECKSUM_SIZE], data[-CHECKSUM_SIZE:]
    if hashlib.sha256(content).digest() != checksum:
        raise FileError(f"{name} is damaged or cut short (its checksum does not match): restore it from a copy")
    try:
        return _read(data, name)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{name} is no complete model ({error!r}): restore it from a copy") from error


def _read(data: bytes, name: str) -> Model:
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(data[len(MAGIC) : start], "little")
    header = json.loads(data[start:stop])
    if header["version"] > VERSION:
        raise FileError(f"{name} has version {header['version']}, this braided reads up to {VERSION}: update braided")
    if header["version"] < VERSION:
        raise FileError(f"{name} has version {header['version']}, this braided reads {VERSION}: learn the model anew")
    arrays = []
    for form in header["arrays"]:
        dtype = np.dtype(form["dtype"])
        size = int(np.prod(form["shape"], dtype=np.int64))
        array = np.frombuffer(data, dtype, size, stop).reshape(form["shape"])
        arrays.append(array.astype(dtype.newbyteorder("=")))  # a copy, writeable and of this machine's byte order
        stop += array.nbytes
    model: Model = _unpack(header["model"], arrays)
    return model


def _pack(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Turn a value into JSON, with arrays set aside."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value.astype(value.dtype.newbyteorder("<"), order="C", copy=False))
        return {"array": len(arrays) - 1}
    if isinstance(value, tuple | list):
        if set(map(type, value)) <= set(PLAIN):  # at once: tasks can be many
            return list(value)
        return [_pack(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {key: _pack(item, arrays) for key, item in value.items()}}
    if isinstance(value, sparse.csr_array):
        return {"csr": _pack([value.data, value.indices, value.indptr, value.shape], arrays)}
    if isinstance(value, Learner):
        return {"learner": type(value).__name__, "value": _pack(value.dump(), arrays)}
    if isinstance(value, Forecaster):
        return {"forecaster": _pack(value.dump(), arrays)}
    if type(value) in PARTS.values():
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"part": type(value).__name__, "value": _pack(fields, arrays)}
    raise FileError(f"{value!r} can't be saved: of kernels, feature maps and policies, only braided's own can")


def _unpack(tree: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Turn what `_pack` made back into the value."""
    if isinstance(tree, list):
        return tuple(_unpack(item, arrays) for item in tree)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "dict" in tree:
        return {key: _unpack(item, arrays) for key, item in tree["dict"].items()}
    if "csr" in tree:
        data, indices, indptr, shape = _unpack(tree["csr"], arrays)
        return sparse.csr_array((data, indices, indptr), shape=shape)
    if "forecaster" in tree:
        return Forecaster.restore(_unpack(tree["forecaster"], arrays))
    value = _unpack(tree["value"], arrays)
    if "part" in tree:
        return PARTS[tree["part"]](**value)
    return _learner(tree["learner"]).restore(value)


def _learner(name: str) -> type[Learner]:
    """Find a learner by its name: braided's own, else the one of that name that was defined last."""
    if name in learners.__all__:
        return cast(type[Learner], getattr(learners, name))
    known = Learner.__subclasses__()
    for kind in known:
        known += kind.__subclasses__()
    named = [kind for kind in known if kind.__name__ == name]
    if not named:
        raise FileError(f"the file holds a {name}, which is not known here: import the module that defines it first")
    return named[-1]
