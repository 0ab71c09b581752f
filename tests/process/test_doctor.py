"""`doctor` says what is here, what is missing, and how to get it."""

from __future__ import annotations

import resource

from harness.ranks import Group

TOPICS = {"cpu", "shared_memory", "memlock", "descriptors"}


def test_json_has_every_documented_topic(group: Group) -> None:
    report = group.start("doctor", "--json").succeed().report()
    assert report["checks"].keys() >= TOPICS
    assert report["can_run"] is True
    names = [kernel["name"] for kernel in report["copy_kernels"]]
    assert report["copy_kernel"] in names
    assert all(kernel["gbps"] > 0 for kernel in report["copy_kernels"])
    assert report["calibration_seconds"] < 1


def test_the_table_names_the_kernel_that_won(group: Group) -> None:
    text = group.start("doctor").succeed().stdout
    assert "chosen" in text
    assert all(topic in text for topic in TOPICS)


def test_what_is_short_comes_with_advice(group: Group) -> None:
    limits = {resource.RLIMIT_NOFILE: 32, resource.RLIMIT_FSIZE: 1 << 20}
    rank = group.start("doctor", "--json", limits=limits)
    assert rank.wait() in (0, 7)
    report = rank.report()
    checks = report["checks"]
    assert "ulimit -n" in checks["descriptors"]["advice"]
    assert "ulimit -f" in checks["file_size"]["advice"]


def test_a_chosen_kernel_is_the_one_used(group: Group) -> None:
    environment = {"WEIGHTCAST_COPY_KERNEL": "memcpy"}
    rank = group.start("doctor", "--json", environment=environment).succeed()
    assert rank.report()["copy_kernel"] == "memcpy"
