"""How floating tensors are narrowed, by numpy: round to nearest even, NaN stays NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from harness.models import Tensor

Array = npt.NDArray[Any]

WIDTH = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16}
NUMPY: dict[str, type[np.floating[Any]]] = {"F64": np.float64, "F32": np.float32, "F16": np.float16}


def cast(tensor: Tensor, target: str) -> Tensor:
    """The tensor as it should arrive under `--cast`."""
    if tensor.dtype not in WIDTH or WIDTH[tensor.dtype] <= WIDTH[target]:
        return tensor
    values = np.frombuffer(tensor.data, NUMPY[tensor.dtype])
    data = to_bf16(values) if target == "BF16" else narrow(values, NUMPY[target])
    return Tensor(tensor.name, target, tensor.shape, data.tobytes())


def narrow(values: Array, dtype: type[np.floating[Any]]) -> Array:
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def to_bf16(values: Array) -> Array:
    """Bits of the nearest bfloat16 to each value, rounded once."""
    bits = to_odd_f32(values).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def to_odd_f32(values: Array) -> Array:
    """float32 rounded to odd, so that rounding once more gives what one rounding would have."""
    if values.dtype == np.float32:
        return values
    single = narrow(values, np.float32)
    bits = single.view(np.uint32).copy()
    back = single.astype(np.float64)
    inexact = (back != values) & ~np.isnan(values)
    away = inexact & (np.abs(back) > np.abs(values))
    bits[away] -= 1  # towards zero first
    bits[inexact] |= 1
    return bits.view(np.float32)


def is_nan(tensor: Tensor) -> Array:
    if tensor.dtype == "BF16":
        bits = np.frombuffer(tensor.data, np.uint16)
        return np.asarray((bits & 0x7FFF) > 0x7F80)
    return np.asarray(np.isnan(np.frombuffer(tensor.data, NUMPY[tensor.dtype])))
