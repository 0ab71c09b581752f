#!/usr/bin/env python3
"""Measures the engine against its references: see bench/README.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from harness import lines, report  # noqa: E402  (the path has to be set first)
from harness.report import Bar, Report, Row  # noqa: E402
from harness.worker import WorkerError  # noqa: E402


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bench/bin", help="programs")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench.json", help="report")
    parser.add_argument("--only", default="", help="lines to measure, for example B1,B4")
    parser.add_argument("--match", default="", help="only rows whose title contains this")
    parser.add_argument("--minutes", type=float, default=30, help="start nothing after that")
    return parser.parse_args()


def probe_kernels(programs: Path) -> dict[str, float]:
    """GB/s of each copy loop of this machine."""
    done = subprocess.run(
        [programs / "bench_kernel_probe"], capture_output=True, text=True, timeout=120, check=True
    )
    return dict(json.loads(done.stdout))


class Run:
    """Goes through the lines until all are measured or the time is over."""

    def __init__(self, arguments: argparse.Namespace, bench: lines.Bench, rows: Report) -> None:
        self._only = {name.strip() for name in arguments.only.split(",") if name.strip()}
        self._match = arguments.match
        self._end = time.monotonic() + arguments.minutes * 60
        self._bench = bench
        self._report = rows
        self.broken = False

    def all(self) -> None:
        for ids, make in lines.COMPARISONS:
            if not self._only or ids & self._only:
                for comparison in make():
                    self._compare(comparison)
        for bar, side, versions in lines.memory_lines():
            if self._wanted(bar):
                self._measure([bar], lambda: [self._bench.measure_memory(bar, side, versions)])

    def _wanted(self, bar: Bar) -> bool:
        return (not self._only or bar.line in self._only) and self._match in bar.title

    def _compare(self, comparison: lines.Comparison) -> None:
        comparison.promises = [each for each in comparison.promises if self._wanted(each.bar)]
        bars = [promise.bar for promise in comparison.promises]
        if not bars:
            return
        missing = lines.missing_program(comparison)
        if missing:
            self._skip(bars, missing)
        else:
            self._measure(bars, lambda: self._bench.compare(comparison))

    def _measure(self, bars: list[Bar], measure: "lines.Callable[[], list[Row]]") -> None:
        if time.monotonic() > self._end:
            self._skip(bars, "out of time")
            return
        try:
            for row in measure():
                self._report.add(row)
        except WorkerError as error:
            self.broken = True
            self._skip(bars, str(error))

    def _skip(self, bars: list[Bar], reason: str) -> None:
        for bar in bars:
            self._report.add(Row(bar, reason=reason))


def main() -> int:
    arguments = parse_arguments()
    kernels = probe_kernels(arguments.bin)
    best = max(kernels, key=lambda name: kernels[name])
    about = {**report.machine(), "copy_kernels_gbps": kernels, "reference_kernel": best}
    run = Run(arguments, lines.Bench(arguments.bin, best), Report(arguments.out, about))
    run.all()
    return 1 if run.broken else 0


if __name__ == "__main__":
    sys.exit(main())
