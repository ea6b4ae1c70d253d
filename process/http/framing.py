"""Where the requests of one HTTP connection begin and end."""

import httptools


class Framing:
    """Follows what the base class is fed, to know whether a request has begun and not ended.

    The base class may hold the beginning of the next request, and then must get the rest of it.
    """

    __slots__ = ("_begun", "_broken", "_ended", "_parser")

    def __init__(self) -> None:
        self._begun = self._ended = 0
        self._broken = False
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        if self._parser is None:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.close()
            self._broken = True

    def close(self) -> None:
        """Let go of the parser, which holds this object as well."""
        self._parser = None

    @property
    def is_between(self) -> bool:
        """Whether all that was fed are complete requests."""
        return self._begun == self._ended and not self._broken

    @property
    def is_within(self) -> bool:
        """Whether the last request that was fed has begun and not ended."""
        return self._begun > self._ended and not self._broken

    def on_message_begin(self) -> None:
        """Count a request in, as the parser tells."""
        self._begun += 1

    def on_message_complete(self) -> None:
        """Count a request out, as the parser tells."""
        self._ended += 1
