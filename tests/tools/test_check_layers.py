"""tools/check_layers.py finds each kind of breach, and nothing in a tree that has none."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from check_layers import check  # noqa: E402

LAYERS = "# who sees whom\nbase:\ndevice: base\ncontrol: base\nbackends: base device\n"


class CheckLayers(unittest.TestCase):
    def breaches(self, files: dict[str, str], layers: str = LAYERS) -> list[str]:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "layers.txt").write_text(layers)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check(root)

    def assert_one(self, files: dict[str, str], *words: str, layers: str = LAYERS) -> None:
        breaches = self.breaches(files, layers)
        self.assertEqual(len(breaches), 1, breaches)
        for word in words:
            self.assertIn(word, breaches[0])

    def test_includes_that_the_layers_allow_are_no_breach(self) -> None:
        files = {
            "base/fd.h": "#include <vector>\n",
            "device/device.h": '#include "weightcast/base/fd.h"\n#include <array>\n',
            "backends/backend.h": '#include "weightcast/device/device.h"\n',
            "backends/host/host.cc": '#include "weightcast/backends/backend.h"\n',
            "backends/ascend/api.h": "#include <acl/acl.h>\n",
            "control/socket.cc": "#include <zmq.hpp>\n",
            "base/log.cc": "#include <spdlog/spdlog.h>\n",
        }
        self.assertEqual(self.breaches(files), [])

    def test_a_module_that_includes_a_lower_one_is_named(self) -> None:
        files = {"base/fd.cc": '#include "weightcast/device/device.h"\n'}
        self.assert_one(files, "base/fd.cc", "may not see device")

    def test_an_indented_include_counts(self) -> None:
        files = {"base/fd.cc": '#if 1\n  #  include "weightcast/device/device.h"\n#endif\n'}
        self.assert_one(files, "may not see device")

    def test_a_backend_that_includes_another_is_named(self) -> None:
        files = {"backends/cuda/comm.cc": '#include "weightcast/backends/ascend/comm.h"\n'}
        self.assert_one(files, "another backend")

    def test_a_vendor_header_outside_its_backend_is_named(self) -> None:
        for place in ("device/device.cc", "backends/host/host.cc", "backends/cuda/comm.cc"):
            self.assert_one({place: "#include <acl/acl_rt.h>\n"}, place, "backends/ascend")

    def test_zeromq_outside_control_is_named(self) -> None:
        self.assert_one({"device/device.cc": "#include <zmq.hpp>\n"}, "belongs to control")

    def test_a_folder_without_a_line_is_named(self) -> None:
        self.assert_one({"extra/extra.cc": "\n"}, "no line in layers.txt")

    def test_an_include_relative_to_the_file_is_named(self) -> None:
        self.assert_one({"base/fd.cc": '#include "fd.h"\n'}, "does not begin with weightcast/")

    def test_layers_that_go_round_in_circles_are_named(self) -> None:
        self.assert_one({}, "a sees b", layers="a: b\nb:\n")


if __name__ == "__main__":
    unittest.main()
