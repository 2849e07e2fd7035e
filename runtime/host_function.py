"""Host functions of GPU programs as Python: extents are computed, memory is taken, kernels are started.

    func.func @main(%A: memref<?xf32>, %n: index)        def main(run, A, n):
      %g = arith.ceildivui %n, %c256 : index        ->       g = -(-n // 256)
      low.launch @k blocks(%g, ...) ... (%A, %n)             run.launch(kernels['k'], (g, 1, 1), (256, 1, 1), [A, n])

A host function is translated once, and then runs as Python does. Buffers are whatever the device names its memory by.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any, Final

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from weft.dialects.low_kernel import LaunchOp, kernel_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xdsl.ir import Attribute, Block, Operation, SSAValue


def host_functions(module: ModuleOp) -> list[FuncOp]:
    """The functions of a low module that run on the host."""
    return [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration and kernel_of(op) is None]


def host_source(module: ModuleOp) -> str:
    """The Python text of the module's host functions.

    Each takes `run` (see `Run` in `gpu_library.py`) and then its own parameters, symbols included. Raises
    `CompileError` at an op that the host cannot do, such as touching the memory of the device.
    """
    functions = host_functions(module)
    names = function_names(functions)
    return "\n\n".join(_Translator(names).function(function) for function in functions) + "\n"


def function_names(functions: Sequence[FuncOp]) -> dict[str, str]:
    """How each host function is called in Python."""
    taken: set[str] = {"run", "kernels", "constants"}
    return {f.sym_name.data: _fresh(f.sym_name.data, taken) for f in functions}


def compile_host(
    source: str, names: Mapping[str, str], kernels: Mapping[str, Any], constants: Mapping[str, Any]
) -> dict[str, Callable[..., None]]:
    """The functions of `host_source` ready to be called: `kernels` are what `run.launch` gets, by name."""
    scope: dict[str, Any] = {"kernels": dict(kernels), "constants": dict(constants), **_HELPERS}
    exec(compile(source, "<weft host code>", "exec"), scope)
    return {name: scope[python] for name, python in names.items()}


def constants_of(module: ModuleOp) -> dict[str, Any]:
    """The constant arrays of a module, flat, by name. Raises `CompileError` at one without a value."""
    import numpy as np

    found: dict[str, Any] = {}
    for op in module.ops:
        if not isinstance(op, memref.GlobalOp):
            continue
        if not isinstance(op.initial_value, DenseIntOrFPElementsAttr):
            raise CompileError.at(op, f"constant @{op.sym_name.data} has no value that a device could be given")
        value = op.initial_value
        raw = np.frombuffer(value.data.data, np.uint8)
        count = op.type.element_count()
        found[op.sym_name.data] = np.tile(raw, count) if value.is_splat() and count > 1 else raw.copy()
    return found


def _fresh(hint: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", hint, flags=re.ASCII)
    if not base or base[0].isdigit() or keyword.iskeyword(base):
        base = f"v{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _bits(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 64


def _wrapped(value: int, bits: int) -> int:
    """`value` as a signed integer of so many bits."""
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def _unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _quotient(a: int, b: int) -> int:
    """`a` by `b`, towards zero."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


_HELPERS: Final = {"wrapped": _wrapped, "unsigned": _unsigned, "quotient": _quotient}

# {a}, {b} are the operands, {w} the width of an integer; `index` has 64 bits.
_TEMPLATES: Final[dict[type[Operation], str]] = {
    arith.AddiOp: "{a} + {b}",
    arith.SubiOp: "{a} - {b}",
    arith.MuliOp: "{a} * {b}",
    arith.FloorDivSIOp: "{a} // {b}",
    arith.CeilDivSIOp: "-(-{a} // {b})",
    arith.CeilDivUIOp: "-(-unsigned({a}, {w}) // unsigned({b}, {w}))",
    arith.DivUIOp: "unsigned({a}, {w}) // unsigned({b}, {w})",
    arith.RemUIOp: "unsigned({a}, {w}) % unsigned({b}, {w})",
    arith.DivSIOp: "quotient({a}, {b})",
    arith.RemSIOp: "{a} - quotient({a}, {b}) * {b}",
    arith.MinSIOp: "min({a}, {b})",
    arith.MaxSIOp: "max({a}, {b})",
    arith.MinUIOp: "min({a}, {b}, key=lambda v: unsigned(v, {w}))",
    arith.MaxUIOp: "max({a}, {b}, key=lambda v: unsigned(v, {w}))",
    arith.AndIOp: "{a} & {b}",
    arith.OrIOp: "{a} | {b}",
    arith.XOrIOp: "{a} ^ {b}",
    arith.ShLIOp: "{a} << {b}",
    arith.ShRSIOp: "{a} >> {b}",
    arith.ShRUIOp: "unsigned({a}, {w}) >> {b}",
}
_MAY_OVERFLOW: Final = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp),
    *(arith.DivUIOp, arith.CeilDivUIOp, arith.RemUIOp, arith.ShRUIOp),
)
# Extents are not negative, and are far from 2^63.
_EXTENT_TEMPLATES: Final[dict[type[Operation], str]] = {
    arith.CeilDivUIOp: "-(-{a} // {b})",
    arith.DivUIOp: "{a} // {b}",
    arith.RemUIOp: "{a} % {b}",
}
_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED: Final = 6


class _Translator:
    """Writes one host function; each op is a line or two."""

    def __init__(self, functions: Mapping[str, str]) -> None:
        self.functions = functions
        self.names: dict[SSAValue, str] = {}
        self.taken: set[str] = {"run", "kernels", "constants", *functions.values(), *_HELPERS, "min", "max", "range"}
        self.lines: list[str] = []

    def function(self, function: FuncOp) -> str:
        parameters = ", ".join(["run", *(self.define(argument) for argument in function.args)])
        self.lines = [f"def {self.functions[function.sym_name.data]}({parameters}):"]
        self.block(function.body.block, 1)
        if len(self.lines) == 1:
            self.lines.append("    pass")
        return "\n".join(self.lines)

    def define(self, value: SSAValue) -> str:
        self.names[value] = _fresh(value.name_hint or "v", self.taken)
        return self.names[value]

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, block: Block, depth: int) -> None:
        for op in block.ops:
            self.op(op, depth)

    def op(self, op: Operation, depth: int) -> None:
        if isinstance(op, arith.ConstantOp):
            self.constant(op)
        elif type(op) in _TEMPLATES:
            self.arithmetic(op, depth)
        elif isinstance(op, arith.CmpiOp):
            self.comparison(op, depth)
        elif isinstance(op, arith.SelectOp):
            condition, yes, no = (self.names[v] for v in op.operands)
            self.line(depth, f"{self.define(op.result)} = {yes} if {condition} else {no}")
        elif isinstance(op, arith.IndexCastOp | arith.ExtSIOp | arith.TruncIOp | arith.ExtUIOp):
            self.cast(op, depth)
        elif isinstance(op, memref.AllocOp | memref.DeallocOp | memref.GetGlobalOp | memref.CastOp):
            self.memory(op, depth)
        elif isinstance(op, scf.IfOp):
            self.condition(op, depth)
        elif isinstance(op, scf.ForOp):
            self.loop(op, depth)
        elif isinstance(op, scf.YieldOp):
            self.give(op, depth)
        elif isinstance(op, LaunchOp):
            self.launch(op, depth)
        elif isinstance(op, CallOp):
            self.call(op, depth)
        elif isinstance(op, ReturnOp):
            pass  # it stands last, and returns nothing
        else:
            raise CompileError.at(
                op,
                f"host code of a GPU program computes extents and starts kernels; {op.name} is for kernels"
                + (": bind a loop around it to a GPU axis" if isinstance(op, memref.LoadOp | memref.StoreOp) else ""),
            )

    def constant(self, op: arith.ConstantOp) -> None:
        value = op.value
        if isinstance(value, IntegerAttr):
            number = value.value.data
            self.names[op.result] = str(number & 1 if op.result.type == IntegerType(1) else number)
            if number < 0:
                self.names[op.result] = f"({number})"
        elif isinstance(value, FloatAttr):
            self.names[op.result] = f"float('{value.value.data!r}')"
        else:
            raise CompileError.at(op, f"host code has no constants of type {op.result.type}")

    def arithmetic(self, op: Operation, depth: int) -> None:
        a, b = (self.names[operand] for operand in op.operands)
        type_ = op.results[0].type
        if not isinstance(type_, IntegerType | IndexType):
            raise CompileError.at(op, f"host code computes with integers, not with {type_}")
        width = _bits(type_)
        template = _TEMPLATES[type(op)]
        if isinstance(type_, IndexType):
            template = _EXTENT_TEMPLATES.get(type(op), template)
        text = template.format(a=a, b=b, w=width)
        if isinstance(type_, IntegerType) and isinstance(op, _MAY_OVERFLOW):
            text = f"wrapped({text}, {width})"
        self.line(depth, f"{self.define(op.results[0])} = {text}")

    def comparison(self, op: arith.CmpiOp, depth: int) -> None:
        predicate, type_ = op.predicate.value.data, op.lhs.type
        a, b = self.names[op.lhs], self.names[op.rhs]
        if predicate >= _FIRST_UNSIGNED:
            a, b = (f"unsigned({x}, {_bits(type_)})" for x in (a, b))
        self.line(depth, f"{self.define(op.result)} = {a} {_COMPARISONS[predicate]} {b}")

    def cast(self, op: Operation, depth: int) -> None:
        source, result = op.operands[0], op.results[0]
        text, before, after = self.names[source], _bits(source.type), _bits(result.type)
        if isinstance(op, arith.ExtUIOp) and after > before:
            text = f"unsigned({text}, {before})"
        elif after < before:
            text = f"wrapped({text}, {after})"
        elif before == 1 < after:
            text = f"-({text})"
        self.line(depth, f"{self.define(result)} = {text}")

    def memory(self, op: Operation, depth: int) -> None:
        if isinstance(op, memref.CastOp):
            self.names[op.dest] = self.names[op.source]
        elif isinstance(op, memref.DeallocOp):
            self.line(depth, f"run.release({self.names[op.memref]})")
        elif isinstance(op, memref.GetGlobalOp):
            name = op.name_.string_value()
            self.line(depth, f"{self.define(op.memref)} = constants[{name!r}]")
        elif isinstance(op, memref.AllocOp):
            self.line(depth, f"{self.define(op.memref)} = run.allocate({self.size(op)})")

    def size(self, op: memref.AllocOp) -> str:
        """The bytes of a buffer."""
        type_ = op.memref.type
        element = type_.element_type
        if not isinstance(element, FixedBitwidthType | IndexType):
            raise CompileError.at(op, f"no device has memory for elements of {element}")
        width = 8 if isinstance(element, IndexType) else max(1, element.bitwidth // 8)
        dynamic = iter(op.dynamic_sizes)
        extents = [self.names[next(dynamic)] if e < 0 else str(e) for e in type_.get_shape()]
        return " * ".join([*extents, str(width)])

    def condition(self, op: scf.IfOp, depth: int) -> None:
        for result in op.results:
            self.define(result)
        self.line(depth, f"if {self.names[op.cond]}:")
        self.branch(op.true_region.blocks, depth + 1)
        if op.false_region.blocks:
            self.line(depth, "else:")
            self.branch(op.false_region.blocks, depth + 1)

    def branch(self, blocks: Sequence[Block], depth: int) -> None:
        before = len(self.lines)
        for block in blocks:
            self.block(block, depth)
        if len(self.lines) == before:
            self.line(depth, "pass")

    def loop(self, op: scf.ForOp, depth: int) -> None:
        block = op.body.block
        for result, argument, initial in zip(op.results, block.args[1:], op.iter_args, strict=True):
            self.names[result] = self.define(argument)
            self.line(depth, f"{self.names[argument]} = {self.names[initial]}")
        bounds = ", ".join(self.names[v] for v in (op.lb, op.ub, op.step))
        self.line(depth, f"for {self.define(block.args[0])} in range({bounds}):")
        self.branch([block], depth + 1)

    def give(self, op: scf.YieldOp, depth: int) -> None:
        """Hand values to the results of the parent; those of a loop are its iteration arguments."""
        parent = op.parent_op()
        if op.arguments and parent is not None:
            results = ", ".join(self.names[result] for result in parent.results)
            self.line(depth, f"{results} = {', '.join(self.names[value] for value in op.arguments)}")

    def launch(self, op: LaunchOp, depth: int) -> None:
        name = op.kernel.string_value()
        extents = (f"({', '.join(self.names[v] for v in values)})" for values in (op.grid, op.block))
        arguments = ", ".join(self.names[v] for v in op.arguments)
        self.line(depth, f"run.launch(kernels[{name!r}], {', '.join(extents)}, [{arguments}])")

    def call(self, op: CallOp, depth: int) -> None:
        name = op.callee.string_value()
        if name not in self.functions or op.results:
            raise CompileError.at(op, f"host code calls host functions of its module that return nothing, not @{name}")
        arguments = ", ".join(["run", *(self.names[v] for v in op.operands)])
        self.line(depth, f"{self.functions[name]}({arguments})")
