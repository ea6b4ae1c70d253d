"""Taking a snapshot through the API, and the command that writes and reads files."""

import orjson
import pytest
from aiohttp import web

from api import names, resources
from cli import main
from cli.snapshot import format as formats
from cli.snapshot import reader
from kube.client import access, client
from process.runtime import clock
from tests import builders
from tests.hostile import BOTTOMLESS


class Plane:
    """Lists by path; a number is a status, and what is not named is not installed."""

    def __init__(self):
        self.lists = {}

    async def answer(self, request):
        found = self.lists.get(request.path, 404)
        if isinstance(found, int):
            return web.json_response({"code": found, "message": "no"}, status=found)
        start = int(request.query.get("continue", 0))
        metadata = {"resourceVersion": "1"}
        if start + 2 < len(found):
            metadata["continue"] = str(start + 2)
        body = orjson.dumps({"metadata": metadata, "items": found[start : start + 2]})
        return web.Response(body=body, content_type="application/json")


@pytest.fixture
async def plane():
    made, app = Plane(), web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def test_all_pages_are_read_and_what_is_missing_is_named(plane):
    plane.lists = {
        "/api/v1/pods": [builders.a_pod(f"p{i}") for i in range(5)]
        + [{"metadata": {"name": "odd"}, "spec": 7}]
        + [{"metadata": {"name": "deep"}, "x": orjson.Fragment(BOTTOMLESS)}],
        "/api/v1/nodes": 403,
        resources.ELASTIC_QUOTAS.path(): [{"metadata": {"name": "q", "namespace": "d"}}],
        resources.CONFIG_MAPS.path(names.NAMESPACE): [{"metadata": {"name": "m"}, "data": {}}],
    }
    async with client.Client(access.Access(server=plane.url), clock=clock.SystemClock()) as kube:
        found = await reader.taken(kube, clock.SystemClock())
    assert [one["metadata"]["name"] for one in found.objects["pods"]] == [f"p{i}" for i in range(5)]
    assert found.unreadable == ("Pod odd", "Pod deep")
    assert found.unread["nodes"].startswith("403")
    assert found.unread[resources.ELASTIC_QUOTAS_OF_SHORT_GROUP.review_name()] == "not installed"
    assert found.of(resources.ELASTIC_QUOTAS)[0]["apiVersion"].startswith("scheduling.sigs")


def test_a_file_is_saved_for_its_owner_and_renamed_offline(tmp_path, capsys):
    first, second = tmp_path / "a", tmp_path / "b"
    pod = builders.a_pod("secretive")
    reader.save(first, formats.Snapshot("2026-07-01T12:00:00Z", {"pods": (pod,)}))
    assert first.stat().st_mode & 0o077 == 0
    assert main.main(["snapshot", f"--snapshot={first}", "-o", str(second), "--rename"]) == 0
    assert "wrote 1 object (" in capsys.readouterr().out
    assert reader.load(second).objects["pods"][0]["metadata"]["name"] == "pod-1"


def test_files_that_cannot_be_used_are_refused_by_name(tmp_path, capsys):
    missing, target = tmp_path / "none", tmp_path / "x"
    assert main.main(["snapshot", f"--snapshot={missing}", "-o", str(target)]) == 1
    assert f"koord snapshot: {missing} cannot be read: No such file" in capsys.readouterr().err
    reader.save(missing, formats.Snapshot("2026-07-01T12:00:00Z"))
    assert main.main(["snapshot", f"--snapshot={missing}", "-o", str(tmp_path)]) == 1
    assert "cannot be written: Is a directory" in capsys.readouterr().err
