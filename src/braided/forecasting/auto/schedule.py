"""Schedule: when Auto measures everything, and from when on which contenders are scored."""

from braided.forecasting.record import MODEL, NO_CHANGE

HEADS = (5, 20, 100, 200)  # rounds on which everything is measured again
HEADS_OF_MANY = (5, 20, 100)
SCORED_FROM = 20  # rounds
SEASONAL = "seasonal naive"  # the contender of later rounds: the value a season before, or the last one
LATER = (MODEL, NO_CHANGE, SEASONAL)
ALONE = "without sharing"  # the contender
ONE_FILTER = "own past"  # the member that is one filter per stream
