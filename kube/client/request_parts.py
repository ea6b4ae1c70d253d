"""The path and the body of a request about one object: what cannot be sent is a KubeError."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from api import resources
from api.kubernetes import dns
from kube.client import errors

_NO_SEGMENT: Final = frozenset({"", ".", ".."})


def path(resource: resources.Resource, namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of one object; NotFound for names that no object can have.

    Names may come out of other objects. An empty one would mean all objects of the collection, and
    one with a slash another object.
    """
    if name in _NO_SEGMENT or "/" in name or "/" in namespace or len(name) > dns.LONGEST_SUBDOMAIN:
        raise errors.NotFound(404, message=f"no object can have the name {name[:80]!r}")
    return resource.path(namespace, name, subresource)


def body(content: Mapping[str, Any] | Sequence[Any] | bytes) -> bytes:
    """Return content as JSON; BadRequest for what is nested too deeply or holds what is no text."""
    if isinstance(content, bytes):
        return content
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError as error:
        raise errors.BadRequest(400, message=f"nothing was sent: {error}") from error
