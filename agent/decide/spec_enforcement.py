"""How much of what the NodeSLO configures is enforced on this node. Pure."""

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, Literal

import msgspec

from agent.decide import eviction, requested
from agent.decide.strategies import cpu_evict, memory_evict
from agent.model import edits, live_switches, state, strategy_settings
from domain import conditions

ENFORCED: Final = "Enforced"
"""The condition on the NodeSLO."""
Reason = Literal[
    "AllEnforced", "NothingConfigured", "PartlyEnforced", "NotEnforced", "SpecUnreadable"
]
_LONGEST, _LONGEST_CAUSE = 1000, 160
_MOST_CAUSES: Final = 3
Mode = live_switches.Mode


class Part(msgspec.Struct, frozen=True):
    """Something that a NodeSLO switches on."""

    strategy: str
    gates: tuple[str, ...]
    """Any of these lets the agent do it."""
    flaw: str = ""
    """Why it can never happen by these settings."""


class Standing(msgspec.Struct, frozen=True):
    """What a tick left behind."""

    mode: Callable[[str], Mode]
    """How far a strategy goes."""
    gates: Collection[str]
    """The feature gates that are on."""
    decisions: Mapping[str, edits.Decision]
    strategies: strategy_settings.Strategies | None
    """The settings that they were made by; None where nothing may be set at present."""
    writing: bool
    """Whether the agent writes on this node at present."""
    problem: str = ""
    """Why nothing at all could be written."""
    unwritten: Mapping[edits.Key, str] = msgspec.field(default_factory=dict)
    """What could not be written, and why."""
    unreleased: bool = False
    """Whether something that was set earlier could not be put back."""
    spared: tuple[str, ...] = ()
    """The namespaces and classes whose pods are only observed, or left alone."""


class Verdict(msgspec.Struct, frozen=True):
    """What the status of the NodeSLO is to say."""

    condition: conditions.Condition[Reason]
    applied: bool = False
    """Whether everything that this node enforces of it is in effect."""


class _Lack(enum.StrEnum):
    """Why a part is not enforced, in the order of the message."""

    FAILED = "failed"
    UNDECIDED = "not decided yet"
    UNSUPPORTED = "not possible on this node"
    UNUSABLE = "settings of no use"
    OBSERVED = "only observed"
    GATED = "feature gate off"
    OFF = "switched off"


def configured(
    thresholds: state.Thresholds, strategies: strategy_settings.Strategies
) -> tuple[Part, ...]:
    """Return what a NodeSLO switches on; a part that is off everywhere is none."""
    settings = tuple(
        Part(name, gates)
        for name, gates, on in (
            ("cpu-suppress", ("BECPUSuppress",), thresholds.enable),
            ("cpu-burst", ("CPUBurst",), strategies.burst.every.policy != "none"),
            ("system", ("SystemConfig",), _sets_kernel(strategies.system)),
            *_of_classes(strategies.classes),
        )
        if on
    )
    return (*settings, *_evictions(strategies)) if strategies.evicting else settings


_Row = tuple[str, tuple[str, ...], bool]


def _of_classes(classes: strategy_settings.Classes) -> Iterator[_Row]:
    cpu = any(one.enable for one in classes.cpu.values())
    cache = any(one.enable for one in classes.cache.values())
    network = any(one.enable for one in classes.network.values())
    disks = bool(classes.root_devices) or any(classes.devices.values())
    yield "group-identity", ("GroupIdentity",), cpu and classes.by_identity
    yield "core-sched", ("CoreSched",), cpu and classes.by_core
    yield "memory-qos", ("CgroupReconcile",), bool(classes.memory)
    yield "block-io", ("BlkIOReconcile",), disks
    yield "cache", ("RdtResctrl",), cache
    yield "network-qos", ("TCNetworkQoS",), network and not classes.by_terway
    yield "terway-qos", ("TerwayQoS",), network and classes.by_terway


def _sets_kernel(system: strategy_settings.System) -> bool:
    """Tell whether anything is set but the bandwidth, which others calculate with."""
    return msgspec.structs.replace(system, bandwidth=0) != strategy_settings.System()


def _evictions(strategies: strategy_settings.Strategies) -> Iterator[Part]:
    yield from _evictions_for_cpu(strategies.cpu_eviction)
    yield from _evictions_for_memory(strategies.memory_eviction)


def _evictions_for_cpu(cpu: strategy_settings.CpuEviction) -> Iterator[Part]:
    name = "cpu-evict"
    if cpu.satisfaction.threshold is not None:
        yield Part(name, (cpu_evict.BE_CPU_EVICT,), cpu_evict.unusable(cpu))
    if cpu.requested.threshold is not None:
        flaw = _why(requested.check(cpu_evict.question(cpu)))
        yield Part(name, (cpu_evict.CPU_ALLOCATABLE_EVICT,), flaw)
    if cpu.used.threshold is not None:
        yield Part(name, (cpu_evict.CPU_EVICT,), _why(cpu_evict.check_use(cpu)))


def _evictions_for_memory(memory: strategy_settings.MemoryEviction) -> Iterator[Part]:
    name, of_best_effort = "memory-evict", memory_evict.BE_MEMORY_EVICT
    if memory.used.threshold is not None:
        flaw = _why(memory_evict.check_use(memory, of_best_effort))
        # MemoryEvict goes by priority, and does nothing where the NodeSLO sets none.
        by_priority = () if memory.highest_priority is None else (memory_evict.MEMORY_EVICT,)
        yield Part(name, (of_best_effort, *by_priority), flaw)
    if memory.requested.threshold is not None:
        flaw = _why(requested.check(memory_evict.question(memory)))
        yield Part(name, (memory_evict.MEMORY_ALLOCATABLE_EVICT,), flaw)
    if memory.all_requested is not None:
        yield Part(name, (of_best_effort,))


def _why(wrong: eviction.Idle | None) -> str:
    return "" if wrong is None else wrong.why


def unreadable(problem: str) -> Verdict:
    """Return the verdict on a NodeSLO that cannot be read."""
    return Verdict(conditions.Condition(ENFORCED, False, "SpecUnreadable", _cut(problem, _LONGEST)))


def judge(
    parts: Collection[Part], now: Standing, unavailable: Mapping[str, str] | None = None
) -> Verdict:
    """Say what of a NodeSLO is enforced, and why the rest is not.

    `unavailable` names the strategies that the host cannot carry out, each with the reason.
    """
    lacks: dict[_Lack, dict[str, None]] = {}
    enforced: dict[str, None] = {}
    for part in parts:
        found = _lack(part, now, unavailable or {})
        if found is None:
            enforced[part.strategy] = None
            continue
        lack, cause = found
        named = f"{part.strategy} ({_cut(cause, _LONGEST_CAUSE)})" if cause else part.strategy
        lacks.setdefault(lack, {})[named] = None
    fails = now.unreleased or _Lack.FAILED in lacks or _Lack.UNDECIDED in lacks
    applied = now.writing and not now.problem and not fails and (bool(enforced) or not parts)
    return Verdict(_condition(parts, enforced, lacks, now.spared), applied)


def _condition(
    parts: Collection[Part],
    enforced: Collection[str],
    lacks: Mapping[_Lack, Collection[str]],
    spared: Collection[str],
) -> conditions.Condition[Reason]:
    said = [f"{lack}: {', '.join(lacks[lack])}" for lack in _Lack if lack in lacks]
    if enforced:
        said.append(f"enforced: {', '.join(enforced)}")
        if spared:
            said.append(f"not for pods of {', '.join(spared)}")
    reason: Reason = "AllEnforced"
    if not parts:
        reason, said = "NothingConfigured", ["the NodeSLO switches nothing on"]
    elif not enforced:
        reason = "NotEnforced"
    elif lacks or spared:
        reason = "PartlyEnforced"
    holds = reason in ("AllEnforced", "NothingConfigured")
    return conditions.Condition(ENFORCED, holds, reason, _cut("; ".join(said), _LONGEST))


def _lack(part: Part, now: Standing, unavailable: Mapping[str, str]) -> tuple[_Lack, str] | None:
    """Return why a part is not enforced, None where it is."""
    mode, decision = now.mode(part.strategy), now.decisions.get(part.strategy)
    if mode is Mode.OFF:
        return _Lack.OFF, ""
    if not any(gate in now.gates for gate in part.gates):
        return _Lack.GATED, " or ".join(part.gates)
    if part.flaw:
        return _Lack.UNUSABLE, part.flaw
    if part.strategy in unavailable:
        return _Lack.UNSUPPORTED, unavailable[part.strategy]
    if mode is Mode.OBSERVE:
        return _Lack.OBSERVED, ""
    if now.problem:
        return _Lack.FAILED, now.problem
    if decision is not None and decision.unmet and not decision.decided:
        return _Lack.UNSUPPORTED, decision.unmet
    if decision is None or not decision.decided or not now.writing:
        return _Lack.UNDECIDED, decision.reason if decision is not None else ""
    return _missing(decision, now.unwritten)


def _missing(
    decision: edits.Decision, unwritten: Mapping[edits.Key, str]
) -> tuple[_Lack, str] | None:
    """Return what keeps a decision that was made from being in effect."""
    if unwritten:
        keys = unwritten.keys() & {edit.key for edit in decision.wanted}
        if causes := sorted({f"{key[0]}: {unwritten[key]}" for key in keys}):
            return _Lack.FAILED, ", ".join(causes[:_MOST_CAUSES])
    return (_Lack.UNSUPPORTED, decision.unmet) if decision.unmet else None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
