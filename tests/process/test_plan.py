"""`plan` says what lies in which bucket, by the same rules as a transfer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.models import Tensor, make, mixed, write
from harness.ranks import Group

KIB = 1024
ALIGNMENT = 256
SPLIT = 64 * KIB


def pack(tensors: list[Tensor], bucket: int) -> list[dict[str, Any]]:
    """The documented rules, in a few lines of their own."""
    buckets: list[dict[str, Any]] = []
    used = bucket + 1  # as if a full bucket were open
    for tensor in tensors:
        left, size = len(tensor.data), len(tensor.data)
        while True:
            start = -(-used // ALIGNMENT) * ALIGNMENT
            room = (
                bucket - start
                if left <= bucket or size <= bucket
                else (bucket - start) // SPLIT * SPLIT
            )
            fits = left <= bucket - start
            if not buckets or (not fits and (size <= bucket or room <= 0)) or start > bucket:
                buckets.append({"tensors": 0, "first": tensor.name, "used_bytes": 0})
                used = 0
                continue
            part = left if fits else room
            used = start + part
            left -= part
            buckets[-1] |= {
                "tensors": buckets[-1]["tensors"] + 1, "last": tensor.name, "used_bytes": used
            }  # fmt: skip
            if left == 0:
                break
    return buckets


MODELS = {
    "mixed": mixed(scale=9),
    "large and small": [
        make("small", "U8", [100]),
        make("large", "U8", [300 * KIB]),
        make("tail", "U8", [1000]),
        make("exact", "U8", [128 * KIB]),
        make("end", "F32", [3]),
    ],
    "many": [make(f"t{i}", "F32", [i * 37 % 4001]) for i in range(200)],
}


@pytest.mark.parametrize("bucket", [64 * KIB, 128 * KIB, 1024 * KIB])
@pytest.mark.parametrize("tensors", MODELS.values(), ids=MODELS)
def test_buckets_follow_the_packing_rules(
    group: Group, tmp_path: Path, tensors: list[Tensor], bucket: int
) -> None:
    model = write(tmp_path / "model.safetensors", tensors)
    report = group.start("plan", model, "--bucket", str(bucket), "--json").succeed().report()
    expected = pack(tensors, bucket)
    got = [{key: entry[key] for key in expected[0]} for entry in report["buckets"]]
    assert got == expected
    assert report["tensors"] == len(tensors)
    assert report["bytes"] == sum(len(tensor.data) for tensor in tensors)


def test_a_transfer_takes_the_buckets_that_were_planned(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", MODELS["many"])
    plan = group.start("plan", model, "--bucket", "64KiB", "--json").succeed().report()
    (version,) = group.transfer(model, "--bucket", "64KiB")[0].report()["versions"]
    assert version["buckets"] == len(plan["buckets"])
    assert version["bytes"] == plan["bytes"]


def test_the_table_names_tensors_and_buckets(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", MODELS["large and small"])
    text = group.start("plan", model, "--bucket", "64KiB").succeed().stdout
    assert "large" in text
    assert "tensor that spans buckets" in text


def test_a_closed_pipe_is_no_error(group: Group, tmp_path: Path) -> None:
    model = write(tmp_path / "model.safetensors", MODELS["many"])
    wrapper = ["bash", "-c", 'set -o pipefail; "$@" | head -n 1', "bash"]
    group.start("plan", model, "--bucket", "64KiB", wrapper=wrapper).succeed()
