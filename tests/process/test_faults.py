"""Ranks that are killed or stopped at each step of the protocol: the others end at once, whole."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness.host import abstract_sockets, abstract_sockets_of, is_root, listeners, ports_of
from harness.models import Tensor, assert_same, mixed, plain, read, write
from harness.ranks import Group, Rank, wait_all, wait_until

SLACK = float(os.environ.get("WEIGHTCAST_TEST_SLACK", "1"))
HEARTBEAT_TIMEOUT = 1.0
PHASES = {"join": 1, "first_bucket": 1, "middle": 3, "end": 1, "commit": 1}
VICTIMS = {"root": 0, "receiver": 2}
OLD = mixed(seed=1)
NEW = plain(2 << 20, tensors=8, seed=2)


@dataclass
class Scene:
    """A root and two receivers that hold an old model, with everything they could leave behind."""

    group: Group
    model: Path
    options: tuple[str, ...] = ()
    shared: Path = field(init=False)
    scratch: Path = field(init=False)
    ranks: list[Rank] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shared = self.group.directory / "shm"
        self.scratch = self.group.directory / "scratch"
        self.shared.mkdir()
        self.scratch.mkdir()
        self.group.settings["environment"] = {"TMPDIR": str(self.scratch)}
        if is_root():  # a /dev/shm of its own, in which every file is theirs
            script = 'mount --bind "$0" /dev/shm && exec "$@"'
            self.group.settings["wrapper"] = ["unshare", "-m", "sh", "-c", script, self.shared]
        for number in (1, 2):
            write(self.out(number), OLD)

    def out(self, number: int) -> Path:
        return self.group.out(number) / "model.safetensors"

    def start(self, victim: int, fault: str) -> None:
        faults = {victim: {"WEIGHTCAST_FAULT": fault}}
        self.ranks = [
            self.group.send(
                self.model,
                *("--bucket", "64KiB", "--heartbeat-timeout", "1s", *self.options),
                receivers=2,
                environment=faults.get(0, {}),
            )
        ]
        wait_until(lambda: self.group.ticket.exists() or not self.ranks[0].running(), "a ticket")
        self.ports = ports_of(self.ranks[0].pid) if self.ranks[0].running() else set()
        self.names = set(abstract_sockets_of(self.ranks[0].pid)) if self.ports else set()
        self.ranks += [
            self.group.receive(
                "--rank", str(i), out=self.group.out(i), environment=faults.get(i, {})
            )
            for i in (1, 2)
        ]

    def assert_nothing_left(self) -> None:
        assert not any(rank.running() for rank in self.ranks)
        assert not os.listdir(self.shared)
        assert not os.listdir(self.scratch)
        assert not self.ports & set(listeners().values())
        assert not self.names & set(abstract_sockets().values())
        for number in (1, 2):
            assert os.listdir(self.group.out(number)) == ["model.safetensors"]

    def assert_whole(self, number: int, allowed: list[list[Tensor]]) -> None:
        names = [tensor.name for tensor in read(self.out(number))]
        expected = next(model for model in allowed if [tensor.name for tensor in model] == names)
        assert_same(self.out(number), expected)


@pytest.fixture
def scene(group: Group, tmp_path: Path) -> Iterator[Scene]:
    yield Scene(group, write(tmp_path / "model.safetensors", NEW))


# How long a rank is patient with a root from which it has never heard how long to be.
FIRST_TIMEOUT = 10.0


def strike(scene: Scene, victim: int, phase: str, action: str) -> None:
    """Lets the victim run into its fault and checks what everybody else makes of it."""
    scene.start(victim, fault_spec(victim, phase, action))
    dying = scene.ranks[victim]
    others = [rank for rank in scene.ranks if rank is not dying]
    if action == "stop":
        dying.wait_stopped()
        struck, patience = time.monotonic(), HEARTBEAT_TIMEOUT + 1
        if (victim, phase) == (0, "join"):
            patience = FIRST_TIMEOUT + 1
        wait_all(others)
    else:
        wait_all(scene.ranks)
        assert dying.wait() == -signal.SIGKILL
        struck, patience = dying.ended_at, 1.0
    for rank in others:
        late = rank.ended_at - struck
        assert late < patience * SLACK, f"ended after {late:.2f} s: {rank}"
        check_verdict(rank, victim, phase)
    if action == "stop":
        dying.send_signal(signal.SIGCONT)
        assert dying.wait(5) in ((4, 0) if phase == "commit" else (4,)), dying
    for number in (1, 2):
        scene.assert_whole(number, [OLD, NEW] if phase == "commit" else [OLD])
    if phase == "commit" and victim != 0:
        scene.assert_whole(1, [NEW])
    scene.assert_nothing_left()


def fault_spec(victim: int, phase: str, action: str) -> str:
    point = "middle" if (victim, phase) == (0, "first_bucket") else phase
    return f"{point}:{action}:{PHASES[phase]}"


def check_verdict(rank: Rank, victim: int, phase: str) -> None:
    if phase == "commit" and rank.wait() == 0:
        return
    # Who is not yet welcomed knows the root by its ticket alone, which names no host.
    host = () if (victim, phase) == (0, "join") else (os.uname().nodename,)
    rank.fail(4, f"rank {victim}", "lost while", *host)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("victim", VICTIMS.values(), ids=VICTIMS)
@pytest.mark.parametrize("action", ["kill", "stop"])
def test_all_others_end_when_a_rank(scene: Scene, action: str, victim: int, phase: str) -> None:
    strike(scene, victim, phase, action)


@pytest.mark.parametrize("phase", ["first_bucket", "middle", "commit"])
@pytest.mark.parametrize("victim", VICTIMS.values(), ids=VICTIMS)
def test_without_checksums_too_when_a_rank_is_killed_in(
    scene: Scene, victim: int, phase: str
) -> None:
    scene.options = ("--checksum", "off")
    strike(scene, victim, phase, "kill")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("victim", VICTIMS.values(), ids=VICTIMS)
def test_all_others_end_when_a_rank_is_lost_between_versions(
    scene: Scene, victim: int, number: int
) -> None:
    """The victim waits for a version, or between two of them, when the signal comes."""
    scene.options = ("--versions", "1000000")
    faults = {"WEIGHTCAST_FAULT": "none:stop"}
    sender = scene.group.send(
        scene.model, "--heartbeat-timeout", "1s", *scene.options, receivers=2, environment=faults
    )
    receivers = [scene.group.receive("--rank", str(i), *scene.options) for i in (1, 2)]
    scene.ranks = [sender, *receivers]
    wait_until(lambda: established(receivers), "every rank has joined")
    dying = scene.ranks[victim]
    dying.send_signal(number)
    struck = time.monotonic()
    others = [rank for rank in scene.ranks if rank is not dying]
    wait_all(others)
    for rank in others:
        assert rank.ended_at - struck < (HEARTBEAT_TIMEOUT + 1) * SLACK
        rank.fail(4, f"rank {victim}")


def established(ranks: list[Rank]) -> bool:
    """Whether each rank maps the sender's memory, which comes after the join."""
    for rank in ranks:
        assert rank.running(), rank
        if "memfd" not in Path(f"/proc/{rank.pid}/maps").read_text():
            return False
    return True
