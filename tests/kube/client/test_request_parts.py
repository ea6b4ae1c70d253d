"""What cannot be sent is refused before it is sent, as an error that callers expect."""

from typing import Any

import pytest

from api import resources
from kube.client import client, errors

NAMES = ["", ".", "..", "a/status", "../../nodes/n1", "a" * 254]


@pytest.mark.parametrize("name", NAMES, ids=[name[:20] or "empty" for name in NAMES])
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda api, name: api.get(resources.PODS, name, "shop"), id="get"),
        pytest.param(
            lambda api, name: api.patch(resources.PODS, name, {}, namespace="shop"), id="patch"
        ),
        pytest.param(
            lambda api, name: api.update(resources.NODES, {"metadata": {"name": name}}), id="update"
        ),
        pytest.param(lambda api, name: api.delete(resources.PODS, name, "shop"), id="delete"),
        pytest.param(lambda api, name: api.evict("shop", name), id="evict"),
        pytest.param(
            lambda api, name: api.bind("shop", name, uid="u", node="n", annotations={}), id="bind"
        ),
    ],
)
async def test_a_name_that_no_object_can_have_names_none(
    server: Any, api: client.Client, act: Any, name: str
) -> None:
    with pytest.raises(errors.NotFound, match="no object can have the name"):
        await act(api, name)
    assert not server.seen


def nested(levels: int) -> Any:
    found: Any = {}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize("body", [nested(300), {"a": "\ud800"}], ids=["deep", "a lone surrogate"])
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda api, body: api.create(resources.NODES, body), id="create"),
        pytest.param(lambda api, body: api.patch(resources.NODES, "n1", body), id="patch"),
        pytest.param(
            lambda api, body: api.update(resources.NODES, {**body, "metadata": {"name": "n1"}}),
            id="update",
        ),
    ],
)
async def test_a_body_that_cannot_be_written_is_a_bad_request(
    server: Any, api: client.Client, act: Any, body: Any
) -> None:
    with pytest.raises(errors.BadRequest, match="nothing was sent"):
        await act(api, body)
    assert not server.seen
