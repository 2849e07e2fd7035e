"""Print modules of block loops as scripts that read back equal.

The next effect (a store, a loop, a block, a call) and the ops before it become one statement if the parser would read
it as exactly these ops, otherwise the longest run of ops with a single result an assignment.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import AllocOp, DimOp, StoreOp
from xdsl.dialects.ptr import PtrType
from xdsl.dialects.scf import ConditionOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.element_types import ELEMENT, element_of, parameter_types
from weft.dialects.promises import Promise, promises_of
from weft.dialects.tir import OPERAND, AccessRegionOp, AssumeOp, AssumeShapeOp, BlockOp, ForOp, InitOp, IntrinsicOp
from weft.dialects.tir_kinds import REDUCE, SPATIAL, IterKind
from weft.frontends.script import words
from weft.frontends.script.attributes import attributes_text, generic_text, operations_text, to_attributes
from weft.frontends.script.function import NOALIAS, SYMBOL
from weft.frontends.script.round_trip import Mismatch, Raiser, Restart, RoundTrip, with_sign
from weft.frontends.script.text import (
    PythonNames,
    block_head,
    buffer_options,
    element_text,
    expr_text,
    index_text,
    is_bare,
    is_declarable_buffer,
    is_plain_buffer,
    loop_text,
    operand_text,
    range_text,
    shape_text,
    signature,
    type_annotation,
)
from weft.frontends.script.values import Buffer, Leaf, Symbol, is_scalar, static_shape
from weft.support.errors import CompileError, InternalError
from weft.support.names import string_text
from weft.texpr.expr import Const, Expr, has_sign, name_of, type_of

_IMPORTS = "from weft.script import ir as I, tir as T"
_ROUNDS = 1000


def print_script(module: ModuleOp) -> str:
    """Print functions of block loops as a Python script, which `weft.script.parse` reads back structurally equal.

    Ops that no expression computes in the same order become local variables; `T.op("arith.divui", ...)` is for ops
    without words. Schedules and constants are printed as MLIR text. Raises CompileError for functions that return
    values and for ops with regions other than loops, blocks and conditions.

    ```python
    from weft.script import ir as I, tir as T


    @I.ir_module
    class Module:
        @T.prim_func
        def relu(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
            T.func_attr({"global_symbol": "relu", "tir.noalias": True})
            for i in range(128):
                with T.block("B"):
                    vi = T.axis.spatial(128, i)
                    B[vi] = T.max(A[vi], T.float32(0))
    ```
    """
    functions, words = _functions_of(module)
    lines = [_IMPORTS, "", "", "@I.ir_module", "class Module:"]
    if module.attributes:
        lines.append(f"    I.module_attrs({attributes_text(module.attributes)})")
    for position, op in enumerate(module.body.block.ops):
        if position:
            lines.append("")
        if isinstance(op, FuncOp):
            lines += [f"    {line}" if line else "" for line in _function_lines(op, functions, words)]
        else:
            lines += [f"    {line}" for line in operations_text(op)]
    if not functions:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def print_function(function: FuncOp) -> str:
    """Print as `print_script` does inside of the class. Raises CompileError as it does."""
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        raise InternalError(f"@{function.sym_name.data} is in no module")
    return "\n".join(_function_lines(function, *_functions_of(module)))


def _functions_of(module: ModuleOp) -> tuple[dict[str, FuncOp], dict[str, str]]:
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    names = PythonNames({"Module"})
    return functions, {symbol: names.new(symbol, "f") for symbol in functions}


def _function_lines(function: FuncOp, functions: dict[str, FuncOp], words: dict[str, str]) -> list[str]:
    restart = Restart()
    for _ in range(_ROUNDS):
        try:
            return FunctionPrinter(function, functions, words, restart).lines()
        except Restart as wanted:
            if wanted.named <= restart.named and wanted.plain == restart.plain:
                raise InternalError(f"@{function.sym_name.data} has no script: {wanted.named}") from None
            restart = Restart(restart.named | wanted.named, restart.plain or wanted.plain)
    raise InternalError(f"@{function.sym_name.data} has no script after {_ROUNDS} rounds")


_LONGEST = 64
"""Maximum number of ops in an assignment, which bounds the search."""


@dataclass(eq=False)
class _Dynamic:
    argument: BlockArgument
    handle: str
    dims: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    assumed: AssumeShapeOp | None = None


class FunctionPrinter:
    def __init__(
        self, function: FuncOp, functions: Mapping[str, FuncOp], words: Mapping[str, str], restart: Restart
    ) -> None:
        self._function = function
        self._functions = functions
        self._words = words
        self._plain = restart.plain
        self._entry = Block(arg_types=function.function_type.inputs)
        self._names = PythonNames({"Module", *words.values()})
        self._trip = RoundTrip(self._entry, restart.named)
        self._emitter = self._trip.emitter
        self._dynamic: dict[SSAValue, _Dynamic] = {}
        self._about: dict[Operation, _Dynamic] = {}
        """Ops about extents of parameters that are not yet declared."""
        self._lines: list[str] = []
        self._depth = 1
        self._forms: Mapping[type[Operation], Callable[[Sequence[Operation], Any], None]] = {
            StoreOp: self._store,
            ForOp: self._loops,
            BlockOp: self._block,
            InitOp: self._init,
            IfOp: self._if,
            WhileOp: self._while,
            AllocOp: self._allocation,
            AssumeOp: self._assumption,
            CallOp: self._call,
            IntrinsicOp: self._intrinsic,
        }
        """Each takes the ops of a statement and the last of them."""

    def lines(self) -> list[str]:
        """Raises Restart, and CompileError for ops without a script."""
        function = self._function
        symbol = function.sym_name.data
        self._check()
        private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        decorator = "@T.prim_func(private=True)" if private else "@T.prim_func"
        block = Block(arg_types=function.function_type.inputs) if function.is_declaration else function.body.block
        elements = parameter_types(function)
        parameters = [self._parameter(*pair) for pair in zip(block.args, self._entry.args, elements, strict=True)]
        outputs = function.function_type.outputs.data
        result = f" -> {type_annotation(outputs[0])}" if outputs else ""
        self._lines += [decorator, *signature(self._words[symbol], parameters, result)]
        if function.is_declaration:
            if function.attributes:
                self._write(f"T.func_attr({attributes_text(function.attributes)})")
            self._write("...")
            return self._lines
        attributes = to_attributes({SYMBOL: symbol, NOALIAS: Promise.NOALIAS in promises_of(function)})
        self._write(f"T.func_attr({attributes_text({**attributes, **function.attributes})})")
        ops = statements(block)
        self._declare_unstated(ops)
        self._body(ops)
        return self._lines

    def _check(self) -> None:
        function = self._function
        outputs = function.function_type.outputs.data
        if outputs and not function.is_declaration:
            raise CompileError.at(function, f"@{function.sym_name.data} returns values: scripts have none that do")
        stated = [entry.data.keys() for entry in function.arg_attrs or ()]
        if any(names - {ELEMENT} for names in stated) or function.res_attrs is not None:
            raise CompileError.at(function, f"@{function.sym_name.data}: attributes of arguments have no script")
        if len(function.body.blocks) > 1:
            raise CompileError.at(function, f"@{function.sym_name.data}: branches between blocks have no script")
        if len(outputs) > 1:
            raise CompileError.at(function, f"@{function.sym_name.data} gives more than one value")

    def _write(self, line: str) -> None:
        self._lines.append(f"{'    ' * self._depth}{line}")

    @contextmanager
    def _indented(self) -> Generator[None]:
        self._depth += 1
        with self._names.scope():
            yield
        self._depth -= 1

    def _parameter(self, argument: BlockArgument, mine: BlockArgument, stated: Attribute) -> str:
        type = argument.type
        declared = self._function.is_declaration
        name = self._names.new(argument.name_hint, "arg")
        element = element_of(stated)
        self._trip.bind(argument, mine, name, element=element if stated != type else None)
        if not isinstance(type, MemRefType):
            is_handle = declared and isinstance(type, PtrType)
            return f"{name}: {'T.handle' if is_handle else type_annotation(stated, is_parameter=True)}"
        if not is_declarable_buffer(type):
            return f"{name}: T.type({string_text(str(type))})"
        if DYNAMIC_INDEX in type.get_shape() and not declared:
            handle = self._names.new(f"var_{name}", "var")
            self._dynamic[argument] = _Dynamic(argument, handle)
            return f"{handle}: T.handle"
        return f"{name}: T.Buffer({shape_text(static_shape(type))}{buffer_options(type, name_of(element))})"

    def _declare_unstated(self, ops: Sequence[Operation]) -> None:
        for op in () if self._plain else ops:
            if isinstance(op, DimOp) and (entry := self._dynamic.get(op.source)) is not None:
                dimension = _dimension(op)
                if dimension is not None and dimension not in entry.dims:
                    entry.dims[dimension] = op.result
                    self._about[op] = entry
            elif isinstance(op, AssumeShapeOp) and (entry := self._dynamic.get(op.buffer)) is not None:
                entry.assumed = entry.assumed or op
                self._about.setdefault(entry.assumed, entry)
        for argument, entry in self._dynamic.items():
            if entry not in self._about.values():
                self._match_buffer(entry, cast("Buffer", self._trip.names[argument]))

    def _match_buffer(self, entry: _Dynamic, buffer: Buffer) -> None:
        self._about = {op: other for op, other in self._about.items() if other is not entry}
        self._trip.names[entry.argument] = buffer
        shape = shape_text(buffer.extents)
        self._write(
            f"{buffer.name} = T.match_buffer({entry.handle}, {shape}{buffer_options(buffer.type, buffer.dtype)})"
        )

    def _declare(self, ops: Sequence[Operation]) -> None:
        """Raises Restart if the declarations emit other ops."""
        entries = list(dict.fromkeys(self._about[op] for op in ops if op in self._about))
        symbols: list[str] = []
        for op in ops:
            if isinstance(op, DimOp):
                symbols.append(self._names.new(op.result.name_hint, "n"))
                self._trip.names[op.result] = Symbol(symbols[-1])
        if symbols:
            self._write(f"{', '.join(symbols)} = {', '.join(['T.int64()'] * len(symbols))}")

        try:
            with self._trip.attempt(ops) as raiser:
                buffers = [self._buffer(entry, raiser) for entry in entries]
                self._emitter.declare(buffers)
        except Mismatch:
            raise Restart(plain=True) from None
        for entry, buffer in zip(entries, buffers, strict=True):
            self._match_buffer(entry, buffer)

    def _end(self, ops: Sequence[Operation], start: int) -> int:
        end = start
        for position, op in enumerate(ops[start:], start):
            if op in self._about:
                end = position + 1
            elif op.regions or not op.results or any(isinstance(r.type, MemRefType) for r in op.results):
                break
        return end

    def _buffer(self, entry: _Dynamic, raiser: Raiser) -> Buffer:
        old = cast("Buffer", self._trip.names[entry.argument])
        dynamic = [d for d, extent in enumerate(old.extents) if extent is None]
        assumed = () if entry.assumed is None else zip(dynamic, entry.assumed.values, strict=True)
        extents: list[int | Expr | None] = list(old.extents)
        for dimension, value in (dict(assumed) | entry.dims).items():
            extents[dimension] = raiser.value(value)
        new = Buffer(old.value, old.name, tuple(extents))
        new.stated_element = old.stated_element
        return new

    def _body(self, ops: Sequence[Operation]) -> None:
        count = len(self._lines)
        position = 0
        while position < len(ops):
            position = self._next(ops, position)
        if len(self._lines) == count:
            self._write("pass")

    def _next(self, ops: Sequence[Operation], start: int) -> int:
        """Returns the position of the next op."""
        if self._about and isinstance(ops[start].parent_op(), FuncOp):
            end = self._end(ops, start)
            if end > start:
                self._declare(ops[start:end])
                return end
        end = start
        while end < len(ops) and not _is_statement(ops[end]):
            end += 1
        attempts = [(self._statement, end)] if end < len(ops) else []
        longest = min(end, len(ops) - 1, start + _LONGEST)
        attempts += [(self._assignment, last) for last in range(longest, start - 1, -1) if not _is_statement(ops[last])]
        attempts += [(self._statement, start)] if end > start else []
        for print_ops, last in attempts:
            with suppress(Mismatch):
                print_ops(ops[start : last + 1])
                return last + 1
        self._other(ops[start])
        return start + 1

    # Each method from here on prints `ops` as one statement: the last op with the others as its expressions. It raises
    # Mismatch, without printing, if the statement would not read back as the same ops.

    def _statement(self, ops: Sequence[Operation]) -> None:
        form = self._forms.get(type(ops[-1]))
        if form is None:
            raise Mismatch
        form(ops, ops[-1])

    def _loops(self, ops: Sequence[Operation], op: ForOp) -> None:
        nest = _nest_of(op, self._trip.names)
        with self._trip.attempt(ops[:-1], op) as raiser:
            extents = [loop.extent if isinstance(loop.extent, int) else raiser.value(loop.extent) for loop in nest]
            for extent in extents:
                if isinstance(extent, Expr):
                    self._emitter.index(extent)
            raiser.header = mine = self._loop(op, extents[0])
        with self._names.scope():
            names = [self._names.new(loop.induction_variable.name_hint, "i") for loop in nest]
            self._write(loop_text(op, names, extents))
            self._inside_loops(nest, names, extents, mine)

    def _loop(self, op: ForOp, extent: Expr | int) -> ForOp:
        thread = None if op.thread_axis is None else op.thread_axis.data
        return self._emitter.loop(extent, "i", op.kind.data, thread, op.attributes)

    def _inside_loops(
        self, nest: Sequence[ForOp], names: Sequence[str], extents: Sequence[Expr | int], mine: ForOp
    ) -> None:
        self._trip.bind(nest[0].induction_variable, mine.induction_variable, names[0], extents[0])
        with self._emitter.body(mine.body.block):
            if len(nest) > 1:
                self._inside_loops(nest[1:], names[1:], extents[1:], self._loop(nest[1], extents[1]))
            else:
                with self._indented():
                    self._body(statements(nest[0].body.block))
        self._emitter.effect(mine)

    def _block(self, ops: Sequence[Operation], op: BlockOp) -> None:
        with self._names.scope():
            names = [self._names.new(variable.name_hint, "v") for variable in op.iter_vars]
            with self._trip.attempt(ops[:-1], op) as raiser:
                extents = [extent if isinstance(extent, int) else raiser.value(extent) for extent in op.extents]
                bindings = [raiser.affine(expr, op.binding_operands) for expr in op.bindings.data.results]
                kinds = [SPATIAL if kind is IterKind.SPATIAL else REDUCE for kind in op.kinds]
                axes = list(zip(names, kinds, extents, bindings, strict=True))
                operands = op.guard_operands
                guards = [(raiser.affine(a, operands), raiser.affine(b, operands)) for a, b in op.guards]
                raiser.header = mine = self._emitter.block(op.label, axes, guards, op.attributes)
            for printed, own, name in zip(op.iter_vars, mine.iter_vars, names, strict=True):
                self._trip.bind(printed, own, name)
            self._write(f"with T.block({string_text(op.label)}):")
            with self._emitter.body(mine.body.block), self._indented():
                count = len(self._lines)
                for line in block_head(axes, guards, op.attributes):
                    self._write(line)
                rest = self._regions(statements(op.body.block))
                if rest or len(self._lines) == count:
                    self._body(rest)
            self._emitter.effect(mine)

    def _regions(self, ops: Sequence[Operation]) -> Sequence[Operation]:
        count = 0
        while count < len(ops) and isinstance(ops[count], AccessRegionOp):
            kind = type(ops[count])
            texts: list[str] = []
            while count < len(ops) and type(ops[count]) is kind:
                texts.append(self._region(cast("AccessRegionOp", ops[count])))
                count += 1
            self._write(f"{words.REGIONS[cast('type[AccessRegionOp]', kind)]}({', '.join(texts)})")
        return ops[count:]

    def _region(self, op: AccessRegionOp) -> str:
        try:
            with self._trip.attempt([op]) as raiser:
                corner = [raiser.affine(expr, op.corner_operands) for expr in op.corner.data.results]
                buffer = raiser.buffer(op.buffer)
                self._emitter.region(type(op), buffer, corner, op.box_sizes)
        except Mismatch:
            raise CompileError.at(op, f"{op.name} has no form in scripts") from None
        box = zip(corner, op.box_sizes, strict=True)
        ranges = [index_text(low) if size == 1 else range_text(low, size) for low, size in box]
        return f"{buffer.name}[{', '.join(ranges) or '()'}]"

    def _init(self, ops: Sequence[Operation], op: InitOp) -> None:
        if len(ops) > 1:
            raise Mismatch
        mine = InitOp(Region(Block()))
        self._write("with T.init():")
        with self._emitter.body(mine.body.block), self._indented():
            self._body(statements(op.body.block))
        self._emitter.effect(mine)

    def _if(self, ops: Sequence[Operation], op: IfOp) -> None:
        if op.attributes:
            raise Mismatch
        with self._trip.attempt(ops[:-1]) as raiser:
            condition = raiser.value(op.cond)
            value = self._emitter.value(condition)
        names = [self._names.keep(result.name_hint, "v") for result in op.results]
        self._write(f"if {expr_text(condition)}:")
        branches = [self._branch(op.true_region.block, names)]
        if op.false_region.blocks:
            self._write("else:")
            branches.append(self._branch(op.false_region.block, names))
        mine = self._emitter.conditional(value, branches)
        self._emitter.effect(mine)
        for printed, own, name in zip(op.results, mine.results, names, strict=True):
            if printed.type != own.type:
                raise CompileError.at(op, f"a condition that gives {printed.type} has no script")
            self._trip.bind(printed, own, name)
            if printed.first_use is None:
                self._write(f"_ = {name}")

    def _while(self, ops: Sequence[Operation], op: WhileOp) -> None:
        """The loop carries no values, and the condition only computes."""
        last = op.before_region.block.last_op
        if len(ops) > 1 or op.attributes or op.operands or not isinstance(last, ConditionOp):
            raise Mismatch
        before = Block()
        with self._emitter.body(before):
            with self._trip.attempt(statements(op.before_region.block)[:-1]) as raiser:
                condition = raiser.value(last.condition)
                value = self._emitter.value(condition)
            self._emitter.effect(ConditionOp(value))
        self._write(f"while {expr_text(condition)}:")
        after = self._branch(op.after_region.block, ())
        if not isinstance(after.last_op, YieldOp):
            after.add_op(YieldOp())
        self._emitter.effect(WhileOp([], [], Region(before), Region(after)))

    def _branch(self, printed: Block, names: Sequence[str]) -> Block:
        block = Block()
        with self._emitter.body(block), self._indented():
            ops = statements(printed)
            last = printed.last_op
            given = last.operands if isinstance(last, YieldOp) else ()
            self._require_names(given)
            if ops or not names:
                self._body(ops)
            values: list[SSAValue] = []
            for name, value in zip(names, given, strict=True):
                expr = with_sign(Raiser(self._trip, ()).value(value), signed=True)
                self._write(f"{name} = {operand_text(expr, value.type)}")
                values.append(self._trip.operand(expr, value.type))
            if names:
                self._emitter.finish(YieldOp(*values))
        return block

    def _require_names(self, values: Sequence[SSAValue]) -> None:
        computed = [value for value in values if scalar_constant(value) is None and value not in self._trip.names]
        owners = frozenset(value.owner for value in computed if isinstance(value.owner, Operation))
        if owners - self._trip.named:
            raise Restart(owners)

    def _named(self, printed: SSAValue, mine: SSAValue, element: Attribute | None = None) -> str:
        name = self._names.keep(printed.name_hint, "v")
        self._trip.bind(printed, mine, name, element=element)
        return name

    def _assignment(self, ops: Sequence[Operation]) -> None:
        op = ops[-1]
        is_index = isinstance(op.results[0].type, IndexType)
        with self._trip.attempt(ops) as raiser:
            expr = raiser.op(op)
            if isinstance(expr, Const | Leaf | Symbol) or expr.is_index != is_index:
                raise Mismatch  # an alias, or another type
            mine = self._emitter.index(expr) if is_index else self._emitter.value(expr)
        name = self._named(op.results[0], mine, type_of(expr.dtype))
        self._write(f"{name}{': T.int64' if is_index else ''} = {expr_text(expr)}")

    def _store(self, ops: Sequence[Operation], op: StoreOp) -> None:
        with self._trip.attempt(ops) as raiser:
            buffer = raiser.buffer(op.memref)
            indices = [raiser.value(index) for index in op.indices]
            value = with_sign(raiser.value(op.value), signed=has_sign(buffer.dtype))
            adapts = value.is_index and buffer.dtype in ("int32", "int64")
            if value.dtype != buffer.dtype and not adapts:
                raise Mismatch
            self._emitter.store(buffer, indices, value)
        self._write(f"{element_text(buffer, indices)} = {expr_text(value)}")

    def _assumption(self, ops: Sequence[Operation], op: AssumeOp) -> None:
        with self._trip.attempt(ops) as raiser:
            sides = [raiser.affine(side, list(op.symbols)) for side in (op.left, op.right)]
            self._emitter.assume(sides[0], op.kind, sides[1])
        bare = not all(isinstance(side, Const) for side in sides)
        left, right = (str(side.value) if bare and isinstance(side, Const) else expr_text(side) for side in sides)
        self._write(f"T.assume({left} {op.kind.value} {right})")

    def _allocation(self, ops: Sequence[Operation], op: AllocOp) -> None:
        type = op.memref.type
        if (
            not is_plain_buffer(type)
            or op.symbol_operands
            or op.alignment is not None
            or op.attributes.keys() - {ELEMENT}
        ):
            raise Mismatch
        element = op.attributes.get(ELEMENT)
        with self._trip.attempt(ops) as raiser:
            extents = [raiser.value(size) for size in op.dynamic_sizes]
            mine = self._emitter.allocate(type, extents, "buffer", element)
        name = self._names.keep(op.memref.name_hint, "buffer")
        rest = iter(extents)
        shape = tuple(next(rest) if extent == DYNAMIC_INDEX else extent for extent in type.get_shape())
        self._trip.names[op.memref] = buffer = Buffer(mine, name, shape)
        buffer.stated_element = element
        self._write(f"{name} = T.alloc_buffer({shape_text(shape)}{buffer_options(type, buffer.dtype)})")

    def _applied(
        self, ops: Sequence[Operation], emit: Callable[[list[SSAValue]], Operation]
    ) -> tuple[list[str], Operation]:
        values = ops[-1].operands
        with self._trip.attempt(ops) as raiser:
            operands = [raiser.operand(value) for value in values]
            mine = emit([self._trip.operand(o, v.type) for o, v in zip(operands, values, strict=True)])
        return [operand_text(o, v.type) for o, v in zip(operands, values, strict=True)], mine

    def _other(self, op: Operation) -> None:
        """`T.op(...)`. Raises CompileError for ops with regions."""

        def emit(values: list[SSAValue]) -> Operation:
            mine = op.clone_without_regions(dict(zip(op.operands, values, strict=True)))
            self._emitter.effect(mine)
            return mine

        try:
            if op.regions or op.successors:
                raise Mismatch
            texts, mine = self._applied([op], emit)
        except Mismatch:
            raise CompileError.at(op, f"{op.name} has no form in scripts") from None
        text = generic_text(op, texts)
        names = [self._named(printed, own) for printed, own in zip(op.results, mine.results, strict=True)]
        self._write(f"{', '.join(names)} = {text}" if names else text)

    def _call(self, ops: Sequence[Operation], op: CallOp) -> None:
        """Raises CompileError for functions that are not in the module."""
        callee = op.callee.string_value()
        if callee not in self._functions:
            raise CompileError.at(op, f"@{callee} is not in the module")
        takes_buffers = any(isinstance(argument.type, MemRefType) for argument in op.arguments)
        outside = self._functions[callee].is_declaration and not takes_buffers
        results = [result.type for result in op.results]
        if results and (not outside or len(results) > 1 or not is_scalar(results[0]) or results[0] == IndexType()):
            raise Mismatch
        texts, mine = self._applied(ops, lambda values: self._emitter.call(callee, values, results))
        if not outside:
            self._write(f"Module.{self._words[callee]}({', '.join(texts)})")
            return
        dtype = name_of(results[0]) if results else "void"
        text = f"T.call_extern({', '.join([string_text(callee), *texts])}, dtype={string_text(dtype)})"
        for printed, own in zip(op.results, mine.results, strict=True):
            text = f"{self._named(printed, own)} = {text}" if printed.first_use is not None else f"T.evaluate({text})"
        self._write(text)

    def _intrinsic(self, ops: Sequence[Operation], op: IntrinsicOp) -> None:
        types = [value.type for value in op.values]
        if op.attributes or len(types) > 1 or any(not is_scalar(type) or type == IndexType() for type in types):
            raise Mismatch

        def emit(values: list[SSAValue]) -> Operation:
            mine = IntrinsicOp(op.call.data, values, types)
            self._emitter.effect(mine)
            return mine

        texts, mine = self._applied(ops, emit)
        text = ast.unparse(_Filled(texts).visit(ast.parse(op.call.data, mode="eval").body))
        for printed, own in zip(op.values, mine.results, strict=True):
            text = f"{self._named(printed, own)}: T.{name_of(printed.type)} = {text}"
        self._write(text)


class _Filled(ast.NodeTransformer):
    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not node.id.startswith(OPERAND):
            return node
        return ast.parse(self._texts[int(node.id.removeprefix(OPERAND))], mode="eval").body


def _dimension(op: DimOp) -> int | None:
    number = scalar_constant(op.index)
    return number.value.data if isinstance(number, IntegerAttr) else None


def statements(block: Block) -> list[Operation]:
    """Ops other than constants, which are printed at their uses."""
    return [
        op
        for op in block.ops
        if not isinstance(op, ReturnOp | YieldOp)
        and not (len(op.results) == 1 and scalar_constant(op.results[0]) is not None)
    ]


def _only_computes(op: IfOp) -> bool:
    return all(
        len(inner.results) == 1 and (not inner.regions or (isinstance(inner, IfOp) and _only_computes(inner)))
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
        if not isinstance(inner, YieldOp)
    )


def _nest_of(op: ForOp, names: Mapping[SSAValue, object]) -> list[ForOp]:
    """Serial loops with extents defined outside the nest: T.grid."""
    nest = [op]
    while is_bare(nest[-1]):
        ops = statements(nest[-1].body.block)
        inner = ops[0] if len(ops) == 1 else None
        if not isinstance(inner, ForOp) or not is_bare(inner):
            break
        if not isinstance(inner.extent, int) and inner.extent not in names:
            break
        nest.append(inner)
    return nest


def _is_statement(op: Operation) -> bool:
    if isinstance(op, IfOp):
        return len(op.results) != 1 or not _only_computes(op)
    return (
        len(op.results) != 1
        or isinstance(op, DimOp | CallOp | IntrinsicOp)
        or isinstance(op.results[0].type, MemRefType)
    )
