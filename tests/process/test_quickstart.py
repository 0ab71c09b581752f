"""`quickstart` on a model of the user's own: two versions, two receivers, a proof."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness.host import children
from harness.models import make, mixed, plain, write, write_sharded
from harness.ranks import Group, Rank, process_state, wait_until


def quickstart(group: Group, model: Path, *options: str, **environment: str) -> Rank:
    scratch = group.directory / "scratch"
    scratch.mkdir()
    environment |= {"TMPDIR": str(scratch)}
    return group.start("quickstart", model, *options, environment=environment)


@pytest.mark.parametrize("receivers", [1, 2, 3])
def test_it_ends_with_the_line_that_proves_it(group: Group, model: Path, receivers: int) -> None:
    options = ("--receivers", str(receivers), "--bucket", "64KiB")
    rank = quickstart(group, model, *options).succeed()
    lines = rank.stdout.splitlines()
    assert "bit-identical" in lines[-1]
    for word in ("version", "tensors", "bytes", "buckets", "seconds", "GB/s", "digest"):
        assert word in rank.stdout
    assert not os.listdir(group.directory / "scratch"), "it removes what it wrote"


def test_a_sharded_model_is_proved_too(group: Group, tmp_path: Path) -> None:
    shards = [[make(f"{part}.{i}", "BF16", [99]) for i in range(3)] for part in ("a", "b")]
    rank = quickstart(group, write_sharded(tmp_path / "sharded", shards)).succeed()
    assert "bit-identical" in rank.stdout.splitlines()[-1]


def test_every_dtype_is_proved_too(group: Group, tmp_path: Path) -> None:
    odd = [make("packed", "F4", [6]), make("six", "F6_E2M3", [8]), make("complex", "C64", [3])]
    model = write(tmp_path / "model.safetensors", [*mixed(), *odd])
    assert "bit-identical" in quickstart(group, model).succeed().stdout


def test_without_a_model_it_says_how_to_get_one(group: Group) -> None:
    rank = group.start("quickstart", environment={"WEIGHTCAST_QUICKSTART_MODEL": ""})
    rank.fail(2, "model")


def test_a_bad_model_is_bad_input(group: Group, tmp_path: Path) -> None:
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense")
    quickstart(group, tmp_path / "bad.safetensors").fail(3, "bad.safetensors")
    assert not os.listdir(group.directory / "scratch")


def test_its_children_die_with_it(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20, tensors=8))
    # Everybody stops at the third bucket; the children inherit the environment.
    rank = quickstart(group, model, "--bucket", "64KiB", WEIGHTCAST_FAULT="middle:stop:3")
    rank.wait_stopped()
    born = children(rank.pid)
    assert len(born) == 2
    os.kill(rank.pid, signal.SIGKILL)
    wait_until(lambda: all(process_state(pid) in ("", "Z") for pid in born), "no child", 2)


def moves_on(pids: list[int]) -> bool:
    """Lets children go on whose own fault may have stopped them; true so that it can be asked."""
    for pid in pids:
        if process_state(pid) == "T":
            os.kill(pid, signal.SIGCONT)
    return True


def test_an_interrupt_ends_it_with_its_children_and_its_files(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20, tensors=8))
    rank = quickstart(group, model, "--bucket", "64KiB", WEIGHTCAST_FAULT="middle:stop:3")
    rank.wait_stopped()
    born = children(rank.pid)
    rank.send_signal(signal.SIGINT)
    rank.send_signal(signal.SIGCONT)
    wait_until(lambda: moves_on(born) and not rank.running(), f"an end of {rank}", 10)
    assert rank.wait() == -signal.SIGINT, rank
    assert all(process_state(pid) in ("", "Z") for pid in born)
    assert not os.listdir(group.directory / "scratch")


def test_a_receiver_that_dies_ends_it_at_once(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20, tensors=8))
    rank = quickstart(group, model, "--bucket", "64KiB", WEIGHTCAST_FAULT="middle:stop:3")
    rank.wait_stopped()
    first, second = children(rank.pid)
    os.kill(first, signal.SIGKILL)
    rank.send_signal(signal.SIGCONT)
    wait_until(lambda: moves_on([second]) and not rank.running(), f"an end of {rank}", 5)
    rank.fail(4, "rank [12]")
    assert not os.listdir(group.directory / "scratch")
