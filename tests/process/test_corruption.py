"""Bytes that change on their way are noticed on every rank."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from harness.host import asleep_in_poll
from harness.models import assert_same, mixed, plain, write
from harness.ranks import Group, Rank, wait_all, wait_until


def shared_memory(pid: int) -> list[tuple[int, int]]:
    """Where a process can write to anonymous shared memory."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    pattern = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-s .*memfd:")
    return [(int(m[1], 16), int(m[2], 16)) for line in lines if (m := pattern.match(line))]


def flip(sender: Rank, content: bytes) -> bool:
    """Changes one byte of the first slot in which `content` lies; says whether it lies anywhere."""
    with open(f"/proc/{sender.pid}/mem", "r+b", buffering=0) as memory:
        for begin, end in shared_memory(sender.pid):
            at = os.pread(memory.fileno(), end - begin, begin).find(content)
            if at >= 0:
                changed = bytes([content[0] ^ 1])
                assert os.pwrite(memory.fileno(), changed, begin + at) == 1
                return True
    return False


def corrupt(group: Group, tmp_path: Path, *options: str) -> list[Rank]:
    """Changes a byte of tensor 0 after it was sent and before a receiver looks at it."""
    tensors = plain(64 << 10, tensors=4)
    model = write(tmp_path / "model.safetensors", tensors)
    write(group.out(1) / "model.safetensors", mixed())
    sender = group.send(model, "--bucket", "64KiB", *options, receivers=2)
    held = group.receive(
        "--rank", "1", out=group.out(1), environment={"WEIGHTCAST_FAULT": "first_bucket:stop"}
    )
    other = group.receive("--rank", "2", out=group.out(2))
    held.wait_stopped()
    wait_until(lambda: flip(sender, tensors[0].data[:64]), "the tensor lies in a slot")
    held.send_signal(signal.SIGCONT)
    wait_all([sender, held, other])
    return [sender, held, other]


def test_5_is_a_tensor_that_changed_on_its_way(group: Group, tmp_path: Path) -> None:
    for rank in corrupt(group, tmp_path):
        rank.fail(5, "layers.0.weight", "digest")
    assert_same(group.out(1) / "model.safetensors", mixed())
    assert not list(group.out(2).glob("*"))


def test_without_checksums_nobody_looks(group: Group, tmp_path: Path) -> None:
    for rank in corrupt(group, tmp_path, "--checksum", "off"):
        rank.succeed()


@pytest.mark.parametrize("number", [1, 2])
def test_receivers_can_not_write_to_the_slots(group: Group, model: Path, number: int) -> None:
    sender = group.send(model, receivers=2)
    fault = {"WEIGHTCAST_FAULT": "first_bucket:stop"}
    held = group.receive("--rank", str(number), environment=fault)
    other = group.receive()
    held.wait_stopped()
    for line in Path(f"/proc/{held.pid}/maps").read_text().splitlines():
        if "memfd" not in line:
            continue
        fields = line.split()
        size = int(fields[0].split("-")[1], 16) - int(fields[0].split("-")[0], 16)
        assert "w" not in fields[1] or size <= 64 << 10, line
    held.send_signal(signal.SIGCONT)
    wait_all([sender, held, other])


def test_a_bucket_stays_whole_while_its_reader_is_slow(group: Group, tmp_path: Path) -> None:
    tensors = plain(4 << 20, tensors=64)
    model = write(tmp_path / "model.safetensors", tensors)
    sender = group.send(model, "--bucket", "64KiB", receivers=2)
    # Rank 2 holds the first bucket while rank 1 reads on until no slot is free any more.
    slow = group.receive(
        "--rank", "2", out=group.out(2), environment={"WEIGHTCAST_FAULT": "first_bucket:stop"}
    )
    fast = group.receive(
        "--rank", "1", out=group.out(1), environment={"WEIGHTCAST_FAULT": "middle:stop:12"}
    )
    slow.wait_stopped()
    fast.wait_stopped()
    fast.send_signal(signal.SIGCONT)
    wait_until(lambda: asleep_in_poll(fast.pid), "the fast reader waits for the slow one")
    slow.send_signal(signal.SIGCONT)
    wait_all([sender, slow, fast])
    for rank in (sender, slow, fast):
        rank.succeed()
        assert not rank.stderr, rank
    for number in (1, 2):
        assert_same(group.out(number) / "model.safetensors", tensors)
