"""Pairs A B B A, cleaned of what the host of this virtual machine took away."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from .worker import Worker

WANTED_PAIRS = 8
EXTRA_PAIRS = 8
FEWEST_PAIRS = 5
MAX_STEAL = 0.03
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

Sample = dict[str, Any]
Metric = Literal["throughput", "cpu", "latency", "faults"]


@dataclass
class Pair:
    reference: Sample
    engine: Sample
    steal: float  #: share of wall x processors that the host took
    foreign: float  #: share that other processes of this machine used

    @property
    def clean(self) -> bool:
        return self.steal <= MAX_STEAL

    def ratio(self, metric: Metric) -> float:
        if metric == "throughput":
            return float(self.reference["seconds"] / self.engine["seconds"])
        if metric == "latency":
            return float(self.engine["seconds"] / self.reference["seconds"])
        return float(self.engine["cpu_seconds"] / self.reference["cpu_seconds"])


@dataclass
class Series:
    """All pairs of two sides."""

    pairs: list[Pair] = field(default_factory=list)

    @property
    def clean(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.clean]


@dataclass
class Ticks:
    busy: int
    steal: int
    wall: float

    @staticmethod
    def now() -> Ticks:
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = numbers
        return Ticks(user + nice + system + irq + softirq, steal, time.monotonic())


def take_pair(reference: Worker, engine: Worker, reference_first: bool) -> Pair:
    before = Ticks.now()
    if reference_first:
        reference_sample = reference.sample()
        engine_sample = engine.sample()
    else:
        engine_sample = engine.sample()
        reference_sample = reference.sample()
    after = Ticks.now()
    room = (after.wall - before.wall) * (os.cpu_count() or 1)
    own = reference_sample["cpu_seconds"] + engine_sample["cpu_seconds"]
    busy = (after.busy - before.busy) / TICKS_PER_SECOND
    return Pair(
        reference_sample,
        engine_sample,
        steal=(after.steal - before.steal) / TICKS_PER_SECOND / room,
        foreign=max(0.0, busy - own) / room,
    )


def run_series(reference: Worker, engine: Worker) -> Series:
    """Pairs until enough are clean, or until there were too many."""
    series = Series()
    take_pair(reference, engine, reference_first=True)  # warms both up
    while len(series.clean) < WANTED_PAIRS and len(series.pairs) < WANTED_PAIRS + EXTRA_PAIRS:
        series.pairs.append(take_pair(reference, engine, len(series.pairs) % 2 == 0))
    return series


def median_of(samples: list[Sample], key: str) -> float:
    return statistics.median(float(sample[key]) for sample in samples)


def best_of(candidates: list[Callable[[], Worker]], samples: int = 4) -> int:
    """The index of the worker with the shortest median time, one after the other."""
    medians = []
    for start in candidates:
        with start() as worker:
            worker.sample()
            medians.append(median_of([worker.sample() for _ in range(samples)], "seconds"))
    return medians.index(min(medians))
