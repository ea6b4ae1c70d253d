"""The stock scheduler's side of the extender protocol."""

import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import aiohttp
import orjson

from simulator.scheduler import diagnosis, intree, preemption, scheduling_queue

_logger = logging.getLogger(__name__)

T = TypeVar("T")

# A point of an extender weighs as much as ten in-tree points.
POINT = 10


class Extender:
    """One extender that is sent names only, called through one connection pool."""

    def __init__(
        self,
        url: str,
        *,
        decide_seconds: float,
        bind_seconds: float,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._decide = aiohttp.ClientTimeout(total=decide_seconds)
        self._bind = aiohttp.ClientTimeout(total=bind_seconds)
        connector = aiohttp.TCPConnector(limit=0, ssl=context or True)
        self._session = aiohttp.ClientSession(connector=connector)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def filter(
        self, pod: intree.PodInfo, names: Sequence[str]
    ) -> tuple[list[str], dict[str, intree.Refusal]]:
        """Return the nodes that are left and why the others are not."""
        body = {"Pod": _sent(pod), "Nodes": None, "NodeNames": list(names)}
        answer = _folded(await self._post("filter", body, self._decide))
        if error := _read(answer.get("error"), str):
            raise diagnosis.AttemptError(error)
        left = [_read(name, str) for name in _read(answer.get("nodenames"), list)]
        asked = set(names)
        for name in left:
            if name not in asked:
                raise diagnosis.AttemptError(
                    f"extender {self._url} claims a filtered node {name} "
                    "which is not found in the input node list"
                )
        # Who vanishes without a reason is refused for good, as far as preemption goes.
        silent = asked.difference(left)
        refused = {name: _refusal("", resolvable=False) for name in names if name in silent}
        for field, resolvable in (("failednodes", True), ("failedandunresolvablenodes", False)):
            for name, reason in _read(answer.get(field), dict).items():
                refused[name] = _refusal(_read(reason, str), resolvable=resolvable)
        return left, refused

    async def prioritize(self, pod: intree.PodInfo, names: Sequence[str]) -> dict[str, int]:
        """Return points by node; an extender that fails gives none."""
        body = {"Pod": _sent(pod), "Nodes": None, "NodeNames": list(names)}
        try:
            answer = _read(await self._post("prioritize", body, self._decide), list)
            entries = [_folded(entry) for entry in answer]
            return {
                _read(entry.get("host"), str): _read(entry.get("score"), int) * POINT
                for entry in entries
            }
        except diagnosis.AttemptError as error:
            _logger.warning("scores were dropped pod=%s reason=%s", pod.key, error)
            return {}

    async def bind(self, pod: intree.PodInfo, node: str) -> None:
        """Let the extender bind; raises AttemptError with what it says."""
        body = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node,
        }
        answer = _folded(await self._post("bind", body, self._bind))
        if error := _read(answer.get("error"), str):
            raise diagnosis.AttemptError(error)

    async def preempt(
        self,
        pod: intree.PodInfo,
        offered: Mapping[str, preemption.Victims],
        nodes: Mapping[str, intree.NodeInfo],
    ) -> dict[str, preemption.Victims]:
        """Let the extender drop nodes or choose other victims among the pods of each node."""
        proposed = {
            node: {
                "Pods": [{"UID": victim.uid} for victim in victims.pods],
                "NumPDBViolations": victims.violations,
            }
            for node, victims in offered.items()
        }
        body = {
            "Pod": _sent(pod),
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": proposed,
        }
        answer = _folded(await self._post("preempt", body, self._decide))
        return {
            node: self._victims(node, _folded(entry), nodes)
            for node, entry in _read(answer.get("nodenametometavictims"), dict).items()
        }

    def _victims(
        self, node: str, entry: Mapping[str, Any], nodes: Mapping[str, intree.NodeInfo]
    ) -> preemption.Victims:
        if node not in nodes:
            raise diagnosis.AttemptError(f'nodeinfo not found for node name "{node}"')
        there = {pod.uid: pod for pod in nodes[node].pods.values()}
        chosen = []
        for item in _read(entry.get("pods"), list):
            uid = _read(_folded(item).get("uid"), str)
            if uid not in there:
                raise diagnosis.AttemptError(
                    f"extender: {self._url} claims to preempt pod (UID: &MetaPod{{UID:{uid},}}) "
                    f"on node: {node}, but the pod is not found on that node"
                )
            chosen.append(there[uid])
        if not chosen:
            raise diagnosis.AttemptError(f'expected at least one victim pod on node "{node}"')
        return preemption.Victims(tuple(chosen), _read(entry.get("numpdbviolations"), int))

    async def _post(self, verb: str, body: Any, timeout: aiohttp.ClientTimeout) -> Any:
        url = f"{self._url}/{verb}"
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                url, data=orjson.dumps(body), headers=headers, timeout=timeout
            ) as response:
                text = await response.read()
                if response.status != 200:
                    raise diagnosis.AttemptError(
                        f"failed {verb} with extender at URL {url}, code {response.status}"
                    )
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or "context deadline exceeded"
            raise diagnosis.AttemptError(f'Post "{url}": {why}') from error
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise diagnosis.AttemptError(f"{url} did not answer with JSON: {error}") from error


def _sent(pod: intree.PodInfo) -> dict[str, Any]:
    meta = {key: value for key, value in pod.raw["metadata"].items() if key != "managedFields"}
    return {**pod.raw, "metadata": meta}


def _folded(answer: Any) -> dict[str, Any]:
    """Go reads keys without regard to case, so this does."""
    return {str(key).lower(): value for key, value in _read(answer, dict).items()}


def _read(value: Any, wanted: type[T]) -> T:
    """Return a part of an answer, which has to be of this type; null is its empty value."""
    if value is None:
        return wanted()
    # Not a subclass: what is true or false is no number.
    if type(value) is not wanted:
        raise diagnosis.AttemptError(
            f"json: cannot unmarshal {type(value).__name__} into a {wanted.__name__} of an answer"
        )
    return value


def _refusal(reason: str, *, resolvable: bool) -> intree.Refusal:
    reasons = (reason,) if reason else ()
    return intree.Refusal(scheduling_queue.EXTENDER, reasons, resolvable)
