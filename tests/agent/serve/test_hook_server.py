"""The thread of the hook server: it listens again, and ends when it is closed."""

import pytest

from agent.serve import container_events, hook_server


class Served:
    """A hook server whose pauses are counted."""

    def __init__(self, folder):
        self.pauses, self.paused = [], lambda: None
        place = hook_server.Place(folder / "run/hooks.sock", "/hooks.sock", folder / "etc/hooks")
        events = container_events.Events(lambda: 0.0)
        unnamed = hook_server.Unnamed(lambda _: None)
        self.server = hook_server.HookServer(place, events, unnamed, self._wait)
        self.file = folder / "etc/hooks" / hook_server.FILE

    def _wait(self, closed, seconds):
        self.pauses.append((self.server.problem, seconds))
        self.paused()
        return closed.is_set()


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path)
    yield made
    made.server.close()


def test_it_tries_again_where_it_could_not_register(served, tmp_path):
    blocked = tmp_path / "etc"
    blocked.write_text("no folder")
    served.paused = lambda: blocked.unlink() if len(served.pauses) == 2 else None
    served.server.start()
    while not served.file.exists():
        assert served.server._thread.is_alive()
    served.server.close()
    served.server._thread.join()
    problem, seconds = served.pauses[1]
    assert (str(blocked) in problem, seconds) == (True, hook_server.AGAIN_SECONDS)
    assert len(served.pauses) == 3


def test_the_socket_of_a_successor_stays(served, tmp_path):
    """An agent that was deleted by force ends beside the one that follows it."""
    following = Served(tmp_path)
    for one in (served, following):
        one.server.start()
        while one.server.problem:
            assert one.server._thread.is_alive()
    served.server.close()
    served.server._thread.join()
    assert (tmp_path / "run/hooks.sock").is_socket()
    following.server.close()
    following.server._thread.join()
    assert not (tmp_path / "run/hooks.sock").exists()


def test_one_that_is_closed_at_once_does_not_listen(served, tmp_path):
    served.server.close()
    served.server.start()
    served.server._thread.join()
    assert not (tmp_path / "run").exists()
