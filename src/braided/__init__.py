"""braided: online multi-task regression. Many related streams learned together, one sample at a time, exactly and fast.

Names are imported when first used, so that `import braided` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from braided import checks, kernels
    from braided.errors import BraidedError, FileError, InputError, NumericalError
    from braided.features import ELM, Scale
    from braided.forgetting import Exponential
    from braided.graph import TaskGraph
    from braided.learners import MADMM, MOGD, MTOSLSSVR, MTWRLS, OSLSSVR, WRLS, GraphRidge, Learner, Persistence
    from braided.state import load, save

__version__ = "0.1.0"

_HOMES = {
    "errors": ["BraidedError", "FileError", "InputError", "NumericalError"],
    "features": ["ELM", "Scale"],
    "forgetting": ["Exponential"],
    "graph": ["TaskGraph"],
    "learners": [
        "MADMM",
        "MOGD",
        "MTOSLSSVR",
        "MTWRLS",
        "OSLSSVR",
        "WRLS",
        "GraphRidge",
        "Learner",
        "Persistence",
    ],
    "state": ["load", "save"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ELM",
    "MADMM",
    "MOGD",
    "MTOSLSSVR",
    "MTWRLS",
    "OSLSSVR",
    "WRLS",
    "BraidedError",
    "Exponential",
    "FileError",
    "GraphRidge",
    "InputError",
    "Learner",
    "NumericalError",
    "Persistence",
    "Scale",
    "TaskGraph",
    "checks",
    "kernels",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _HOME:
        value = getattr(import_module(f"braided.{_HOME[name]}"), name)
    elif name in __all__:
        value = import_module(f"braided.{name}")
    else:
        raise AttributeError(f"module 'braided' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
