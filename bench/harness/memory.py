"""What a process has in memory, counted in bytes; files in the page cache are not counted."""

from __future__ import annotations


def _kib(path: str, name: str) -> int:
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def anonymous_and_shared(pid: int) -> int:
    """Anonymous memory, and all shared memory it maps as if it were its own."""
    anonymous = _kib(f"/proc/{pid}/smaps_rollup", "Anonymous")
    shared = _kib(f"/proc/{pid}/status", "RssShmem")
    return (anonymous + shared) * 1024


def available() -> int:
    return _kib("/proc/meminfo", "MemAvailable") * 1024


class Peak:
    """The most that each of some processes had, over all calls of `look`."""

    def __init__(self, pids: list[int]) -> None:
        self.bytes = {pid: 0 for pid in pids}

    def look(self) -> None:
        for pid, most in self.bytes.items():
            self.bytes[pid] = max(most, anonymous_and_shared(pid))
