"""What a line says: a table for people, a file for programs."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Verdict = str  #: pass, fail, no verdict, not measured


@dataclass
class Bar:
    """What one line promises."""

    line: str
    title: str
    wanted: float
    at_most: bool = False

    def holds(self, value: float) -> bool:
        return value <= self.wanted if self.at_most else value >= self.wanted

    @property
    def text(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.wanted:g}"


@dataclass
class Row:
    bar: Bar
    values: list[float] = field(default_factory=list)
    discarded: int = 0
    fewest: int = 5
    absolute: dict[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        if not self.values:
            return "not measured"
        if len(self.values) < self.fewest:
            return "no verdict"
        return "pass" if self.bar.holds(statistics.median(self.values)) else "fail"

    def as_json(self) -> dict[str, Any]:
        values = self.values
        ratio = None
        if values:
            ratio = {
                "median": round(statistics.median(values), 4),
                "min": round(min(values), 4),
                "max": round(max(values), 4),
            }
        return {
            **asdict(self.bar),
            "bar": self.bar.text,
            "ratio": ratio,
            "pairs": len(values),
            "discarded": self.discarded,
            "verdict": self.verdict,
            "reason": self.reason,
            "absolute": self.absolute,
        }

    def as_text(self) -> str:
        head = f"{self.bar.line:<4} {self.bar.title:<58}"
        if not self.values:
            return f"{head} {self.verdict}: {self.reason}"
        middle, low, high = statistics.median(self.values), min(self.values), max(self.values)
        span = f"{middle:.4g} [{low:.4g}..{high:.4g}]"
        numbers = "  ".join(f"{key} {value}" for key, value in self.absolute.items())
        count = f"{len(self.values)} of {len(self.values) + self.discarded}"
        return f"{head} {span:<26} {self.bar.text:<8} {self.verdict:<10} {count:<9} {numbers}"


def machine() -> dict[str, Any]:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": os.uname().release,
    }


class Report:
    """Prints each row when it is there, and keeps the file up to date."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self._path = path
        self._about = about
        self._rows: list[Row] = []
        print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)

    @property
    def rows(self) -> list[Row]:
        return self._rows

    def add(self, row: Row) -> None:
        self._rows.append(row)
        print(row.as_text(), flush=True)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = [each.as_json() for each in self._rows]
        text = json.dumps({"machine": self._about, "lines": lines}, indent=1)
        self._path.write_text(text + "\n", encoding="utf-8")
