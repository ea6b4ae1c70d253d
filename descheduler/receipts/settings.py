"""Settings of receipts and of the breaker."""

import pydantic

from process.configuration import settings


class ReceiptSettings(settings.Settings):
    """What moves have brought, and when a profile is halted because its moves do not pay."""

    settle_seconds: float = pydantic.Field(default=300.0, gt=0)
    """How long after a move loads are compared; jobs are kept at least until then."""
    window: int = pydantic.Field(default=10, ge=1)
    """Moves of a profile that are looked back at."""
    least_moves: int = pydantic.Field(default=5, ge=1)
    """Moves whose outcome has to be known before a profile is judged."""
    least_paid: float = pydantic.Field(default=0.5, ge=0, le=1)
    """Share of them that has to have paid; 0 halts no profile."""
    halt_seconds: float = pydantic.Field(default=1800.0, gt=0)
    """How long a profile is halted; twice as long each further time in a row ..."""
    longest_halt_seconds: float = pydantic.Field(default=28_800.0, gt=0)
    """... up to this."""
