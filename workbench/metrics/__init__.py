"""Numbers about predictions and about studies: NumPy in, numbers out.

Probabilities are [N, C], true classes are codes [N]. Nothing here imports scikit-learn or SciPy
before a function that needs it is called.
"""

from workbench.metrics.calibration import (
    ReliabilityTable,
    expected_calibration_error,
    reliability_table,
)
from workbench.metrics.scores import (
    balanced_error_rate,
    brier_score,
    error_rate,
    macro_f1,
    negative_log_likelihood,
)

__all__ = [
    "ReliabilityTable",
    "balanced_error_rate",
    "brier_score",
    "error_rate",
    "expected_calibration_error",
    "macro_f1",
    "negative_log_likelihood",
    "reliability_table",
]
