"""Reviews of tokens and of access, and an authorizer in front of requests."""

import pytest

from simulator.apiserver import apiserver
from simulator.apiserver.http import requests

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
PODS = {"verb": "list", "resource": "pods", "namespace": "a"}


class OnlyPods:
    """Lets everybody list pods of namespace a, and an administrator do everything."""

    def allows(self, user, asked):
        wanted = ("list", "pods", "a")
        return user.name == "admin" or (asked.verb, asked.resource, asked.namespace) == wanted


@pytest.fixture
async def limited(clock):
    tokens = {"t": requests.User("admin"), "u": requests.User("jane", ("dev",))}
    options = apiserver.Options(tokens=tokens, authorizer=OnlyPods())
    async with apiserver.running(clock=clock, options=options) as started:
        yield started


async def test_tokens_are_reviewed(limited, connect):
    async with connect(limited) as api:
        known = await api.must("POST", TOKEN_REVIEWS, {"spec": {"token": "u"}})
        assert known["status"]["authenticated"] is True
        user = known["status"]["user"]
        assert (user["username"], user["groups"]) == ("jane", ["dev", "system:authenticated"])
        unknown = await api.must("POST", TOKEN_REVIEWS, {"spec": {"token": "x"}})
        assert unknown["status"]["authenticated"] is False


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        pytest.param(PODS, True, id="allowed"),
        pytest.param({**PODS, "namespace": "b"}, False, id="elsewhere"),
        pytest.param({**PODS, "verb": "delete"}, False, id="other-verb"),
    ],
)
async def test_access_is_reviewed(limited, connect, asked, allowed):
    async with connect(limited) as api:
        spec = {"user": "jane", "resourceAttributes": asked}
        answer = await api.must("POST", ACCESS_REVIEWS, {"spec": spec})
        assert answer["status"]["allowed"] is allowed


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="no-spec"),
        pytest.param({"spec": {"resourceAttributes": PODS}}, id="nobody"),
        pytest.param({"spec": {"user": "jane"}}, id="nothing"),
    ],
)
async def test_reviews_without_a_question_are_refused(limited, connect, body):
    async with connect(limited) as api:
        assert (await api.call("POST", ACCESS_REVIEWS, body)).status == 400


async def test_an_authorizer_stands_before_requests(limited, connect):
    async with connect(limited, token="u") as api:
        assert (await api.call("GET", "/api/v1/namespaces/a/pods")).status == 200
        answer = await api.call("GET", "/api/v1/namespaces/b/pods")
        assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
        assert 'User "jane" cannot list resource "pods"' in answer.message


async def test_without_an_authorizer_everybody_may_do_everything(server, connect):
    async with connect(server) as api:
        spec = {"user": "anybody", "resourceAttributes": PODS}
        answer = await api.must("POST", ACCESS_REVIEWS, {"spec": spec})
        assert answer["status"]["allowed"] is True
