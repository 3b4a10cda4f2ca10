"""The learners, one per file."""

from braided.learners.base import Learner
from braided.learners.composed import Composed
from braided.learners.graph_ridge import GraphRidge
from braided.learners.l21 import L21
from braided.learners.madmm import MADMM
from braided.learners.mogd import MOGD
from braided.learners.mtoslssvr import MTOSLSSVR
from braided.learners.mtwrls import MTWRLS
from braided.learners.oslssvr import OSLSSVR
from braided.learners.persistence import Persistence
from braided.learners.trace_norm import TraceNorm
from braided.learners.wrls import WRLS

__all__ = [
    "L21",
    "MADMM",
    "MOGD",
    "MTOSLSSVR",
    "MTWRLS",
    "OSLSSVR",
    "WRLS",
    "Composed",
    "GraphRidge",
    "Learner",
    "Persistence",
    "TraceNorm",
]
