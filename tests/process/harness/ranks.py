"""Ranks as processes: started, waited for with a deadline, killed when their test ends."""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = Path(os.environ.get("WEIGHTCAST_BIN", REPOSITORY / "build/dev/bin/weightcast")).resolve()
PATIENCE = 30.0
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

Limits = Mapping[int, int]


def wait_until(holds: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
    """Asks `holds` again and again until it is true; fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := holds()):
        assert time.monotonic() < deadline, f"after {timeout:g} s still not: {what}"
        select.select([], [], [], 0.002)
    return value


def process_state(pid: int) -> str:
    """`R`, `S`, `T` (stopped), `Z` (dead, not waited for) or nothing."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Rank:
    """One process of the program under test. Its output goes to files, so it never blocks."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        logs: Path,
        *,
        environment: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        stdin: int | None = None,
        wrapper: Sequence[str | Path] = (),
        enter: Callable[[], object] | None = None,
    ) -> None:
        self.arguments = [str(argument) for argument in arguments]
        logs.mkdir(parents=True, exist_ok=True)
        label = f"{len(list(logs.iterdir())):03}-{self.arguments[0] if arguments else 'nothing'}"
        self.stdout_path, self.stderr_path = logs / f"{label}.out", logs / f"{label}.err"
        parent = os.getpid()

        def prepare() -> None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(99)
            for limit, value in (limits or {}).items():
                resource.setrlimit(limit, (value, value))
            if enter is not None:
                enter()

        clean = {key: value for key, value in os.environ.items() if key != "WEIGHTCAST_FAULT"}
        with self.stdout_path.open("wb") as out, self.stderr_path.open("wb") as err:
            self.process = subprocess.Popen(
                [str(part) for part in wrapper] + [str(PROGRAM), *self.arguments],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=out,
                stderr=err,
                env=clean | dict(environment or {}),
                preexec_fn=prepare,
            )
        self.pid = self.process.pid
        self.descriptor = os.pidfd_open(self.pid)
        self.ended_at = math.inf  # on the monotonic clock, once `wait_all` saw it

    @property
    def stdout(self) -> str:
        return self.stdout_path.read_text()

    @property
    def stderr(self) -> str:
        return self.stderr_path.read_text(errors="backslashreplace")

    def __repr__(self) -> str:
        return (
            f"\n$ weightcast {' '.join(self.arguments)}\nexit {self.process.returncode}, "
            f"stdout:\n{self.stdout[-1500:]}\nstderr:\n{self.stderr[-3000:]}"
        )

    def running(self) -> bool:
        return self.process.poll() is None

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit code; negative for a signal."""
        wait_all([self], timeout)
        return self.process.returncode

    def succeed(self, timeout: float = PATIENCE, *, warns_of: str = "") -> Rank:
        """Waits for exit code 0; a warning must be the one that is expected."""
        assert self.wait(timeout) == 0, self
        warnings = [line for line in self.stderr.splitlines() if " warning " in line]
        assert all(warns_of and warns_of in line for line in warnings), self
        return self

    def fail(self, code: int, *patterns: str, timeout: float = PATIENCE) -> Rank:
        """Waits for exit code `code` and finds each pattern in the messages, whatever the case."""
        assert self.wait(timeout) == code, f"wanted exit {code}: {self}"
        assert self.stderr.strip(), f"no message: {self}"
        for pattern in patterns:
            assert re.search(pattern, self.stderr, re.IGNORECASE), f"no /{pattern}/ in {self}"
        return self

    def report(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        value = json.loads(self.stdout)
        assert isinstance(value, dict), self
        return value

    def wait_stopped(self, timeout: float = PATIENCE) -> None:
        def stopped() -> bool:
            assert self.running(), f"ended before it stopped: {self}"
            return process_state(self.pid) == "T"

        wait_until(stopped, f"stopped: {self}", timeout)

    def send_signal(self, number: int) -> None:
        if self.running():
            os.kill(self.pid, number)

    def end(self) -> None:
        if self.running():
            self.process.kill()
            self.process.wait(PATIENCE)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def wait_all(ranks: Iterable[Rank], timeout: float = PATIENCE) -> None:
    """Waits until every rank has ended and notes when each did."""
    waiting = {rank.descriptor: rank for rank in ranks if rank.process.returncode is None}
    poller = select.poll()
    for descriptor in waiting:
        poller.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + timeout
    while waiting:
        left = deadline - time.monotonic()
        assert left > 0, f"after {timeout:g} s still running: {list(waiting.values())}"
        for descriptor, _ in poller.poll(max(1, int(left * 1000))):
            rank = waiting.pop(descriptor)
            rank.ended_at = time.monotonic()
            rank.process.wait()
            poller.unregister(descriptor)


class Group:
    """A sender and its receivers in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ticket = directory / "ticket"
        self.ranks: list[Rank] = []
        self.settings: dict[str, Any] = {}  # for every rank: environment, wrapper, limits

    def start(self, *arguments: str | Path, **settings: Any) -> Rank:
        environment = self.settings.get("environment", {}) | (
            settings.pop("environment", None) or {}
        )
        settings = self.settings | settings | {"environment": environment}
        rank = Rank(arguments, self.directory / "logs", **settings)
        self.ranks.append(rank)
        return rank

    def send(
        self,
        model: Path | Sequence[Path],
        *options: str | Path,
        receivers: int = 1,
        **settings: Any,
    ) -> Rank:
        models = [model] if isinstance(model, Path) else list(model)
        defaults: dict[str, str | Path] = {
            "--listen": "tcp://127.0.0.1:0",
            "--ticket-file": self.ticket,
            "--receivers": str(receivers),
            "--timeout": "20s",
        }
        chosen = [
            part for key, value in defaults.items() if key not in options for part in (key, value)
        ]
        return self.start("send", *models, *chosen, *options, **settings)

    def receive(self, *options: str | Path, out: Path | None = None, **settings: Any) -> Rank:
        defaults: dict[str, str | Path] = {"--ticket-file": self.ticket, "--timeout": "20s"}
        if out is not None:
            defaults["--out"] = out
        elif "--out" not in options and "--verify-only" not in options:
            options = (*options, "--verify-only")
        chosen = [
            part for key, value in defaults.items() if key not in options for part in (key, value)
        ]
        return self.start("receive", *chosen, *options, **settings)

    def out(self, number: int) -> Path:
        return self.directory / f"out{number}"

    def transfer(
        self,
        model: Path | Sequence[Path],
        *options: str | Path,
        receivers: int = 1,
        versions: int = 1,
        timeout: float = PATIENCE,
    ) -> list[Rank]:
        """Sends `model` to receivers that write to `out(1)`, `out(2)`, …; all must succeed."""
        number = ("--versions", str(versions)) if versions > 1 else ()
        ranks = [self.send(model, *options, *number, "--json", receivers=receivers)]
        ranks += [
            self.receive("--json", "--rank", str(i), *number, out=self.out(i))
            for i in range(1, receivers + 1)
        ]
        wait_all(ranks, timeout)
        for rank in ranks:
            rank.succeed()
        return ranks

    def end(self) -> None:
        for rank in self.ranks:
            rank.end()
