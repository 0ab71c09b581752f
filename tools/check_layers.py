#!/usr/bin/env python3
"""Checks who includes whom in src/weightcast against layers.txt.

A module includes itself and the modules of its line. The line of `backends` is what each backend
may include; no backend includes another, and only backends/<name>/ may include a vendor's headers.
Prints one line for each breach and exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
SOURCES = {".h", ".cc", ".def"}
# Headers of the accelerators' and networks' own software: backends/<first>/ alone includes what
# begins with one of <second>.
VENDORS = {
    "ascend": ("acl/", "hccl/", "hccl.h"),
    "cuda": ("cuda", "nccl"),
    "ucx": ("ucp/", "ucs/", "uct/"),
}
# Libraries that are one module's own business: no other module may include their headers.
CONFINED = {"zmq": ("control",), "flatbuffers/": ("control",), "spdlog/": ("base",)}


def read_layers(path: Path) -> dict[str, set[str]]:
    layers = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            module, _, allowed = line.partition(":")
            layers[module.strip()] = set(allowed.split())
    return layers


def check_layers(layers: dict[str, set[str]]) -> Iterator[str]:
    """Breaches of layers.txt itself: each module sees only modules that stand above it."""
    seen: set[str] = set()
    for module, allowed in layers.items():
        for other in sorted(allowed - seen):
            yield f"layers.txt: {module} sees {other}, which does not stand above it"
        seen.add(module)


def check_own_include(file: Path, target: str, layers: dict[str, set[str]]) -> Iterator[str]:
    module, included = file.parts[0], Path(target).parts[1]
    if included != module and included not in layers[module]:
        yield f"{file}: includes {target}, but {module} may not see {included}"
    if module == included == "backends" and len(file.parts) > 2:
        other = Path(target).parts[2:-1]
        if other and other[0] != file.parts[1]:
            yield f"{file}: includes {target} of another backend"


def check_foreign_include(file: Path, target: str) -> Iterator[str]:
    module = file.parts[0]
    for backend, prefixes in VENDORS.items():
        if target.startswith(prefixes) and file.parts[:2] != ("backends", backend):
            yield f"{file}: includes {target}, which belongs to backends/{backend}"
    for prefix, modules in CONFINED.items():
        if target.startswith(prefix) and module not in modules:
            yield f"{file}: includes {target}, which belongs to {' '.join(modules)}"


def check(root: Path) -> list[str]:
    """Every breach below `root`, a folder laid out like src/weightcast."""
    layers = read_layers(root / "layers.txt")
    breaches = list(check_layers(layers))
    for path in sorted(root.rglob("*")):
        file = path.relative_to(root)
        if path.suffix not in SOURCES:
            continue
        if file.parts[0] not in layers:
            breaches.append(f"{file}: {file.parts[0]} has no line in layers.txt")
            continue
        for quoted, angled in INCLUDE.findall(path.read_text()):
            target = quoted or angled
            if target.startswith("weightcast/"):
                breaches += check_own_include(file, target, layers)
            elif quoted and not target.endswith("_generated.h") and not target.endswith(".def"):
                breaches.append(f"{file}: includes {target}, which does not begin with weightcast/")
            else:
                breaches += check_foreign_include(file, target)
    return breaches


def main() -> int:
    default = Path(__file__).resolve().parent.parent / "src" / "weightcast"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=default)
    root = parser.parse_args().root
    breaches = check(root)
    for breach in breaches:
        print(breach)
    if not breaches:
        print(f"layers: {len(read_layers(root / 'layers.txt'))} modules are in order")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
