"""One exit code for each kind of failure, the same on every rank."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from harness.models import plain, write
from harness.ranks import Group, wait_all

USAGE = {
    "no command": [],
    "unknown command": ["move"],
    "unknown option": ["doctor", "--frobnicate"],
    "send without a model": ["send", "--receivers", "1"],
    "send without receivers": ["send", "m", "--listen", "tcp://127.0.0.1:0"],
    "no receivers": ["send", "m", "--receivers", "0"],
    "a bucket that is no size": ["plan", "m", "--bucket", "64 parsecs"],
    "a bucket that is too small": ["plan", "m", "--bucket", "63KiB"],
    "a negative bucket": ["plan", "m", "--bucket", "-1"],
    "plan without a bucket": ["plan", "m"],
    "a timeout of zero": ["send", "m", "--receivers", "1", "--timeout", "0s"],
    "an unknown checksum": ["send", "m", "--receivers", "1", "--checksum", "maybe"],
    "receive without a ticket": ["receive", "--verify-only"],
    "receive without a place": ["receive", "--ticket-file", "t"],
    "receive with two places": ["receive", "--ticket-file", "t", "--out", "o", "--verify-only"],
    "rank zero for a receiver": ["receive", "--ticket-file", "t", "--verify-only", "--rank", "0"],
    "zero versions": ["receive", "--ticket-file", "t", "--verify-only", "--versions", "0"],
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_2_is_wrong_usage(group: Group, arguments: list[str]) -> None:
    rank = group.start(*arguments).fail(2)
    assert not rank.stdout


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:0", "udp://127.0.0.1:0", "tcp://127.0.0.1", "tcp://127.0.0.1:70000", "tcp://"],
)
def test_2_is_an_address_that_is_none(group: Group, model: Path, address: str) -> None:
    group.send(model, "--listen", address).fail(2)


def test_0_is_done(group: Group, model: Path) -> None:
    group.transfer(model)


def test_3_is_bad_input(group: Group, tmp_path: Path) -> None:
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"\xff" * 100)
    group.send(bad).fail(3, "bad.safetensors")


def test_4_is_a_peer_that_was_lost_on_every_rank(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(1 << 20, tensors=8))
    sender = group.send(model, "--bucket", "64KiB", receivers=3)
    fault = {"WEIGHTCAST_FAULT": "middle:kill:3"}
    dead = group.receive("--rank", "2", environment=fault)
    others = [group.receive("--rank", str(rank)) for rank in (1, 3)]
    wait_all([sender, dead, *others])
    assert dead.wait() == -9
    for rank in (sender, *others):
        rank.fail(4, "rank 2")


def test_4_is_a_deadline_without_receivers(group: Group, model: Path) -> None:
    sender = group.send(model, "--timeout", "300ms", receivers=2)
    receiver = group.receive()
    sender.fail(4, "missing|of 2|joined")
    receiver.fail(4)


def test_4_is_a_ticket_that_never_comes(group: Group) -> None:
    group.receive("--timeout", "300ms").fail(4, str(group.ticket))


def test_6_is_a_refused_ticket(group: Group) -> None:
    group.ticket.write_text("not a ticket\n")
    group.receive().fail(6, "ticket")


def test_7_is_no_room_on_every_rank(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20))
    sender = group.send(model, "--bucket", "64KiB", receivers=2)
    full = group.receive("--rank", "1", out=group.out(1), limits={resource.RLIMIT_FSIZE: 1 << 20})
    other = group.receive("--rank", "2", out=group.out(2))
    wait_all([sender, full, other])
    for rank in (sender, full, other):
        rank.fail(7, str(group.out(1)))
    assert not list(group.directory.rglob("*safetensors*"))


def test_signals_end_every_rank_in_order(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(1 << 20))
    sender = group.send(model, receivers=2, environment={"WEIGHTCAST_FAULT": "commit:stop"})
    receivers = [group.receive(out=group.out(i)) for i in (1, 2)]
    sender.wait_stopped()
    sender.send_signal(signal.SIGTERM)
    sender.send_signal(signal.SIGCONT)
    wait_all([sender, *receivers])
    assert sender.wait() in (-signal.SIGTERM, 0)
    codes = {rank.wait() for rank in receivers}
    assert len(codes) == 1, "committed by all or by none"
    files = [path.name for i in (1, 2) if group.out(i).exists() for path in group.out(i).iterdir()]
    assert files == (["model.safetensors"] * 2 if codes == {0} else [])
    assert not group.ticket.exists()
