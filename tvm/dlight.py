"""`tvm.dlight`: weft's default schedules."""

from collections.abc import Callable
from types import SimpleNamespace

from weft.autoschedule.default_schedule import apply_default_schedule
from weft.support.target import Target
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule
from weft.tvm.ir.transform import Pass
from weft.tvm.target import current_target, spelling


def ApplyDefaultSchedule(*rules: object) -> Pass:
    """Schedule unscheduled functions for the current target (`with target:`) or the CPU."""
    del rules

    def run(mod: IRModule, _: object) -> IRModule:
        apply_default_schedule(copy := mod.clone(), Target.parse(spelling(current_target())))
        return copy

    return Pass(run, "ApplyDefaultSchedule")


def _rule(name: str) -> Callable[..., str]:
    return lambda *_, **__: name


_RULES = ("Fallback", "GEMV", "GeneralReduction", "LowBatchGEMV", "Matmul", "RMSNorm", "Reduction", "Transpose")
gpu = SimpleNamespace(**{name: _rule(name) for name in _RULES})
cpu = SimpleNamespace(**{name: _rule(name) for name in ("GEMV", "Reduction")})
__getattr__ = refuses(__name__)
