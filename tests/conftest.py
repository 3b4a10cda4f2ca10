"""Settings of the whole suite: random tests draw the same examples in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "braided", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("braided")
