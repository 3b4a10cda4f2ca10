"""Custom policies, and what a learner accepts as its policy."""

from typing import Protocol, final, runtime_checkable

from braided.errors import InputError
from braided.forgetting.exponential import Exponential
from braided.forgetting.steps import Clock, Policy, Prior, Steps
from braided.types import Flags, Floats
from braided.validate import SMALLEST_FRACTION, floats, fraction


@runtime_checkable
class Forgetting(Protocol):
    """What a recursive learner asks of a custom policy."""

    def fades(self, opens: Flags) -> Floats:
        """Return the factors (n, 2) by which everything, and the sample's task, fade before each sample.

        `opens` says which samples are the first of their round.
        """


@final
class Custom(Policy):
    """A custom policy, whose factors are checked before compiled code relies on them."""

    is_uniform = True  # assumed: a learner that can't fade single tasks checks the factors
    needs_guard = True
    needs_covariance = False

    def __init__(self, policy: Forgetting) -> None:
        """Keep the policy."""
        self.policy = policy

    def steps(self, clock: Clock, prior: Prior) -> Steps:
        """Ask the policy for its factors."""
        n, fades = clock.opens.size, floats(self.policy.fades(clock.opens), "fades", ndim=2)
        if fades.shape != (n, 2) or not ((fades >= SMALLEST_FRACTION) & (fades <= 1.0)).all():
            raise InputError(
                f"{self!r} gave fades of shape {fades.shape}: give (samples, 2) values of {SMALLEST_FRACTION:g} to 1"
            )
        steps = self._no_steps(n, prior)
        steps.fades[:, :2] = fades
        return steps

    def __repr__(self) -> str:
        """Show the policy itself."""
        return repr(self.policy)


def as_policy(
    value: float | Policy | Forgetting,
    learner: str,
    *,
    own_clocks: bool = False,
    has_covariance: bool = True,
    has_dictionary: bool = False,
) -> Policy:
    """Return the policy that `value` means to a learner, or refuse what the learner can't do.

    A number is a factor per sample, or per task with `own_clocks`: where each task has filters of its own, and no
    sample can make other tasks fade. With `has_dictionary`, the prior must not fade.
    """
    if isinstance(value, Policy):
        policy: Policy = value
    elif isinstance(value, Forgetting):
        policy = Custom(value)
    else:
        policy = Exponential(fraction(value, "forgetting"), per="task" if own_clocks else "sample")
    if has_dictionary and not policy.keeps_prior:
        raise InputError(
            f"forgetting is {value!r}: give {learner} a Restore or Directional, which keep its prior, or 1"
        )
    if policy.needs_covariance and not has_covariance:
        raise InputError(f"forgetting is a {type(policy).__name__}, which needs a covariance: give {learner} a number")
    if own_clocks and policy.needs_graph:
        raise InputError(f"the tasks of {learner} share nothing: give Drift without a graph")
    if own_clocks and policy.fades_unseen:
        raise InputError(f'forgetting is {value!r}: each task of {learner} has its own clock, per="task"')
    return Exponential(1.0) if has_dictionary and not policy.needs_covariance else policy  # where no clock matters
