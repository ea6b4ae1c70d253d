"""Feature gates: named switches with a stage and a default, set once at start."""

import dataclasses
import enum
from collections.abc import Iterable, Mapping


class Stage(enum.Enum):
    """How far a feature has come."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "ga"
    DEPRECATED = "deprecated"


class GateError(ValueError):
    """A gate that does not exist or may not be set so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Gate:
    """One switch; the package whose behaviour it switches declares it."""

    name: str
    default: bool
    stage: Stage
    description: str

    def __post_init__(self) -> None:
        """Refuse a gate that contradicts its stage."""
        if self.stage is Stage.ALPHA and self.default:
            raise GateError(f"feature gate {self.name}: an alpha feature is off by default")


class Gates:
    """The gates of one process with the values they were given."""

    def __init__(self, declared: Iterable[Gate], chosen: Mapping[str, bool] | None = None) -> None:
        """Check the chosen values against what is declared, all problems in one error."""
        self._gates: dict[str, Gate] = {}
        for gate in declared:
            if self._gates.setdefault(gate.name, gate) is not gate:
                raise GateError(f"feature gate {gate.name}: declared twice")
        self._chosen = dict(chosen or {})
        problems = [
            problem for name, on in self._chosen.items() for problem in self._check(name, on)
        ]
        if problems:
            raise GateError("\n".join(problems))

    def enabled(self, name: str) -> bool:
        """Tell whether a declared gate is on."""
        if name not in self._gates:
            raise GateError(self._unknown(name))
        return self._chosen.get(name, self._gates[name].default)

    def describe(self) -> tuple[tuple[Gate, bool], ...]:
        """Return every gate with its value, by name."""
        return tuple((self._gates[name], self.enabled(name)) for name in sorted(self._gates))

    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for every deprecated gate that was set."""
        return tuple(
            f"feature gate {name} is deprecated and will go away"
            for name in self._chosen
            if self._gates[name].stage is Stage.DEPRECATED
        )

    def _check(self, name: str, on: bool) -> Iterable[str]:
        gate = self._gates.get(name)
        if gate is None:
            yield self._unknown(name)
        elif gate.stage is Stage.GA and on != gate.default:
            yield f"feature gate {name}: is generally available and cannot be switched any more"

    def _unknown(self, name: str) -> str:
        folded = {known.lower(): known for known in self._gates}
        import difflib  # noqa: PLC0415 - only a mistake needs it, and an agent counts its memory

        near = difflib.get_close_matches(name.lower(), folded, 1, 0.6)
        hint = f"; did you mean {folded[near[0]]}?" if near else ""
        known = ", ".join(sorted(self._gates)) or "none"
        return f"unknown feature gate {name}{hint} (known: {known})"
