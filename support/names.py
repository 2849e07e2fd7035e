"""Generates unused names."""

from __future__ import annotations

from collections.abc import Collection


def free_name(wanted: str, taken: Collection[str], first: int = 1) -> str:
    """`wanted`, or where it is taken `wanted_1`, `wanted_2`, ...: the first that is free, counted from `first`."""
    name, number = wanted, first
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def string_text(text: str) -> str:
    """`text` as a string of Python in double quotes, in ASCII."""
    body = text.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{body}"'
