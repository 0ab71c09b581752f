"""Standard output holds one report and nothing else; everything for people goes beside it."""

from __future__ import annotations

import os
import re
import select
import time
from pathlib import Path
from typing import Any

import pytest
from harness.models import Tensor
from harness.ranks import PATIENCE, Group, wait_all

VERSION_FIELDS = {
    "version",
    "tensors",
    "bytes",
    "buckets",
    "seconds",
    "bytes_on_wire",
    "digest",
    "ranks",
}
RANK_FIELDS = {"rank", "host", "pack_seconds", "wait_seconds", "move_seconds", "peak_extra_bytes"}
ESCAPE = "\x1b"


def test_json_has_every_documented_field(group: Group, model: Path, tensors: list[Tensor]) -> None:
    reports = [rank.report() for rank in group.transfer(model, receivers=2, versions=2)]
    size = sum(len(tensor.data) for tensor in tensors)
    for rank, report in enumerate(reports):
        assert report["rank"] == rank
        assert report["world_size"] == 3
        assert "error" not in report
        assert [version["version"] for version in report["versions"]] == [1, 2]
        for version in report["versions"]:
            check_version(version, len(tensors), size)
        assert report["totals"]["bytes"] == 2 * size
        assert report["totals"]["peak_extra_bytes"] > 0
    digests = {version["digest"] for report in reports for version in report["versions"]}
    assert len(digests) == 1, "the same bytes twice, on three ranks"


def check_version(version: dict[str, Any], num_tensors: int, size: int) -> None:
    assert version.keys() >= VERSION_FIELDS
    assert version["tensors"] == num_tensors
    assert version["bytes"] == size
    assert version["buckets"] == 1
    assert 0 < version["seconds"] < PATIENCE
    assert re.fullmatch("[0-9a-f]{32}", version["digest"])
    assert [rank["rank"] for rank in version["ranks"]] == [0, 1, 2]
    for rank in version["ranks"]:
        assert rank.keys() >= RANK_FIELDS
        assert rank["host"] == os.uname().nodename
        assert all(rank[field] >= 0 for field in RANK_FIELDS - {"host"})


def test_every_receiver_names_the_file_it_wrote(group: Group, model: Path) -> None:
    for number, rank in enumerate(group.transfer(model, receivers=2)[1:], start=1):
        (version,) = rank.report()["versions"]
        assert version["file"] == str(group.out(number) / "model.safetensors")


def test_a_failure_is_one_json_object_too(group: Group, tmp_path: Path) -> None:
    sender = group.send(tmp_path / "absent.safetensors", "--json").fail(3)
    error = sender.report()["error"]
    assert error["exit_code"] == 3
    assert "absent.safetensors" in error["message"]


def test_wrong_usage_with_json_is_one_json_object_too(group: Group) -> None:
    rank = group.start("send", "--json").fail(2)
    assert rank.report()["error"]["exit_code"] == 2


def test_without_a_terminal_nothing_is_drawn(group: Group, model: Path) -> None:
    sender = group.send(model, environment={"TERM": "xterm-256color"})
    receiver = group.receive(out=group.out(1), environment={"TERM": "xterm-256color"})
    wait_all([sender, receiver])
    for rank in (sender.succeed(), receiver.succeed()):
        assert ESCAPE not in rank.stdout + rank.stderr
        assert "\r" not in rank.stdout + rank.stderr
        assert "%" not in rank.stderr
        assert "digest" in rank.stdout


def on_a_terminal(group: Group, model: Path, environment: dict[str, str]) -> bytes:
    """What a sender draws when its standard error is a terminal."""
    master, slave = os.openpty()
    try:
        wrapper = ["sh", "-c", f'exec "$@" 2>/proc/{os.getpid()}/fd/{slave}', "sh"]
        terminal = {"TERM": "xterm-256color"} | environment
        sender = group.send(model, "--bucket", "64KiB", wrapper=wrapper, environment=terminal)
        receiver = group.receive()
        drawn, deadline = b"", time.monotonic() + PATIENCE
        while sender.running() or select.select([master], [], [], 0)[0]:
            assert time.monotonic() < deadline, sender
            if select.select([master], [], [], 0.02)[0]:
                drawn += os.read(master, 65536)
        sender.succeed()
        receiver.succeed()
        return drawn
    finally:
        os.close(master)
        os.close(slave)


def test_a_terminal_gets_a_progress_bar_for_each_version(group: Group, model: Path) -> None:
    assert b"version 1" in on_a_terminal(group, model, {})


def test_no_color_is_honoured(group: Group, model: Path, tmp_path: Path) -> None:
    missing = tmp_path / "absent.safetensors"
    master, slave = os.openpty()
    try:
        for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            rank = group.start(
                "plan",
                missing,
                "--bucket",
                "1MiB",
                wrapper=["sh", "-c", f'exec "$@" 2>/proc/{os.getpid()}/fd/{slave}', "sh"],
                environment={"TERM": "xterm-256color", "NO_COLOR": ""} | environment,
            )
            assert rank.wait() == 3
            assert select.select([master], [], [], PATIENCE)[0]
            assert (b"\x1b[" in os.read(master, 65536)) == coloured
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("command", ["send", "receive", "plan", "doctor", "quickstart"])
def test_help_names_every_documented_option(group: Group, command: str) -> None:
    documented = {
        "send": "--listen --receivers --bucket --ticket-file --timeout --heartbeat-timeout "
        "--versions --cast --checksum --no-overlap --json",
        "receive": "--ticket-file --out --rank --timeout --versions --verify-only --json",
        "plan": "--bucket --json",
        "doctor": "--json",
        "quickstart": "--receivers --bucket",
    }
    shown = group.start(command, "--help").succeed().stdout
    for option in documented[command].split():
        assert option in shown
