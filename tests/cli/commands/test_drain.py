"""`koord drain` on a simulated cluster: previews, asks, cordons, creates jobs, follows, aborts."""

import argparse
import asyncio
import io
import logging
import sys

import pytest

from api import names
from cli.commands import drain
from cli.rebalancing import live_cluster
from kube.informers import reflector
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.cli.rebalancing import idle_cluster

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
JOBS = idle_cluster.JOBS
it = idle_cluster.it


def arguments(it, *words):
    parser = argparse.ArgumentParser()
    drain.add_arguments(parser)
    return parser.parse_args([*words, "--kubeconfig", str(it.kubeconfig)])


async def run(it, *words):
    return await drain.drained(arguments(it, *words))


async def test_kinds_that_are_not_installed_are_no_news(it, capsys, caplog):
    assert await run(it, "n1", "--dry-run") == 0
    assert [one for one in caplog.messages if "list or watch failed" in one] == []
    level = logging.getLogger(reflector.__name__).level
    assert level == logging.NOTSET


async def test_without_an_api_server_nothing_is_waited_for(it, capsys):
    config = it.kubeconfig.read_text()
    it.kubeconfig.write_text(config.replace(it.plane.server, "https://127.0.0.1:1"))
    assert await run(it, "n1", "--dry-run", "--timeout=60") == 1
    assert capsys.readouterr().err == (
        "koord drain: read /version: cannot connect to 127.0.0.1:1: Connection refused\n"
    )


async def test_a_dry_run_shows_where_pods_would_go_and_changes_nothing(it, capsys):
    assert await run(it, "n1", "--dry-run") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "Node n1: 2 pods move.",
        "  default/web-0 to n2",
        "  default/web-1 to n2",
    ]
    assert "the defaults of the descheduler hold" in said.err
    assert await it.jobs() == []
    assert not await it.is_cordoned("n1")


async def test_pods_leave_by_jobs_that_are_followed_to_their_end(it, capsys):
    await it.lease(drain.LEASE)
    code, _ = await asyncio.gather(run(it, "n1", "--yes"), it.ended("Succeeded"))
    assert code == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "[########################] 2 of 2 pods have moved"
    )
    assert await it.is_cordoned("n1")
    for job in await it.jobs():
        assert job["metadata"]["labels"] == {names.LABEL_DRAIN: "n1"}
        assert job["metadata"]["annotations"][names.ANNOTATION_EVICT_TRIGGER] == "Drain"
        assert job["spec"]["mode"] == "ReservationFirst"
        assert job["spec"]["ttl"] == "15m0s"


async def test_a_pod_that_has_not_moved_is_named_and_the_next_run_tries_it_again(it, capsys):
    await it.lease(drain.LEASE)
    failed = it.ended("Failed", reason="Timeout", message="took too long")
    code, _ = await asyncio.gather(run(it, "n1", "--yes"), failed)
    assert code == 1
    assert "default/web-0 has not moved (Timeout): took too long" in capsys.readouterr().out
    await run(it, "n1", "--yes", "--no-wait", "--evict-directly")
    again = [job for job in await it.jobs() if job["spec"]["mode"] == "EvictDirectly"]
    assert len(again) == 2


class Lagging(live_cluster.LiveCluster):
    """Shows the cluster as it was at the first look for some more, as a watch may."""

    looks = 0

    def picture(self):
        self.looks += 1
        if self.looks == 1:
            self.first = super().picture()
        return self.first if self.looks <= 3 else super().picture()


async def test_jobs_of_an_earlier_drain_do_not_speak_for_those_that_were_just_created(it, capsys):
    await it.lease(drain.LEASE)
    failed = it.ended("Failed", reason="Timeout", message="took too long")
    await asyncio.gather(run(it, "n1", "--yes"), failed)
    chosen, clock = arguments(it, "n1", "--yes"), clocks.SystemClock()
    async with supervise.Supervisor("drain") as tasks:
        live = Lagging(it.kube, clock, names.NAMESPACE)
        again = drain.Drain(chosen, it.kube, clock, live, tasks).run(900.0)
        code, _ = await asyncio.gather(again, it.ended("Succeeded", among=4))
    assert code == 0
    assert "2 of 2 pods have moved" in capsys.readouterr().out.splitlines()[-1]


class Watched(live_cluster.LiveCluster):
    """Says once the command has looked at two jobs."""

    def __init__(self, *given):
        super().__init__(*given)
        self.has_shown = asyncio.Event()

    def picture(self):
        seen = super().picture()
        if len(seen.jobs) == 2:
            self.has_shown.set()
        return seen


async def run_until_seen(it, ended, *words):
    """Drain a node, and do something to its jobs once the command has seen them."""
    clock = clocks.SystemClock()
    async with supervise.Supervisor("drain") as tasks:
        live = Watched(it.kube, clock, names.NAMESPACE)

        async def end():
            await live.has_shown.wait()
            await ended()

        follows = drain.Drain(arguments(it, *words), it.kube, clock, live, tasks).run(900.0)
        code, _ = await asyncio.gather(follows, end())
        return code


async def test_the_wait_ends_where_all_jobs_are_deleted_meanwhile(it, capsys):
    await it.lease(drain.LEASE)

    async def deleted():
        for job in await it.jobs():
            await it.kube.delete(JOBS, job["metadata"]["name"])

    assert await run_until_seen(it, deleted, "n1", "--yes") == 1
    assert "default/web-0 has not moved (Deleted)" in capsys.readouterr().out


async def test_pods_that_other_jobs_move_already_are_followed_as_well(it, capsys):
    await it.lease(drain.LEASE)
    await run(it, "n1", "--yes", "--no-wait")
    for job in await it.jobs():
        unlabelled = {"metadata": {"labels": {names.LABEL_DRAIN: None}}}
        await it.kube.patch(JOBS, job["metadata"]["name"], unlabelled)
    assert await run_until_seen(it, lambda: it.ended("Succeeded"), "n1") == 0
    assert "2 of 2 pods have moved" in capsys.readouterr().out.splitlines()[-1]


async def test_run_again_it_finds_the_jobs_that_are_there(it, capsys):
    await it.lease(drain.LEASE)
    assert await run(it, "n1", "--yes", "--no-wait") == 0
    assert await run(it, "n1", "--no-wait") == 0
    assert "2 pods are being moved already." in capsys.readouterr().out
    assert len(await it.jobs()) == 2


async def test_an_abort_ends_what_has_not_begun_and_uncordons(it, capsys):
    await it.lease(drain.LEASE)
    await run(it, "n1", "--yes", "--no-wait")
    first, second = sorted(job["metadata"]["name"] for job in await it.jobs())
    evicting = {"type": "Eviction", "status": "False", "reason": "Evicting", "message": ""}
    body = {"status": {"phase": "Running", "conditions": [evicting]}}
    await it.kube.patch(JOBS, first, body, subresource="status")
    assert await run(it, "n1", "--abort") == 0
    assert capsys.readouterr().out.splitlines()[-1] == ("1 job is aborted, node n1 is uncordoned")
    phases = {job["metadata"]["name"]: job["status"]["phase"] for job in await it.jobs()}
    assert phases == {first: "Running", second: "Aborted"}
    assert not await it.is_cordoned("n1")


@pytest.mark.parametrize(
    ("seconds_ago", "said"),
    [(None, "no descheduler runs"), (3600.0, "no descheduler leads")],
    ids=["none", "an old lease"],
)
async def test_without_a_descheduler_nothing_is_begun(it, capsys, seconds_ago, said):
    if seconds_ago is not None:
        await it.lease(drain.LEASE, seconds_ago)
    assert await run(it, "n1", "--yes") == 1
    assert said in capsys.readouterr().err
    assert await it.jobs() == []
    assert not await it.is_cordoned("n1")


async def test_without_a_terminal_to_ask_at_nothing_is_done(it, capsys, monkeypatch):
    await it.lease(drain.LEASE)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert await run(it, "n1") == 1
    assert "pass --yes" in capsys.readouterr().out
    assert await it.jobs() == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere",), 1, "there is no node nowhere among 2"),
        (("n", "--dry-run"), 1, "there are n1, n2"),
        (("n1", "--ttl", "soon"), 2, "--ttl"),
    ],
    ids=["unknown", "near", "no time"],
)
async def test_what_cannot_be_meant_is_refused(it, capsys, words, code, said):
    assert await run(it, *words) == code
    assert said in capsys.readouterr().err
