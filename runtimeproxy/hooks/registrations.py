"""Registration files of hook servers: stages, and what a failure means. Pure."""

import enum
import json
from collections.abc import Mapping

import msgspec

from api.koordinator import runtime_hooks

_UNIX = "unix://"


class RegistrationError(ValueError):
    """A file that registers nothing; the text names the key and what is wrong."""


class Policy(enum.StrEnum):
    """What a failed hook means for the call of the kubelet."""

    FAIL = "Fail"
    """The call fails, and the runtime does not get it."""
    IGNORE = "Ignore"
    """The call goes on without the hook."""


class Registration(msgspec.Struct, frozen=True):
    """One hook server."""

    endpoint: str
    """Path of its unix socket."""
    policy: Policy
    stages: frozenset[runtime_hooks.Stage]


def read(text: str | bytes) -> Registration:
    """Read a registration file; stages that this proxy does not know are left out."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RegistrationError(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RegistrationError("no JSON object")
    endpoint = found.get("remote-endpoint")
    if not isinstance(endpoint, str) or not endpoint.removeprefix(_UNIX).startswith("/"):
        raise RegistrationError("remote-endpoint: name the path of a unix socket, from / on")
    named = found.get("runtime-hooks")
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise RegistrationError("runtime-hooks: name a list of stages")
    stages = frozenset(one for one in runtime_hooks.Stage if one.value in named)
    return Registration(endpoint.removeprefix(_UNIX), _policy(found), stages)


def _policy(found: Mapping[str, object]) -> Policy:
    given = found.get("failure-policy") or Policy.IGNORE.value
    for one in Policy:
        if given == one.value:
            return one
    raise RegistrationError(f"failure-policy: {given!r} is none of Fail and Ignore")
