"""What pods hold of CPUs and devices, counted from API objects alone, and what is wrong with it."""

import collections
import json

from api import names
from api.wire import quantity

FINISHED = ("Succeeded", "Failed")
STATUS = "scheduling.koordinator.sh/resource-status"
CPU_PAGE = "/debug/plugins/NodeNUMAResource?node="
DEVICE_PAGE = "/debug/plugins/DeviceShare?node="
PERCENT = (names.GPU_CORE, names.GPU_MEMORY_RATIO, names.RDMA, names.FPGA)


def cpus(text):
    """The CPUs of a list such as 0-3,8."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def annotation(pod, name):
    written = (pod["metadata"].get("annotations") or {}).get(name)
    return json.loads(written) if written else {}


def minors(pod, kind="gpu"):
    """The minors of one type that a pod was given."""
    given = annotation(pod, names.ANNOTATION_DEVICE_ALLOCATED)
    return [one["minor"] for one in given.get(kind, ())]


def cpuset(pod):
    """The CPUs that a pod was given."""
    return cpus(annotation(pod, STATUS).get("cpuset", ""))


class Recount:
    """The pods of one node, with its NodeResourceTopology and its Device object."""

    def __init__(self, node, shape, device, pods):
        self.node, self.shape = node, shape
        self.devices = {
            (one["type"], one["minor"]): one
            for one in (device or {}).get("spec", {}).get("devices", ())
        }
        self.pods = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod
            for pod in pods
            if pod["spec"].get("nodeName") == node and pod["status"]["phase"] not in FINISHED
        }

    def cpusets(self):
        """The CPUs of every pod that has some."""
        return {key: held for key, pod in self.pods.items() if (held := cpuset(pod))}

    def granted(self):
        """The devices of every pod: type and minor to amounts."""
        found = {}
        for key, pod in self.pods.items():
            written = annotation(pod, names.ANNOTATION_DEVICE_ALLOCATED)
            amounts = {
                (kind, one["minor"]): {
                    name: quantity.amount(name, text) for name, text in one["resources"].items()
                }
                for kind, granted in written.items()
                for one in granted
            }
            if amounts:
                found[key] = amounts
        return found

    def sums(self):
        """What pods hold of every device together."""
        total = collections.defaultdict(collections.Counter)
        for amounts in self.granted().values():
            for device, held in amounts.items():
                total[device].update(held)
        return total

    def problems(self):
        """What cannot be true."""
        yield from self._cpu_problems()
        yield from self._zone_problems()
        for (kind, minor), held in self.sums().items():
            known = self.devices.get((kind, minor))
            if known is None:
                yield f"{self.node} has no {kind} {minor}"
                continue
            for name, value in held.items():
                most = quantity.amount(name, (known.get("resources") or {}).get(name, "0"))
                if known["health"] and value > most:
                    yield f"{self.node}: {value} of {most} {name} of {kind} {minor} are held"
        for key, pod in self.pods.items():
            yield from self._short(key, pod)

    def _cpu_problems(self):
        there = set(range(self.shape.cpus)) - cpus(self.shape.reserved)
        holders = collections.defaultdict(list)
        for key, held in self.cpusets().items():
            for cpu in held:
                holders[cpu].append(key)
            if held - there:
                yield f"{key} holds CPUs {sorted(held - there)}, which {self.node} does not give"
        for cpu, keys in holders.items():
            if len(keys) > 1:
                yield f"{self.node}: CPU {cpu} is held by {keys}"

    def _zone_problems(self):
        held = collections.defaultdict(collections.Counter)
        for pod in self.pods.values():
            for one in annotation(pod, STATUS).get("numaNodeResources", ()):
                for name, text in one["resources"].items():
                    held[one["node"]][name] += quantity.amount(name, text)
        most = 1000 * self.shape.cores * self.shape.threads
        for node, amounts in held.items():
            if amounts["cpu"] > most:
                yield f"{self.node}: {amounts['cpu']} of {most} millicores of NUMA node {node}"

    def _short(self, key, pod):
        """A pod that was bound without what it asked for."""
        asked = collections.Counter()
        for container in pod["spec"]["containers"]:
            for name, text in container["resources"].get("requests", {}).items():
                asked[name] += quantity.amount(name, text)
        if pod["metadata"].get("labels", {}).get(names.LABEL_QOS) in ("LSR", "LSE"):
            found = len(cpuset(pod))
            if 1000 * found != asked["cpu"]:
                yield f"{key} has {found} CPUs for {asked['cpu']} millicores"
        given = collections.Counter()
        for amounts in self.granted().get(key, {}).values():
            given.update(amounts)
        wanted = asked[names.GPU] + 100 * asked[names.NVIDIA_GPU]
        if wanted != given[names.GPU_CORE] or given[names.RDMA] < asked[names.RDMA]:
            yield f"{key} asks {dict(asked)} and was given {dict(given)}"

    def differences(self, cpu_page, device_page):
        """Where the extender's own pages say something else."""
        held = {key: one["cpuset"] for key, one in cpu_page["allocatedPods"].items()}
        said = {key: cpus(text) for key, text in held.items() if text}
        if said != self.cpusets():
            yield f"{self.node}: CPUs {self.cpusets()}, the extender says {said}"
        taken = set().union(*self.cpusets().values()) | cpus(self.shape.reserved)
        free = set(range(self.shape.cpus)) - taken
        if cpus(cpu_page["availableCPUs"]) != free:
            yield f"{self.node}: CPUs {free} are free, not {cpu_page['availableCPUs']}"
        shown = {
            key: {
                (kind, int(minor)): {n: quantity.amount(n, text) for n, text in amounts.items()}
                for kind, by_pod in device_page["allocateSet"].items()
                for minor, amounts in by_pod.get(key, {}).items()
            }
            for key in {key for by_pod in device_page["allocateSet"].values() for key in by_pod}
        }
        if shown != self.granted():
            yield f"{self.node}: devices {self.granted()}, the extender says {shown}"
        for (kind, minor), held in self.sums().items():
            used = device_page["deviceUsedDetail"][kind][str(minor)]
            if {name: quantity.amount(name, text) for name, text in used.items()} != held:
                yield f"{self.node}: {dict(held)} of {kind} {minor} are held, not {used}"
        for what in ("overused", "withoutRecord"):
            if device_page.get(what):
                yield f"{self.node}: {what} {device_page[what]}"

    def status_differences(self, device):
        """Where the status of the Device object says something else of who holds what."""
        told = ((device or {}).get("status") or {}).get("deviceAllocations") or ()
        said = {
            (one["device"]["deviceType"], one["device"]["minor"]): {
                f"{share['pod']['namespace']}/{share['pod']['name']}": share["allocated"]
                for share in one["allocations"]
            }
            for one in told
        }
        held = collections.defaultdict(dict)
        for key, amounts in self.granted().items():
            for found, parts in amounts.items():
                held[found][key] = f"{max(parts.get(name, 0) for name in PERCENT)}%"
        if said != held:
            yield f"{self.node}: {dict(held)} are held, the status of the Device says {said}"
