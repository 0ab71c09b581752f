"""Fixtures: a group of ranks in a directory of its own, ended with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness.models import Tensor, mixed, write
from harness.ranks import PROGRAM, Group


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.collectonly and not PROGRAM.exists():
        pytest.exit(f"{PROGRAM} does not exist: build it, or set WEIGHTCAST_BIN", returncode=4)


@pytest.fixture
def make_group(tmp_path: Path) -> Iterator[Callable[[str], Group]]:
    groups: list[Group] = []

    def make(name: str) -> Group:
        directory = tmp_path / name
        directory.mkdir()
        groups.append(Group(directory))
        return groups[-1]

    yield make
    for group in groups:
        group.end()


@pytest.fixture
def group(make_group: Callable[[str], Group]) -> Group:
    return make_group("group")


@pytest.fixture
def tensors() -> list[Tensor]:
    """Of a small model."""
    return mixed()


@pytest.fixture
def model(tmp_path: Path, tensors: list[Tensor]) -> Path:
    """The file of a small model."""
    return write(tmp_path / "model.safetensors", tensors)
