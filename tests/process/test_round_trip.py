"""What `receive` writes is what `send` read: names, order, dtypes, shapes and every byte."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.models import (
    BITS,
    Tensor,
    assert_same,
    make,
    mixed,
    plain,
    write,
    write_sharded,
    write_sparse,
)
from harness.ranks import Group, wait_all

KIB = 1024
BUCKET = 64 * KIB


def round_trip(
    group: Group, tensors: list[Tensor], *options: str, receivers: int = 1
) -> dict[str, Any]:
    """Sends the tensors, compares what every rank wrote, returns the sender's report."""
    model = write(group.directory / "model.safetensors", tensors)
    ranks = group.transfer(model, *options, receivers=receivers)
    for number in range(1, receivers + 1):
        assert_same(group.out(number) / "model.safetensors", tensors)
    return ranks[0].report()


@pytest.mark.parametrize("receivers", [1, 2, 4])
def test_every_receiver_holds_what_was_sent(group: Group, receivers: int) -> None:
    round_trip(group, mixed(scale=8), "--bucket", "64KiB", receivers=receivers)


@pytest.mark.parametrize("bucket", ["64KiB", "100000", "1MiB", "64MiB"])
def test_any_bucket_size_gives_the_same_files(group: Group, bucket: str) -> None:
    round_trip(group, mixed(scale=8), "--bucket", bucket, receivers=2)


@pytest.mark.parametrize("bucket", ["2048MiB", "3072MiB"])
def test_a_bucket_far_larger_than_the_model_costs_neither_time_nor_memory(
    group: Group, bucket: str
) -> None:
    started = time.monotonic()
    report = round_trip(group, mixed(scale=8), "--bucket", bucket)
    assert time.monotonic() - started < 5
    assert all(rank["peak_extra_bytes"] < 64 << 20 for rank in report_ranks(report))


def report_ranks(report: dict[str, Any]) -> list[dict[str, int]]:
    (version,) = report["versions"]
    return list(version["ranks"])


@pytest.mark.parametrize("dtype", BITS)
def test_every_dtype_survives(group: Group, dtype: str) -> None:
    tensors = [
        make("large", dtype, [64 * KIB + 8]),
        make("matrix", dtype, [3, 8]),
        make("none", dtype, [4, 0]),
        make("few", dtype, [4]),
    ]
    round_trip(group, tensors, "--bucket", "64KiB")


SHAPES = {
    "a scalar alone": [make("a", "F32", [])],
    "one tensor without elements alone": [make("a", "F32", [0])],
    "only tensors without elements": [make(f"t{i}", "BF16", [i, 0, 3]) for i in range(5)],
    "zero elements between others": [
        make("a", "F32", [3]),
        make("z", "I64", [0]),
        make("b", "F32", [5]),
        make("c", "F32", [7, 0]),
    ],
    "zero elements first, named last": [make("z", "U8", [0]), make("a", "U8", [1])],
    "odd sizes": [make(f"odd{size}", "U8", [size]) for size in (1, 3, 5, 255, 257, 4095, 65537)],
    "many dimensions": [make("a", "U8", [1] * 40 + [3]), make("b", "F16", [2, 1, 3, 1, 5])],
    "unaligned mixes": [
        make("bytes", "U8", [3]),
        make("float", "F32", [5]),
        make("half", "BF16", [1]),
        make("long", "I64", [3]),
        make("flag", "BOOL", [1]),
        make("double", "F64", [2, 2]),
        make("packed", "F4", [2]),
        make("tail", "F32", [1]),
    ],
    "repeated shapes": [make(f"layer.{i}", "F32", [16, 16]) for i in range(64)],
}


@pytest.mark.parametrize("tensors", SHAPES.values(), ids=SHAPES)
def test_unusual_shapes_survive(group: Group, tensors: list[Tensor]) -> None:
    round_trip(group, tensors, "--bucket", "64KiB", receivers=2)


@pytest.mark.parametrize("delta", [-1, 0, 1])
@pytest.mark.parametrize("buckets", [1, 2, 3])
def test_tensors_around_multiples_of_a_bucket_survive(
    group: Group, buckets: int, delta: int
) -> None:
    tensors = [
        make("before", "U8", [1000]),
        make("around", "U8", [buckets * BUCKET + delta]),
        make("after", "U8", [1000]),
    ]
    round_trip(group, tensors, "--bucket", str(BUCKET), receivers=2)


def test_a_tensor_of_seven_and_a_third_buckets_survives(group: Group) -> None:
    size = int(7.3 * 1024 * KIB) // 4
    report = round_trip(group, [make("huge", "F32", [size])], "--bucket", "1MiB", receivers=2)
    assert report["versions"][0]["buckets"] == 8


NAMES = [
    "plain.weight",
    "größe.权重.🧠",
    'quote"back\\slash/slash',
    "tab\tnewline\nreturn\rbell\x07delete\x7f",
    "\x01",
    " ",
    "  spaces around  ",
    "\u202eright to left\u202c",
    "e\u0301 and \u00e9",
    "\U0010ffff",
    "null",
    "../../etc/passwd",
    "{}",
    "%s%n{0}",
    "n" * 10_000,
    "é" * 5_000,
]


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "raw"])
def test_names_in_any_utf8_survive(group: Group, ascii_only: bool) -> None:
    tensors = [make(name, "F32", [5]) for name in NAMES]
    model = write(group.directory / "model.safetensors", tensors, ascii_only=ascii_only)
    group.transfer(model, receivers=2)
    for number in (1, 2):
        assert_same(group.out(number) / "model.safetensors", tensors)


def test_tied_tensors_are_sent_once_for_each_name(group: Group) -> None:
    embed = make("embed.weight", "F32", [100, 64])
    head = Tensor("head.weight", embed.dtype, embed.shape, embed.data)
    report = round_trip(group, [embed, head], receivers=2)
    assert report["versions"][0]["tensors"] == 2


def test_ten_thousand_tiny_tensors_survive(group: Group) -> None:
    sizes = np.random.Generator(np.random.PCG64(7)).integers(0, 40, 10_000).tolist()
    tensors = [make(f"experts.{i}.bias", "BF16", [size]) for i, size in enumerate(sizes)]
    report = round_trip(group, tensors, "--bucket", "1MiB", receivers=2)
    assert report["versions"][0]["tensors"] == 10_000


def test_a_sharded_model_arrives_whole(group: Group, tmp_path: Path) -> None:
    shards = [[make(f"s{s}.t{t}", "F32", [100 + t]) for t in range(9)] for s in range(3)]
    model = write_sharded(tmp_path / "sharded", shards)
    group.transfer(model, "--bucket", "64KiB", receivers=2)
    for number in (1, 2):
        assert_same(
            group.out(number) / "model.safetensors",
            [tensor for shard in shards for tensor in shard],
        )


def test_a_directory_with_one_file_is_a_model(group: Group, tmp_path: Path) -> None:
    tensors = mixed()
    write(tmp_path / "directory" / "model.safetensors", tensors)
    group.transfer(tmp_path / "directory")
    assert_same(group.out(1) / "model.safetensors", tensors)


def test_several_files_arrive_in_the_order_given(group: Group, tmp_path: Path) -> None:
    parts = [[make(f"{part}.{i}", "F32", [33]) for i in range(3)] for part in ("z", "a", "m")]
    files = [write(tmp_path / f"{i}.safetensors", part) for i, part in enumerate(parts)]
    group.transfer(files)
    assert_same(group.out(1) / "model.safetensors", [tensor for part in parts for tensor in part])


def test_only_the_used_part_of_a_bucket_moves(group: Group) -> None:
    tensors = plain(10 << 20, tensors=10)
    report = round_trip(group, tensors, "--bucket", "4MiB", receivers=2)
    (version,) = report["versions"]
    assert version["bytes"] == sum(len(tensor.data) for tensor in tensors)
    assert version["bytes_on_wire"] <= version["bytes"] * 1.01


def test_verify_only_writes_nothing(group: Group, model: Path) -> None:
    sender = group.send(model, "--json")
    receiver = group.receive("--verify-only", "--json")
    wait_all([sender, receiver])
    sender.succeed()
    receiver.succeed()
    assert not list(group.directory.rglob("*.safetensors"))
    digests = {rank.report()["versions"][0]["digest"] for rank in (sender, receiver)}
    assert len(digests) == 1


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bucket", ["64MiB", "2048MiB", "3072MiB"])
def test_a_tensor_over_four_gib_arrives(group: Group, tmp_path: Path, bucket: str) -> None:
    size = (4 << 30) + 12345
    model = write_sparse(tmp_path / "model.safetensors", "vast", "U8", [size])
    sender = group.send(model, "--bucket", bucket, "--json")
    receiver = group.receive("--verify-only", "--json")
    wait_all([sender, receiver], 500)
    assert sender.succeed().report()["versions"][0]["bytes"] == size
    receiver.succeed()
