"""What processes leave on a host, and how much of it they take."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def is_root() -> bool:
    return os.geteuid() == 0


def descriptors(pid: int) -> list[str]:
    """What each open descriptor of a process is."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except FileNotFoundError:
            continue
    return found


def mappings(pid: int) -> int:
    return len(Path(f"/proc/{pid}/maps").read_text().splitlines())


def status_kib(pid: int, field: str) -> int:
    """A field such as `VmHWM` or `RssAnon` of /proc/PID/status, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


def asleep_in_poll(pid: int) -> bool:
    """Whether the main thread of a process sleeps until a descriptor is ready."""
    try:
        return "poll" in Path(f"/proc/{pid}/wchan").read_text()
    except FileNotFoundError:
        return False


def children(pid: int) -> list[int]:
    """Every descendant of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *children(child)]
    return found


def abstract_sockets() -> dict[str, str]:
    """Names of the abstract Unix sockets on which somebody listens, by inode."""
    listening = "00010000"
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {
        line[6]: line[7][1:]
        for line in lines
        if len(line) > 7 and line[3] == listening and line[7].startswith("@")
    }


def socket_inodes(pid: int) -> set[str]:
    return {name[8:-1] for name in descriptors(pid) if name.startswith("socket:[")}


def abstract_sockets_of(pid: int) -> list[str]:
    inodes = socket_inodes(pid)
    return [name for inode, name in abstract_sockets().items() if inode in inodes]


def listeners() -> dict[str, int]:
    """TCP ports on which somebody listens, by inode."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def ports_of(pid: int) -> set[int]:
    """TCP ports on which a process listens."""
    inodes = socket_inodes(pid)
    return {port for inode, port in listeners().items() if inode in inodes}


@contextmanager
def small_disk(where: Path, size: int) -> Iterator[Path]:
    """A file system of `size` bytes. Requires: root."""
    where.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", where], check=True, timeout=10
    )
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=True, timeout=10)


@contextmanager
def memory_cgroup(name: str, limit: int) -> Iterator[Path | None]:
    """A group of processes with limited memory, or nothing where none can be made."""
    old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    root, knob = (old, "memory.limit_in_bytes") if old.is_dir() else (new, "memory.max")
    group = root / name
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        if not (group / knob).exists():
            yield None
            return
        (group / knob).write_text(str(limit))
        yield group
    finally:
        group.rmdir()


def enter_cgroup(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))
