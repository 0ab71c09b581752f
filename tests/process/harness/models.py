"""Models on disk, written and read by code that shares nothing with the program under test.

The tiny reader and writer here know every dtype that the program names; where PyPI's safetensors
knows them too, `assert_same` asks it as well.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors

BITS: dict[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64, "C128": 128,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
UNKNOWN_TO_PYPI = {"C128"}
SHARD_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __repr__(self) -> str:
        return f"{self.name[:40]!r} {self.dtype} {list(self.shape)} ({len(self.data)} bytes)"


def byte_size(dtype: str, shape: Sequence[int]) -> int:
    size, rest = divmod(math.prod(shape) * BITS[dtype], 8)
    assert rest == 0, f"{dtype} {shape} does not fill its last byte"
    return size


def make(name: str, dtype: str, shape: Sequence[int], seed: int = 0) -> Tensor:
    """A tensor of bytes that differ from those of any other name or seed."""
    size = byte_size(dtype, shape)
    key = np.frombuffer(name.encode(), np.uint8).tolist()
    data = np.random.Generator(np.random.PCG64([seed, *key])).bytes(size)
    if dtype == "BOOL":
        data = bytes(byte & 1 for byte in data)
    return Tensor(name, dtype, tuple(shape), data)


def header_of(tensors: Iterable[Tensor]) -> dict[str, object]:
    header: dict[str, object] = {}
    end = 0
    for tensor in tensors:
        begin, end = end, end + len(tensor.data)
        header[tensor.name] = {
            "dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]
        }  # fmt: skip
    return header


def encode_header(header: object, *, ascii_only: bool = False) -> bytes:
    text = json.dumps(header, ensure_ascii=ascii_only).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def write(path: Path, tensors: Sequence[Tensor], *, ascii_only: bool = False) -> Path:
    """Writes one file in the order given, beside its place, and renames it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    header = header_of(tensors)
    header = {"__metadata__": {"format": "pt"}, **header}
    with temporary.open("wb") as file:
        file.write(encode_header(header, ascii_only=ascii_only))
        file.writelines(tensor.data for tensor in tensors)
    return temporary.rename(path)


def write_sparse(path: Path, name: str, dtype: str, shape: Sequence[int]) -> Path:
    """A file of one tensor whose bytes take no room on the disk; all are zeros but the last."""
    size = byte_size(dtype, shape)
    header = {name: {"dtype": dtype, "shape": list(shape), "data_offsets": [0, size]}}
    with path.open("wb") as file:
        start = file.write(encode_header(header))
        file.truncate(start + size)
        file.seek(-1, 2)
        file.write(b"\x2a")
    return path


def write_sharded(directory: Path, shards: Sequence[Sequence[Tensor]]) -> Path:
    """Shard files and their index, as transformers writes them."""
    weight_map = {}
    for number, tensors in enumerate(shards, start=1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write(directory / file, tensors)
        weight_map.update({tensor.name: file for tensor in tensors})
    total = sum(len(tensor.data) for tensors in shards for tensor in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / SHARD_INDEX).write_text(json.dumps(index))
    return directory


def read(path: Path) -> list[Tensor]:
    """The tensors of a file in the order of its header, which must be that of its bytes."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    assert length % 8 == 0, f"{path}: the data starts at an odd place"
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    data = memoryview(content)[8 + length :]
    tensors, end = [], 0
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        assert begin == end, f"{path}: {name!r} starts at {begin}, not at {end}"
        end = stop
        tensors.append(Tensor(name, entry["dtype"], tuple(entry["shape"]), bytes(data[begin:end])))
    assert end == len(data), f"{path}: {len(data) - end} bytes follow the last tensor"
    return tensors


def first_difference(left: bytes, right: bytes) -> int:
    a, b = np.frombuffer(left, np.uint8), np.frombuffer(right, np.uint8)
    return int(np.argmax(a != b))


def assert_same(path: Path, expected: Sequence[Tensor]) -> None:
    """Names, order, dtypes, shapes and every byte; also as PyPI's safetensors reads the file."""
    received = read(path)
    signature = [(tensor.name, tensor.dtype, tensor.shape) for tensor in received]
    wanted = [(tensor.name, tensor.dtype, tensor.shape) for tensor in expected]
    if signature != wanted:
        index = next(
            (i for i, (a, b) in enumerate(zip(signature, wanted, strict=False)) if a != b),
            min(len(signature), len(wanted)),
        )
        raise AssertionError(
            f"{path}: {len(signature)} tensors, wanted {len(wanted)}; number {index} is "
            f"{signature[index : index + 1]!r:.200}, wanted {wanted[index : index + 1]!r:.200}"
        )
    for got, want in zip(received, expected, strict=True):
        assert len(got.data) == len(want.data), f"{path}: {got!r}, wanted {want!r}"
        if got.data != want.data:
            at = first_difference(got.data, want.data)
            raise AssertionError(f"{path}: {got!r} differs from byte {at} on")
    if not UNKNOWN_TO_PYPI & {tensor.dtype for tensor in expected}:
        assert_same_to_pypi(path, expected)


def assert_same_to_pypi(path: Path, expected: Sequence[Tensor]) -> None:
    theirs = dict(safetensors.deserialize(path.read_bytes()))  # type: ignore[no-untyped-call]
    assert len(theirs) == len(expected)
    for want in expected:
        got = theirs[want.name]
        assert tuple(got["shape"]) == want.shape, want
        assert bytes(got["data"]) == want.data, want


def mixed(seed: int = 0, scale: int = 1) -> list[Tensor]:
    """A small model with something of everything; `scale` lengthens its large tensors."""
    return [
        make("flags", "BOOL", [3], seed),
        make("odd", "U8", [3], seed),
        make("norm.weight", "F32", [17], seed),
        make("empty", "F32", [0, 4], seed),
        make("step", "I64", [], seed),
        make("embed.weight", "BF16", [331 * scale, 129], seed),
        make("head.weight", "F32", [257 * scale, 65], seed),
        make("scale", "F8_E4M3", [1], seed),
    ]


def plain(size: int, tensors: int = 1, seed: int = 0) -> list[Tensor]:
    """`tensors` tensors of together about `size` bytes."""
    return [make(f"layers.{i}.weight", "F32", [size // tensors // 4], seed) for i in range(tensors)]
