"""Settings of the descheduler."""

from process.configuration import settings


class Settings(settings.Settings):
    """Everything that the process is told; the profiles stand in a file of their own."""
