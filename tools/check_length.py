#!/usr/bin/env python3
"""Checks that no source file has more than 500 lines. clang-tidy looks at functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAX_LINES = 500
PATTERNS = ["*.h", "*.cc", "*.py", "*.fbs", "*.txt", "*.cmake", "tools/*"]


def too_long(root: Path, names: list[str]) -> list[str]:
    """One line for each file of `names` below `root` that has too many lines."""
    lengths = {name: len((root / name).read_bytes().splitlines()) for name in names}
    return [
        f"{name}: {length} lines, more than {MAX_LINES}"
        for name, length in lengths.items()
        if length > MAX_LINES
    ]


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", *PATTERNS], cwd=root, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.splitlines() if (root / name).is_file()]
    breaches = too_long(root, names)
    for breach in breaches:
        print(breach)
    if not breaches:
        print(f"length: {len(names)} files are short enough")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
