"""Gangs as tests write them."""

import msgspec

from api import names, resources
from api.kubernetes import core
from api.wire import durations
from domain.gangs import plan_record
from kube.informers import store
from manager.gangs import gang_book, objects
from tests import builders

CREATED = 1_700_000_000.0
NOTES = {
    "min": names.ANNOTATION_GANG_MIN_AVAILABLE,
    "groups": names.ANNOTATION_GANG_GROUPS,
    "repair": names.ANNOTATION_GANG_REPAIR,
    "mode": names.ANNOTATION_GANG_MODE,
    "bound_with": names.ANNOTATION_BIND_GANG_GROUP,
    "plan": names.ANNOTATION_PLAN,
    "mirror": "kubernetes.io/config.mirror",
}


def raw_pod(name, gang="g", namespace="default", *, group=False, **given):
    """Return a pod of a gang: by annotations, or as a member of the PodGroup of that name."""
    notes = {NOTES[key]: str(given.pop(key)) for key in tuple(NOTES) if key in given}
    labels = {names.LABEL_POD_GROUP: gang} if group else {}
    if not group:
        notes[names.ANNOTATION_GANG_NAME] = gang
    given.setdefault("created", CREATED)
    return builders.a_pod(name, namespace, labels=labels, annotations=notes, **given)


def binding(generation, completes=""):
    """Return the annotations of a pod that a plan has bound, perhaps to complete another one."""
    record = plan_record.Record("default/g", generation, "n1", completes=completes)
    return {NOTES["bound_with"]: "default/g", NOTES["plan"]: plan_record.encode(record)}


def bound(name, generation, *, completes="", **given):
    """Return a pod that a plan has bound together with others."""
    found = binding(generation, completes)
    notes = {key: found[NOTES[key]] for key in ("bound_with", "plan")}
    return pod(name, **{"node": "n1", **notes, **given})


def pod(name, gang="g", namespace="default", *, deleting=False, **given):
    """Return a pod of a gang as the manager keeps it."""
    raw = raw_pod(name, gang, namespace, **given)
    raw["metadata"]["uid"] = f"uid-{namespace}-{name}"
    if deleting:
        raw["metadata"]["deletionTimestamp"] = durations.moment(CREATED)
    found = objects.gang_pod(msgspec.convert(raw, core.Pod))
    assert found is not None
    return found


def raw_group(name="g", namespace="default", least=2, *, status=None, notes=None, **spec):
    """Return a PodGroup of scheduling.sigs.k8s.io."""
    kind = resources.POD_GROUPS
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"group-{namespace}-{name}",
            "resourceVersion": "7",
            "creationTimestamp": durations.moment(CREATED),
            "annotations": {NOTES[key]: value for key, value in (notes or {}).items()},
        },
        "spec": {"minMember": least, **spec},
        "status": status or {},
    }


def group(*args, **given):
    """Return a PodGroup as the manager keeps it."""
    found = objects.pod_group(raw_group(*args, **given))
    assert found is not None
    return found


class Cluster:
    """A book of gangs that is fed by hand, as informers would."""

    def __init__(self):
        self.pods, self.groups = store.Store(), store.Store()
        self.book = gang_book.GangBook(self.pods, self.groups)
        self.version = 0

    def put(self, *found):
        for one in found:
            self.version += 1
            seen = self.pods if isinstance(one, objects.GangPod) else self.groups
            key = f"{one.namespace}/{one.name}"
            seen.put(store.Meta(key, one.uid, self.version), one)
        return self

    def observed(self, gang_id="default/g"):
        found = self.book.observed(gang_id)
        assert found is not None
        return found


def observed(*found, gang_id="default/g"):
    """Return a gang of these objects."""
    return Cluster().put(*found).observed(gang_id)
