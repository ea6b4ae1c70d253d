"""What a kubelet tells about cpus: its configuration over HTTP, its notes from a folder."""

import json

import aiohttp
import pytest
from aiohttp import web

from agent.host import files
from agent.informers import kubelet_client as kubelets
from agent.informers import kubelet_trust
from agent.model import cgroup_layout
from agent.model.cpus import kubelet_cpu_manager
from agent.observe import collectors
from agent.observe.node import kubelet_cpus
from process.runtime import supervise
from process.runtime.clock import ManualClock

STATIC = {"kubeletconfig": {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}}


class Kubelet:
    """Answers questions for its configuration."""

    def __init__(self):
        self.status, self.body = 200, STATIC

    async def answer(self, _request):
        return web.json_response(self.body, status=self.status)


@pytest.fixture
async def kubelet():
    found = Kubelet()
    pages = web.Application()
    pages.router.add_get("/configz", found.answer)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def asking(kubelet, tmp_path):
    async with aiohttp.ClientSession() as session:
        known = kubelet_trust.Trust("off", None, tmp_path / "pin")
        ask = kubelets.Kubelet(session, kubelet.url, known).get
        yield kubelet_cpus.KubeletTold(ask, ManualClock())


async def test_the_configuration_is_read_and_stays_the_same_object(asking):
    assert asking.told.configuration is None
    assert "not been asked yet" in asking.problem()
    assert await asking.step()
    first = asking.told
    assert first.configuration.policy == "static"
    assert asking.problem() is None
    assert await asking.step()
    assert asking.told is first


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [(403, STATIC, "answered 403"), (200, {}, "no configuration"), (200, [1], "no configuration")],
)
async def test_why_it_is_not_known_is_named_with_a_remedy_and_the_last_answer_stands(
    asking, kubelet, status, body, said
):
    kubelet.status, kubelet.body = status, body
    assert not await asking.step()
    assert said in asking.problem()
    assert "nodes/configz" in asking.problem()
    kubelet.status, kubelet.body = 200, STATIC
    assert await asking.step()
    kubelet.status = 500
    assert not await asking.step()
    assert asking.told.configuration.policy == "static"


async def test_it_is_asked_again_soon_after_a_failure_and_seldom_after_an_answer():
    questions, clock = [], ManualClock()

    async def ask(path):
        questions.append(path)
        if len(questions) < 3:
            raise kubelets.KubeletError("busy")
        return json.dumps(STATIC).encode()

    told = kubelet_cpus.KubeletTold(ask, clock)
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("ask", told.run)
        counted = []
        soon = kubelet_cpus.SOON_SECONDS
        for seconds in (0, soon, 2 * soon, kubelet_cpus.SECONDS - 1, 1):
            await clock.advance(seconds)
            counted.append(len(questions))
    assert counted == [1, 2, 3, 3, 4]
    assert set(questions) == {"configz"}


async def test_one_that_is_not_asked_has_no_policy():
    told = kubelet_cpus.KubeletTold(None, ManualClock(), asked=False)
    assert await told.step()
    assert told.problem() is None
    assert kubelet_cpu_manager.known(told.told, (), ()).policy == ""


@pytest.fixture
def notes(tmp_path):
    """The collector of notes with the folder that it reads."""
    told = kubelet_cpus.KubeletTold(None, ManualClock())
    folder = tmp_path / "kubelet"
    folder.mkdir()
    sources = collectors.Collectors([kubelet_cpus.Notes(folder, told)])

    def look(at):
        arranged = cgroup_layout.Layout(str(tmp_path), 2, "systemd")
        sight = collectors.Sight(at, arranged, files.Kept(), None)
        sources.step(lambda: sight)
        return sources.problems.get(kubelet_cpus.Notes.name, ""), told.told.entries

    return folder, look


def write(folder, **entries):
    """Replace the file as a kubelet does."""
    body = json.dumps({"policyName": "static", "entries": entries})
    (folder / "new").write_text(body)
    (folder / "new").replace(folder / kubelet_cpus.NOTES)


def test_notes_are_read_again_when_they_are_replaced(notes):
    folder, look = notes
    write(folder, u={"app": "1-2"})
    assert look(0.0) == ("", {"u": {1, 2}})
    write(folder)
    assert look(kubelet_cpus.NOTES_SECONDS) == ("", {})


def test_no_notes_say_that_nothing_was_handed_out(notes):
    assert notes[1](0.0) == ("", {})


def test_notes_that_cannot_be_read_are_named_and_the_last_ones_stand(notes):
    folder, look = notes
    write(folder, u={"app": "1"})
    look(0.0)
    (folder / kubelet_cpus.NOTES).write_text("{")
    problem, entries = look(kubelet_cpus.NOTES_SECONDS)
    assert str(folder) in problem
    assert entries == {"u": {1}}


def test_a_folder_that_is_not_there_is_named(notes):
    folder, look = notes
    folder.rmdir()
    problem, entries = look(0.0)
    assert "kubelet.folder" in problem
    assert entries is None
