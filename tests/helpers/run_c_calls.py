"""Calls functions of a shared object with arrays from a file: `run_c_calls.py LIBRARY FOLDER` (see c_programs.py)."""

import ctypes
import sys
from pathlib import Path

import numpy as np

NUMBERS = {
    **{"bool": ctypes.c_bool, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32},
    **{"int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double, "uint16": ctypes.c_uint16},
}


def main() -> None:
    library, folder = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])
    data = np.load(folder / "in.npz")
    results = {}
    for number, kind in enumerate(data["calls"]):
        name, _, count = str(kind).partition(":")
        arguments = []
        kept = []
        for position in range(int(count)):
            value = data[f"{number}_{position}"]
            if value.ndim == 0:
                arguments.append(NUMBERS[str(value.dtype)](value.item()))
                continue
            # An allocation of its own, just as large: the sanitizer sees accesses beside it.
            room = ctypes.create_string_buffer(value.tobytes(), value.nbytes)
            kept.append((position, value, room))
            arguments.append(ctypes.addressof(room))
        function = getattr(library, name)
        function.restype = None
        function.argtypes = [ctypes.c_void_p if isinstance(a, int) else type(a) for a in arguments]
        function(*arguments)
        for position, value, room in kept:
            results[f"{number}_{position}"] = np.frombuffer(room.raw, value.dtype).reshape(value.shape)
    np.savez(folder / "out.npz", **results)


main()
