"""One frozen model per process, read from a file, the environment and flags, in that order."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import pydantic
from pydantic.alias_generators import to_camel

from process.configuration import fields, sources
from process.limits import places


class Settings(pydantic.BaseModel):
    """The base of every settings group: immutable, camelCase in files, unknown keys are errors."""

    other_paths: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {}
    """Beginnings of paths in files that were written for another program, and what they are here;
    of the root model only."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        validate_default=True,
    )


class LogSettings(Settings):
    """What is logged and how."""

    format: Literal["text", "json"] = "text"
    """Shape of a line on standard error: `text` is key=value for people, `json` for collectors."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written."""


class TlsSettings(Settings):
    """The certificate a server presents and, optionally, whom it lets in."""

    cert_file: Path
    """PEM file with the serving certificate, followed by its intermediates."""
    key_file: Path
    """PEM file with the private key of `certFile`."""
    client_ca_file: Path | None = None
    """PEM bundle; when set, only clients with a certificate signed by it are let in."""
    client_names: tuple[str, ...] = ()
    """DNS names; when set, a client's certificate must carry one of them. Needs `clientCaFile`."""
    reload_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How often the files are looked at; a changed and valid pair serves new connections."""

    @pydantic.model_validator(mode="after")
    def _names_are_proven(self) -> Self:
        if self.client_names and self.client_ca_file is None:
            raise ValueError("clientNames needs clientCaFile, which proves the names")
        return self


class ServerSettings(Settings):
    """One HTTP listener."""

    host: str = "127.0.0.1"
    """Address to listen on; `0.0.0.0` or `::` for every interface."""
    port: int = pydantic.Field(default=0, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""
    tls: TlsSettings | None = None
    """Serve HTTPS with these files; plain HTTP when absent."""
    keep_alive_seconds: float = pydantic.Field(default=3600.0, gt=90)
    """How long an idle connection is kept. Callers drop theirs after 90 s and never repeat a
    request that was cut off, so the server must not be the first to close."""
    max_body_bytes: int = pydantic.Field(default=4 * 1024 * 1024, ge=1024)
    """Largest request body; more is answered with 413."""
    max_header_bytes: int = pydantic.Field(default=16 * 1024, ge=1024)
    """Largest request line or single header; more is answered with 400."""
    header_seconds: float = pydantic.Field(default=5.0, gt=0)
    """How long a client may take for the TLS handshake and for the headers of a request."""
    body_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long a client may take for the body of a request."""
    max_connections: int = pydantic.Field(default=1024, ge=1)
    """Connections at the same time, TLS handshakes included. Beyond them the one that was silent
    for longest gives way, of the address that has most."""
    max_connection_age_seconds: float = pydantic.Field(default=0.0, ge=0)
    """Age after which the next answer on a connection asks the client to dial again, so that behind
    a Service a replica which is added gets its share of the load; 0: never, best for a listener
    without replicas. Connections that were dialled together end one by one, the first at half of
    it."""
    backlog: int = pydantic.Field(default=1024, ge=1, le=65535)
    """Connections that wait in the kernel to be accepted while the process is busy; the kernel's
    own limit is net.core.somaxconn."""
    max_connections_by_address: int = pydantic.Field(default=512, ge=1)
    """Connections at the same time from one address (of IPv6: one /64) outside `callerBlocks`;
    beyond them its own longest silent one gives way."""
    max_pending_bytes: int = pydantic.Field(default=64 * 1024 * 1024, ge=1024)
    """Bytes of requests that are not complete, of all connections together; beyond them the
    largest one is cut off, of the address that holds most."""
    caller_blocks: tuple[str, ...] = ()
    """Address blocks of those whom this listener is for, such as the API servers; they are served
    before all others when connections or memory run out."""
    other_idle_seconds: float = pydantic.Field(default=10.0, gt=0)
    """How long an idle connection from elsewhere is kept, once `callerBlocks` are named."""
    refuse_others: bool = False
    """Close connections from outside `callerBlocks` at once, before the TLS handshake."""
    announce_seconds: float = pydantic.Field(default=0.0, ge=0)
    """How long a stopping server goes on as before while /readyz already says no, so that load
    balancers notice; 5 behind a Service, 0 when called on the loopback interface."""
    linger_seconds: float = pydantic.Field(default=2.0, ge=0)
    """How long a stopping server then still accepts and answers, with `Connection: close`, so
    that callers leave on their own; ends early when no connection is left."""
    drain_seconds: float = pydantic.Field(default=20.0, ge=0)
    """How long requests in flight may take to end after the listener went away."""

    @pydantic.field_validator("caller_blocks")
    @classmethod
    def _blocks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                places.network(text)
            except ValueError as error:
                raise ValueError(f"{text} is no address block such as 10.0.0.1/32") from error
        return value

    @pydantic.model_validator(mode="after")
    def _limits(self) -> Self:
        if self.refuse_others and not self.caller_blocks:
            raise ValueError("refuseOthers needs callerBlocks, or everybody would be refused")
        if self.max_pending_bytes < self.max_body_bytes:
            raise ValueError("maxPendingBytes must be at least maxBodyBytes, or none is complete")
        return self


class SettingsError(ValueError):
    """Settings that cannot be used; every problem found is in `problems`."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


M = TypeVar("M", bound=pydantic.BaseModel)


def load(
    model: type[M],
    *,
    file: Path | None,
    environ: Mapping[str, str],
    prefix: str,
    flags: Sequence[str],
) -> M:
    """Merge file, environment and flags (later ones win) into a checked model."""
    merged = _Merge(model)
    merged.read(lambda: sources.from_file(file) if file is not None else [])
    merged.read(lambda: sources.from_environ(environ, prefix))
    merged.read(lambda: sources.from_flags(flags, lambda path: _needs_value(model, path)))
    if merged.problems:
        # What the model would report as missing is often just what was misspelt.
        raise SettingsError(merged.problems)
    try:
        return model.model_validate(merged.values)
    except pydantic.ValidationError as error:
        raise SettingsError(_explain(model, error, merged.origins, prefix)) from error


def below(chosen: M, text: str, name: str) -> M:
    """Return settings with what a YAML text sets and no other source has set.

    `name` says in messages where the text is.
    """
    model = type(chosen)
    merged = _Merge(model)
    merged.read(lambda: sources.from_text(text, name))
    if merged.problems:
        raise SettingsError(merged.problems)
    values = _overlaid(merged.values, chosen.model_dump(exclude_unset=True))
    try:
        return model.model_validate(values)
    except pydantic.ValidationError as error:
        raise SettingsError(_explain(model, error, merged.origins, name)) from error


def _overlaid(lower: Any, upper: Any) -> Any:
    """Return a mapping with the values of another one over its own."""
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return upper
    both = {key: _overlaid(lower[key], value) for key, value in upper.items() if key in lower}
    return {**lower, **upper, **both}


def describe(model: type[pydantic.BaseModel]) -> tuple[fields.Described, ...]:
    """List every setting below a model with its type, default and description."""
    return fields.describe(model)


def environment_name(prefix: str, names: Sequence[str]) -> str:
    """Return the environment variable that sets a path of Python names."""
    return f"{prefix}_{'__'.join(names)}".upper()


def _needs_value(model: type[pydantic.BaseModel], dotted: str) -> bool:
    """Tell whether a flag must have a value; a misspelt one is reported as unknown instead."""
    target = fields.resolve(model, dotted.split("."))
    return target is not None and bool not in fields.alternatives(target.annotation)


class _Merge:
    """Values collected from all sources, with who set them and what was wrong."""

    def __init__(self, model: type[pydantic.BaseModel]) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[tuple[str, ...], str] = {}
        self.problems: list[str] = []
        self._model = model

    def read(self, source: Callable[[], list[sources.Assignment]]) -> None:
        """Take every value of one source; problems are kept for one common report."""
        seen: dict[tuple[str, ...], str] = {}
        try:
            for assignment in source():
                self._take(assignment, seen)
        except sources.SourceError as error:
            self.problems += error.problems

    def _take(self, assignment: sources.Assignment, seen: dict[tuple[str, ...], str]) -> None:
        written = ".".join(assignment.path)
        target = fields.resolve(self._model, self._here(assignment.path))
        if target is None:
            near = fields.nearest(self._model, assignment.path)
            hint = f"; did you mean {near}?" if near else ""
            self.problems.append(f"{assignment.origin}: unknown setting {written}{hint}")
            return
        if not assignment.repeatable and target.names in seen:
            self.problems.append(
                f"{assignment.origin}: {written} was already set by {seen[target.names]}"
            )
            return
        seen[target.names] = assignment.origin
        try:
            value = _read(assignment, target.annotation)
        except sources.SourceError as error:
            self.problems += [f"{assignment.origin}: {problem}" for problem in error.problems]
            return
        if isinstance(value, dict) and value and assignment.textual:
            for key, inner in value.items():
                path = (*assignment.path, key)
                self._take(
                    sources.Assignment(path, inner, assignment.origin, repeatable=True), seen
                )
            return
        self._put(target.names, value, assignment.origin)

    def _here(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return a path as this model knows it."""
        others = self._model.other_paths if issubclass(self._model, Settings) else {}
        for other, ours in others.items():
            if path[: len(other)] == other:
                return (*ours, *path[len(other) :])
        return path

    def _put(self, names: tuple[str, ...], value: Any, origin: str) -> None:
        place = self.values
        for name in names[:-1]:
            inner = place.get(name)
            if not isinstance(inner, dict):
                inner = place[name] = {}
            place = inner
        place[names[-1]] = value
        self.origins[names] = origin


def _read(assignment: sources.Assignment, annotation: Any) -> Any:
    """Give text from a flag or variable the shape that its setting asks for."""
    if not assignment.textual:
        return assignment.value
    text = str(assignment.value)
    kinds = tuple(fields.alternatives(annotation))
    if fields.is_optional(annotation) and str not in kinds and text in ("", "null"):
        return None
    if fields.is_mapping(annotation):
        return sources.parse_mapping(text)
    if fields.is_sequence(annotation):
        return sources.parse_sequence(text)
    return sources.parse_scalar(text) if Any in kinds else text


def _explain(
    model: type[pydantic.BaseModel],
    error: pydantic.ValidationError,
    origins: Mapping[tuple[str, ...], str],
    prefix: str,
) -> list[str]:
    """Say for each rejected value where it came from; never repeat the value, it may be secret."""
    problems = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        location = tuple(str(part) for part in detail["loc"])
        target = fields.resolve(model, location)
        names = target.names if target is not None else location
        dotted = ".".join(to_camel(part) if "_" in part else part for part in location)
        if detail["type"] == "missing":
            variable = environment_name(prefix, names)
            problems.append(
                f"{dotted} is required: set it in the file, with --{dotted}=... or with {variable}"
            )
            continue
        origin = next((o for o in map(origins.get, _upwards(names)) if o), "default")
        problems.append(f"{origin}: {dotted or 'settings'}: {detail['msg']}")
    return problems


def _upwards(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [names[:length] for length in range(len(names), 0, -1)]
