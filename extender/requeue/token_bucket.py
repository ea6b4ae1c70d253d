"""How often something may be done: a bucket of tokens that fills with time."""


class Bucket:
    """Holds so many tokens at most and gets so many each second; starts full."""

    def __init__(self, per_second: float, most: int, now: float = 0.0) -> None:
        self._per_second = per_second
        self._most = float(most)
        self._tokens = float(most)
        self._at = now

    def left(self, now: float) -> int:
        """Return how many times it may be done now; `now` must not go back."""
        gained = max(now - self._at, 0.0) * self._per_second
        self._tokens, self._at = min(self._most, self._tokens + gained), now
        return int(self._tokens)

    def take(self, now: float) -> bool:
        """Take a token; False if there is none."""
        if self.left(now) < 1:
            return False
        self._tokens -= 1
        return True
