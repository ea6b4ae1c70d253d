"""Limit and weigh the block I/O of best-effort work, and tell the kernel what disks can do."""

from collections.abc import Iterable, Mapping

from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import reconciliation
from agent.hooks.lifecycle import subject as subjects
from agent.model import blkio_annotation, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from domain import wording

_R = edits.Role
_LIMITS = {
    _R.IO_READ_IOPS: "read_iops",
    _R.IO_WRITE_IOPS: "write_iops",
    _R.IO_READ_BPS: "read_bps",
    _R.IO_WRITE_BPS: "write_bps",
}
FULL_WEIGHT = 100
_ROOT = ""
_LATENCY_US, _LATENCY_PERCENT = 3000, 95
Lines = dict[edits.Role, dict[str, str]]


def decide(picture: state.NodeState, classes: strategy_settings.Classes) -> edits.Decision:
    """Return limits and weights of the best-effort class, of pods and of the disks themselves."""
    wanted: list[edits.Edit] = []
    unknown: set[str] = set()
    group = picture.qos_groups.get(state.BEST_EFFORT, "")
    if group:
        devices = classes.devices.get(qos.QoS.BE, ())
        reason = "block I/O of the best-effort class"
        wanted += _edits(group, _limits(devices, picture.disks, "", unknown), reason)
    found = reconciliation.of_pods(picture.pods, HOOK.bind(picture.disks))
    wanted += found.wanted
    lines = _models(classes.root_devices, picture.disks, unknown)
    wanted += _edits(_ROOT, lines, "cost of block I/O on this disk")
    unmet = f"no disk found for {', '.join(sorted(unknown)[:5])}" if unknown else ""
    for pod in picture.pods:
        unknown |= _of_pod(pod, picture.disks)[1] if _asks(pod) else set()
    if not wanted and not unknown:
        return edits.switched_off("block I/O is set neither for a class nor for a pod")
    count = len({edit.group for edit in wanted})
    reason = f"block I/O of {wording.count(count, 'group', 'groups')}"
    if unknown:
        reason += f"; no disk found for {', '.join(sorted(unknown)[:5])}"
    figures = {"unknown-disks": float(len(unknown))}
    return edits.Decision(reason, tuple(wanted), figures=figures, unmet=unmet)


def adjust(subject: subjects.Subject, disks: Mapping[str, str]) -> adjustments.Adjustment:
    """Return limits and weights of a pod that asks for them."""
    pod = subject.pod
    if subject.level is not subjects.Level.POD or not pod.active:
        return adjustments.NOTHING
    if subject.stage is subjects.Stage.RECONCILE and not _asks(pod):
        return adjustments.NOTHING
    if not pod.pod.metadata.annotations.get(names.ANNOTATION_BLKIO_QOS) or _unclassed(pod):
        return adjustments.NOTHING
    lines, _ = _of_pod(pod, disks)
    reason = "block I/O that the pod asks for"
    return adjustments.Adjustment(
        {role: adjustments.Value(_text(found), reason) for role, found in lines.items()}
    )


HOOK = adjustments.Hook("BlkIOReconcile", adjust)


def _unclassed(pod: state.PodState) -> bool:
    return pod.qos is qos.QoS.NONE


def _asks(pod: state.PodState) -> bool:
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_BLKIO_QOS)
    return bool(written) and not _unclassed(pod) and pod.pod.status.phase == "Running"


def _of_pod(pod: state.PodState, disks: Mapping[str, str]) -> tuple[Lines, set[str]]:
    """Return what a pod asks for, and the disks that this host does not have."""
    unknown: set[str] = set()
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_BLKIO_QOS, "")
    asked = blkio_annotation.read(written)
    return _limits(asked, disks, pod.pod.metadata.uid, unknown), unknown


def _limits(
    devices: Iterable[strategy_settings.Device],
    disks: Mapping[str, str],
    uid: str,
    unknown: set[str],
) -> Lines:
    found: Lines = {}
    for device in devices:
        number = _number(device, disks, uid, unknown)
        if number is None:
            continue
        for role, field in _LIMITS.items():
            amount: int | None = getattr(device, field)
            if amount is not None and amount > 0:
                found.setdefault(role, {})[number] = str(amount)
        if device.weight is not None and 1 <= device.weight < FULL_WEIGHT:
            found.setdefault(_R.IO_WEIGHT, {})[number] = str(device.weight)
    return found


def _models(
    devices: Iterable[strategy_settings.Device], disks: Mapping[str, str], unknown: set[str]
) -> Lines:
    """Return what the kernel needs to know of the disks; it weighs I/O by it."""
    found: Lines = {}
    for device in devices:
        number = _number(device, disks, "", unknown)
        if number is None:
            continue
        found.setdefault(_R.IO_COST_QOS, {})[number] = (
            f"enable=1 ctrl=user rpct={_or(device.read_latency_percent, _LATENCY_PERCENT)} "
            f"rlat={_or(device.read_latency, _LATENCY_US)} "
            f"wpct={_or(device.write_latency_percent, _LATENCY_PERCENT)} "
            f"wlat={_or(device.write_latency, _LATENCY_US)}"
        )
        model = "ctrl=auto"
        if device.user_model:
            fields = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
            pairs = zip(fields, device.model, strict=True)
            model = f"ctrl=user {' '.join(f'{name}={value}' for name, value in pairs)}"
        found.setdefault(_R.IO_COST_MODEL, {})[number] = model
    return found


def _number(
    device: strategy_settings.Device, disks: Mapping[str, str], uid: str, unknown: set[str]
) -> str | None:
    inside = f"{uid}/{device.name}" if device.kind == "podvolume" else device.name
    key = f"{device.kind}:{inside}"
    number = disks.get(key)
    if number is None:
        unknown.add(key)
    return number


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _edits(group: str, lines: Lines, reason: str) -> list[edits.Edit]:
    return [edits.Edit(role, group, _text(found), reason) for role, found in lines.items()]


def _text(lines: Mapping[str, str]) -> str:
    return "\n".join(f"{number} {value}" for number, value in lines.items())
