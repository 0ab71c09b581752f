"""The lines of the benchmark: which two sides each compares, and what is wanted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import memory, protocol
from .protocol import Metric, Series
from .report import Bar, Row
from .worker import Worker, WorkerError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: Bytes of the 10 000 small tensors, which the large ones have to match.
SMALL_PAYLOAD = 333_075_456


@dataclass
class Side:
    """A program of the benchmark and what it is told."""

    program: str
    options: dict[str, Any]
    ranks: int = 0  #: start it under mpirun, with so many ranks
    mca: tuple[str, ...] = ()  #: more parameters for OpenMPI


@dataclass
class Promise:
    """One row that comes out of a series."""

    bar: Bar
    metric: Metric = "throughput"


@dataclass
class Comparison:
    """Two sides, alternated."""

    #: Several: the pair with the best reference, found in the same run.
    sides: list[tuple[Side, Side]]
    promises: list[Promise]


class Bench:
    """Starts sides and measures lines."""

    def __init__(self, programs: Path, reference_kernel: str) -> None:
        self._programs = programs
        self._reference_kernel = reference_kernel

    def start(self, side: Side) -> Worker:
        options = [f"{name}={value}" for name, value in side.options.items()]
        argv = [str(self._programs / side.program), *options]
        env = {}
        if side.program != "bench_engine_pipeline":
            # References copy with the loop that a longer measurement found best; the engine has to
            # find it by itself.
            env["WEIGHTCAST_COPY_KERNEL"] = self._reference_kernel
        if side.ranks:
            argv = [*_mpirun(side), *argv]
        return Worker(argv, env)

    def compare(self, comparison: Comparison) -> list[Row]:
        sides = comparison.sides
        best = 0
        if len(sides) > 1:
            best = protocol.best_of([partial(self.start, reference) for reference, _ in sides])
        reference, engine = sides[best]
        with self.start(reference) as one, self.start(engine) as other:
            series = protocol.run_series(one, other)
            payload = int(other.ready["payload"])
            kernels = (one.ready["kernel"], other.ready["kernel"])
        notes = {"best": _ring_text(reference)} if len(sides) > 1 else {}
        if kernels[0] != kernels[1]:
            notes["kernels"] = f"{kernels[0]} / {kernels[1]}"
        return [_row(promise, series, payload, notes) for promise in comparison.promises]

    def measure_memory(self, bar: Bar, side: Side, versions: int) -> Row:
        """Peak memory beyond the tensors, over the allowance of two buckets and 64 MiB."""
        allowance = 2 * int(side.options["bucket"]) + 64 * MIB
        with self.start(side) as worker:
            peak = memory.Peak(worker.pids)
            for _ in range(versions):
                worker.sample(peak.look)
                peak.look()
            synthetic = side.options.get("source") == "synthetic"
            tensors = 0 if synthetic else int(worker.ready["payload"])
        extra = [(most - tensors) / MIB for most in peak.bytes.values()]
        absolute = {"extra MiB by rank": [round(each, 1) for each in extra]}
        return Row(bar, [max(extra) * MIB / allowance], fewest=1, absolute=absolute)


def _mpirun(side: Side) -> list[str]:
    mca = ["mpi_yield_when_idle", "1", "pml", "ob1", "btl", "vader,self", *side.mca]
    pairs = [word for at in range(0, len(mca), 2) for word in ("--mca", mca[at], mca[at + 1])]
    run = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    return [*run, "-n", str(side.ranks), *pairs]


def _ring_text(side: Side) -> str:
    return f"{side.options['slots']} x {int(side.options['bucket']) // MIB} MiB"


def _row(promise: Promise, series: Series, payload: int, notes: dict[str, Any]) -> Row:
    discarded = len(series.pairs) - len(series.clean)
    if promise.metric in ("cpu", "faults"):
        # What a process used does not depend on what the host took away meanwhile.
        pairs, discarded = series.pairs, 0
    else:
        pairs = series.clean
    if not pairs:
        return Row(promise.bar, discarded=discarded, reason="every pair was disturbed")
    if promise.metric == "faults":
        values = [pair.engine["minor_faults"] * GIB / payload for pair in pairs]
    else:
        values = [pair.ratio(promise.metric) for pair in pairs]
    foreign = max(pair.foreign for pair in pairs)
    absolute = {**_absolute(promise.metric, pairs, payload), **notes}
    if foreign > 0.1:
        absolute["others' cpu"] = f"{foreign:.0%}"
    return Row(promise.bar, values, discarded, protocol.FEWEST_PAIRS, absolute)


def _absolute(metric: Metric, pairs: list[protocol.Pair], payload: int) -> dict[str, Any]:
    """Medians of the reference / of the engine, with CPU seconds as the steadier witness."""
    sides = ([pair.reference for pair in pairs], [pair.engine for pair in pairs])
    seconds = [protocol.median_of(side, "seconds") for side in sides]
    if metric == "latency":
        return {"us": " / ".join(f"{each * 1e6:.1f}" for each in seconds)}
    if metric == "faults":
        return {"bytes": payload}
    cpu = [protocol.median_of(side, "cpu_seconds") * GIB / payload for side in sides]
    return {
        "GB/s": " / ".join(f"{payload / each / 1e9:.2f}" for each in seconds),
        "s": " / ".join(f"{each:.3f}" for each in seconds),
        "cpu s/GiB": " / ".join(f"{each:.3f}" for each in cpu),
        "bytes": payload,
    }


def _raw(bucket: int, slots: int = 2, **options: Any) -> Side:
    return Side("bench_shm_pipeline", {"bucket": bucket, "slots": slots, **options})


def _engine(bucket: int, checksum: str, **options: Any) -> Side:
    return Side("bench_engine_pipeline", {"bucket": bucket, "checksum": checksum, **options})


def _mode(checksum: str) -> str:
    return "checked" if checksum == "on" else "unchecked"


def payload_for(receivers: int) -> int:
    """1 GiB, or as much less as leaves room: both sides hold a source and every destination."""
    payload = GIB
    while 2 * (1 + receivers) * payload > 0.6 * memory.available() and payload > 64 * MIB:
        payload //= 2
    return payload


def noise() -> Iterator[Comparison]:
    """B0: the raw pipeline against itself shows what a ratio of this run is worth."""
    bar = Bar("B0", "raw / raw: the noise of this run, 16 MiB", 0.90)
    yield Comparison([(_raw(16 * MIB), _raw(16 * MIB))], [Promise(bar)])


def hand_off() -> Iterator[Comparison]:
    """B1, B2, B3, and from the 64 MiB pairs B19 and B20."""
    wanted = [
        ("B1", 64, 0.90),
        ("B1", 16, 0.90),
        ("B2", 4, 0.85),
        ("B2", 1, 0.80),
        ("B3", 256, 0.95),
    ]
    for line, size, bar in wanted:
        for checksum in ("off", "on"):
            title = f"packed hand-off / raw, {size} MiB, {_mode(checksum)}"
            promises = [Promise(Bar(line, title, bar))]
            if size == 64:
                cpu = Bar("B20", f"CPU per GiB / raw, 64 MiB, {_mode(checksum)}", 1.15, True)
                faults = Bar("B19", f"minor faults per GiB, 64 MiB, {_mode(checksum)}", 1000, True)
                promises += [Promise(cpu, "cpu"), Promise(faults, "faults")]
            reference = _raw(size * MIB, checksum=checksum)
            yield Comparison([(reference, _engine(size * MIB, checksum))], promises)


def copy_kernel() -> Iterator[Comparison]:
    """B4: what the own copy loops are worth when tensors are small for glibc."""
    for size, bar in [(64, 1.2), (16, 1.2), (4, 1.0)]:
        title = f"tensors of 1-32 MiB / memcpy pipeline, {size} MiB"
        reference = _raw(size * MIB, kernel="memcpy", pack="tensors")
        engine = _engine(size * MIB, "off")
        yield Comparison([(reference, engine)], [Promise(Bar("B4", title, bar))])


def broadcast() -> Iterator[Comparison]:
    """B5: against the best ring of the raw broadcast, with about the same memory on both sides."""
    rings = [(64 * MIB, 2), (16 * MIB, 4), (16 * MIB, 3)]
    for receivers in (2, 4, 7):
        shared = {"receivers": receivers, "payload": payload_for(receivers)}
        for checksum in ("off", "on"):
            title = f"broadcast to {receivers} / best raw ring, {_mode(checksum)}"
            sides = [
                (
                    _raw(bucket, slots, checksum=checksum, **shared),
                    _engine(bucket, checksum, **shared),
                )
                for bucket, slots in rings
            ]
            yield Comparison(sides, [Promise(Bar("B5", title, 0.90))])


def mpi() -> Iterator[Comparison]:
    """B7: OpenMPI's default, and at 4 receivers also its best algorithm."""
    best = ("coll_tuned_use_dynamic_rules", "1", "coll_tuned_bcast_algorithm", "5")
    best += ("coll_tuned_bcast_algorithm_segmentsize", "131072")
    for receivers, bar, name, mca in [
        (1, 1.2, "default", ()),
        (4, 1.3, "default", ()),
        (4, 1.1, "binary tree", best),
        (7, 1.3, "default", ()),
    ]:
        options = {"bucket": 64 * MIB, "payload": payload_for(receivers)}
        reference = Side("bench_mpi_broadcast", options, receivers + 1, mca)
        title = f"broadcast to {receivers} / OpenMPI ({name}), 64 MiB"
        engine = _engine(64 * MIB, "off", receivers=receivers, payload=options["payload"])
        yield Comparison([(reference, engine)], [Promise(Bar("B7", title, bar))])


def checksum_cost() -> Iterator[Comparison]:
    """B16: the engine against itself."""
    bar = Bar("B16", "checksum on / off, 64 MiB", 0.68)
    sides = [(_engine(64 * MIB, "off"), _engine(64 * MIB, "on"))]
    yield Comparison(sides, [Promise(bar)])


def control() -> Iterator[Comparison]:
    """B21: first the plain REQ/REP of the bar, then what is closer to equal modes."""
    engine = Side("bench_control_roundtrip", {})
    for pattern, curve in [("req", "off"), ("req", "on"), ("router", "off"), ("router", "on")]:
        name = "REQ/REP" if pattern == "req" else "ROUTER/DEALER"
        secured = " with CURVE" if curve == "on" else ""
        bar = Bar("B21", f"control round trip / ZeroMQ {name}{secured}", 1.3, True)
        reference = Side("bench_zmq_roundtrip", {"pattern": pattern, "curve": curve})
        yield Comparison([(reference, engine)], [Promise(bar, "latency")])


def small_tensors() -> Iterator[Comparison]:
    """10 000 tensors of 1-64 KiB against as many bytes in large ones, engine against itself."""
    for checksum in ("off", "on"):
        bar = Bar("BS", f"10 000 small tensors / large ones, 64 MiB, {_mode(checksum)}", 0.7)
        large = _engine(64 * MIB, checksum, payload=SMALL_PAYLOAD)
        small = _engine(64 * MIB, checksum, tensors="small")
        yield Comparison([(large, small)], [Promise(bar)])


COMPARISONS: list[tuple[set[str], Callable[[], Iterator[Comparison]]]] = [
    ({"B0"}, noise),
    ({"B1", "B2", "B3", "B19", "B20"}, hand_off),
    ({"B4"}, copy_kernel),
    ({"B5"}, broadcast),
    ({"B7"}, mpi),
    ({"B16"}, checksum_cost),
    ({"B21"}, control),
    ({"BS"}, small_tensors),
]


def memory_lines() -> Iterator[tuple[Bar, Side, int]]:
    """B22: the bar is the allowance itself, so 1 is all of it."""
    title = "extra memory / (2 buckets + 64 MiB)"
    for checksum in ("off", "on"):
        bar = Bar("B22", f"{title}, 1 GiB, {_mode(checksum)}", 1.0, True)
        yield bar, _engine(64 * MIB, checksum), 3
    bar = Bar("B22", f"{title}, 8 GiB, verify only", 1.0, True)
    yield bar, _engine(64 * MIB, "on", payload=8 * GIB, source="synthetic"), 1


def missing_program(comparison: Comparison) -> str:
    """Why a comparison cannot be made here, or nothing."""
    with_mpi = any(reference.ranks for reference, _ in comparison.sides)
    if with_mpi and not shutil.which("mpirun.openmpi"):
        return "mpirun.openmpi is not installed (Debian: openmpi-bin, libopenmpi-dev)"
    return ""


__all__ = ["COMPARISONS", "Bench", "Comparison", "Promise", "WorkerError", "memory_lines"]
