"""What many measured values come to. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Middle:
    """Median of `count` values, and its standard error as for normally distributed noise; a single
    value has none that is known."""

    value: float
    error: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Middle":
        """Of at least one value."""
        count = len(values)
        error = 1.25 * statistics.stdev(values) / count**0.5 if count > 1 else None
        return cls(statistics.median(values), error, count)

    def shown(self, form: str, unit: str = "", scale: float = 1.0) -> str:
        """As text: value and error times `scale`, in the format `form` for both."""
        error = "" if self.error is None else f" ± {self.error * scale:{form.lstrip('+')}}"
        return f"{self.value * scale:{form}}{error}{unit}"


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of them do not exceed; the nearest one there is."""
    return sorted(values)[round(share * (len(values) - 1))]
