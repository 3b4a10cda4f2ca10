"""The learners, one a file."""

from braided.learners.base import Learner
from braided.learners.batch import GraphRidge
from braided.learners.composed import Composed
from braided.learners.madmm import MADMM
from braided.learners.mogd import MOGD
from braided.learners.mtoslssvr import MTOSLSSVR
from braided.learners.mtwrls import MTWRLS
from braided.learners.norms import L21, TraceNorm
from braided.learners.persistence import Persistence
from braided.learners.single import OSLSSVR, WRLS

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
