"""Which boot of this machine it is."""

from agent.host import files


def boot_id(proc_root: str) -> str:
    """Return what tells one boot of this machine from another, empty where the kernel does not."""
    try:
        return files.read(f"{proc_root}/sys/kernel/random/boot_id", 64).decode("ascii").strip()
    except (files.ReadingError, UnicodeDecodeError):
        return ""
