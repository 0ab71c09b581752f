"""A receiver that fails makes every rank report its error, and leaves old files as they were."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import pytest
from harness.host import is_root, small_disk
from harness.models import assert_same, mixed, plain, write
from harness.ranks import Group, Rank, wait_all


def fail_everywhere(group: Group, model: Path, code: int, *patterns: str, **broken: Any) -> None:
    """Sends to three receivers, of which rank 2 is broken; all ranks must tell its error."""
    sender = group.send(model, "--bucket", "64KiB", "--json", receivers=3)
    failing = group.receive("--rank", "2", "--json", **broken)
    others = [group.receive("--rank", str(i), "--json", out=group.out(i)) for i in (1, 3)]
    ranks = [sender, failing, *others]
    wait_all(ranks)
    for rank in ranks:
        rank.fail(code, *patterns)
    own = error_of(failing)
    for rank in ranks:
        assert own["message"] in error_of(rank)["message"], rank
        assert error_of(rank)["rank"] == 2, rank
    for number in (1, 3):
        assert not list(group.out(number).glob("*")), "served by none"


def error_of(rank: Rank) -> dict[str, Any]:
    return dict(rank.report()["error"])


@pytest.mark.skipif(not is_root(), reason="only root can mount a small disk")
def test_a_full_disk_is_everybodys_error(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20, tensors=4))
    old = mixed(seed=7)
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        write(disk / "model.safetensors", old)
        fail_everywhere(group, model, 7, str(disk), "space|disk", out=disk)
        assert [path.name for path in disk.iterdir()] == ["model.safetensors"]
        assert_same(disk / "model.safetensors", old)


def test_a_file_size_limit_is_everybodys_error(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(4 << 20, tensors=4))
    old = mixed(seed=7)
    write(group.out(2) / "model.safetensors", old)
    limits = {resource.RLIMIT_FSIZE: 1 << 20}
    fail_everywhere(
        group, model, 7, str(group.out(2)), "file size|ulimit -f", out=group.out(2), limits=limits
    )
    assert [path.name for path in group.out(2).iterdir()] == ["model.safetensors"]
    assert_same(group.out(2) / "model.safetensors", old)


UNWRITABLE = ["a file in the way", "a read-only place"]


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_a_directory_that_can_not_be_written_is_everybodys_error(
    group: Group, model: Path, kind: str
) -> None:
    out = group.directory / "unwritable" if kind == UNWRITABLE[0] else Path("/proc/nowhere")
    if kind == UNWRITABLE[0]:
        out.write_text("in the way")
    fail_everywhere(group, model, 3, str(out), out=out)


def test_a_directory_in_place_of_the_file_is_everybodys_error(group: Group, model: Path) -> None:
    (group.out(2) / "model.safetensors" / "full").mkdir(parents=True)
    sender = group.send(model, receivers=2)
    failing = group.receive("--rank", "2", out=group.out(2))
    other = group.receive("--rank", "1", out=group.out(1))
    wait_all([sender, failing, other])
    assert failing.wait() == 3, failing
    assert str(group.out(2)) in failing.stderr
    assert sender.wait() == 3, sender
    assert str(group.out(2)) in sender.stderr
    assert os.listdir(group.out(2)) == ["model.safetensors"]
