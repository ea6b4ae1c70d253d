"""The console over HTTP: files, headers, entity tags, and nothing that is not asked for."""

import json
import re

from api import resources
from manager.console import assets, http
from tests.manager.console import conftest

AUTHORIZED = {"Authorization": f"Bearer {conftest.ADMIN}"}


async def test_it_is_off_unless_asked_for(world) -> None:
    async with world.manager() as app:
        assert app.url == ""


async def test_every_file_of_the_page_is_served_to_everybody(opened) -> None:
    async with opened() as console:
        status, index = await console.get("/", "")
        assert status == 200
        files = re.findall(r'(?:href|src)="(static/[^"]+)"', index)
        assert "static/main.js" in files
        for file in files:
            status, _ = await console.get(f"/{file}", "")
            assert status == 200, file


async def test_nothing_else_is_served(opened) -> None:
    async with opened() as console:
        for path in ("/static/", "/static/..%2fpages.py", "/static/../site.py", "/api", "/metrics"):
            status, _ = await console.get(path)
            assert status == 404, path
        async with console.session.post(f"{console.url}/api/nodes", headers=AUTHORIZED) as answer:
            assert answer.status == 405


def test_the_page_names_no_other_host_and_holds_no_script() -> None:
    for name, asset in assets.read().items():
        text = asset.body.decode()
        others = set(re.findall(r"https?://[^\s\"'`]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not others, name
        if name.endswith(".html"):
            assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", text), name
        if name.endswith(".js"):
            unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|localStorage"
            assert not re.search(unsafe, text), name


async def test_headers_keep_others_out(opened) -> None:
    async with opened() as console:
        for path in ("/", "/api/nodes"):
            async with console.session.get(f"{console.url}{path}", headers=AUTHORIZED) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "Access-Control-Allow-Origin" not in answer.headers
                assert "Set-Cookie" not in answer.headers


async def test_what_has_not_changed_is_not_sent_again(world, opened) -> None:
    await world.node("n1")
    async with opened() as console:
        url = f"{console.url}/api/nodes"
        async with console.session.get(url, headers=AUTHORIZED) as answer:
            tag = answer.headers["ETag"]
            assert answer.headers["Cache-Control"] == "no-store"
        known = {**AUTHORIZED, "If-None-Match": tag}
        async with console.session.get(url, headers=known) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
        await world.node("n2")
        await world.quiet()
        await world.clock.advance(1.0)
        async with console.session.get(url, headers=known) as answer:
            assert answer.status == 200
        # Who may not read it is not told that it has not changed.
        async with console.session.get(url, headers={"If-None-Match": tag}) as answer:
            assert answer.status == 401


async def test_large_documents_are_packed(world, opened) -> None:
    for number in range(80):
        await world.node(f"a-node-with-a-rather-long-name-{number}")
    async with opened() as console:
        headers = {**AUTHORIZED, "Accept-Encoding": "gzip"}
        request = console.session.get(f"{console.url}/api/nodes", headers=headers)
        async with request as answer:
            assert answer.headers["Content-Encoding"] == "gzip"
            assert answer.headers["Vary"] == "Authorization, Accept-Encoding"
            body = await answer.json()
    assert len(body["names"]) == 80


async def test_a_node_that_is_not_there(opened) -> None:
    async with opened() as console:
        status, body = await console.get("/api/nodes/n9")
        assert (status, body["error"]) == (404, "there is no node n9")


def test_absurd_numbers_and_broken_text_hide_nothing_else() -> None:
    document = {"huge": 10**40, "broken": "a\ud800b", "fine": [1, None, "x"]}
    assert json.loads(http.encoded(document)) == document


async def test_a_pod_that_asks_for_more_than_any_number_holds_stops_no_page(world, opened) -> None:
    await world.node("n1")
    pod = conftest.pod("absurd")
    asked = {"cpu": "9E", "memory": "7E"}
    pod["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    pods = [pod] + [conftest.pod(f"fine-{number}") for number in range(3)]
    for one in pods:
        await world.admin.create(resources.PODS, one, "team-a")
    async with opened() as console:
        assert (await console.shown("/api/pending"))["total"] == 4
        assert (await console.shown("/api/scorecard"))["nodes"] == 1
