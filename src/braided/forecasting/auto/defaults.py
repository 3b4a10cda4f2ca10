"""Defaults: the members that Auto chooses itself."""

from __future__ import annotations

from dataclasses import replace

from braided.forecasting.auto.linear import Linear
from braided.forecasting.auto.members import MEAN, NEAR, OWN

SEASONAL = ("seasons", "phases", "known")
SMOOTH = ("bias", *OWN, *NEAR, *MEAN, *SEASONAL)
ALL = (*SMOOTH, "waves")
FEW = ("bias", "recent", "level", "near", "mean", *SEASONAL)  # for filters that see few samples each
ON_ASINH = ("tied", "phases", "own phases")  # members that also run on the asinh scale
SEE_PLAN = ("own past", "tied", "separate", "pooled", "phases", "tied (asinh)")  # members that also run with the plan
LOOK_AHEAD = ("tied", "others")
LOOK_AHEAD_OF_MANY = ("own past", "separate", "pooled", "others")  # where tied filters have no gains
OF_FEW_STREAMS = ("tied, long memory", "tied, scaled", "phases, days off", "own phases", "others", "others, residuals")


def default_members(
    n_seasons: int,
    is_short: bool,
    n_alike: int,
    are_few: bool,
    are_many: bool,
    sharing: bool = True,
    has_plan: bool = False,
) -> tuple[Linear, ...]:
    """Return Auto's members: fewer where there is no season, steps are longer than an hour, or streams are many.

    Those left out without sharing would be copies of others once they see no other stream (`alone`).
    """
    own = Linear("own past", "separate", ("bias", *OWN, "known"), 10.0)
    tied = Linear("tied", "tied", ALL)
    phases = Linear("phases", "pooled", FEW, forgetting=0.99, by="phase", after="tied")
    others = Linear("others", "separate", ("others",), forgetting=0.999, is_robust=False)
    members = [
        own,
        Linear("neighbours", "tied", ("bias", *OWN, *NEAR, *MEAN, "known"), forgetting=1.0),
        tied,
        replace(tied, name="tied, long memory", features=SMOOTH, penalty=1000.0, forgetting=1.0),
        Linear("separate", "separate", SMOOTH, 30.0),
        Linear("pooled", "pooled", SMOOTH, 10.0),
        Linear("tied, scaled", "tied", SMOOTH, is_scaled=True),
        phases,
        replace(phases, name="phases, days off", by="phase, day off", penalty=300.0),
        replace(phases, name="own phases", sharing="separate"),
        others,
        replace(others, name="others, residuals", after="tied", sees_residuals=True),
    ]
    if not are_many:
        members += [
            replace(one, name=f"{one.name} (asinh)", on="asinh", after=one.after and f"{one.after} (asinh)")
            for one in members
            if one.name in ON_ASINH
        ]
    left_out = {name for name in OF_FEW_STREAMS if are_many}
    if not n_alike:
        left_out |= {"others", "others, residuals"}
    if not sharing:
        left_out |= {"neighbours", "separate", "pooled", "others", "others, residuals", "own phases"}
    kept = [one for one in members if one.name not in left_out and (n_seasons or not one.by)]
    kept = [one for one in kept if is_short or one.by != "phase, day off"]
    looking = LOOK_AHEAD if are_few else LOOK_AHEAD_OF_MANY
    kept += [with_plan(one) for one in kept if has_plan and one.name in SEE_PLAN]
    return tuple(replace(one, looks_ahead=one.name in looking) for one in kept)


def with_plan(member: Linear) -> Linear:
    """Return the member with another name, which also sees what is known ahead."""
    after = member.after and f"{member.after}, planned"
    return replace(member, name=f"{member.name}, planned", features=(*member.features, "planned"), after=after)
