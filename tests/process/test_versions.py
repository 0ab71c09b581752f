"""Several versions in one session, and the options that change how one moves."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from harness.host import descriptors, mappings, status_kib
from harness.models import Tensor, assert_same, make, mixed, plain, write
from harness.ranks import Group, Rank, wait_all


def stop_at(point: str, count: int) -> dict[str, str]:
    return {"WEIGHTCAST_FAULT": f"{point}:stop:{count}"}


def test_each_version_is_read_anew_from_the_files(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", mixed(seed=1))
    sender = group.send(model, "--versions", "3", "--json", receivers=2)
    # Receiver i stops when it commits version i, which holds the sender until the file has changed.
    receivers = [
        group.receive(
            "--rank", str(i), "--versions", "3", out=group.out(i), environment=stop_at("commit", i)
        )
        for i in (1, 2)
    ]
    for version, receiver in enumerate(receivers, start=2):
        receiver.wait_stopped()
        write(model, mixed(seed=version))
        receiver.send_signal(signal.SIGCONT)
    wait_all([sender, *receivers])
    for rank in (sender, *receivers):
        rank.succeed()
    for number in (1, 2):
        for version in (1, 2, 3):
            assert_same(
                group.out(number) / f"v{version}" / "model.safetensors", mixed(seed=version)
            )
    versions = sender.report()["versions"]
    assert [version["version"] for version in versions] == [1, 2, 3]
    assert len({version["digest"] for version in versions}) == 3


def test_a_version_with_other_tensors_follows_in_the_same_session(
    group: Group, tmp_path: Path
) -> None:
    model = write(tmp_path / "model.safetensors", mixed())
    sender = group.send(model, "--versions", "2")
    receiver = group.receive("--versions", "2", out=group.out(1), environment=stop_at("commit", 1))
    receiver.wait_stopped()
    others = [*mixed(seed=2), make("lora.weight", "F32", [300, 300])]
    write(model, others)
    receiver.send_signal(signal.SIGCONT)
    wait_all([sender, receiver])
    sender.succeed()
    receiver.succeed()
    assert_same(group.out(1) / "v1" / "model.safetensors", mixed())
    assert_same(group.out(1) / "v2" / "model.safetensors", others)


@pytest.mark.parametrize("where", ["receiver", "root"])
def test_previous_files_stay_until_commit(group: Group, tmp_path: Path, where: str) -> None:
    old, new = mixed(seed=1), mixed(seed=2, scale=4)
    group.transfer(write(tmp_path / "model.safetensors", old))
    target = group.out(1) / "model.safetensors"
    held = {where: stop_at("commit", 1)}
    write(tmp_path / "model.safetensors", new)
    sender = group.send(tmp_path / "model.safetensors", environment=held.get("root"))
    receiver = group.receive(out=group.out(1), environment=held.get("receiver"))
    stopped = {"root": sender, "receiver": receiver}[where]
    stopped.wait_stopped()
    assert_same(target, old)
    stopped.send_signal(signal.SIGCONT)
    wait_all([sender, receiver])
    sender.succeed()
    receiver.succeed()
    assert_same(target, new)
    assert [path.name for path in group.out(1).iterdir()] == ["model.safetensors"]


def test_a_failed_version_leaves_the_previous_files(group: Group, tmp_path: Path) -> None:
    old = mixed(seed=1)
    group.transfer(write(tmp_path / "model.safetensors", old))
    new = write(tmp_path / "new.safetensors", plain(4 << 20, tensors=8))
    sender = group.send(new, "--bucket", "64KiB", environment={"WEIGHTCAST_FAULT": "middle:kill:3"})
    receiver = group.receive(out=group.out(1))
    sender.wait()
    receiver.fail(4, "rank 0")
    assert_same(group.out(1) / "model.safetensors", old)
    assert [path.name for path in group.out(1).iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize(
    "options",
    [
        ("--checksum", "off"),
        ("--checksum", "on"),
        ("--no-overlap",),
        ("--checksum", "off", "--no-overlap"),
    ],
    ids=" ".join,
)
def test_options_change_no_byte(group: Group, tmp_path: Path, options: tuple[str, ...]) -> None:
    tensors = mixed(scale=16)
    model = write(tmp_path / "model.safetensors", tensors)
    ranks = group.transfer(model, *options, "--bucket", "64KiB", receivers=2)
    for number in (1, 2):
        assert_same(group.out(number) / "model.safetensors", tensors)
    kind = "metas" if "off" in options else "bytes"
    assert {rank.report()["versions"][0]["digest_kind"] for rank in ranks} == {kind}


def footprint(rank: Rank) -> dict[str, int]:
    return {
        "descriptors": len(descriptors(rank.pid)),
        "mappings": mappings(rank.pid),
        "anonymous KiB": status_kib(rank.pid, "RssAnon"),
    }


def observe_growth(group: Group, model: Path, versions: int) -> None:
    """Stops a receiver at an early and at a late commit and compares what both ranks hold."""
    early, late = 10, versions - 1
    options = ("--versions", str(versions))
    sender = group.send(model, "--bucket", "64KiB", *options, receivers=2)
    watchers = [
        group.receive(*options, environment=stop_at("commit", count)) for count in (early, late)
    ]
    before: dict[str, int] = {}
    for number, watcher in enumerate(watchers):
        watcher.wait_stopped(120)
        for name, rank in (("sender", sender), ("receiver", watchers[1 - number])):
            now = footprint(rank)
            if number == 0:
                before |= {f"{name} {key}": value for key, value in now.items()}
                continue
            for key, value in now.items():
                slack = 1024 if key.endswith("KiB") else 2 if key == "mappings" else 0
                was = before[f"{name} {key}"]
                assert value <= was + slack, f"{name}: {key} grew from {was} to {value}"
        watcher.send_signal(signal.SIGCONT)
    wait_all([sender, *watchers], 120)
    for rank in (sender, *watchers):
        rank.succeed()


@pytest.mark.slow
def test_fifty_versions_leave_descriptors_mappings_and_memory_flat(
    group: Group, model: Path
) -> None:
    observe_growth(group, model, 50)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_two_hundred_versions_leave_everything_flat(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", plain(32 << 20, tensors=50))
    observe_growth(group, model, 200)


def test_every_version_has_its_own_file_with_many_versions(
    group: Group, model: Path, tensors: list[Tensor]
) -> None:
    group.transfer(model, receivers=2, versions=12)
    for number in (1, 2):
        names = sorted(path.name for path in group.out(number).iterdir())
        assert names == sorted(f"v{version}" for version in range(1, 13))
        for name in names:
            assert_same(group.out(number) / name / "model.safetensors", tensors)
