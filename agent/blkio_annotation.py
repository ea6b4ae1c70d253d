"""The limits of block I/O that a pod asks for by its annotation. Pure."""

import functools

import msgspec

from agent import strategies


class _Config(msgspec.Struct, frozen=True):
    read_iops: int | None = msgspec.field(name="readIOPS", default=None)
    write_iops: int | None = msgspec.field(name="writeIOPS", default=None)
    read_bps: int | None = msgspec.field(name="readBPS", default=None)
    write_bps: int | None = msgspec.field(name="writeBPS", default=None)
    weight: int | None = msgspec.field(name="ioWeightPercent", default=None)


class _Block(msgspec.Struct, frozen=True):
    name: str = ""
    type: str = "device"
    io: _Config = msgspec.field(name="ioCfg", default_factory=_Config)


class _Blocks(msgspec.Struct, frozen=True):
    blocks: list[_Block] | None = None


@functools.lru_cache(maxsize=256)
def read(written: str) -> tuple[strategies.Device, ...]:
    """Read the annotation of a pod; one that cannot be read says nothing."""
    try:
        blocks = msgspec.json.decode(written, type=_Blocks).blocks or ()
    except (msgspec.MsgspecError, ValueError):
        return ()
    return tuple(
        strategies.Device(
            name=block.name,
            kind=block.type,
            read_iops=block.io.read_iops,
            write_iops=block.io.write_iops,
            read_bps=block.io.read_bps,
            write_bps=block.io.write_bps,
            weight=block.io.weight,
        )
        for block in blocks
    )
