"""Auto: forecasts of many streams by a mixture of rules and learners, without tuning."""

from braided.forecasting.auto.auto import Auto as Auto
from braided.forecasting.auto.defaults import default_members as default_members
from braided.forecasting.auto.engine import AutoEngine as AutoEngine
from braided.forecasting.auto.estimators import Recipe as Recipe
from braided.forecasting.auto.linear import Linear as Linear
from braided.forecasting.auto.members import Defaults as Defaults
from braided.forecasting.auto.members import Member as Member
from braided.forecasting.auto.members import Rounds as Rounds
from braided.forecasting.auto.members import Runner as Runner
from braided.forecasting.auto.members import Start as Start
from braided.forecasting.auto.refit import Refit as Refit
from braided.forecasting.auto.seasons import Seasons as Seasons
