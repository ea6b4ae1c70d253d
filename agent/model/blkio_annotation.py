"""The limits of block I/O that a pod asks for by its annotation. Pure."""

import msgspec

from agent.model import annotations, strategy_settings
from api import names


class _Config(msgspec.Struct, frozen=True):
    read_iops: annotations.Int64 | None = msgspec.field(name="readIOPS", default=None)
    write_iops: annotations.Int64 | None = msgspec.field(name="writeIOPS", default=None)
    read_bps: annotations.Int64 | None = msgspec.field(name="readBPS", default=None)
    write_bps: annotations.Int64 | None = msgspec.field(name="writeBPS", default=None)
    weight: annotations.Int64 | None = msgspec.field(name="ioWeightPercent", default=None)


class _Block(msgspec.Struct, frozen=True):
    name: str = ""
    type: str = "device"
    io: _Config = msgspec.field(name="ioCfg", default_factory=_Config)


class _Blocks(msgspec.Struct, frozen=True):
    blocks: list[_Block] | None = None


def read(written: str) -> tuple[strategy_settings.Device, ...]:
    """Read the annotation of a pod; one that cannot be read says nothing."""
    return _REMEMBERED.if_readable(written) or ()


def _devices(found: _Blocks) -> tuple[strategy_settings.Device, ...]:
    return tuple(
        strategy_settings.Device(
            name=block.name,
            kind=block.type,
            read_iops=block.io.read_iops,
            write_iops=block.io.write_iops,
            read_bps=block.io.read_bps,
            write_bps=block.io.write_bps,
            weight=block.io.weight,
        )
        for block in found.blocks or ()
    )


_REMEMBERED = annotations.Reader(names.ANNOTATION_BLKIO_QOS, _Blocks, _devices)
