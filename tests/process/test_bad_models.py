"""Bad input ends with exit code 3 and a message that names file, tensor and offset."""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harness.models import SHARD_INDEX, encode_header, make, mixed, plain, write, write_sharded
from harness.ranks import Group, wait_all

BUCKET = ("--bucket", "1MiB")


class Defect(NamedTuple):
    """A file's content, and what the message must name besides the file."""

    content: bytes
    names: tuple[str, ...] = ()


def entry(
    begin: object, end: object, shape: object = (4,), dtype: object = "U8"
) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file(header: object, size: int = 8) -> bytes:
    return encode_header(header) + b"x" * size


def raw(text: bytes, size: int = 8) -> bytes:
    return struct.pack("<Q", len(text)) + text + b"x" * size


TWICE = (
    b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
    b'"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}'
)
A = entry(0, 4)
B = entry(4, 8)

DEFECTS = {
    "an empty file": Defect(b""),
    "seven bytes": Defect(b"1234567", ("7",)),
    "a header longer than the file": Defect(struct.pack("<Q", 1000) + b"{}", ("1000",)),
    "a header of 2^63 bytes": Defect(struct.pack("<Q", 1 << 63) + b"{}", (str(1 << 63),)),
    "a header of 2^64 - 1 bytes": Defect(b"\xff" * 8 + b"{}", (str((1 << 64) - 1),)),
    "a header of no bytes": Defect(struct.pack("<Q", 0) + b"{}"),
    "a header that is not JSON": Defect(raw(b'{"a": nonsense}')),
    "a header cut off": Defect(raw(b'{"a":{"dtype":"U8","shape":[4],"data_off')),
    "a header with bytes behind it": Defect(raw(b"{} {}")),
    "a header that is a list": Defect(raw(b"[]")),
    "a header that is not UTF-8": Defect(raw(b'{"\xff\xfe":{}}')),
    "a header nested without end": Defect(raw(b'{"a":' + b"[" * 100_000)),
    "a tensor that is no object": Defect(raw(b'{"a": 7}'), ("a",)),
    "overlapping offsets": Defect(file({"a": A, "b": entry(2, 8, [6])}), ("b", "2")),
    "two tensors on the same bytes": Defect(file({"a": A, "b": A, "c": B}), ("b|a", "0")),
    "a hole between tensors": Defect(file({"a": A, "b": entry(6, 8, [2])}), ("b", "4|6")),
    "a hole at the start": Defect(file({"a": entry(2, 8, [6])}), ("a", "2")),
    "bytes behind the last tensor": Defect(file({"a": A, "b": B}, 9), ("8",)),
    "offsets beyond the file": Defect(file({"a": entry(0, 80, [80])}), ("a", "80")),
    "a data section cut off": Defect(file({"a": A, "b": B}, 7), ("b", "4", "7")),
    "offsets of 2^63": Defect(file({"a": entry(0, 1 << 63, [1 << 63])}), ("a",)),
    "offsets of 2^70": Defect(file({"a": entry(0, 1 << 70, [1 << 70])}), ("a",)),
    "an end before its begin": Defect(file({"a": entry(8, 0)}), ("a", "8")),
    "a negative offset": Defect(file({"a": entry(-4, 0)}), ("a",)),
    "an offset that is a fraction": Defect(file({"a": entry(0, 4.5)}), ("a",)),
    "an offset that is a string": Defect(file({"a": entry("0", 4)}), ("a",)),
    "three offsets": Defect(file({"a": {**A, "data_offsets": [0, 4, 8]}}), ("a",)),
    "a shape that does not fit its bytes": Defect(file({"a": entry(0, 8, [3])}), ("a", "8", "3")),
    "a shape whose product overflows": Defect(
        file({"a": entry(0, 8, [1 << 32, 1 << 32, 8])}), ("a",)
    ),
    "a shape whose product is 2^64": Defect(file({"a": entry(0, 0, [1 << 32, 1 << 32])}), ("a",)),
    "a huge shape with a zero": Defect(file({"a": entry(0, 8, [1 << 63, 1 << 63, 0])}), ("a",)),
    "a negative dimension": Defect(file({"a": entry(0, 8, [-8])}), ("a",)),
    "a dimension that is a fraction": Defect(file({"a": entry(0, 8, [8.0])}), ("a",)),
    "a thousand dimensions": Defect(file({"a": entry(0, 8, [1] * 1000 + [8])}), ("a",)),
    "half a byte": Defect(file({"a": entry(0, 8, [15], "F4")}), ("a",)),
    "the same name twice": Defect(raw(TWICE), ("a", "twice|duplicate")),
    "an unknown dtype": Defect(file({"a": entry(0, 8, [8], "F7")}), ("a", "F7")),
    "a dtype that is a number": Defect(file({"a": entry(0, 8, [8], 3)}), ("a",)),
    "no dtype": Defect(file({"a": {"shape": [8], "data_offsets": [0, 8]}}), ("a", "dtype")),
    "no shape": Defect(file({"a": {"dtype": "U8", "data_offsets": [0, 8]}}), ("a", "shape")),
    "no offsets": Defect(file({"a": {"dtype": "U8", "shape": [8]}}), ("a", "data_offsets")),
    "an empty name": Defect(file({"": entry(0, 8, [8])})),
    "a name of a megabyte": Defect(file({"n" * (1 << 20): entry(0, 8, [8])})),
    "no tensors": Defect(file({}, 0), ("no tensors|empty",)),
    "only metadata": Defect(file({"__metadata__": {"format": "pt"}}, 0), ("no tensors|empty",)),
}


@pytest.mark.parametrize("command", ["plan", "send"])
@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_named(group: Group, tmp_path: Path, defect: Defect, command: str) -> None:
    model = tmp_path / "defective.safetensors"
    model.write_bytes(defect.content)
    rank = group.start("plan", model, *BUCKET) if command == "plan" else group.send(model)
    rank.fail(3, "defective.safetensors", *defect.names)
    assert not rank.stdout
    assert not group.ticket.exists()


def missing_shard(directory: Path) -> None:
    (directory / "model-00002-of-00002.safetensors").unlink()


def index_with(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(directory: Path) -> None:
        path = directory / SHARD_INDEX
        content = json.loads(path.read_text())
        path.write_text(json.dumps(change(content)))

    return apply


def with_map(change: dict[str, object]) -> Callable[[Path], None]:
    return index_with(lambda index: {"weight_map": index["weight_map"] | change})


def truncated_index(directory: Path) -> None:
    path = directory / SHARD_INDEX
    path.write_bytes(path.read_bytes()[:-9])


INDEX_DEFECTS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "a missing shard": (missing_shard, ("model-00002-of-00002.safetensors",)),
    "a tensor that is in no shard": (
        with_map({"ghost": "model-00001-of-00002.safetensors"}), ("ghost",),
    ),
    "a tensor in another shard": (
        with_map({"a.0": "model-00002-of-00002.safetensors"}), ("a.0",),
    ),
    "a shard outside the directory": (with_map({"a.0": "../secret.safetensors"}), ("secret",)),
    "an absolute shard": (with_map({"a.0": "/etc/passwd"}), ("passwd",)),
    "a shard that is the directory": (with_map({"a.0": "."}), ()),
    "a shard that is a number": (with_map({"a.0": 3}), ("a.0",)),
    "no weight map": (index_with(lambda index: {"metadata": {}}), ("weight_map",)),
    "an empty weight map": (index_with(lambda index: {"weight_map": {}}), ()),
    "a weight map that is a list": (index_with(lambda index: {"weight_map": []}), ("weight_map",)),
    "an index that is a list": (index_with(lambda index: []), ()),
    "an index that is cut off": (truncated_index, ()),
}  # fmt: skip


@pytest.mark.parametrize("defect", INDEX_DEFECTS.values(), ids=INDEX_DEFECTS)
def test_a_defect_of_the_index_is_named(
    group: Group, tmp_path: Path, defect: tuple[Callable[[Path], None], tuple[str, ...]]
) -> None:
    shards = [[make(f"{part}.{i}", "F32", [9]) for i in range(3)] for part in ("a", "b")]
    directory = write_sharded(tmp_path / "sharded", shards)
    group.start("plan", directory, *BUCKET).succeed()
    break_it, names = defect
    break_it(directory)
    group.start("plan", directory, *BUCKET).fail(3, "sharded", *names)


def test_a_tensor_that_the_index_does_not_list_is_named(group: Group, tmp_path: Path) -> None:
    directory = write_sharded(tmp_path / "sharded", [[make("a", "F32", [9])]])
    shard = directory / "model-00001-of-00001.safetensors"
    write(shard, [make("a", "F32", [9]), make("unlisted", "F32", [9])])
    group.start("plan", directory, *BUCKET).fail(3, "unlisted")


def test_a_directory_without_a_model_is_named(group: Group, tmp_path: Path) -> None:
    (tmp_path / "hollow").mkdir()
    group.start("plan", tmp_path / "hollow", *BUCKET).fail(3, "hollow", "model.safetensors")


@pytest.mark.parametrize(
    "path", ["/nowhere/at/all.safetensors", "/dev/null", "/dev/zero", "/proc/self/mem"]
)
def test_a_path_that_is_no_file_is_named(group: Group, path: str) -> None:
    group.start("plan", path, *BUCKET).fail(3, path, timeout=5)


def test_a_pipe_does_not_hold_the_program(group: Group, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    group.start("plan", pipe, *BUCKET).fail(3, "pipe.safetensors", timeout=5)


def test_one_name_in_two_files_is_named(group: Group, tmp_path: Path) -> None:
    files = [write(tmp_path / f"{i}.safetensors", [make("same", "F32", [9])]) for i in (1, 2)]
    group.start("plan", *files, *BUCKET).fail(3, "same", "2.safetensors")


CLAIMS = {
    "header length": struct.pack("<Q", 1 << 40) + b"{",
    "tensor size": file({"a": entry(0, 1 << 55, [1 << 55])}),
    "dimensions": file({"a": entry(0, 8, [1 << 62, 0])}),
    "many empty tensors": file({f"t{i}": entry(0, 0, [0]) for i in range(20_000)}, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("content", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_in_a_file_takes_no_memory(group: Group, tmp_path: Path, content: bytes) -> None:
    model = tmp_path / "claims.safetensors"
    model.write_bytes(content)
    limits = {resource.RLIMIT_AS: 128 << 20}
    group.start("plan", model, *BUCKET, limits=limits).fail(3, "claims.safetensors")


@pytest.mark.slow
def test_a_sparse_file_of_a_terabyte_takes_no_memory(group: Group, tmp_path: Path) -> None:
    model = tmp_path / "claims.safetensors"
    with model.open("wb") as out:
        out.write(struct.pack("<Q", 1 << 40) + b"{")
        out.truncate((1 << 40) + 8)
    group.start("plan", model, *BUCKET, limits={resource.RLIMIT_AS: 128 << 20}).fail(3, "claims")


@pytest.mark.parametrize("checksum", ["on", "off"])
def test_a_file_that_shrinks_while_it_is_read_ends_every_rank(
    group: Group, tmp_path: Path, checksum: str
) -> None:
    model = write(tmp_path / "shrinks.safetensors", plain(8 << 20, tensors=4))
    fault = {"WEIGHTCAST_FAULT": "middle:stop:3"}
    options = ("--bucket", "64KiB", "--checksum", checksum)
    sender = group.send(model, *options, receivers=2, environment=fault)
    receivers = [group.receive(out=group.out(i)) for i in (1, 2)]
    sender.wait_stopped()
    os.truncate(model, 5 << 20)
    sender.send_signal(signal.SIGCONT)
    wait_all([sender, *receivers])
    for rank in (sender, *receivers):
        rank.fail(3, "shrinks.safetensors", "layers.2.weight", r"\d{6,}")
    assert not [path for i in (1, 2) for path in group.out(i).glob("*")]


@pytest.mark.parametrize("change", ["defective", "absent"])
def test_a_model_that_goes_bad_between_versions_ends_every_rank(
    group: Group, tmp_path: Path, change: str
) -> None:
    model = write(tmp_path / "model.safetensors", mixed())
    sender = group.send(model, "--versions", "2", receivers=2)
    fault = {"WEIGHTCAST_FAULT": "commit:stop:1"}
    held = group.receive("--versions", "2", out=group.out(1), environment=fault)
    other = group.receive("--versions", "2", out=group.out(2))
    held.wait_stopped()
    model.unlink()
    if change == "defective":
        model.write_bytes(b"\xff" * 20)
    held.send_signal(signal.SIGCONT)
    wait_all([sender, held, other])
    for rank in (sender, held, other):
        rank.fail(3, "model.safetensors")
    for number in (1, 2):
        assert (group.out(number) / "v1" / "model.safetensors").exists()
        assert not list((group.out(number)).glob("v2/*"))
