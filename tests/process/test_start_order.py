"""Ranks that start in any order, and groups beside each other on one host."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from harness.models import assert_same, make, mixed, write
from harness.ranks import Group, wait_all

SECONDS = 0.15
AT_ONCE = 3


def start_in_any_order(groups: list[Group], noise: random.Random, longest: float) -> None:
    """Starts the ranks of all groups in one random order with random pauses; all must finish."""
    starts: list[Callable[[], object]] = []
    expected = []
    for group in groups:
        tensors = [make("w", "F32", [noise.randrange(1, 50_000)], noise.randrange(1 << 30))]
        model = write(group.directory / "model.safetensors", tensors)
        expected.append(tensors)
        receivers = noise.randrange(1, 4)
        starts.append(partial(group.send, model, receivers=receivers))
        for number in range(1, receivers + 1):
            wanted = ("--rank", str(number)) if noise.random() < 0.5 and receivers == 1 else ()
            starts.append(partial(group.receive, *wanted, out=group.out(number)))
    noise.shuffle(starts)
    for start in starts:
        start()
        time.sleep(noise.uniform(0, longest))  # the stimulus, not a way to wait
    wait_all([rank for group in groups for rank in group.ranks])
    for group, tensors in zip(groups, expected, strict=True):
        for rank in group.ranks:
            rank.succeed()
        for out in group.directory.glob("out*"):
            assert_same(out / "model.safetensors", tensors)


@pytest.mark.parametrize("seed", range(10))
def test_ranks_join_in_any_order(make_group: Callable[[str], Group], seed: int) -> None:
    groups = [make_group(f"group{i}") for i in range(AT_ONCE)]
    start_in_any_order(groups, random.Random(seed), SECONDS / AT_ONCE)


@pytest.mark.soak
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(100, 200))
def test_ranks_join_after_long_delays_in_any_order(
    make_group: Callable[[str], Group], seed: int
) -> None:
    start_in_any_order([make_group("group")], random.Random(seed), 4.0)


def test_two_groups_on_one_host_do_not_disturb_each_other(
    make_group: Callable[[str], Group], tmp_path: Path
) -> None:
    groups = [make_group(name) for name in ("a", "b")]
    models = []
    for number, group in enumerate(groups):
        models.append(mixed(seed=number, scale=30))
        write(group.directory / "model.safetensors", models[-1])
    for group in groups:
        model = group.directory / "model.safetensors"
        group.send(model, "--bucket", "64KiB", "--versions", "5", receivers=2)
        for i in (1, 2):
            group.receive("--versions", "5", out=group.out(i))
    wait_all([rank for group in groups for rank in group.ranks])
    for group, tensors in zip(groups, models, strict=True):
        for rank in group.ranks:
            rank.succeed()
        for i in (1, 2):
            assert_same(group.out(i) / "v5" / "model.safetensors", tensors)


def test_a_group_that_fails_leaves_its_neighbour_alone(
    make_group: Callable[[str], Group], model: Path
) -> None:
    good, bad = make_group("good"), make_group("bad")
    fault = {"WEIGHTCAST_FAULT": "middle:kill"}
    bad.send(model, "--bucket", "64KiB", environment=fault)
    good.send(model, "--bucket", "64KiB", "--versions", "20")
    bad.receive().fail(4)
    good.receive("--versions", "20").succeed()
    good.ranks[0].succeed()
