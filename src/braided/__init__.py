"""braided: online multi-task regression. Many related streams learned together, one sample at a time, exactly and fast.

Names are imported when first used, so that `import braided` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from braided.version import __version__ as __version__

if TYPE_CHECKING:
    from braided import checks as checks
    from braided import datasets as datasets
    from braided import features as features
    from braided import forecasting as forecasting
    from braided import forgetting as forgetting
    from braided import kernels as kernels
    from braided import methods as methods
    from braided import metrics as metrics
    from braided import runs as runs
    from braided import statistics as statistics
    from braided import study as study
    from braided import suite as suite
    from braided import tables as tables
    from braided.errors import BraidedError as BraidedError
    from braided.errors import FileError as FileError
    from braided.errors import InputError as InputError
    from braided.errors import NumericalError as NumericalError
    from braided.evaluation import Evaluation as Evaluation
    from braided.evaluation import evaluate as evaluate
    from braided.features import ELM as ELM
    from braided.features import Lags as Lags
    from braided.features import Scale as Scale
    from braided.forecaster import Forecaster as Forecaster
    from braided.forecasting.auto import Auto as Auto
    from braided.forecasting.auto import Defaults as Defaults
    from braided.forecasting.auto import Refit as Refit
    from braided.forgetting import Directional as Directional
    from braided.forgetting import Drift as Drift
    from braided.forgetting import Exponential as Exponential
    from braided.forgetting import HalfLife as HalfLife
    from braided.forgetting import Restore as Restore
    from braided.graph import TaskGraph as TaskGraph
    from braided.learners import L21 as L21
    from braided.learners import MADMM as MADMM
    from braided.learners import MOGD as MOGD
    from braided.learners import MTOSLSSVR as MTOSLSSVR
    from braided.learners import MTWRLS as MTWRLS
    from braided.learners import OSLSSVR as OSLSSVR
    from braided.learners import WRLS as WRLS
    from braided.learners import GraphRidge as GraphRidge
    from braided.learners import Learner as Learner
    from braided.learners import Persistence as Persistence
    from braided.learners import TraceNorm as TraceNorm
    from braided.state import load as load
    from braided.state import save as save


_HOMES = {  # where public names come from; modules come from themselves
    "evaluation": "Evaluation evaluate",
    "forecaster": "Forecaster",
    "forecasting.auto": "Auto Defaults Refit",
    "errors": "BraidedError FileError InputError NumericalError",
    "features": "ELM Lags Scale",
    "forgetting": "Directional Drift Exponential HalfLife Restore",
    "graph": "TaskGraph",
    "learners": "MADMM MOGD MTOSLSSVR MTWRLS OSLSSVR WRLS GraphRidge L21 Learner Persistence TraceNorm",
    "state": "load save",
    "": "checks datasets features forecasting forgetting kernels methods metrics runs statistics study suite tables",
}
_HOME = {name: home or name for home, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'braided' has no attribute {name!r}")
    module = import_module(f"braided.{_HOME[name]}")
    globals()[name] = value = module if _HOME[name] == name else getattr(module, name)
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
