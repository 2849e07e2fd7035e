"""The accelerator's backend: a target kind, and one walk over the low level that prints assembly.

weft itself is unchanged: a vendor's package only calls `register` when it is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

import weft
from examples.accelerator import instructions
from examples.accelerator.machine import MEMORIES, TILE, Array, Machine
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_signature import signature_of
from weft.runtime.library import CallableLibrary, Run

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

KIND = "accelerator"
MACHINE = Machine()
"""The processor that programs run on."""
MEMORY_OF = {instructions.A_REG: "a", instructions.B_REG: "b", instructions.ACCUMULATOR: "accumulator"}
"""Memory scope -> the memory's name in assembly."""
_SCALAR = {
    **{arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul", arith.DivUIOp: "div", arith.RemUIOp: "rem"},
}


def register() -> None:
    """Register the target and its instructions."""
    scopes = {scope: MEMORIES[memory] for scope, memory in MEMORY_OF.items()}
    weft.register_target_kind(weft.TargetKind(KIND, load, scopes), override=True)
    instructions.register()


def load(module: ModuleOp, target: weft.Target) -> CallableLibrary:
    """A library that runs the functions of a module at low level on the machine."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    texts = {function.sym_name.data: Emitter(function).text() for function in functions}
    runs = {signature_of(function): _run(function, texts[function.sym_name.data]) for function in functions}
    return CallableLibrary(runs, {"assembly": "\n".join(texts.values())}, target)


def _run(function: FuncOp, text: str) -> Run:
    names = [argument.name_hint or f"arg{argument.index}" for argument in function.args]

    def run(values: Sequence[Array | int]) -> None:
        arrays = {name: value for name, value in zip(names, values, strict=True) if not isinstance(value, int)}
        numbers = {name: value for name, value in zip(names, values, strict=True) if isinstance(value, int)}
        MACHINE.run(text, arrays, numbers)

    return run


class Emitter:
    """Prints one function. Raises `CompileError` at operations without an instruction of the accelerator."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.lines: list[str] = []
        self.depth = 0
        self.values: dict[SSAValue, str] = {}
        """The text of a value: a literal or register of a number; the memory and start of a buffer."""
        self.pointers: dict[SSAValue, str] = {}
        self.used = dict.fromkeys(MEMORY_OF.values(), 0)
        """Allocated floats of each memory."""
        for argument in function.args:
            self.values[argument] = argument.name_hint or f"arg{argument.index}"

    def text(self) -> str:
        self.line(f"; {signature_of(self.function)}")
        self.block(self.function.body.block)
        return "\n".join(self.lines)

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        match op:
            case arith.ConstantOp():
                if isinstance(op.value, IntegerAttr):
                    self.values[op.result] = str(op.value.value.data)
            case scf.ForOp() if not op.iter_args:
                self.loop(op)
            case memref.AllocaOp():
                self.allocate(op)
            case AccessPtrOp():
                self.pointer(op)
            case func.CallOp():
                self.call(op)
            case scf.YieldOp() | func.ReturnOp():
                pass
            case _ if type(op) in _SCALAR:
                self.values[op.results[0]] = f"%{len(self.values)}"
                operands = ", ".join(self.number(operand, op) for operand in op.operands)
                self.line(f"{_SCALAR[type(op)]} {self.values[op.results[0]]}, {operands}")
            case _:
                raise weft.CompileError.at(
                    op,
                    f"the accelerator has no instruction for {op.name}: it works on tiles of {TILE} x {TILE}",
                )

    def number(self, value: SSAValue, op: Operation) -> str:
        if value not in self.values:
            raise weft.CompileError.at(op, f"{op.name} needs a number that the accelerator does not compute")
        return self.values[value]

    def loop(self, op: scf.ForOp) -> None:
        counter = self.values[op.body.block.args[0]] = f"%{op.body.block.args[0].name_hint or 'i'}_{len(self.values)}"
        self.line(f"loop {counter}, " + ", ".join(self.number(bound, op) for bound in (op.lb, op.ub, op.step)))
        self.depth += 1
        self.block(op.body.block)
        self.depth -= 1
        self.line("end")

    def allocate(self, op: memref.AllocaOp) -> None:
        """Allocate a part of a memory: `tir-check-scopes` has verified that there is enough."""
        space = op.memref.type.memory_space
        if not isinstance(space, StringAttr) or space.data not in MEMORY_OF:
            raise weft.CompileError.at(
                op, f"the accelerator has memories {', '.join(MEMORY_OF)}, and %{op.memref.name_hint} is in {space}"
            )
        memory = MEMORY_OF[space.data]
        self.values[op.memref] = f"{memory} {self.used[memory]}"
        self.used[memory] += op.memref.type.get_shape()[0]

    def pointer(self, op: AccessPtrOp) -> None:
        """Bind a pointer into a memory."""
        offset = self.number(op.indices[0], op)
        name, _, start = self.values[op.buffer].partition(" ")
        if start and offset.isdigit():
            offset = str(int(start) + int(offset))
        elif start and start != "0":
            register = f"%{len(self.values)}"
            self.values[op.pointer] = register
            self.line(f"add {register}, {offset}, {start}")
            offset = register
        self.pointers[op.pointer] = f"{name}[{offset}]"

    def call(self, op: func.CallOp) -> None:
        """Print an instruction on tiles: each operand is a pointer and the row stride."""
        _, _, kind = op.callee.string_value().partition("accelerator_")
        if not kind:
            raise weft.CompileError.at(op, f"the accelerator cannot call @{op.callee.string_value()}")
        operands: list[str] = []
        for pointer, stride in zip(op.arguments[::2], op.arguments[1::2], strict=True):
            place, step = self.pointers[pointer], self.number(stride, op)
            operands.append(place)
            if place.partition("[")[0] not in MEMORIES:
                operands.append(step)
            elif step != str(TILE):
                raise weft.CompileError.at(op, f"{kind}: tiles are dense in {place}, and rows are {step} apart")
        self.line(f"{kind} {', '.join(operands)}")
