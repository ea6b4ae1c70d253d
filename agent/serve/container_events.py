"""Answers events of containers from rules that were frozen in the latest tick.

A thread of its own asks; it reads one immutable snapshot, computes, records what the runtime will
set in place of what was requested, and returns. It waits for no tick. Only for a pod that the
agent does not know yet it waits a moment, while the kubelet is asked for it.
"""

import functools
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agent.apply import deliveries
from agent.hooks.lifecycle import adjustment, reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import cgroup_layout, edits, live_switches, state
from agent.nri import messages
from agent.serve import adjusted_messages, container_starts, snapshots, write_rivals
from api.koordinator.metadata import qos
from api.kubernetes import core

EVENTS: Final = messages.mask(
    messages.Event.RUN_POD_SANDBOX,
    messages.Event.CREATE_CONTAINER,
    messages.Event.POST_CREATE_CONTAINER,
    messages.Event.START_CONTAINER,
    messages.Event.UPDATE_CONTAINER,
)
WAIT_SECONDS: Final = 0.01
"""How long the answer for a container of an unknown pod waits for the kubelet's list."""
CREATE, START, UPDATE = "create", "start", "update"
RESULTS: Final = ("adjusted", "unchanged", "held-back", "unrecorded", "late")
_KATA_HANDLER: Final = "kata"
_PATH: Final = re.compile(r"(?:[^:/]+:(?P<scope>[A-Za-z0-9._-]+):|.*/)(?P<name>[A-Za-z0-9._-]+)")
_logger = logging.getLogger(__name__)
Snapshot = snapshots.Snapshot
Record = Callable[[list[deliveries.Delivered]], None]


def _no_record(_delivered: list[deliveries.Delivered]) -> None:
    return


class Events:
    """The handler of a session."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        record: Record = _no_record,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`record` keeps what is delivered, and raises DeliveryError where it cannot."""
        self.counts = dict.fromkeys((*RESULTS, "problem"), 0)
        """Answers by outcome, and problems of hooks."""
        self.counted: Callable[[str, str], None] = lambda _event, _result: None
        """Takes the event and the result of each answer."""
        self.unknown: Callable[[str], None] = lambda _uid: None
        """Takes the uid of a pod that starts or asks and is not in the snapshot."""
        self.started: Callable[[str], None] = lambda _uid: None
        """Takes the uid of a pod whose sandbox runs."""
        self.rivals = write_rivals.Rivals()
        self.starts = container_starts.Starts()
        """Has written what a runtime cannot set, before a container starts."""
        self.has_cgroup = True
        """Whether containers that are about to start have a cgroup."""
        self.stood_down: Callable[[], None] = lambda: None
        """Called when another plug-in is found to set the same fields."""
        self.failed: Callable[[str], None] = lambda _hook: None
        """Takes the hook that could not give a container its values."""
        self._snapshot = Snapshot()
        self._changed = threading.Condition()
        self._monotonic = monotonic
        self._record = record
        self._wait_seconds = wait_seconds

    @property
    def snapshot(self) -> Snapshot:
        """What answers are made of."""
        return self._snapshot

    @snapshot.setter
    def snapshot(self, now: Snapshot) -> None:
        with self._changed:
            self._snapshot = now
            self._changed.notify_all()

    @property
    def problem(self) -> str:
        """Why nothing is adjusted, empty where it is."""
        if not self.rivals.standing_down(self._monotonic()):
            return ""
        return "another NRI plug-in sets the same fields; only reconciliation sets values"

    def synchronized(self, pods: list[bytes], containers: list[bytes]) -> None:
        """Leave containers that exist already to reconciliation."""
        _logger.info("NRI named pods=%d containers=%d", len(pods), len(containers))

    def create_container(self, pod: Any, container: Any) -> Any:
        """Return the ContainerAdjustment of a new container, None where nothing is wanted."""
        key = (messages.text(pod.uid), messages.text(container.name))
        if self.rivals.standing_down(self._monotonic()) or not self.rivals.may_adjust(key):
            return self._counted(CREATE, "held-back", None)
        asked = container.linux.resources
        score = container.linux.oom_score_adj
        has_score = container.linux.has_field("oom_score_adj")
        requested = adjusted_messages.requested(asked, score if has_score else None)
        made = self._answered(CREATE, pod, container, requested)
        if made is not None:
            self.rivals.adjusted(key)
        return made

    def update_container(self, pod: Any, container: Any, resources: Any) -> Any:
        """Return the LinuxResources that hooks want beside those of an update."""
        if self.rivals.standing_down(self._monotonic()):
            return self._counted(UPDATE, "held-back", None)
        return self._answered(UPDATE, pod, container, adjusted_messages.requested(resources))

    def state_changed(self, event: int, pod: Any, container: Any) -> None:
        """Take that a pod's sandbox runs, that a container was created, or is about to start.

        A container that starts without a cgroup yet has none that could be written before.
        """
        uid = messages.text(pod.uid)
        if event == messages.Event.RUN_POD_SANDBOX:
            (self.started if uid in self.snapshot.pods else self.unknown)(uid)
        elif event == messages.Event.START_CONTAINER:
            self._begin(pod, container)
        elif event == messages.Event.POST_CREATE_CONTAINER:
            key = (uid, messages.text(container.name))
            if self.rivals.created(key, self._monotonic()):
                self.stood_down()
                _logger.warning("NRI adjustments stand down reason=%s", self.problem)

    def _counted(self, event: str, result: str, made: Any) -> Any:
        self.counts[result] += 1
        self.counted(event, result)
        return made

    def _answered(
        self, event: str, pod: Any, container: Any, requested: Mapping[edits.Role, str]
    ) -> Any:
        known = self._known(messages.text(pod.uid))
        now = self.snapshot
        seen = known or unknown_pod(pod, now.layout)
        if not _may(seen, now):
            return self._counted(event, "held-back", None)
        quota = requested.get(edits.Role.CPU_QUOTA)
        is_update = event == UPDATE
        stages = subjects.Stage
        of = subjects.Subject(
            stages.UPDATE_CONTAINER if is_update else stages.CREATE_CONTAINER,
            subjects.Level.CONTAINER,
            seen,
            container_of(seen, messages.text(container.name)),
            spec_known=known is not None,
            requested_quota_us=None if quota is None else int(quota),
        )
        found = self._asked(of, now)
        wanted = _of_update(found.values, quota) if is_update else found.values
        values = adjusted_messages.deliverable(wanted, seen, now, of.requested_quota_us)
        if is_update:
            made = adjusted_messages.resources(values)
        else:
            made = adjusted_messages.adjusted(found, values)
        if made is None:
            return self._counted(event, "unchanged", None)
        try:
            self._keep(values, requested, _group(seen, container), now)
        except deliveries.DeliveryError as error:
            _logger.warning("nothing is adjusted reason=%s", error)
            return self._counted(event, "unrecorded", None)
        return self._counted(event, "adjusted", made)

    def _begin(self, pod: Any, container: Any) -> None:
        """Have written what the runtime was not told when it created a container."""
        now = self.snapshot
        known = now.pods.get(messages.text(pod.uid))
        seen = known or unknown_pod(pod, now.layout)
        if not now.rules.stages or not _may(seen, now):
            self._counted(START, "held-back", None)
            return
        group = _group(seen, container) if self.has_cgroup else ""
        born = container_of(seen, messages.text(container.name), group)
        level, stage = subjects.Level.CONTAINER, subjects.Stage.CREATE_CONTAINER
        of = subjects.Subject(stage, level, seen, born, spec_known=known is not None)
        # What hooks could not give was told when the container was created.
        found, _ = adjustment.adjust(of, now.rules)
        of_pod = functools.partial(self.of_pod, seen, now, spec_known=of.spec_known)
        result = self.starts.begin(of, found, of_pod, now)
        self._counted(START, result, None)

    def of_pod(
        self, pod: state.PodState, now: Snapshot, *, spec_known: bool = True
    ) -> tuple[edits.Edit, ...]:
        """Return the edits of the cgroup of a pod itself, none where they may not be made."""
        if not pod.group or not _may(pod, now):
            return ()
        of = subjects.Subject(
            subjects.Stage.RUN_POD_SANDBOX, subjects.Level.POD, pod, spec_known=spec_known
        )
        found, problems = adjustment.adjust(of, now.rules)
        self._tell(of, problems)
        return reconciliation.edits_of(of, found)

    def _known(self, uid: str) -> state.PodState | None:
        """Return a pod, after a moment where it is not known yet."""
        found = self.snapshot.pods.get(uid)
        if found is not None or not self.snapshot.rules.stages:
            return found
        self.unknown(uid)
        with self._changed:
            self._changed.wait_for(lambda: uid in self._snapshot.pods, self._wait_seconds)
        return self.snapshot.pods.get(uid)

    def _asked(self, of: subjects.Subject, now: Snapshot) -> adjustment.Adjustment:
        found, problems = adjustment.adjust(of, now.rules)
        self.counts["problem"] += len(problems)
        self._tell(of, problems)
        return found

    def _tell(self, of: subjects.Subject, problems: Iterable[adjustment.Problem]) -> None:
        for problem in problems:
            self.failed(problem.hook)
            _logger.warning(
                "hook gave nothing pod=%s hook=%s reason=%s",
                of.pod.pod.metadata.key,
                problem.hook,
                problem.text,
                exc_info=problem.unexpected,
            )

    def _keep(
        self,
        values: adjusted_messages.Values,
        requested: Mapping[edits.Role, str],
        group: str,
        now: Snapshot,
    ) -> None:
        """Record values; what an update does not name was requested before."""
        if group:
            self._record(
                [
                    deliveries.Delivered(role, group, one.text, requested.get(role))
                    for role, one in values.items()
                ]
            )
        elif values and now.layout is not None:
            raise deliveries.DeliveryError("the runtime names no cgroup of the container")


def _of_update(wanted: adjusted_messages.Values, quota: str | None) -> adjusted_messages.Values:
    """Return what an update of a container changes beside the resources that it names.

    The kubelet reads the limits of a container from the runtime. So a quota that it asks for stays
    in the update, and reconciliation lifts it in the cgroup: otherwise the status of the pod would
    never show a limit that was resized.
    """
    left = {edits.Role.PROCESS_OOM_SCORE}
    lifted = wanted.get(edits.Role.CPU_QUOTA)
    if quota is not None and int(quota) > 0 and lifted is not None and lifted.text == "-1":
        left.add(edits.Role.CPU_QUOTA)
    return {role: one for role, one in wanted.items() if role not in left}


def _may(pod: state.PodState, now: Snapshot) -> bool:
    return now.scope.of_pod(pod, now.live) is live_switches.Mode.ENFORCE


def container_of(pod: state.PodState, name: str, group: str = "") -> state.ContainerState:
    """Return a container that is about to start, with what the spec of its pod asks for it."""
    spec = pod.pod.spec
    for listed, initial in ((spec.containers, False), (spec.init_containers, True)):
        for one in listed:
            if one.name == name:
                return state.ContainerState(name, group, one, initial=initial)
    return state.ContainerState(name, group, core.Container(name))


def unknown_pod(said: Any, arranged: cgroup_layout.Layout | None = None) -> state.PodState:
    """Return a pod of which only what the runtime says is known: its metadata, but no spec.

    A class that a namespace has to be entitled to does not count, nor do CPUs of its own.
    """

    def texts(pairs: Any) -> dict[str, str]:
        return {messages.text(key): messages.text(pairs[key]) for key in pairs}

    metadata = core.ObjectMeta(
        name=messages.text(said.name),
        namespace=messages.text(said.namespace),
        uid=messages.text(said.uid),
        labels=texts(said.labels),
        annotations=texts(said.annotations),
    )
    guest = messages.text(said.runtime_handler).startswith(_KATA_HANDLER)
    spec = core.PodSpec(runtime_class_name=state.KATA if guest else "")
    pod = core.Pod(metadata=metadata, spec=spec, status=core.PodStatus(phase="Pending"))
    parent = messages.text(said.linux.cgroup_parent)
    named = (("besteffort", state.BEST_EFFORT), ("burstable", "Burstable"))
    kubernetes_qos = next((name for part, name in named if part in parent), "Guaranteed")
    demoted = qos.qos_of(metadata.labels) is qos.QoS.SYSTEM
    group = _pod_group(metadata.uid, kubernetes_qos, arranged)
    return state.PodState(pod, kubernetes_qos, group=group, demoted=demoted)


def _pod_group(uid: str, kubernetes_qos: str, arranged: cgroup_layout.Layout | None) -> str:
    if arranged is None:
        return ""
    try:
        return arranged.pod_group(uid, kubernetes_qos)
    except cgroup_layout.LayoutError:
        return ""


def _group(pod: state.PodState, container: Any) -> str:
    """Return the cgroup that the runtime will make, empty where nothing names it.

    The runtime writes `/PARENT/NAME`, or `SLICE:PREFIX:NAME` where systemd makes the cgroup.
    """
    found = _PATH.fullmatch(messages.text(container.linux.cgroups_path))
    if not pod.group or found is None:
        return ""
    scope = found["scope"]
    return f"{pod.group}/{scope}-{found['name']}.scope" if scope else f"{pod.group}/{found['name']}"
