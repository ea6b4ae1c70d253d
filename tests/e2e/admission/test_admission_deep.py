"""An object that is nested thousands of levels deep is reviewed like any other."""

import pytest
import pytest_asyncio

from api import resources
from tests.planes import raw
from tests.planes.admission import admitting


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(real_plane, tmp_path_factory):
    folder = tmp_path_factory.mktemp("deep")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        admitting.standing(real_plane, api, folder) as standing,
    ):
        yield standing


def nested(levels):
    return '{"f:a":' * levels + "{}" + "}" * levels


@pytest.mark.parametrize("levels", [500, 1500, 9000])
async def test_nested_managed_fields_keep_no_pod_from_being_changed(stand, levels):
    fields = f'{{"f:metadata":{nested(levels)}}}'
    text = f"""{{
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {{"name": "deep", "labels": {{"admission-test": "yes"}}, "managedFields": [{{
            "manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {fields}}}]}},
        "spec": {{"containers": [{{"name": "c", "image": "i"}}]}}}}"""
    answer = await stand.api.call("POST", admitting.PODS, text.encode())
    assert answer.status == 201, answer.message
    # Without its managed fields, which no reader of JSON here can take.
    kind = "application/json;as=Table;v=v1;g=meta.k8s.io"
    path = f"{admitting.PODS}/deep"
    selector = {"fieldSelector": "spec.schedulerName=koord-test", "includeObject": "None"}
    found = await stand.api.call("GET", admitting.PODS, query=selector, accept=kind)
    assert [one["cells"][0] for one in found.body["rows"]] == ["deep"]
    await stand.api.call("DELETE", path, query={"gracePeriodSeconds": "0"})


@pytest.mark.parametrize("levels", [500, 1500, 9000])
async def test_nested_unknown_fields_keep_no_object_of_ours_from_being_checked(stand, levels):
    kind = resources.ELASTIC_QUOTAS
    text = f"""{{
        "apiVersion": "{kind.api_version}", "kind": "{kind.kind}", "metadata": {{"name": "deep"}},
        "spec": {{"min": {{"cpu": "3"}}, "max": {{"cpu": "2"}}, "unknown": {nested(levels)}}}}}"""
    path = kind.path(admitting.USERS)
    answer = await stand.api.call("POST", path, text.encode(), query={"dryRun": "All"})
    assert answer.status == 400, answer.message
    assert "spec.min[cpu]" in answer.message
