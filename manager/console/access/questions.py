"""TokenReview and SubjectAccessReview: what is asked of the API server, and its answers. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from api import resources

_MOST_GROUPS: Final = 1000
_MOST_EXTRA: Final = 100


class User(NamedTuple):
    """A user as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What authorizers may look at as well, such as scopes."""


class Question(NamedTuple):
    """Whether a user may do something with a resource."""

    resource: resources.Resource
    namespace: str = ""
    """Empty: in all namespaces, or without one."""
    name: str = ""
    """The one object that is meant; empty for all."""

    @property
    def verb(self) -> str:
        """Return what is to be done: all objects are listed, one is got."""
        return "get" if self.name else "list"

    def __str__(self) -> str:
        what = f"{self.verb} {self.resource.review_name()}"
        what += f" {self.name}" if self.name else ""
        if not self.resource.namespaced:
            return what
        return what + (
            f" in namespace {self.namespace}" if self.namespace else " in all namespaces"
        )


def token_review(token: str) -> dict[str, Any]:
    """Return the question whose token this is."""
    review = resources.TOKEN_REVIEWS
    return {"apiVersion": review.api_version, "kind": review.kind, "spec": {"token": token}}


def authenticated(answer: Mapping[str, Any]) -> User | None:
    """Return whose token it is; None for a token that the API server does not accept."""
    status = answer.get("status") or {}
    written = status.get("user") or {}
    if status.get("authenticated") is not True or not written.get("username"):
        return None
    extra = written.get("extra") or {}
    return User(
        str(written["username"]),
        str(written.get("uid") or ""),
        _texts(written.get("groups") or ())[:_MOST_GROUPS],
        tuple((str(key), _texts(extra[key])) for key in sorted(extra)[:_MOST_EXTRA]),
    )


def access_review(user: User, question: Question) -> dict[str, Any]:
    """Return the question whether a user may read something."""
    review, asked = resources.SUBJECT_ACCESS_REVIEWS, question.resource
    attributes = {
        "verb": question.verb,
        "group": asked.group,
        "version": asked.version,
        "resource": asked.plural,
        "namespace": question.namespace,
        "name": question.name,
    }
    spec: dict[str, Any] = {
        "user": user.name,
        "groups": list(user.groups),
        "resourceAttributes": {key: value for key, value in attributes.items() if value},
    }
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra}
    return {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}


def allowed(answer: Mapping[str, Any]) -> bool:
    """Return whether the API server allows it."""
    status = answer.get("status") or {}
    return status.get("allowed") is True and status.get("denied") is not True


def viewer(name: str) -> User:
    """Return the user of this name with the groups that every user of its kind is in."""
    groups = ["system:authenticated"]
    parts = name.split(":")
    if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}", *groups]
    return User(name, groups=tuple(groups))


def _texts(written: Iterable[Any]) -> tuple[str, ...]:
    return tuple(str(one) for one in written)
