"""Names of the array types used throughout."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Times = NDArray[Any]  # datetime64, or integers such as years
