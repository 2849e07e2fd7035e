"""Which device runs the programs of a target?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.runtime.devices import DeviceError

if TYPE_CHECKING:
    from weft.runtime.devices import Device
    from weft.support.target import Target


def device_for(target: Target) -> Device:
    """The device that a program for `target` runs on: the named one (`-device=...`), else the first of its kind.

    Raises `DeviceError` that says what is missing and how to get it.
    """
    if target.kind == "opencl":
        from weft.runtime.opencl import pick_device
    elif target.kind == "cuda":
        from weft.runtime.cuda import pick_device
    else:
        raise DeviceError(f"weft gives the source of programs for {target.kind}, and does not run them")
    return pick_device(target.device)
