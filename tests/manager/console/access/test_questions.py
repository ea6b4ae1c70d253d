"""What the API server is asked, and how its answers are read."""

import pytest

from api import resources
from manager.console.access import questions

USER = questions.User("u", "7", ("g",), (("scopes", ("a", "b")),))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({}, None, id="empty"),
        pytest.param({"status": None}, None, id="no-status"),
        pytest.param({"status": {"authenticated": False}}, None, id="refused"),
        pytest.param({"status": {"authenticated": "true", "user": {"username": "u"}}}, None,
                     id="no-boolean"),
        pytest.param({"status": {"authenticated": True, "user": {}}}, None, id="no-name"),
        pytest.param({"status": {"authenticated": True, "user": {"username": "u"}}},
                     questions.User("u"), id="name-alone"),
        pytest.param(
            {"status": {"authenticated": True, "user": {
                "username": "u", "uid": "7", "groups": ["g"], "extra": {"scopes": ["a", "b"]}}}},
            USER, id="everything"),
    ],
)  # fmt: skip
def test_whose_token_it_is(answer, expected) -> None:
    assert questions.authenticated(answer) == expected


def test_everything_that_decides_is_passed_on() -> None:
    asked = questions.Question(resources.CONFIG_MAPS, "ns", "c")
    assert questions.access_review(USER, asked)["spec"] == {
        "user": "u",
        "uid": "7",
        "groups": ["g"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "get", "version": "v1", "resource": "configmaps", "namespace": "ns",
            "name": "c",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"allowed": True}, True, id="allowed"),
        pytest.param({"allowed": True, "denied": True}, False, id="denied-wins"),
        pytest.param({"allowed": False}, False, id="no-opinion"),
        pytest.param({"allowed": 1}, False, id="no-boolean"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_only_a_plain_yes_is_a_yes(status, expected) -> None:
    assert questions.allowed({"status": status}) is expected


@pytest.mark.parametrize(
    ("question", "text"),
    [
        pytest.param(questions.Question(resources.NODES), "list nodes", id="cluster"),
        pytest.param(questions.Question(resources.PODS), "list pods in all namespaces", id="all"),
        pytest.param(questions.Question(resources.PODS, "a"), "list pods in namespace a", id="one"),
        pytest.param(questions.Question(resources.CONFIG_MAPS, "a", "c"),
                     "get configmaps c in namespace a", id="named"),
    ],
)  # fmt: skip
def test_questions_for_people(question, text) -> None:
    assert str(question) == text


def test_a_viewer_is_in_the_groups_of_its_kind() -> None:
    account = questions.viewer("system:serviceaccount:ns:viewer")
    assert account.groups == (
        "system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"
    )  # fmt: skip
    assert questions.viewer("jane").groups == ("system:authenticated",)
