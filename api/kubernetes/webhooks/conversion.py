"""ConversionReview in and out: between versions of one schema only the version is rewritten."""

import dataclasses
from collections.abc import Collection
from typing import Annotated, Any

import msgspec

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "ConversionReview"


class ReviewError(ValueError):
    """A body that is no ConversionReview."""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """One question of the API server."""

    uid: str
    desired: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = []


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    request: Request
    api_version: str = API_VERSION
    kind: str = KIND


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: every object in order, or why there are none."""

    uid: str
    objects: tuple[dict[str, Any], ...] = ()
    problem: str = ""


_DECODER = msgspec.json.Decoder(_Review)


def decode(body: bytes) -> Request:
    """Read the body of a review."""
    try:
        review = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReviewError(f"the body is no {API_VERSION} {KIND}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise ReviewError(
            f"the body is no {API_VERSION} {KIND} but a {review.api_version} {review.kind}"
        )
    return review.request


def convert(asked: Request, groups: Collection[str]) -> Answer:
    """Rewrite the version of every object, or say which one is in none of these groups."""
    converted = []
    for number, found in enumerate(asked.objects):
        problem = _problem(found, asked.desired, groups)
        if problem:
            return Answer(asked.uid, problem=f"objects[{number}]: {problem}")
        converted.append({**found, "apiVersion": asked.desired})
    return Answer(asked.uid, tuple(converted))


def _problem(found: dict[str, Any], desired: str, groups: Collection[str]) -> str:
    version, kind = found.get("apiVersion"), found.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return "apiVersion and kind must be texts"
    group, wanted = _group(version), _group(desired)
    if group not in groups:
        return f"{kind} of {group or 'the core group'} is no kind that is converted here"
    if group != wanted:
        return f"{kind} cannot move from group {group} to {wanted or 'the core group'}"
    return ""


def _group(version: str) -> str:
    group, slash, _ = version.rpartition("/")
    return group if slash else ""


def encode(answer: Answer) -> bytes:
    """Write the body that goes back."""
    result: dict[str, Any] = {"status": "Success"}
    if answer.problem:
        result = {"status": "Failed", "message": answer.problem}
    response = {
        "uid": answer.uid,
        "convertedObjects": answer.objects,
        "result": result,
    }
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
