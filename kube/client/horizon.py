"""How far the history of the API server goes, by what the watches of this process were told."""


class Horizon:
    """The newest resource version that any watch was told; they all count the same changes.

    A single watch of a quiet resource knows an old version only, which an API server that was set
    back to a backup may soon have passed again.
    """

    def __init__(self) -> None:
        self.version = 0
        """0 before the first list, and after a backup was restored."""

    def saw(self, version: int) -> None:
        """Note a version that the API server has told of."""
        if version > self.version:
            self.version = version
