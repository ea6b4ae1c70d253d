"""The stock scheduler's side of the extender protocol."""

import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from simulator.scheduler import diagnosis, intree, preemption, scheduling_queue

_logger = logging.getLogger(__name__)

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
        if answer.get("error"):
            raise diagnosis.AttemptError(str(answer["error"]))
        left = answer.get("nodenames") or []
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
            for name, reason in (answer.get(field) or {}).items():
                refused[name] = _refusal(reason, resolvable=resolvable)
        return list(left), refused

    async def prioritize(self, pod: intree.PodInfo, names: Sequence[str]) -> dict[str, int]:
        """Return points by node; an extender that fails gives none."""
        body = {"Pod": _sent(pod), "Nodes": None, "NodeNames": list(names)}
        try:
            answer = await self._post("prioritize", body, self._decide)
        except diagnosis.AttemptError as error:
            _logger.warning("scores were dropped pod=%s reason=%s", pod.key, error)
            return {}
        entries = [_folded(entry) for entry in answer or ()]
        return {entry["host"]: int(entry["score"]) * POINT for entry in entries}

    async def bind(self, pod: intree.PodInfo, node: str) -> None:
        """Let the extender bind; raises AttemptError with what it says."""
        body = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node,
        }
        answer = _folded(await self._post("bind", body, self._bind))
        if answer.get("error"):
            raise diagnosis.AttemptError(str(answer["error"]))

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
            for node, entry in (answer.get("nodenametometavictims") or {}).items()
        }

    def _victims(
        self, node: str, entry: Mapping[str, Any], nodes: Mapping[str, intree.NodeInfo]
    ) -> preemption.Victims:
        if node not in nodes:
            raise diagnosis.AttemptError(f'nodeinfo not found for node name "{node}"')
        there = {pod.uid: pod for pod in nodes[node].pods.values()}
        chosen = []
        for item in entry.get("pods") or ():
            uid = _folded(item).get("uid", "")
            if uid not in there:
                raise diagnosis.AttemptError(
                    f"extender: {self._url} claims to preempt pod (UID: &MetaPod{{UID:{uid},}}) "
                    f"on node: {node}, but the pod is not found on that node"
                )
            chosen.append(there[uid])
        if not chosen:
            raise diagnosis.AttemptError(f'expected at least one victim pod on node "{node}"')
        return preemption.Victims(tuple(chosen), int(entry.get("numpdbviolations") or 0))

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
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise diagnosis.AttemptError(
            f"json: cannot unmarshal {type(answer).__name__} into an answer of an extender"
        )
    return {str(key).lower(): value for key, value in answer.items()}


def _refusal(reason: str, *, resolvable: bool) -> intree.Refusal:
    reasons = (reason,) if reason else ()
    return intree.Refusal(scheduling_queue.EXTENDER, reasons, resolvable)
