"""tools/check_length.py allows 500 lines and no more."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from check_length import too_long  # noqa: E402


class CheckLength(unittest.TestCase):
    def test_only_files_of_more_than_500_lines_are_named(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "long_enough.cc").write_text("x\n" * 500)
            (root / "too_long.cc").write_text("x\n" * 501)
            breaches = too_long(root, ["long_enough.cc", "too_long.cc"])
        self.assertEqual(breaches, ["too_long.cc: 501 lines, more than 500"])


if __name__ == "__main__":
    unittest.main()
