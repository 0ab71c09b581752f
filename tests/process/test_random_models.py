"""Models that hypothesis makes up, sent to two receivers; the seed is fixed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from harness.models import BITS, Tensor, assert_same, make, write
from harness.ranks import Group
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

names = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40
).filter(lambda name: name != "__metadata__")  # fmt: skip


@st.composite
def tensors_of_a_model(draw: st.DrawFn) -> list[Tensor]:
    tensors = []
    for name in draw(st.lists(names, min_size=1, max_size=30, unique=True)):
        dtype = draw(st.sampled_from(sorted(BITS)))
        shape = draw(st.lists(st.integers(0, 9), max_size=4))
        if draw(st.integers(0, 9)) == 0:
            shape = [draw(st.integers(1, 300)), 128, *shape[:1]]
        if BITS[dtype] < 8:
            shape = [*shape, 4]  # so that the last byte is full
        tensors.append(make(name, dtype, shape))
    return tensors


def check(tensors: list[Tensor], bucket: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        group = Group(Path(directory))
        try:
            model = write(group.directory / "model.safetensors", tensors)
            group.transfer(model, "--bucket", f"{bucket}KiB", receivers=2)
            for number in (1, 2):
                assert_same(group.out(number) / "model.safetensors", tensors)
        finally:
            group.end()


QUICK = settings(
    max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@seed(20260731)
@QUICK
@given(tensors_of_a_model(), st.sampled_from([64, 65, 128, 1024]))
def test_random_models_arrive_whole(tensors: list[Tensor], bucket: int) -> None:
    check(tensors, bucket)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@seed(20260801)
@settings(QUICK, max_examples=400)
@given(tensors_of_a_model(), st.sampled_from([64, 65, 128, 1024]))
def test_many_random_models_arrive_whole(tensors: list[Tensor], bucket: int) -> None:
    check(tensors, bucket)
