"""The state of emission: the text of one function, and the declarations and metadata of a module.

A rule `(emitter, op)` (`RULES` of each `*_ops.py`) returns the instruction that computes the result from the texts of
its operands (names such as `%x`, or literals), or None if it bound the results itself. Constants become literals in
their users, so they cost no instruction and need no capture. A loop has a distinct metadata node, which refers to
itself and to the loop's hints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from xdsl.dialects.arith import FastMathFlagsAttr

from weft.backends.llvm.types import TypeTable, ValueType, value_type
from weft.backends.low_modules import unknown_op
from weft.backends.names import LONGEST_VARIABLE
from weft.dialects.low import ParallelForOp
from weft.dialects.low_tile_products import TileProductOp
from weft.dialects.promises import ALL_PROMISES, Promise
from weft.dialects.traversal import ancestors, operations_of
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Block, Operation, SSAValue

    from weft.support.target import Target

Rule: TypeAlias = "Callable[[FunctionEmitter, Any], str | None]"
Rules: TypeAlias = "Mapping[type[Operation], Rule]"

UNROLL_FULL: Final = '!{!"llvm.loop.unroll.full"}'
"""Otherwise LLVM would use its cost model, or with unrolling disabled never unroll."""
NO_UNROLL: Final = '!{!"llvm.loop.unroll.disable"}'
"""The loop contains vectors: it runs as scheduled, which leaves the registers to its body."""
NO_VECTORIZE: Final = '!{!"llvm.loop.vectorize.enable", i1 false}'
"""The loop contains vectors: LLVM's vectoriser must not change it."""
NONTEMPORAL: Final = "!{i32 1}"

_UNKNOWN_TILES: Final = -1
"""The number of no configuration of tile registers."""
_ODD_CHARACTER = re.compile(r"[^A-Za-z0-9_.$-]")


class ValueNames:
    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._count: dict[str, int] = dict.fromkeys(taken, 1)

    def fresh(self, hint: str) -> str:
        """`hint` if unused, else `hint.1`, `hint.2`, ...; long hints are truncated."""
        count, hint = self._count, hint[:LONGEST_VARIABLE]
        if hint not in count:
            count[hint] = 1
            return hint
        number = count[hint]
        while (name := f"{hint}.{number}") in count:
            number += 1
        count[hint] = number + 1
        count[name] = 1
        return name


class Metadata:
    """The numbered metadata nodes of a module."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self._numbers: dict[str, str] = {}

    def shared(self, text: str) -> str:
        if text not in self._numbers:
            self._numbers[text] = f"!{len(self.nodes)}"
            self.nodes.append(text)
        return self._numbers[text]

    def loop(self, *hints: str) -> str:
        """Empty without hints."""
        if not hints:
            return ""
        parts = ", ".join(self.shared(hint) for hint in hints)
        name = f"!{len(self.nodes)}"
        self.nodes.append(f"distinct !{{{name}, {parts}}}")
        return f", !llvm.loop {name}"

    def lines(self) -> list[str]:
        return [f"!{number} = {node}" for number, node in enumerate(self.nodes)]


class ModuleEmitter:
    """State shared by the functions of a module."""

    def __init__(self, target: Target, rules: Rules, function_names: Iterable[str], *, on_device: bool = False) -> None:
        self.target = target
        self.rules = rules
        self.on_device = on_device
        """Whether buffers are in device memory: host functions only pass their pointers on."""
        self.types = TypeTable()
        self.metadata = Metadata()
        self.names = ValueNames(function_names)
        self.globals: dict[str, str] = {}
        """Symbol -> name in the text."""
        self.outside: dict[str, FuncOp] = {}
        """Functions that the module only declares."""
        self.functions: list[str] = []
        self.tile_configurations: dict[bytes, int] = {}
        """Configurations of tile registers -> their numbers in the text."""
        self.tile_products: dict[object, str] = {}
        """Products of tiles -> the functions that compute them."""
        self.declarations: dict[str, str] = {}

    def declare(self, name: str, text: str) -> None:
        self.declarations.setdefault(name, text)

    def flags_of(self, op: Operation, base: str) -> str:
        """Fast-math flags in addition to `base`, followed by a blank unless empty."""
        attribute = op.properties.get("fastmath")
        if not isinstance(attribute, FastMathFlagsAttr) or not attribute.data:
            return base
        words = {*base.split(), *(flag.value for flag in attribute.data)}
        return "".join(f"{word} " for word in sorted(words))


class FunctionEmitter:
    """Instructions in order, and the text of each value."""

    def __init__(
        self, module: ModuleEmitter, name: str, symbol: str, promises: frozenset[Promise] = ALL_PROMISES
    ) -> None:
        self.module = module
        self.promises = promises
        self.sum_flags = "reassoc " if module.target.reassociate and Promise.REASSOC in promises else ""
        """Flags of reductions over lanes."""
        self.flags = f"{self.sum_flags}contract " if Promise.CONTRACT in promises else self.sum_flags
        """Flags of every addition, subtraction and multiplication, which may allow contraction to fused
        multiply-adds.
        """
        self.name = name
        """The function's name in errors and comments."""
        self.symbol = symbol
        self.names = ValueNames(("entry",))
        self.lines: list[str] = []
        self.entry: list[str] = []
        """First instructions: allocas of local buffers."""
        self.values: dict[SSAValue, str] = {}
        self.backwards: dict[SSAValue, bool] = {}
        """Whether elements of a buffer may precede its first one in memory."""
        self.block = "entry"
        """Label of the current block."""
        self.stack_bytes = 0
        self.small_buffers: dict[SSAValue, str] = {}
        """Buffers with sizes known only at run time, and their stack memory if they are small."""
        self.small_bytes = 0
        self.holds_vectors = False
        """Whether vectors were accessed since the start of the innermost loop."""
        self.tiles = ""
        """The variable with the number of the current configuration of tile registers; empty if none are used."""
        self.has_nontemporal_stores = False
        """Whether x86 stores may still be invisible to other cores."""

    # Values

    def texts(self, op: Operation) -> list[str]:
        values = self.values
        try:
            return [values[operand] for operand in op.operands]
        except KeyError as error:
            raise InternalError(f"{op.name} in @{self.name} uses a value before it is defined: {error}") from None

    def text(self, value: SSAValue) -> str:
        if value not in self.values:
            raise InternalError(f"a value of @{self.name} is used before it is defined: {value}")
        return self.values[value]

    def type_of(self, value: SSAValue, op: Operation) -> ValueType:
        """Errors are located at `op`."""
        return self.module.types.of(value.type, op)

    def float_type_of(self, value: SSAValue, op: Operation) -> ValueType:
        """Raises `CompileError` for `bf16`, which has no arithmetic."""
        type_ = self.type_of(value, op)
        if type_.element == "bfloat":
            raise CompileError.at(op, f"{op.name} of bf16 has no form in LLVM IR: run low-legalize first")
        return type_

    def name_of(self, value: SSAValue, default: str = "v") -> str:
        """A fresh name `%x` for `value`, bound to it."""
        hint = value.name_hint
        name = f"%{self.names.fresh(_ODD_CHARACTER.sub('_', hint) if hint else default)}"
        self.values[value] = name
        return name

    def take_argument(self, value: SSAValue, type_: ValueType) -> str:
        name = self.name_of(value, "arg")
        if type_.element != type_.text:
            self.bind(value, self.emit(f"bitcast {type_.element} {name} to {type_.text}", "bits"))
        return name

    def bind(self, value: SSAValue, text: str) -> None:
        self.values[value] = text

    # Instructions

    def define(self, value: SSAValue, instruction: str) -> None:
        self.lines.append(f"  {self.name_of(value)} = {instruction}")

    def emit(self, instruction: str, hint: str = "v") -> str:
        """Returns the name of its result."""
        name = f"%{self.names.fresh(hint)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def line(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def start_block(self, label: str) -> None:
        """The preceding block must be terminated."""
        self.lines.append(f"{label}:")
        self.block = label

    def call(self, type_: ValueType, intrinsic: str, *arguments: str, flags: str = "", last: str = "") -> str:
        """Result and arguments, except `last`, have one type."""
        operands = ", ".join(f"{type_.text} {argument}" for argument in arguments)
        return f"call {flags}{type_.text} @llvm.{intrinsic}.{type_.suffix}({operands}{last})"

    def splat(self, type_: ValueType, text: str, hint: str = "lane") -> str:
        lane = self.emit(f"insertelement {type_.text} poison, {type_.scalar} {text}, i64 0", hint)
        return f"shufflevector {type_.text} {lane}, {type_.text} poison, <{type_.lanes} x i32> zeroinitializer"

    def by_parts(
        self,
        type_: ValueType,
        width: int,
        texts: list[str],
        call: Callable[[ValueType, list[str]], str],
        source: ValueType | None = None,
    ) -> str:
        """`call` is given the type and texts of `width` lanes; its results are combined into all lanes of `type_`, a
        multiple of `width`. `source`: the type of the operands, if different."""
        part = value_type(type_.element, width)
        if part is type_:
            return call(part, texts)
        source = source or type_
        taken = value_type(source.element, width)
        result, instruction = "poison", ""
        for start in range(0, type_.lanes, width):
            extract = f"call {taken.text} @llvm.vector.extract.{taken.suffix}.{source.suffix}"
            parts = [self.emit(f"{extract}({source.text} {text}, i64 {start})", "part") for text in texts]
            called = self.emit(call(part, parts), "called")
            insert = f"call {type_.text} @llvm.vector.insert.{type_.suffix}.{part.suffix}"
            instruction = f"{insert}({type_.text} {result}, {part.text} {called}, i64 {start})"
            if start + width < type_.lanes:
                result = self.emit(instruction, "lanes")
        return instruction

    def reserve_tiles(self, root: Operation) -> None:
        """Declare the variable `tiles` if the ops of `root`, except in parallel loops inside, use tiles."""
        if any(_is_run_by(op, root) for op in operations_of(root, TileProductOp)):
            self.tiles = f"%{self.names.fresh('tiles')}"
            self.entry.append(f"  {self.tiles} = alloca i32, align 4")
            self.entry.append(f"  store i32 {_UNKNOWN_TILES}, ptr {self.tiles}")

    def forget_tiles(self) -> None:
        """A called function may have configured or released the tile registers."""
        if self.tiles:
            self.line(f"store i32 {_UNKNOWN_TILES}, ptr {self.tiles}")

    def leave(self) -> None:
        """Stores become visible to other threads."""
        if self.has_nontemporal_stores:
            self.line("call void @llvm.x86.sse.sfence()")
        if self.tiles:
            self.line("call void @llvm.x86.tilerelease()")
        self.line("ret void")

    # Ops

    def block_ops(self, block: Block) -> None:
        rules = self.module.rules
        for op in block.ops:
            rule = rules.get(type(op))
            if rule is None:
                hint = ": run low-legalize first" if op.dialect_name() in ("arith", "math") else ""
                raise unknown_op(op, f"lowering in the llvm backend{hint}")
            instruction = rule(self, op)
            if instruction is not None:
                self.define(op.results[0], instruction)

    def body_text(self) -> str:
        return "\n".join(("entry:", *self.entry, *self.lines))


def _is_run_by(op: Operation, root: Operation) -> bool:
    """Whether no parallel loop inside `root` contains `op`."""
    loop = next(around for around in ancestors(op) if around is root or isinstance(around, ParallelForOp))
    return loop is root
