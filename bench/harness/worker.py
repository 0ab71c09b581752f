"""The long-lived programs of both sides: started once a series, told to take samples."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

START_TIMEOUT_S = 180.0
SAMPLE_TIMEOUT_S = 120.0


class WorkerError(Exception):
    """A program did not start, did not answer in time, or ended."""


class Worker:
    """One side: a program that answers each command with one line of JSON."""

    def __init__(self, argv: Sequence[str], env: dict[str, str] | None = None) -> None:
        self.argv = list(argv)
        self._stderr = tempfile.TemporaryFile(mode="w+")
        self._buffer = b""
        try:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(str(error)) from error
        try:
            self.ready = self._answer(START_TIMEOUT_S, None)
        except WorkerError:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        return list(self.ready["pids"])

    def sample(self, meanwhile: Callable[[], None] | None = None) -> dict[str, Any]:
        """One transfer. `meanwhile` is called again and again until it is over."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"run\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._failure("it has ended") from error
        return self._answer(SAMPLE_TIMEOUT_S, meanwhile)

    def close(self) -> None:
        """Asks it to quit; whatever of it is left then is killed."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"quit\n")
            self._process.stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._stderr.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, timeout_s: float, meanwhile: Callable[[], None] | None) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            wait = deadline - time.monotonic()
            if wait <= 0:
                raise self._failure(f"no answer in {timeout_s:.0f} s")
            if meanwhile is not None:
                wait = min(wait, 0.02)
            if select.select([descriptor], [], [], wait)[0]:
                more = os.read(descriptor, 65536)
                if not more:
                    raise self._failure("it has ended")
                self._buffer += more
            elif meanwhile is not None:
                meanwhile()
        line, self._buffer = self._buffer.split(b"\n", 1)
        return dict(json.loads(line))

    def _failure(self, what: str) -> WorkerError:
        self._stderr.seek(0)
        said = self._stderr.read().strip().splitlines()[-5:]
        return WorkerError(f"{os.path.basename(self.argv[0])}: {what}: {' | '.join(said)}")
