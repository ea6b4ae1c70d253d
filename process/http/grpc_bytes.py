"""Messages of gRPC as bytes, for those who pass on what they do not read."""

from typing import Any, Final

import h2.exceptions
from grpclib import const, exceptions
from grpclib.encoding import base


class Messages(base.CodecBase):
    """Messages that are read and written elsewhere."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:  # noqa: ARG002 - the base demands it
        """Return the message itself."""
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> Any:  # noqa: ARG002 - as above
        """Return the message itself."""
        return data


class Details(base.StatusDetailsCodecBase):
    """Details of a status (`grpc-status-details-bin`) as the bytes that the server sent."""

    def encode(self, status: const.Status, message: str | None, details: Any) -> bytes:  # noqa: ARG002 - as above
        """Return the details themselves."""
        return bytes(details)

    def decode(self, status: const.Status, message: str | None, data: bytes) -> Any:  # noqa: ARG002 - as above
        """Return the details themselves."""
        return data


LOST: Final = (
    *(exceptions.StreamTerminatedError, exceptions.ProtocolError, h2.exceptions.ProtocolError),
    ConnectionError,
)
"""Errors by which a call shows that its connection has ended."""
