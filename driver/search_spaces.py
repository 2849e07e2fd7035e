"""The workload of a tuned function, the space of its schedules, and its default schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from weft.autoschedule.default_schedule import default_schedule, schedule_by_rules
from weft.dialects import sched
from weft.dialects.tir_kinds import CONSTANTS_FROM_MEMORY
from weft.driver.candidates import constant_positions
from weft.driver.representative_sizes import WeightedShapes
from weft.driver.traces import parse_trace
from weft.driver.workloads import Task
from weft.interp.arguments import EXTENTS, ArgumentRecipe, ConcreteShapes, argument_recipe
from weft.interp.compare import reduction_length_of
from weft.passes.module_edits import functions_of
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.runtime import gpu_library
from weft.schedule.schedule import Schedule
from weft.schedule.traces import decisions_of, trace_without_decisions
from weft.support.errors import InternalError
from weft.support.target import Target
from weft.tuning.measuring import ArgumentSpec
from weft.tuning.records import Workload
from weft.tuning.space import Candidate, Program, Refused, Space, SteeredSchedule

_DEFAULT_SPACE: Final = "default space"


def workload_of(task: Task, calls: Sequence[WeightedShapes] = ()) -> tuple[Workload, ModuleOp, ArgumentSpec]:
    """The workload, the module to schedule, and the arguments of measurements: for a function with symbols the shapes
    of `calls`, with weights divided by the number of calls in the program."""
    unit = task.unit()
    ir = str(unit)
    function = next(iter(functions_of(unit).values()))
    weights = [(each.given(function), each.calls / task.calls) for each in calls] or [(None, 1.0)]
    recipes: list[tuple[ArgumentRecipe, float]] = []
    flops, constants = 0.0, constant_positions(function)
    for given, weight in weights:
        work = ConcreteShapes(function, EXTENTS[0], given).work(functions_of(unit).get)
        flops = flops + weight * work.flops if work.is_exact else -math.inf
        recipe = argument_recipe(function, given=given)
        passed = tuple(p for at, p in enumerate(recipe.parameters) if at not in constants)
        recipes.append((replace(recipe, parameters=passed), weight))
    workload = Workload(task.key, function.sym_name.data, ir, int(max(flops, 0)))
    from_memory = CONSTANTS_FROM_MEMORY in function.attributes
    arguments = ArgumentSpec(
        recipes[0][0], 0, reduction_length_of(function), from_memory, tuple(recipes) if calls else ()
    )
    state_parameter_accesses(unit)
    return workload, unit, arguments


def space_of(
    unit: ModuleOp,
    space: Callable[[Schedule], object] | sched.FuncOp | str | None,
    machine: Target,
    features: Callable[[ModuleOp], tuple[float, ...]],
) -> tuple[Space, str, Candidate]:
    """The space to search, its name, and the default schedule. Raises `ScheduleError` if that is rejected."""
    if space is None:
        made = Space(unit, default_program(machine), _DEFAULT_SPACE, features)
        default = made.run(Random(0), takes_defaults=True)
        if isinstance(default, Refused):
            raise default.reason
        if default is None:
            raise InternalError("the default schedule of a new space was tried before")
        return made, _DEFAULT_SPACE, default
    found = default_schedule(unit, machine)
    trace = found[0] if found else sched.FuncOp("trace", Region(Block()))
    scheduled = Schedule(unit)
    scheduled.replay(trace)
    places = trace_without_decisions(trace), tuple(decisions_of(trace))
    default = Candidate(*places, b"", features=features(scheduled.mod))
    given = parse_trace(space) if isinstance(space, str) else space
    if isinstance(given, sched.FuncOp):
        name = given.sym_name.data
        return Space(unit, _replaying(given), name, features), name, default
    name = getattr(given, "__qualname__", "space")
    return Space(unit, given, name, features), name, default


def default_program(target: Target) -> Program:
    def program(sch: Schedule) -> object:
        return schedule_by_rules(sch, target, sch.replayed) if isinstance(sch, SteeredSchedule) else None

    return program


def _replaying(trace: sched.FuncOp) -> Callable[[Schedule], object]:
    return lambda sch: sch.replay(trace)


def within_device(target: Target) -> Target:
    """The target limited to the device here. Raises `DeviceError` if kernels have none."""
    if target.gpu is None:
        return target
    ours, its = target.gpu, gpu_library.device_for(target).limits
    shared = min(ours.max_shared_bytes, its.max_shared_bytes)
    threads = min(ours.max_threads_per_block, its.max_threads_per_block)
    limits = replace(ours, max_threads_per_block=threads, max_shared_bytes=shared)
    return replace(target, gpu=replace(limits, shared_bytes=min(ours.shared_bytes, shared)))
