"""The ticket's bytes, taken apart just enough to forge one."""

from __future__ import annotations

import base64
import re
import struct

PREFIX = "wc1:"


def decode(text: str) -> bytearray:
    body = text.strip().removeprefix(PREFIX)
    return bytearray(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def encode(content: bytes | bytearray) -> str:
    return PREFIX + base64.urlsafe_b64encode(content).decode().rstrip("=") + "\n"


def endpoints(text: str) -> list[str]:
    return [match.decode() for match in re.findall(rb"tcp://[^\0]+", decode(text))]


def port(text: str) -> int:
    return int(endpoints(text)[0].rpartition(":")[2])


def with_protocol(text: str, version: int) -> str:
    """The same ticket for another version of the protocol, which is the table's first field."""
    content = decode(text)
    (table,) = struct.unpack_from("<I", content)
    (distance,) = struct.unpack_from("<i", content, table)
    (field,) = struct.unpack_from("<H", content, table - distance + 4)
    struct.pack_into("<I", content, table + field, version)
    return encode(content)


def redirected(text: str, target: int) -> str:
    """The same ticket, leading to another port of as many digits."""
    old, new = str(port(text)).encode(), str(target).encode()
    assert len(old) == len(new)
    return encode(decode(text).replace(b":" + old, b":" + new))
