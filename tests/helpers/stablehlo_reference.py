"""What XLA's CPU backend computes for a module of StableHLO, through JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np


@cache
def _context() -> Any:
    from jax._src.interpreters import mlir  # an optional package
    from jaxlib.mlir.dialects import stablehlo

    stablehlo.register_stablehlo_passes()
    return mlir.make_ir_context()


def xla_results(text: str, arguments: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The results of `@main`, whose types are static. Raises what JAX raises for a module that XLA does not take."""
    import jax  # an optional package
    from jax._src import compiler, xla_bridge
    from jaxlib import xla_client
    from jaxlib.mlir import ir
    from jaxlib.mlir.passmanager import PassManager

    backend = xla_bridge.get_backend("cpu")
    with _context(), jax.enable_x64(True):
        module = ir.Module.parse(text)
        if "chlo." in text:
            PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        program = backend.compile_and_load(module, devices, compiler.get_compile_options(1, 1), [])
        given = [jax.device_put(np.asarray(argument)) for argument in arguments]
        found = program.execute_sharded(given).disassemble_into_single_device_arrays()
        return [np.asarray(result[0]) for result in found]
