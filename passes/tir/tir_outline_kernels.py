"""tir-outline-kernels: kernels and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, IndexType, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import function_of
from weft.analysis.threads import axis_of
from weft.dialects.aliasing import is_exposed, set_noalias
from weft.dialects.effects import underlying
from weft.dialects.low import SYMBOLS
from weft.dialects.low_access import AccessAttr, AccessMode, access_by
from weft.dialects.low_kernel import (
    ARG_ACCESS,
    BLOCK_AXES,
    KERNEL,
    SHARED,
    THREAD_AXES,
    KernelAttr,
    LaunchOp,
    ThreadIdOp,
)
from weft.dialects.promises import PROMISES
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import ASYNC, IN_STEP, SOURCE
from weft.dialects.traversal import captured_values, copy_of
from weft.passes.index_builders import (
    detached_ops,
    extent_before,
    index_constant,
    insert_at_start,
    insert_before,
    replace_operands,
)
from weft.passes.tir.flat_signature import joined
from weft.passes.tir.tir_check_scopes import require_capacity
from weft.passes.tir.tir_pass import range_of
from weft.support.errors import InternalError
from weft.support.names import new_name
from weft.support.target import Target

_CLONED = ("arith.", "affine.apply")
"""Host ops that are cloned into kernels instead of passing their results."""


@dataclass(frozen=True)
class OutlineKernelsPass(ModulePass):
    """Turn each nest of loops over thread blocks and threads into a kernel.

    ```mlir
    tir.for %b in %g thread_binding<"blockIdx.x"> { tir.for %t in 64 thread_binding<"threadIdx.x"> { BODY(%A, %n) } }
    // becomes
    low.launch @f_kernel blocks(%g, %c1, %c1) threads(%c64, %c1, %c1) (%A, %n) : memref<?xf32>, index
    // and
    func.func @f_kernel(%A: memref<?xf32>, %n: index) attributes {
        low.kernel = #low.kernel<[64, 1, 1], source = "C">, ...} {
      %b = low.thread_id "blockIdx.x" : index
      %t = low.thread_id "threadIdx.x" extent 64 : index
      BODY }
    ```
    Temporaries are allocated at its start. Its arguments are the buffers and values that the body uses; non-negative
    values are last, named by `low.symbols`. Raises ScheduleError if temporaries of space "shared" exceed the target's
    memory per thread block.

    Requires: kernels over flat buffers (`tir-flatten`).

    Leaves: functions with `low.kernel`, and host functions that launch them.
    """

    name = "tir-outline-kernels"

    target: str = "cuda"
    """As in `weft.build`; gives limits and instructions."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target)
        names = {f.sym_name.data for f in op.ops if isinstance(f, FuncOp)}
        for function in [f for f in op.ops if isinstance(f, FuncOp) and IN_STEP in f.attributes]:
            last: FuncOp = function
            for root in [loop for loop in function.walk() if isinstance(loop, ForOp) and SOURCE in loop.attributes]:
                name = new_name(f"{function.sym_name.data}_kernel", names)
                kernel = _Outliner(root, name, target).run()
                op.body.block.insert_op_after(kernel, last)
                last = kernel
            del function.attributes[IN_STEP]


@dataclass
class _Outliner:
    root: ForOp
    name: str
    target: Target
    loops: dict[str, ForOp] = field(default_factory=dict[str, ForOp])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Value from outside -> its replacement in the kernel."""

    def run(self) -> FuncOp:
        body = self._body()
        arguments, computed = self._captured(body)
        shared = [op for op in body.walk() if isinstance(op, memref.AllocaOp) and op.memref.type.memory_space == SHARED]
        limit = self.target.gpu.max_shared_bytes if self.target.gpu is not None else 0
        needs = "a thread block needs {total} bytes ({listed}), target " + f"{self.target.kind} has at most {limit}"
        require_capacity(shared, limit, "shared memory fits the target", needs, self.root, f"@{self.name}")
        entry = Block(arg_types=[value.type for value in arguments])
        for argument, value in zip(entry.args, arguments, strict=True):
            argument.name_hint = value.name_hint
            self.values[value] = argument
        kernel = FuncOp(self.name, ([v.type for v in arguments], []), Region(entry))
        kernel.location = self.root.location
        self._promise(kernel, arguments)
        for axis, loop in self.loops.items():
            entry.add_op(self._thread_id(axis, loop))
        entry.add_ops([copy_of(op, self.values) for op in computed])
        self._launch(arguments)
        entry.add_ops(detached_ops(body))
        replace_operands(entry.ops, self.values)
        entry.add_op(ReturnOp())
        _gather_temporaries(entry)
        self._describe(kernel, arguments)
        Rewriter.erase_op(self.root)
        return kernel

    def _promise(self, kernel: FuncOp, arguments: Sequence[SSAValue]) -> None:
        promises = function_of(self.root).attributes.get(PROMISES)
        if promises is not None:
            kernel.attributes[PROMISES] = promises
            buffers = [at for at, value in enumerate(arguments) if isinstance(value.type, MemRefType)]
            set_noalias(kernel, [at for at in buffers if not is_exposed(underlying(arguments[at]))])

    def _body(self) -> Block:
        loop = self.root
        between: list[Operation] = []
        while True:
            axis = axis_of(loop)
            if axis is None:
                raise InternalError("a loop among those of a kernel is bound to no axis")
            self.loops[axis] = loop
            inner = [op for op in loop.body.block.ops if isinstance(op, ForOp) and axis_of(op) is not None]
            if not inner:
                break
            between.extend(op for op in loop.body.block.ops if op is not inner[0])
            loop = inner[0]
        for op in reversed(between):
            insert_at_start(loop.body.block, op)
        return loop.body.block

    def _captured(self, body: Block) -> tuple[list[SSAValue], list[Operation]]:
        """Values from outside that become arguments, and ops to clone into the kernel."""
        arguments: dict[SSAValue, None] = {}
        computed: dict[Operation, None] = {}

        def visit(value: SSAValue) -> None:
            if value in arguments or self.root.is_ancestor(value.owner):
                return
            if isinstance(value, OpResult) and value.op.name.startswith(_CLONED):
                for operand in value.op.operands:
                    visit(operand)
                computed.setdefault(value.op)
            else:
                arguments[value] = None

        if (innermost := body.parent_op()) is not None:
            for value in captured_values(innermost):
                visit(value)
        return sorted(arguments, key=_rank), list(computed)

    def _thread_id(self, axis: str, loop: ForOp) -> Operation:
        extent = loop.extent
        op = index_constant(0) if extent == 1 else ThreadIdOp(axis, extent if isinstance(extent, int) else None)
        op.location = loop.location
        if extent != 1:
            op.results[0].name_hint = loop.induction_variable.name_hint
        self.values[loop.induction_variable] = op.results[0]
        return op

    def _launch(self, arguments: Sequence[SSAValue]) -> None:
        def extents(axes: Sequence[str]) -> list[SSAValue]:
            found = [self.loops[axis].extent if axis in self.loops else 1 for axis in axes]
            return [extent_before(extent, self.root) for extent in found]

        launch = LaunchOp(self.name, extents(BLOCK_AXES), extents(THREAD_AXES), arguments)
        insert_before(self.root, [launch])

    def _describe(self, kernel: FuncOp, arguments: Sequence[SSAValue]) -> None:
        threads = [self.loops[axis].extent if axis in self.loops else 1 for axis in THREAD_AXES]
        source = self.root.attributes[SOURCE]
        text = source.data if isinstance(source, StringAttr) else ""
        kernel.attributes[KERNEL] = KernelAttr.of([t for t in threads if isinstance(t, int)], text)
        kernel.attributes[ARG_ACCESS] = ArrayAttr(AccessAttr(_access_of(argument)) for argument in kernel.args)
        names = [v.name_hint or f"n{at}" for at, v in enumerate(arguments) if _rank(v) == _EXTENT]
        kernel.attributes[SYMBOLS] = ArrayAttr(StringAttr(name) for name in names)


_EXTENT = 2


def _rank(value: SSAValue) -> int:
    if isinstance(value.type, MemRefType):
        return 0
    low, _ = range_of(value) if isinstance(value.type, IndexType) else (None, None)
    return _EXTENT if low is not None and low >= 0 else 1


def _access_of(argument: SSAValue) -> AccessMode:
    if not isinstance(argument.type, MemRefType):
        return AccessMode.READ
    users = [use.operation for use in argument.uses]
    if any(underlying(result) is not result for user in users for result in user.results):
        return AccessMode.READWRITE  # a view, whose uses are not those of the argument
    return joined(access_by(user, argument) for user in users)


def _gather_temporaries(entry: Block) -> None:
    for op in reversed([op for op in entry.walk() if isinstance(op, memref.AllocaOp)]):
        op.attributes.pop(ASYNC, None)
        insert_at_start(entry, op)
