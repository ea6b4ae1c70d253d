"""What users may do, and the reviews by which others ask who a user is and what they may do.

The reviews of kubectl auth (SelfSubjectAccessReview and its like) are not served.
"""

from typing import Any

from api import resources
from simulator.apiserver import services
from simulator.apiserver.http import api_errors, requests

Object = dict[str, Any]

_SERVED = {
    (one.group, one.version, one.plural): one
    for one in (resources.TOKEN_REVIEWS, resources.SUBJECT_ACCESS_REVIEWS)
}
_AUTHENTICATED = "system:authenticated"


def check(parts: services.Services, user: requests.User, info: requests.RequestInfo) -> None:
    """Refuse what the user may not do."""
    if not parts.authorizer.allows(user, info.attributes):
        what = api_errors.full_name(info.group, info.plural)
        text = f'User "{user.name}" cannot {info.verb} resource "{what}"'
        raise api_errors.forbidden(info.group, info.plural, info.name, text)


def reviewed(info: requests.RequestInfo) -> resources.Resource | None:
    """Return which review a request asks for, None where it asks for none."""
    if info.verb != "create" or info.namespace or info.subresource:
        return None
    return _SERVED.get((info.group, info.version, info.plural))


def answer(parts: services.Services, review: resources.Resource, body: Any) -> Object:
    """Answer a review; it is stored nowhere."""
    spec = body.get("spec") if isinstance(body, dict) else None
    if not isinstance(spec, dict):
        raise api_errors.bad_request("the body of the request has no spec")
    found = _token(parts, spec) if review is resources.TOKEN_REVIEWS else _access(parts, spec)
    return {
        "apiVersion": review.api_version,
        "kind": review.kind,
        "metadata": {},
        "spec": spec,
        "status": found,
    }


def _token(parts: services.Services, spec: Object) -> Object:
    user = parts.tokens.get(str(spec.get("token", "")))
    if user is None:
        return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
    groups = sorted({*user.groups, _AUTHENTICATED})
    return {"authenticated": True, "user": {"username": user.name, "uid": "", "groups": groups}}


def _access(parts: services.Services, spec: Object) -> Object:
    asked = spec.get("resourceAttributes")
    if not isinstance(asked, dict) or not (spec.get("user") or spec.get("groups")):
        raise api_errors.bad_request("spec needs a user and resourceAttributes")
    user = requests.User(str(spec.get("user", "")), tuple(spec.get("groups") or ()))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    attributes = requests.Attributes(**{one: str(asked.get(one, "")) for one in fields})
    return {"allowed": parts.authorizer.allows(user, attributes)}
