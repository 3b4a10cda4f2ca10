"""Forgetting: how fast the past fades, as a part that a recursive learner is given.

| policy                | how the weights are assumed to move | what is forgotten                                  |
|-----------------------|-------------------------------------|----------------------------------------------------|
| `Exponential(σ, per)` | in any way, slowly                  | everything alike, the prior too                    |
| `HalfLife(duration)`  | the same, by the clock              | everything alike, by the time that has passed      |
| `Restore(ρ)`          | wander, and come back to the prior  | towards the prior, so that sharing never fades     |
| `Directional(σ)`      | in any way, slowly                  | only in the direction of the new sample            |
| `Drift(q, graph)`     | wander for ever, similar tasks together | whatever the drift may have changed            |

A policy turns a chunk of samples and its clock into *steps*: factors by which everything, the sample's own task, or the
direction of its input fades before the sample is learned, and motions of all weights at the opening of rounds. The
learner applies them and needs to know nothing else about the policy.

>>> import numpy as np
>>> Exponential(0.9, per="round").fades(np.array([True, False, True]))
array([[0.9, 1. ],
       [1. , 1. ],
       [0.9, 1. ]])
"""

from braided.forgetting.custom import Forgetting
from braided.forgetting.directional import Directional
from braided.forgetting.drift import Drift
from braided.forgetting.exponential import Exponential
from braided.forgetting.half_life import HalfLife
from braided.forgetting.restore import Restore
from braided.forgetting.steps import Policy

__all__ = ["Directional", "Drift", "Exponential", "Forgetting", "HalfLife", "Policy", "Restore"]
