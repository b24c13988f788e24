"""What is wrong with a request, collected."""

from collections.abc import Sequence

from google.protobuf import duration_pb2

from intone_server.errors import InvalidRequest, Reason, Violation


class Faults:
    """Collects what is wrong with a request, so that the caller hears of everything at once."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []
        self._reason: Reason | None = None

    def add(self, field: str, description: str, reason: Reason = Reason.BAD_CONFIG) -> None:
        """Note a fault. The first one gives the reason of the whole."""
        self._violations.append(Violation(field, description))
        self._reason = self._reason or reason

    def check(self) -> None:
        """Raises InvalidRequest if there is any."""
        if self._reason is not None:
            raise InvalidRequest(self._reason, self._violations)

    def language(self, field: str, tag: str, spoken: Sequence[str]) -> str:
        """The language of a BCP 47 tag, noted if it is none of those that are spoken; the first of
        them if there is no tag. Any region of a language is as good."""
        language = tag.partition("-")[0]
        if language and language not in spoken:
            names = ", ".join(spoken) or "unknown"
            self.add(field, f"the model's language is {names}", Reason.UNSUPPORTED_OPTION)
        return language or next(iter(spoken), "")

    def within(self, field: str, value: float, low: float, high: float) -> bool:
        """Note a number outside its range. NaN is outside every range."""
        if low <= value <= high:
            return True
        self.add(field, f"is {value:g}, allowed is {low:g} to {high:g}")
        return False

    def seconds(
        self, field: str, duration: duration_pb2.Duration, allowed: tuple[float, float]
    ) -> float:
        """A duration in seconds, noted if it is malformed or outside its range."""
        value = duration.seconds + duration.nanos / 1e9
        self.within(field, value, *allowed)
        return value
