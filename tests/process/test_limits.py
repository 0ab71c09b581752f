"""With little memory, small files, few descriptors: it works, or says exactly what to raise."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from harness.host import enter_cgroup, memory_cgroup, status_kib
from harness.models import Tensor, assert_same, plain, write, write_sparse
from harness.ranks import PROGRAM, Group, Rank, wait_all


def all_work_or_say(ranks: list[Rank], *patterns: str) -> int:
    wait_all(ranks)
    codes = {rank.wait() for rank in ranks}
    assert len(codes) == 1, ranks
    (code,) = codes
    assert code in (0, 7), ranks
    if code == 7:
        for rank in ranks:
            rank.fail(7, *patterns)
    return code


@pytest.mark.slow
@pytest.mark.parametrize(("bucket", "limit"), [("256MiB", 64), ("1MiB", 64)])
def test_a_memory_cgroup_is_enough_or_named(
    group: Group, tmp_path: Path, bucket: str, limit: int
) -> None:
    with memory_cgroup(f"weightcast-{os.getpid()}", limit << 20) as cgroup:
        if cgroup is None:
            pytest.skip("no memory cgroup can be made here")
        model = write_sparse(tmp_path / "model.safetensors", "w", "U8", [300 << 20])
        sender = group.send(model, "--bucket", bucket, enter=lambda: enter_cgroup(cgroup))
        receiver = group.receive("--verify-only", "--timeout", "5s")
        if bucket == "1MiB":
            assert all_work_or_say([sender, receiver]) == 0
        else:
            sender.fail(7, "memory", r"--bucket|cgroup|limit")
            assert receiver.wait() in (4, 7)


@pytest.mark.parametrize("limit", [64 << 10, 1 << 20])
def test_a_file_size_limit_of_the_sender_is_named(group: Group, tmp_path: Path, limit: int) -> None:
    model = write(tmp_path / "model.safetensors", plain(8 << 20))
    sender = group.send(model, "--bucket", "4MiB", limits={resource.RLIMIT_FSIZE: limit})
    receiver = group.receive()
    assert all_work_or_say([sender, receiver], "file size|ulimit -f") == 7


def test_without_locked_memory_all_is_well(
    group: Group, model: Path, tensors: list[Tensor]
) -> None:
    limits = {resource.RLIMIT_MEMLOCK: 0}
    ranks = [group.send(model, limits=limits), group.receive(out=group.out(1), limits=limits)]
    assert all_work_or_say(ranks) == 0
    assert_same(group.out(1) / "model.safetensors", tensors)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [*range(5, 30), 32, 40, 48, 64])
def test_few_descriptors_are_enough_or_named(group: Group, model: Path, limit: int) -> None:
    """A process never aborts for want of descriptors, whichever call is the first to fail."""
    limits = {resource.RLIMIT_NOFILE: limit}
    sender = group.send(model, "--timeout", "3s", limits=limits)
    group.receive("--timeout", "1s" if limit < 40 else "5s")
    assert sender.wait() in (0, 7), sender
    if sender.wait() == 7:
        sender.fail(7, "descriptor|open files")
    if limit >= 64:
        sender.succeed()


@pytest.mark.slow
@pytest.mark.parametrize("limit", [*range(5, 30), 32, 40, 48, 64])
def test_few_descriptors_of_a_receiver_are_enough_or_named(
    group: Group, model: Path, limit: int
) -> None:
    sender = group.send(model, "--timeout", "2s")
    receiver = group.receive("--timeout", "2s", limits={resource.RLIMIT_NOFILE: limit})
    assert receiver.wait() in (0, 7), receiver
    if receiver.wait() == 7:
        receiver.fail(7, "descriptor|open files")
    if limit >= 64:
        sender.succeed()


@pytest.mark.slow
@pytest.mark.parametrize("bucket", ["64KiB", "64MiB"])
def test_a_limited_address_space_is_enough_or_named(
    group: Group, tmp_path: Path, bucket: str
) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20, tensors=3))
    limits = {resource.RLIMIT_AS: 192 << 20}
    ranks = [group.send(model, "--bucket", bucket, limits=limits), group.receive(limits=limits)]
    all_work_or_say(ranks, "memory|address space")


@pytest.mark.slow
def test_memory_stays_at_two_buckets_whatever_the_model(group: Group, tmp_path: Path) -> None:
    model = write_sparse(tmp_path / "model.safetensors", "w", "U8", [200 << 20])
    fault = {"WEIGHTCAST_FAULT": "end:stop"}
    sender = group.send(model, "--bucket", "8MiB")
    receiver = group.receive(environment=fault)
    receiver.wait_stopped()
    for rank in (sender, receiver):
        assert status_kib(rank.pid, "VmHWM") < (2 * 8 + 64) << 10, rank
    receiver.send_signal(signal.SIGCONT)
    sender.succeed()
    receiver.succeed()


def kernels() -> list[str]:
    """Every way to copy that this machine's CPU has, `memcpy` and plain x86-64 included."""
    found = subprocess.run([PROGRAM, "doctor", "--json"], stdout=subprocess.PIPE, timeout=30)
    return [kernel["name"] for kernel in json.loads(found.stdout)["copy_kernels"]]


def test_every_copy_kernel_gives_the_same_bytes(group: Group, tmp_path: Path) -> None:
    tensors = plain(3 << 20, tensors=7)
    model = write(tmp_path / "model.safetensors", tensors)
    names = kernels()
    assert "memcpy" in names
    for name in names:
        environment = {"WEIGHTCAST_COPY_KERNEL": name}
        sender = group.send(model, "--bucket", "1MiB", environment=environment)
        receiver = group.receive(out=group.out(1), environment=environment)
        wait_all([sender, receiver])
        sender.succeed()
        receiver.succeed()
        assert_same(group.out(1) / "model.safetensors", tensors)


def test_an_unknown_copy_kernel_is_named(group: Group, model: Path) -> None:
    rank = group.start("doctor", environment={"WEIGHTCAST_COPY_KERNEL": "mmx"})
    rank.wait()
    assert "mmx" in rank.stdout + rank.stderr
