"""Archives with the same bytes whenever they are made of the same files."""

import gzip
import io
import pathlib
import tarfile
from collections.abc import Mapping
from typing import Final

EPOCH: Final = 1_767_225_600
"""The moment that everything in a release says it was made at, as the image does."""


def packed(files: Mapping[str, bytes], programs: frozenset[str] = frozenset()) -> bytes:
    """Return a tar.gz of these files, sorted, of root, and all of one time."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), EPOCH
            member.mode = 0o755 if name in programs else 0o644
            archive.addfile(member, io.BytesIO(data))
    written = io.BytesIO()
    with gzip.GzipFile(fileobj=written, mode="wb", filename="", mtime=0) as file:
        file.write(plain.getvalue())
    return written.getvalue()


def folder(root: pathlib.Path, name: str) -> dict[str, bytes]:
    """Return the files below a folder under another name; links are followed."""
    found = {}
    for path in sorted(root.iterdir()):
        if path.is_dir():
            found |= folder(path, f"{name}/{path.name}")
        else:
            found[f"{name}/{path.name}"] = path.read_bytes()
    return found
