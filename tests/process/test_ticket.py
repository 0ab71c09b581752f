"""How receivers find their group, and who is let in."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import tickets
from harness.host import asleep_in_poll, ports_of
from harness.models import Tensor, assert_same, mixed, write
from harness.ranks import Group, Rank, wait_all, wait_until

LISTEN = "--listen"
STOP = {"WEIGHTCAST_FAULT": "first_bucket:stop"}


def published(group: Group, sender: Rank) -> str:
    """The text of the sender's ticket, once it is there."""

    def text() -> str:
        assert sender.running(), sender
        return group.ticket.read_text() if group.ticket.exists() else ""

    return str(wait_until(text, "a ticket file"))


def resume(rank: Rank) -> None:
    rank.send_signal(signal.SIGCONT)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_the_ticket_file_is_for_its_owner_only(group: Group, model: Path, mask: int) -> None:
    sender = group.send(model, enter=lambda: os.umask(mask))
    published(group, sender)
    assert stat.S_IMODE(group.ticket.stat().st_mode) == 0o600


def test_the_ticket_file_goes_with_its_sender(group: Group, model: Path) -> None:
    group.transfer(model)
    assert not group.ticket.exists()


def test_the_ticket_does_not_travel_in_arguments(group: Group, model: Path) -> None:
    sender = group.send(model)
    text = published(group, sender).strip()
    receiver = group.receive(environment=STOP)
    receiver.wait_stopped()
    for rank in (sender, receiver):
        for name in ("cmdline", "environ"):
            assert text.encode() not in Path(f"/proc/{rank.pid}/{name}").read_bytes()
    resume(receiver)
    receiver.succeed()


def test_a_receiver_may_start_before_the_ticket_exists(
    group: Group, model: Path, tensors: list[Tensor]
) -> None:
    receiver = group.receive(out=group.out(1))
    wait_until(lambda: asleep_in_poll(receiver.pid), "it waits")
    sender = group.send(model)
    wait_all([sender, receiver])
    sender.succeed()
    receiver.succeed()
    assert_same(group.out(1) / "model.safetensors", tensors)


def test_a_stale_ticket_file_is_read_again_when_it_changes(
    group: Group, model: Path, tensors: list[Tensor]
) -> None:
    first = group.send(model)
    stale = published(group, first)
    first.end()
    group.ticket.write_text(stale)
    receiver = group.receive(out=group.out(1))
    wait_until(lambda: asleep_in_poll(receiver.pid), "it tries the stale ticket")
    sender = group.send(model)
    wait_all([sender, receiver])
    sender.succeed()
    receiver.succeed()
    assert_same(group.out(1) / "model.safetensors", tensors)


def test_a_stale_ticket_alone_ends_within_the_timeout(group: Group, model: Path) -> None:
    sender = group.send(model)
    published(group, sender)
    sender.end()
    assert group.ticket.exists(), "SIGKILL leaves the file"
    group.receive("--timeout", "1s").fail(4, "127.0.0.1", timeout=4)


def test_a_ticket_from_another_run_is_refused_and_the_group_goes_on(
    make_group: Callable[[str], Group], model: Path
) -> None:
    theirs, ours = make_group("theirs"), make_group("ours")
    other, sender = theirs.send(model), ours.send(model)
    forged = tickets.redirected(published(theirs, other), tickets.port(published(ours, sender)))
    theirs.ticket.write_text(forged)
    theirs.receive("--timeout", "2s").fail(6, "ticket", timeout=6)
    ours.receive(out=ours.out(1)).succeed()
    sender.succeed()


GARBAGE = {
    "text": "hello\n",
    "another prefix": "wc9:AAAA\n",
    "only the prefix": "wc1:\n",
    "no base64": "wc1:*****\n",
    "random bytes": tickets.encode(bytes(range(200))),
    "very long": "wc1:" + "A" * 60_000 + "\n",
    "a zero byte": "wc1:\0\n",
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_a_garbage_ticket_is_told_from_a_good_one(group: Group, text: str) -> None:
    group.ticket.write_text(text)
    receiver = group.receive("--timeout", "2s")
    assert receiver.wait() in (5, 6), receiver
    assert "ticket" in receiver.stderr


def test_a_truncated_ticket_is_refused_at_every_length(group: Group, model: Path) -> None:
    text = published(group, group.send(model)).strip()
    for length in range(4, len(text), 61):
        group.directory.joinpath("cut").write_text(text[:length])
        rank = group.receive("--ticket-file", group.directory / "cut", "--timeout", "2s")
        assert rank.wait() in (5, 6), (length, rank)


@pytest.mark.parametrize("version", [0, 2, 0xFFFFFFFF])
def test_a_ticket_of_another_protocol_version_is_refused(
    group: Group, model: Path, version: int
) -> None:
    text = published(group, group.send(model))
    forged = group.directory / "forged"
    forged.write_text(tickets.with_protocol(text, version))
    group.receive("--ticket-file", forged, "--timeout", "2s").fail(6, "protocol", str(version))


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_a_ticket_comes_on_standard_input(group: Group, model: Path, late: bool) -> None:
    reader, writer = os.pipe()
    try:
        receiver = group.receive("--ticket-file", "-", stdin=reader) if late else None
        sender = group.send(model)
        os.write(writer, published(group, sender).encode())
        receiver = receiver or group.receive("--ticket-file", "-", stdin=reader)
        receiver.succeed()
        sender.succeed()
    finally:
        os.close(reader)
        os.close(writer)


def test_standard_input_that_stays_silent_ends_within_the_timeout(group: Group) -> None:
    reader, writer = os.pipe()
    try:
        rank = group.receive("--ticket-file", "-", "--timeout", "300ms", stdin=reader)
        rank.fail(4, "standard input")
    finally:
        os.close(reader)
        os.close(writer)


def test_without_a_file_the_ticket_is_a_line_of_standard_error(group: Group, model: Path) -> None:
    sender = group.start("send", model, "--receivers", "1", LISTEN, "tcp://127.0.0.1:0")
    line = wait_until(
        lambda: [line for line in sender.stderr.splitlines() if line.startswith("wc1:")], "a ticket"
    )[0]
    group.ticket.write_text(line)
    group.receive().succeed()
    sender.succeed()


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "localhost"]
)
def test_every_kind_of_address_is_listened_on(group: Group, model: Path, address: str) -> None:
    sender = group.send(model, LISTEN, f"tcp://{address}:0", receivers=2)
    ticket = published(group, sender)
    assert tickets.port(ticket) in ports_of(sender.pid)
    receivers = [group.receive() for _ in range(2)]
    wait_all([sender, *receivers])
    for rank in (sender, *receivers):
        rank.succeed()


def test_a_wildcard_publishes_addresses_and_never_itself(group: Group, model: Path) -> None:
    found = tickets.endpoints(published(group, group.send(model, LISTEN, "tcp://0.0.0.0:0")))
    assert any("127.0.0.1" in endpoint for endpoint in found)
    assert not any("0.0.0.0" in endpoint or "[::]" in endpoint for endpoint in found)


def test_a_chosen_port_is_the_one_listened_on(group: Group, model: Path) -> None:
    port = free_port()
    sender = group.send(model, LISTEN, f"tcp://127.0.0.1:{port}")
    assert tickets.port(published(group, sender)) == port
    group.receive().succeed()
    sender.succeed()
    again = group.send(model, LISTEN, f"tcp://127.0.0.1:{port}")
    group.receive().succeed()
    again.succeed()


def test_a_second_sender_on_a_port_disturbs_nobody(
    group: Group, model: Path, tensors: list[Tensor], tmp_path: Path
) -> None:
    sender = group.send(model)
    before = published(group, sender)
    other = write(tmp_path / "other.safetensors", mixed(seed=9))
    second = group.send(other, LISTEN, f"tcp://127.0.0.1:{tickets.port(before)}")
    second.fail(6, str(tickets.port(before)), "in use|taken")
    assert group.ticket.read_text() == before
    receiver = group.receive(out=group.out(1))
    wait_all([sender, receiver])
    sender.succeed()
    receiver.succeed()
    assert_same(group.out(1) / "model.safetensors", tensors)


def test_two_ranks_that_claim_one_number_are_told_apart(group: Group, model: Path) -> None:
    sender = group.send(model, receivers=2)
    claimants = [group.receive("--rank", "1") for _ in range(2)]
    wait_until(lambda: any(not rank.running() for rank in claimants), "one is refused")
    loser = next(rank for rank in claimants if not rank.running())
    loser.fail(6, "rank 1")
    group.receive().succeed()
    sender.succeed(warns_of="was refused")
    next(rank for rank in claimants if rank is not loser).succeed()


def test_one_rank_too_many_is_refused_and_the_group_goes_on(group: Group, model: Path) -> None:
    sender = group.send(model)
    member = group.receive(out=group.out(1), environment=STOP)
    member.wait_stopped()
    group.receive("--timeout", "3s").fail(6, "complete|full|all .*ranks|too many", timeout=6)
    resume(member)
    member.succeed()
    sender.succeed(warns_of="was refused")


def test_a_rank_beyond_the_group_is_refused(group: Group, model: Path) -> None:
    sender = group.send(model, receivers=2)
    group.receive("--rank", "3").fail(6, "rank 3")
    receivers = [group.receive("--rank", str(rank)) for rank in (2, 1)]
    wait_all([sender, *receivers])
    for rank in (sender, *receivers):
        rank.succeed(warns_of="was refused")


def test_wanted_ranks_are_given(group: Group, model: Path) -> None:
    sender = group.send(model, receivers=4)
    wanted = [group.receive("--rank", str(rank), "--json") for rank in (4, 2)]
    others = [group.receive("--json") for _ in range(2)]
    wait_all([sender, *wanted, *others])
    sender.succeed()
    assert [rank.succeed().report()["rank"] for rank in wanted] == [4, 2]
    assert sorted(rank.succeed().report()["rank"] for rank in others) == [1, 3]
