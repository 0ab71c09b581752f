"""A peer without the ticket can neither join, nor read, nor stall the group, nor run anything."""

from __future__ import annotations

import os
import pickle
import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from harness import tickets
from harness.host import abstract_sockets_of
from harness.models import Tensor, assert_same
from harness.ranks import Group, wait_all, wait_until

# ZMTP 3.0 (ZeroMQ RFC 23): signature, version, mechanism of 20 bytes, as-server, filler.
SIGNATURE = b"\xff" + b"\0" * 7 + b"\x01\x7f"


def greeting(mechanism: bytes) -> bytes:
    return SIGNATURE + b"\x03\x00" + mechanism.ljust(20, b"\0") + b"\0" + b"\0" * 31


def ready(socket_type: bytes) -> bytes:
    body = b"\x05READY\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type
    return b"\x04" + bytes([len(body)]) + body


class Malicious:
    """What unpickles to a command that leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, (f"touch {self.mark}",)


def frame(payload: bytes) -> bytes:
    return b"\x00" + bytes([len(payload)]) + payload


def attacks(mark: Path) -> dict[str, bytes]:
    noise = random.Random(5)
    bad = pickle.dumps(Malicious(mark))
    return {
        "nothing": b"",
        "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "random bytes": noise.randbytes(100_000),
        "half a greeting": greeting(b"CURVE")[:20],
        "a plain client": greeting(b"NULL") + ready(b"DEALER") + frame(bad),
        "curve and noise": greeting(b"CURVE") + noise.randbytes(4096),
        "a pickle": bad,
        "a huge frame": greeting(b"NULL") + b"\x02" + b"\xff" * 8 + b"x" * 1000,
    }


@contextmanager
def connection(port: int, payload: bytes) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
        try:
            stranger.sendall(payload)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while we were talking, which is fine
        yield stranger


@pytest.mark.parametrize("attack", attacks(Path()))
def test_strangers_on_the_control_port_change_nothing(
    group: Group, model: Path, tensors: list[Tensor], tmp_path: Path, attack: str
) -> None:
    mark = tmp_path / "mark"
    sender = group.send(model, "--timeout", "10s", receivers=2)
    port = tickets.port(
        wait_until(lambda: group.ticket.exists() and group.ticket.read_text(), "ticket")
    )
    with ExitStack() as connections:
        for _ in range(8):
            connections.enter_context(connection(port, attacks(mark)[attack]))
        receivers = [group.receive(out=group.out(i)) for i in (1, 2)]
        wait_all([sender, *receivers])
    for rank in (sender, *receivers):
        rank.succeed()
    for number in (1, 2):
        assert_same(group.out(number) / "model.safetensors", tensors)
    assert not mark.exists()


def test_a_port_scanner_changes_nothing(group: Group, model: Path) -> None:
    sender = group.send(model)
    port = tickets.port(
        wait_until(lambda: group.ticket.exists() and group.ticket.read_text(), "ticket")
    )
    for _ in range(300):
        with connection(port, b""):
            pass
    group.receive().succeed()
    sender.succeed()


def test_strangers_during_a_version_change_nothing(
    group: Group, model: Path, tensors: list[Tensor], tmp_path: Path
) -> None:
    sender = group.send(model)
    receiver = group.receive(
        out=group.out(1), environment={"WEIGHTCAST_FAULT": "first_bucket:stop"}
    )
    receiver.wait_stopped()
    port = tickets.port(group.ticket.read_text())
    with ExitStack() as connections:
        for payload in attacks(tmp_path / "mark").values():
            connections.enter_context(connection(port, payload))
        for name in abstract_sockets_of(sender.pid):
            stranger = connections.enter_context(
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            )
            stranger.connect("\0" + name)
            stranger.send(b"x" * 48)
        receiver.send_signal(signal.SIGCONT)
        wait_all([sender, receiver])
    sender.succeed(warns_of="link")
    receiver.succeed()
    assert_same(group.out(1) / "model.safetensors", tensors)


def test_strangers_on_the_socket_of_the_host_change_nothing(
    group: Group, model: Path, tensors: list[Tensor]
) -> None:
    sender = group.send(model)
    wait_until(group.ticket.exists, "ticket")
    with ExitStack() as connections:
        for name in abstract_sockets_of(sender.pid):
            for payload in (b"", b"x" * 48, b"y" * 5000):
                stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connections.enter_context(stranger)
                stranger.connect("\0" + name)
                if payload:
                    stranger.send(payload)
        receiver = group.receive(out=group.out(1))
        wait_all([sender, receiver])
    sender.succeed(warns_of="link")
    receiver.succeed()
    assert_same(group.out(1) / "model.safetensors", tensors)
