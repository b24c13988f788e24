"""Samples to bytes. Pure: no I/O, no clock."""

import numpy as np
import numpy.typing as npt

# Mono, full scale from -1.0 to 1.0, shape (n,).
Samples = npt.NDArray[np.float32]
