"""A plug-in beside a runtime, over a unix socket."""

import threading

import pytest

from agent.nri import link, messages, session
from tests.agent.nri import stand_in

EVENTS = messages.mask(messages.Event.RUN_POD_SANDBOX, messages.Event.CREATE_CONTAINER)
CREATE, UPDATE = "CreateContainerResponse", "UpdateContainerResponse"
wire = stand_in.wire


class Handler:
    """Remembers what it was asked, and gives every container a variable."""

    def __init__(self):
        self.seen, self.events, self.fails = [], [], False

    def synchronized(self, pods, containers):
        self.seen.append((len(pods), len(containers)))

    def create_container(self, pod, container):
        if self.fails:
            raise RecursionError("too deep")
        variable = messages.new("KeyValue", key="POD", value=pod.uid)
        return messages.new("ContainerAdjustment", env=[variable])

    def update_container(self, pod, container, resources):
        if not resources.has_field("cpu"):
            return None
        found = messages.new("LinuxResources")
        found.cpu.cpus = f"{resources.cpu.cpus},7"
        return found

    def state_changed(self, event, pod, container):
        self.events.append((event, pod.uid, dict(pod.labels)))


class Place:
    """A runtime, a plug-in, and its pauses."""

    def __init__(self, folder):
        self.runtime = stand_in.Runtime(folder / "nri.sock")
        self.handler = Handler()
        self.paused = []
        self.link = link.Link(str(folder / "nri.sock"), self.begin, self.wait)

    def begin(self):
        return session.Session("koord", "00", EVENTS, self.handler)

    def wait(self, ended: threading.Event, seconds: float) -> bool:
        self.paused.append(seconds)
        return ended.is_set()

    def connected(self, parts=None):
        self.runtime.accept()
        return self.runtime.greet(parts)

    def created(self, uid="u"):
        asked = wire.field(1, stand_in.pod(uid)) + wire.field(2, stand_in.container("c", uid))
        return self.runtime.call("CreateContainer", asked, CREATE)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    made.link.start()
    yield made
    made.link.close()
    made.runtime.close()


def test_a_plug_in_registers_and_subscribes(place):
    said = place.runtime.accept()
    assert (said.plugin_name, said.plugin_idx) == ("koord", "00")
    assert place.runtime.greet() == EVENTS
    place.created()
    assert place.link.problem == ""
    assert place.link.current.runtime == "containerd v2.2.9"


def test_a_container_that_is_created_is_adjusted(place):
    place.connected()
    found = place.created("pod-1")
    assert [(one.key, one.value) for one in found.adjust.env] == [("POD", "pod-1")]


@pytest.mark.parametrize("pieces", [1, 3])
def test_two_thousand_containers_are_handed_over_in_parts(place, pieces):
    place.runtime.pieces = pieces
    parts = [
        b"".join(wire.field(1, stand_in.pod(f"p{part}-{n}")) for n in range(100))
        + b"".join(wire.field(2, stand_in.container(f"c{part}-{n}", "p")) for n in range(200))
        for part in range(10)
    ]
    place.connected(parts)
    assert place.handler.seen == [(1000, 2000)]


def test_an_update_names_its_container(place):
    place.connected()
    asked = (
        wire.field(1, stand_in.pod("u"))
        + wire.field(2, stand_in.container("c-9", "u"))
        + wire.field(3, wire.field(2, wire.field(6, b"0-3")))
    )
    (update,) = place.runtime.call("UpdateContainer", asked, UPDATE).update
    assert update.container_id == "c-9"
    assert update.linux.resources.cpu.cpus == "0-3,7"


def test_an_update_that_needs_no_change_has_no_answer_of_ours(place):
    place.connected()
    asked = wire.field(1, stand_in.pod("u")) + wire.field(2, stand_in.container("c", "u"))
    assert not place.runtime.call("UpdateContainer", asked, UPDATE).update


def test_events_reach_the_handler(place):
    place.connected()
    said = wire.field(1, 1) + wire.field(2, stand_in.pod("u", {"a": "b"}))
    place.runtime.call("StateChange", said, "Empty")
    assert place.handler.events == [(1, "u", {"a": "b"})]


@pytest.mark.parametrize(("method", "event"), session.EVENTS.items(), ids=session.EVENTS)
def test_calls_of_their_own_are_the_same_events(place, method, event):
    place.connected()
    said = wire.field(1, stand_in.pod("u", {"a": "b"})) + wire.field(2, b"")
    place.runtime.call(method, said, "Empty")
    assert place.handler.events == [(event, "u", {"a": "b"})]


def test_a_handler_that_fails_stops_no_container(place):
    place.connected()
    place.handler.fails = True
    assert not place.created().has_field("adjust")
    assert place.link.current.failures == 1
    place.handler.fails = False
    assert place.created().adjust.env


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (stand_in.request("DanceContainer", b""), 12),
        (stand_in.request("CreateContainer", b"", b"other.Service"), 12),
        (stand_in.request("CreateContainer", b"\x0a\xff"), 3),
        (b"\xff\xff\xff", 3),
    ],
    ids=["method", "service", "payload", "request"],
)
def test_what_cannot_be_understood_is_refused_and_the_rest_goes_on(place, data, code):
    place.connected()
    assert place.runtime.answer(data).status.code == code
    assert place.created().adjust.env


@pytest.mark.parametrize("how", ["drop", "shutdown", "garbage"])
def test_a_plug_in_comes_back(place, how):
    place.connected()
    if how == "shutdown":
        place.runtime.call("Shutdown", b"", "Empty")
        assert place.runtime.ended()
    elif how == "garbage":
        place.runtime.send(b"\x00\x00\x00\x09\x00\x00\x00\x01x")
        assert place.runtime.ended()
    else:
        place.runtime.drop()
    place.connected()
    assert place.created().adjust.env
    assert place.link.connections == 2
    assert place.handler.seen == [(0, 0), (0, 0)]
    assert 1.0 <= place.paused[0] <= 1.1


def test_a_runtime_that_refuses_is_asked_again_ever_later(place):
    for _ in range(3):
        place.runtime.accept("no such plug-ins here")
        assert place.runtime.ended()
    place.connected()
    assert [round(one) for one in place.paused] == [1, 2, 4]


def test_a_socket_that_is_not_there_is_a_problem_with_its_path(tmp_path):
    paused = threading.Event()

    def wait(ended, _seconds):
        paused.set()
        return ended.wait(stand_in.PATIENCE)

    made = link.Link(str(tmp_path / "none.sock"), Place.begin, wait)
    made.start()
    assert paused.wait(stand_in.PATIENCE)
    assert "none.sock" in made.problem
    made.close()


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (5000, 60.0)]
)
def test_pauses_grow_to_a_bound_and_are_spread(failures, seconds):
    assert link.pause(failures, 0.0) == seconds
    assert link.pause(failures, 1.0) == pytest.approx(seconds * 1.1)
