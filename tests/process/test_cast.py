"""`--cast` narrows wide floating tensors and touches nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.casting import WIDTH, Array, cast, is_nan
from harness.models import BITS, Tensor, first_difference, make, mixed, read, write
from harness.ranks import Group

TARGETS = ["BF16", "F16", "F32"]


def special_values(dtype: type[np.floating[Any]]) -> Array:
    """Values at which rounding goes wrong, and random bits."""
    info = np.finfo(dtype)
    half_ways = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-24]
    # Just above a tie by less than float32 can hold: rounding twice would round down.
    twice = [1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40, -(1 + 2.0**-8 + 2.0**-40)]
    limits = [65504, 65519.99, 65520, 2.0**-24, 2.0**-25, 2.0**-25 * 1.01, 3.3895e38, 3.4e38, 1e-40]
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    chosen: Array = np.array(odd + half_ways + twice + limits + [-value for value in limits], dtype)
    width = np.dtype(dtype).itemsize
    random: Array = np.frombuffer(
        np.random.Generator(np.random.PCG64(width)).bytes(width * 50_000), dtype
    )
    normal: Array = np.random.Generator(np.random.PCG64(3)).standard_normal(50_000).astype(dtype)
    return np.concatenate([chosen, random, normal])


def floats(name: str, dtype: str, numpy_dtype: type[np.floating[Any]]) -> Tensor:
    values = special_values(numpy_dtype)
    return Tensor(name, dtype, values.shape, values.tobytes())


def assert_cast(got: Tensor, want: Tensor) -> None:
    assert (got.name, got.dtype, got.shape) == (want.name, want.dtype, want.shape)
    if want.dtype not in WIDTH:
        assert got.data == want.data, want
        return
    nan = is_nan(want)
    assert np.array_equal(is_nan(got), nan), f"{want}: NaN in other places"
    element = np.dtype(f"u{BITS[want.dtype] // 8}")
    got_bits = np.frombuffer(got.data, element)[~nan]
    want_bits = np.frombuffer(want.data, element)[~nan]
    if not np.array_equal(got_bits, want_bits):
        at = first_difference(got_bits.tobytes(), want_bits.tobytes()) // element.itemsize
        raise AssertionError(f"{want}: element {at} is {got_bits[at]:#x}, not {want_bits[at]:#x}")


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("bucket", ["64KiB", "16MiB"])
@pytest.mark.parametrize("target", TARGETS)
def test_wide_floats_are_rounded_once_and_nothing_else_is_touched(
    group: Group, target: str, bucket: str
) -> None:
    tensors = [
        make("odd", "U8", [3]),
        floats("single", "F32", np.float32),
        floats("double", "F64", np.float64),
        *[make(f"bits.{dtype}", dtype, [1000]) for dtype in BITS if dtype not in ("F32", "F64")],
        make("empty", "F32", [0, 3]),
        Tensor("scalar", "F32", (), np.float32(1 / 3).tobytes()),
    ]
    model = write(group.directory / "model.safetensors", tensors)
    group.transfer(model, "--cast", target.lower(), "--bucket", bucket, receivers=2)
    for number in (1, 2):
        received = read(group.out(number) / "model.safetensors")
        assert len(received) == len(tensors)
        for got, tensor in zip(received, tensors, strict=True):
            assert_cast(got, cast(tensor, target))


def test_a_cast_halves_the_bytes_that_move(group: Group) -> None:
    tensors = [make("w", "F32", [1 << 18])]
    model = write(group.directory / "model.safetensors", tensors)
    (version,) = group.transfer(model, "--cast", "bf16")[0].report()["versions"]
    assert version["bytes"] == 1 << 19
    assert version["bytes_on_wire"] <= (1 << 19) * 1.01


@pytest.mark.parametrize("target", ["f64", "int8", "float", ""])
def test_other_targets_are_wrong_usage(group: Group, target: str) -> None:
    model = write(group.directory / "model.safetensors", mixed())
    group.send(model, "--cast", target).fail(2, "cast")
