"""Runs the tests in processes that are forked once everything is imported and collected.

To collect the tests takes ten seconds of processor time. Processes that each do so, as those of
pytest-xdist, take more of it than a few more of them gain, while tests of sockets and of processes
leave processors idle. `--workers N` forks N processes after one collection. Each takes a file of
tests at a time, so fixtures of a module are set up once.
"""

import collections
import contextlib
import dataclasses
import multiprocessing
import multiprocessing.connection
import typing
import warnings

import pytest
from _pytest import reports

from simulator.processes import children

# Tests of these folders wait more than they compute. Some processes begin with them and the others
# at the other end, so that there is something to compute all the time.
WAITING = ("scenarios", "cli")
# Of these, files that take longest: a worker that began one last would end long after the others.
LONGEST = (
    "tests/cli/commands/test_dev.py",
    "tests/scenarios/quota/test_shares.py",
    "tests/scenarios/quota/test_reported_limits.py",
    "tests/scenarios/quota/test_reported_pods.py",
    "tests/scenarios/migration/test_moves.py",
    "tests/scenarios/gangs/whole/test_start.py",
    "tests/scenarios/quota/test_quota_preemption.py",
    "tests/scenarios/scheduler/test_extender_answers.py",
)
# So many processes begin at the other end for each one that begins with tests that wait.
COMPUTING = 2
_FORK = multiprocessing.get_context("fork")
_ENDED = "--workers: the process that ran it ended with status {}"


def pytest_addoption(parser):
    parser.addoption(
        "--workers",
        type=int,
        default=0,
        metavar="N",
        help="run the tests in N processes that are forked after collection",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    option = session.config.option
    if not option.workers or option.collectonly or session.testsfailed or not session.items:
        return None
    run = Run(session)
    try:
        run.run()
    finally:
        run.end()
    return True


class Passed(typing.NamedTuple):
    """The report of a phase of a test that passed without output, as most do."""

    when: str
    start: float
    stop: float
    duration: float


@dataclasses.dataclass(slots=True)
class Worker:
    """One forked process, and the places of the tests that it has not reported yet."""

    number: int
    process: multiprocessing.Process
    pipe: multiprocessing.connection.Connection
    owed: list[int]


class Files:
    """The places of tests by file, those of tests that wait first."""

    def __init__(self, items):
        found = collections.defaultdict(list)
        for place, item in enumerate(items):
            found[item.path].append(place)
        # Sorting keeps the order of pytest, also that of tests that disturb others.
        self._left = collections.deque(
            sorted(found.values(), key=lambda places: _rank(items[places[0]]))
        )

    def take(self, number):
        """The next places for a process; none where all are taken."""
        if not self._left:
            return []
        return self._left.pop() if number % (COMPUTING + 1) else self._left.popleft()

    def give_back(self, places):
        """Leave to others what a process did not get to."""
        if places:
            self._left.appendleft(places)


def _rank(item):
    file = item.nodeid.partition("::")[0]
    folders = file.split("/")
    return file not in LONGEST, len(folders) < 2 or folders[1] not in WAITING


class Run:
    """Hands tests out and reports what became of them."""

    def __init__(self, session):
        self._session = session
        self._hook = session.config.hook
        self._files = Files(session.items)
        self._workers = {}
        self._started = 0
        self._base = session.config._tmp_path_factory.getbasetemp()
        if terminal := session.config.pluginmanager.get_plugin("terminalreporter"):
            # The files of several processes come in turn.
            terminal.showfspath = False

    def run(self):
        """Run everything."""
        for number in range(self._session.config.option.workers):
            self._start(number)
        while self._workers:
            for pipe in multiprocessing.connection.wait(list(self._workers)):
                self._hear(self._workers[pipe])

    def end(self):
        """End the processes that are left after an interruption."""
        for worker in self._workers.values():
            worker.process.kill()
            worker.process.join()

    def _start(self, number):
        pipe, theirs = _FORK.Pipe()
        self._started += 1
        arguments = (
            self._session, theirs, self._base / f"w{self._started}", [*self._workers, pipe]
        )  # fmt: skip
        process = _FORK.Process(target=_work, args=arguments)
        process.start()
        theirs.close()
        self._workers[pipe] = Worker(number, process, pipe, [])

    def _hear(self, worker):
        try:
            kind, *told = worker.pipe.recv()
        except (EOFError, ConnectionError):
            self._ended(worker)
            return
        if kind == "more":
            places = self._files.take(worker.number)
            worker.owed += places
            worker.pipe.send(places)
        elif kind == "warning":
            message, when, nodeid, location = told
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": message, "when": when, "nodeid": nodeid, "location": location
                }
            )  # fmt: skip
        else:
            place, location, found = told
            worker.owed.remove(place)
            nodeid = self._session.items[place].nodeid
            self._report(nodeid, location, [self._unpacked(nodeid, location, one) for one in found])

    def _unpacked(self, nodeid, location, packed):
        if isinstance(packed, Passed):
            when, start, stop, duration = packed
            return reports.TestReport(
                nodeid, location, {}, "passed", None, when,
                start=start, stop=stop, duration=duration,
            )  # fmt: skip
        return self._hook.pytest_report_from_serializable(config=self._session.config, data=packed)

    def _ended(self, worker):
        worker.pipe.close()
        worker.process.join()
        del self._workers[worker.pipe]
        status = worker.process.exitcode
        if worker.owed:
            place, *rest = worker.owed
            self._files.give_back(rest)
            self._start(worker.number)
            item = self._session.items[place]
            self._report(item.nodeid, item.location, [_lost(item, status)])
        elif status:
            self._session.shouldfail = f"a process of --workers ended with status {status}"
            self._heed()

    def _report(self, nodeid, location, found):
        self._hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        for report in found:
            self._hook.pytest_runtest_logreport(report=report)
        self._hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        self._heed()

    def _heed(self):
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)


def _lost(item, status):
    return reports.TestReport(
        item.nodeid, item.location, {}, "failed", _ENDED.format(status), "call"
    )


class Telling:
    """Tells the first process what this one runs."""

    def __init__(self, config, pipe):
        self._config = config
        self._pipe = pipe
        self._found = []
        self._begun = False

    def items(self, items):
        """Ask for tests until there are no more."""
        self._begun = True
        while True:
            self._pipe.send(("more",))
            places = self._pipe.recv()
            if not places:
                return
            for place in places:
                yield place, items[place]

    def finish(self, place, location):
        """Send what became of one test."""
        self._pipe.send(("ran", place, location, self._found))
        self._found = []

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report):
        self._found.append(self._packed(report))

    def _packed(self, report):
        if report.passed and not (report.sections or report.user_properties):
            return Passed(report.when, report.start, report.stop, report.duration)
        return self._config.hook.pytest_report_to_serializable(config=self._config, report=report)

    @pytest.hookimpl
    def pytest_warning_recorded(self, warning_message, when, nodeid, location):
        if not self._begun:
            # The first process has recorded it, before it forked this one.
            return
        # Where it comes from may be an open socket.
        plain = warnings.WarningMessage(
            str(warning_message.message),
            warning_message.category,
            warning_message.filename,
            warning_message.lineno,
        )
        self._pipe.send(("warning", plain, when, nodeid, location))


def _work(session, pipe, folder, others):
    """Run tests in a forked process until there are no more."""
    children.die_with_parent()
    # Whoever held one of these would keep its reader from seeing an end.
    for other in others:
        other.close()
    config = session.config
    _alone(config, folder)
    telling = Telling(config, pipe)
    config.pluginmanager.register(telling, "workers-telling")
    with contextlib.suppress(KeyboardInterrupt):
        left = telling.items(session.items)
        following = next(left, None)
        while following is not None:
            (place, item), following = following, next(left, None)
            config.hook.pytest_runtest_protocol(item=item, nextitem=following and following[1])
            telling.finish(place, item.location)
        # What is left behind at the very end is an error as well.
        config._ensure_unconfigure()


def _alone(config, folder):
    """Take from a forked process what it shares with the first one."""
    plugins = config.pluginmanager
    if plugins.has_plugin("terminalreporter"):
        plugins.unregister(name="terminalreporter")
    capture = plugins.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder
