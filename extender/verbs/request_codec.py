"""What filter and prioritize ask, read once although both calls carry the same pod and names.

A scheduler asks about one pod after the other and sends it whole every time, so what was read
last is remembered together with its very bytes; equal bytes mean the same thing.
"""

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from domain.scoring import objects
from extender.framework import verdicts, views
from extender.scoring import traits
from extender.state import records
from extender.state.table import node_names
from kube.informers import store

Rows = node_names.Rows
UNKNOWN = -1
"""The row of a name that no node has."""


class _Wire(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """A call whose parts stay undecoded until it is clear that they are new."""

    pod: msgspec.Raw
    nodes: msgspec.Raw = msgspec.Raw(b"null")
    node_names: msgspec.Raw = msgspec.Raw(b"null")


class _Parts(NamedTuple):
    """The undecoded parts of a call."""

    pod: bytes
    nodes: bytes
    node_names: bytes


_CALL = msgspec.json.Decoder(_Wire)
_POD_KEY, _NAMES_KEY, _END = b'{"Pod":', b',"Nodes":null,"NodeNames":', b"}"
_POD = msgspec.json.Decoder(objects.Pod)
_NAMES = msgspec.json.Decoder(list[str])


class Question(msgspec.Struct, frozen=True, gc=False):
    """One filter or prioritize call."""

    pod: objects.Pod
    request: views.PodInfo
    traits: traits.PodTraits | None
    """What the pod does to the scores of others once it is on a node; None where not asked for."""
    nodes: bytes | None
    """Full candidates of a what-if, undecoded."""
    text: bytes
    """The names of the candidates as they were sent."""


class Candidates(msgspec.Struct, frozen=True, gc=False):
    """The names of one call and the rows they stand for."""

    names: Sequence[str]
    rows: Rows


_Pod = tuple[objects.Pod, views.PodInfo, traits.PodTraits | None]
NOBODY = Candidates((), np.zeros(0, dtype=np.intp))


class Reader:
    """Reads calls; what it raises on bad input is a ValueError of msgspec or of a quantity."""

    def __init__(
        self, projector: records.Projector, watched: store.Store[records.PodRecord] | None = None
    ) -> None:
        """`watched` are the pods as the watch has shown them, which need not be projected again."""
        self.projector = projector
        self._watched = watched
        self._pod: tuple[bytes, _Pod] | None = None
        self._asked: tuple[bytes, int, Candidates] | None = None
        self._tables = node_names.Tables()

    def read(self, body: bytes) -> Question:
        """Read one call."""
        parts = _cut(body)
        if parts is not None:
            # Where this was not the end of the pod, what is cut out is no pod.
            with contextlib.suppress(msgspec.MsgspecError):
                return self._question(parts)
        call = _CALL.decode(body)
        return self._question(_Parts(bytes(call.pod), bytes(call.nodes), bytes(call.node_names)))

    def _question(self, parts: _Parts) -> Question:
        nodes = None if parts.nodes == b"null" else parts.nodes
        return Question(*self._read_pod(parts.pod), nodes, parts.node_names)

    def _read_pod(self, text: bytes) -> _Pod:
        if self._pod is not None and self._pod[0] == text:
            return self._pod[1]
        pod = _POD.decode(text)
        wanted, placed = self._projected(pod)
        found = pod, views.PodInfo.read(pod, wanted), placed
        self._pod = text, found
        return found

    def _projected(
        self, pod: objects.Pod
    ) -> tuple[records.PodRequirements, traits.PodTraits | None]:
        """Return what a pod asks for and does to scores, from the watch where that has shown it.

        One version of one object is the same to everybody, so what was read of it holds.
        """
        metadata, watched = pod.metadata, self._watched
        if watched is not None:
            known, version = watched.get(metadata.key), watched.version_of(metadata.key)
            is_same = metadata.resource_version == str(version or "unknown")
            if known is not None and known.uid == metadata.uid and is_same:
                return known.requirements, known.scoring
        return self.projector.requirements(pod), self.projector.traits(pod)

    def candidates(self, text: bytes, view: views.View) -> Candidates:
        """Return the candidate nodes of a call, looked up in the live snapshot."""
        if self._asked is not None and self._asked[:2] == (text, view.members):
            return self._asked[2]
        if text == b"null":
            return NOBODY
        found = self._look_up(text, view)
        self._asked = text, view.members, found
        return found

    def _look_up(self, text: bytes, view: views.View) -> Candidates:
        rows = self._tables.find(text, view.rows, view.members)
        if rows is not None:
            return Candidates(node_names.NamesByRow(view.names, rows), rows)
        names = _NAMES.decode(text)
        return Candidates(names, look_up(names, view.rows))

    def expect(self, text: bytes, view: views.View, candidates: Candidates) -> None:
        """Remember what an answer left over: the next call will ask about exactly that."""
        self._asked = text, view.members, candidates


def _cut(body: bytes) -> _Parts | None:
    """Cut a call where kube-scheduler puts its parts, which is much faster than to skip over them.

    Whether the first part is a whole pod is seen when it is decoded. The names are a list without
    lists inside that the call ends with, so they are sound if and only if the call is.
    """
    at = body.rfind(_NAMES_KEY)
    if at < 0 or not body.startswith(_POD_KEY):
        return None
    names = body[at + len(_NAMES_KEY) : -len(_END)]
    if not names.startswith(b"[") or names.find(b"]") != len(names) - 1 or not body.endswith(_END):
        return None
    return _Parts(body[len(_POD_KEY) : at], b"null", names)


def look_up(names: Sequence[str], rows: Mapping[str, int]) -> Rows:
    """Return the row of each name, UNKNOWN where there is none."""
    try:
        return np.fromiter(map(rows.__getitem__, names), np.intp, len(names))
    except KeyError:
        return np.fromiter((rows.get(name, UNKNOWN) for name in names), np.intp, len(names))


class Scores:
    """Writes prioritize answers out of parts that are made once per node."""

    def __init__(self) -> None:
        self._heads: dict[str, bytes] = {}

    def write(self, names: Sequence[str], scores: verdicts.Column) -> bytes:
        """Return the answer; zeros are left out, since they add nothing."""
        chosen = scores != 0
        count = np.count_nonzero(chosen)
        if count == 0:
            return NO_SCORES
        if count < len(names):
            names, scores = list(itertools.compress(names, chosen.tolist())), scores[chosen]
        parts = [b""] * (2 * len(names))
        parts[::2] = self._heads_of(names)
        parts[1::2] = map(_TAILS.__getitem__, scores.tolist())
        # Every part ends with a comma, the last one's place is the end of the list.
        return b"[" + b"".join(parts)[:-1] + b"]"

    def _heads_of(self, names: Sequence[str]) -> list[bytes]:
        try:
            return list(map(self._heads.__getitem__, names))
        except KeyError:
            if len(self._heads) > _MOST_HEADS:
                self._heads.clear()
            for name in names:
                self._heads[name] = b'{"Host":' + msgspec.json.encode(name) + b',"Score":'
            return list(map(self._heads.__getitem__, names))


NO_SCORES = b"[]"
_MOST_HEADS = 65_536


class _Tails(dict[int, bytes]):
    """What follows a node's name, by score; looking up in a dict is what Python does fastest."""

    def __missing__(self, score: int) -> bytes:
        # Of a higher tier; there are too many of them to be kept.
        return b"%d}," % score


_TAILS = _Tails((score, b"%d}," % score) for score in range(verdicts.BEST + 1))
