"""convert-upstream-to-low: scf, memref, vector, arith and math at the low level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import affine, arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    TensorType,
    UnrankedMemRefType,
    VectorType,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index
from weft.dialects.combiners import UPSTREAM_KINDS
from weft.dialects.effects import is_pure, op_name
from weft.dialects.element_types import bytes_of
from weft.dialects.index_map import mixed_extents
from weft.dialects.integer_arith import constant_integer, known_number
from weft.dialects.levels import allowed_at
from weft.dialects.low import PARAMS, SYMBOLS, GatherOp, ParallelForOp, ScatterOp
from weft.dialects.low_access import AccessAttr, AccessMode, PrefetchOp, access_by
from weft.dialects.low_kernel import ARG_ACCESS, ATOMIC_KINDS, KERNEL, SHARED, AtomicOp, LaunchOp
from weft.dialects.low_lanes import LANE_FORMS, mask_type
from weft.dialects.promises import parse_promises, state_promises
from weft.dialects.strides import layout_problem
from weft.dialects.traversal import ancestors, operations_in, operations_of, values_of
from weft.dialects.upstream import memref as upstream_memref
from weft.dialects.upstream import vector as upstream_vector
from weft.dialects.upstream.views import VIEWS, StridedView
from weft.passes.convert.affine_to_scf import LOWERED, lower_affine, problem_of_affine
from weft.passes.convert.kernels_from_upstream import (
    KERNEL_REWRITES,
    block_of,
    grid_of,
    kernel_modules,
    kernels_in,
    problem_of_module,
    take_kernel,
    threads_of,
)
from weft.passes.convert.region_branches import is_single_region, replace_region_branches
from weft.passes.convert.returned_parameters import drop_returned_parameters
from weft.passes.convert.unrolled_vectors import is_unrolled, unroll_vectors, why_not_unrolled
from weft.passes.convert.upstream_functions import called_together, convertible
from weft.passes.convert.upstream_vectors import VALUE_REWRITES
from weft.passes.convert.values_as_bytes import hold_in_bytes, is_held
from weft.passes.index_builders import (
    add_at_end,
    arith_op,
    constant_before,
    divided_up,
    index_arithmetic,
    index_before,
    insert_before,
    product_before,
    result_before,
)
from weft.passes.low.low_canonicalize import canonicalize
from weft.passes.low.op_rewriter import OpRewriter, lanes_of
from weft.passes.module_edits import named_ops
from weft.passes.tir.flat_signature import FlatSignature, joined, quantities_of
from weft.passes.tir.tir_flatten import LOCAL_LIMIT, flat_type, flatten_globals
from weft.passes.tir.tir_lower_loops import LowerLoopsPass
from weft.passes.tir.tir_pass import LOCAL, allocate_before, buffer_type, range_of
from weft.support.errors import CompileError, remark
from weft.support.names import new_name

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class ConvertUpstreamToLowPass(ModulePass):
    """Convert functions of `scf`, `memref`, `vector`, `arith`, `math` and `gpu` directly to the low level.

    ```mlir
    func.func @f(%A: memref<4x8xf32>, %n: index) {
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        %v = vector.load %A[%i, %c0] : memref<4x8xf32>, vector<8xf32>
    // becomes
    func.func @f(%A: memref<32xf32>, %n: index) attributes {low.params = [#low.param<"A", memref<4x8xf32>, ...>], ...} {
      low.parallel_for %i in %n {
        %at = arith.muli %i, %c8 : index
        %v = vector.load %A[%at] : memref<32xf32>, vector<8xf32>
    ```
    The inverse of `convert-low-to-upstream`, and the entry for vectorized programs: nothing is raised, so nothing can
    be scheduled (`raise-affine-to-tir` makes blocks). Buffers become one-dimensional; their views (`subview`,
    `reinterpret_cast`, ...) become index arithmetic. `scf.parallel` with reductions runs in order. `promises` names
    assumptions (`tir.promises`), by default none. `affine` (`affine_to_scf.py`), `scf.index_switch` and
    `scf.execute_region` (`region_branches.py`) are lowered first.

    Functions with ops of other levels or of unknown dialects are unchanged, with a remark, or, with `strict`, a
    `CompileError`. Raises `CompileError` for views passed to calls that do not start at the first element, for vectors
    along a strided dimension, and for dependences on the offset of a parameter.

    Requires: functions of one block over buffers and vectors of one dimension, without `linalg`.

    Leaves: low functions, and kernels if the module has a `gpu.module`.
    """

    name = "convert-upstream-to-low"

    promises: tuple[str, ...] = ()
    """Assumptions in addition to those of the program: `noalias`, `contract`, `reassoc` (`dialects/promises.py`)."""
    strict: bool = False
    """Whether it is an error, not a remark, if the pass finds nothing, or does not convert a function."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not convert_upstream_to_low(op, self.promises, strict=self.strict):
            remark(op, f"{self.name}: no function of scf, memref and vector ops", strict=self.strict)


def convert_upstream_to_low(
    module: ModuleOp, promises: tuple[str, ...] = (), functions: Sequence[FuncOp] | None = None, *, strict: bool = False
) -> bool:
    """Convert functions over buffers, or `functions` and those connected to them by calls. Returns whether there were
    any, or kernels."""
    promised = parse_promises(promises)
    candidates = [f for f in module.ops if isinstance(f, FuncOp) and _is_upstream(f)]
    if functions is not None:
        candidates = called_together(functions, candidates)
    candidates = convertible(module, ConvertUpstreamToLowPass.name, candidates, strict=strict)
    drop_returned_parameters(module, candidates)
    found = _Candidates(module, {f.sym_name.data: f for f in candidates}, kernel_modules(module))
    if not found.functions and not found.kernels:
        return False
    # Terminates, because each round has fewer candidates.
    while problems := found.problems():
        for name, (op, reason) in problems.items():
            remark(op, f"{ConvertUpstreamToLowPass.name}: @{name} stays as it is: {reason}", strict=strict)
            found.functions.pop(name, None)
            found.kernels.pop(name, None)
    kernels = _take_kernels(module, found.kernels)
    converted = [*found.functions.values(), *kernels.values()]
    signatures: dict[str, FlatSignature] = {}
    for function in converted:
        replace_region_branches(function)
        lower_affine(function)
        unroll_vectors(function)
        _drop_spaces(function)
        hold_in_bytes(function)
        signatures[function.sym_name.data] = FlatSignature.of(function)
    for function in converted:
        _Converter(function, signatures, kernels).run()
        state_promises(function, promised)
    for kernel_module in found.kernels.values():
        Rewriter.erase_op(kernel_module)
    flatten_globals(module, converted)
    for function, accesses in _accesses_of(converted).items():
        signature = signatures[function.sym_name.data]
        signature.access = dict(enumerate(accesses))
        if KERNEL in function.attributes:
            modes = [*accesses, *[AccessMode.READ] * (len(function.args) - len(accesses))]
            function.attributes[ARG_ACCESS] = ArrayAttr([AccessAttr(mode) for mode in modes])
            del function.attributes[PARAMS], function.attributes[SYMBOLS]
        else:
            function.attributes[PARAMS] = signature.params()
    module.attributes.pop("gpu.container_module", None)
    for function in converted:
        LowerLoopsPass().rewrite(function)
        canonicalize(function)
    return True


# Choice of the functions


_LEVEL: Final = ("memref.", "scf.", "vector.")


@dataclass
class _Candidates:
    module: ModuleOp
    functions: dict[str, FuncOp]
    kernels: dict[str, gpu.ModuleOp]

    def problems(self) -> dict[str, tuple[Operation, str]]:
        found = {name: self._problem(function) for name, function in self.functions.items()}
        found |= {name: self._problem_of_kernels(kernels) for name, kernels in self.kernels.items()}
        return {name: problem for name, problem in found.items() if problem is not None}

    def _problem_of_kernels(self, kernels: gpu.ModuleOp) -> tuple[Operation, str] | None:
        problem = problem_of_module(kernels, self.module)
        for kernel in kernels_in(kernels):
            problem = problem or self._problem(kernel)
        for function in self.module.ops:
            if problem is None and isinstance(function, FuncOp) and function.sym_name.data not in self.functions:
                launches = operations_of(function, gpu.LaunchFuncOp)
                if any(launch.kernel.root_reference == kernels.sym_name for launch in launches):
                    return kernels, f"@{function.sym_name.data}, which is not converted, launches a kernel of it"
        return problem

    def _problem(self, function: FuncOp | gpu.FuncOp) -> tuple[Operation, str] | None:
        if len(function.body.blocks) != 1:
            return function, f"it has {len(function.body.blocks)} blocks (MLIR's --lift-cf-to-scf makes one)"
        for type_ in function.function_type.outputs:
            if isinstance(type_, MemRefType | TensorType | VectorType):
                return function, f"it returns a {type_}"
        for type_ in function.function_type.inputs:
            if isinstance(type_, TensorType | VectorType):
                return function, f"it has a parameter of type {type_}"
            if isinstance(type_, UnrankedMemRefType):
                return function, f"it has a parameter of type {type_}"
            if isinstance(type_, MemRefType) and (problem := layout_problem(type_)) is not None:
                return function, problem
        for op in operations_in(function):
            if op is not function and (reason := self._problem_of(op, isinstance(function, gpu.FuncOp))) is not None:
                return op, reason
        return None

    def _problem_of(self, op: Operation, in_kernel: bool) -> str | None:
        name = op_name(op)
        takes_buffers = any(isinstance(operand.type, MemRefType) for operand in op.operands)
        if (problem := problem_of_affine(op)) is not None:
            return f"{name}: {problem}"
        if is_unrolled(op) and (problem := why_not_unrolled(op)) is not None:
            return problem
        known = (
            type(op) in _HANDLED
            or is_unrolled(op)
            or is_single_region(op)
            or (in_kernel and (type(op) in KERNEL_REWRITES or isinstance(op, gpu.ReturnOp)))
        )
        if not known and (takes_buffers or not allowed_at("low", name)):
            return f"{name} has no low form{_ADVICE.get(name.split('.')[0], '')}"
        if in_kernel and type(op) in (memref.AllocOp, memref.DeallocOp, scf.ParallelOp, CallOp):
            return f"{name} is in a kernel"
        for value in values_of(op):
            if (problem := _problem_of_value(value, op)) is not None:
                return problem
        if isinstance(op, CallOp) and takes_buffers and op.callee.string_value() not in self.functions:
            return f"it passes buffers to @{op.callee.string_value()}, which is not converted"
        if isinstance(op, gpu.LaunchFuncOp):
            if op.kernel.root_reference.data not in self.kernels:
                return f"it launches a kernel of @{op.kernel.root_reference.data}, which is not converted"
            if len(op.operands) != 6 + len(op.kernelOperands) or op.results:
                return f"{name} is asynchronous, in clusters, or gives a size of shared memory"
        return None


def _problem_of_value(value: SSAValue, op: Operation) -> str | None:
    type_ = value.type
    if isinstance(type_, MemRefType):
        if isinstance(value, BlockArgument) or type(op) not in _MAKES_BUFFERS:
            return f"{op_name(op)} passes a buffer on, {type_}"
        if not isinstance(type_.layout, NoneAttr | StridedLayoutAttr):
            return f"{op_name(op)} has a buffer with the layout of {type_}"
    if isinstance(type_, UnrankedMemRefType):
        return f"{op_name(op)} has a buffer without a rank, {type_}"
    if isinstance(type_, VectorType) and any(type_.scalable_dims):
        return f"{op_name(op)} has vectors of other than fixed dimensions, {type_}"
    if isinstance(type_, VectorType) and is_held(element := cast("VectorType[Attribute]", type_).element_type):
        return f"{op_name(op)} has vectors of {element}"
    return None


def _take_kernels(module: ModuleOp, kernel_modules: Mapping[str, gpu.ModuleOp]) -> dict[str, FuncOp]:
    taken = set(named_ops(module))
    found: dict[str, FuncOp] = {}
    for name, kernels in kernel_modules.items():
        for kernel in kernels_in(kernels):
            own = new_name(kernel.sym_name.data, taken)
            threads = threads_of(kernel, module) or (1, 1, 1)
            found[f"{name}.{kernel.sym_name.data}"] = function = take_kernel(kernel, own, threads)
            module.body.block.add_op(function)
    return found


def _is_upstream(function: FuncOp) -> bool:
    if function.is_declaration or not function.attributes.keys().isdisjoint((PARAMS, KERNEL)):
        return False
    types = (*function.function_type.inputs, *function.function_type.outputs)
    if any(isinstance(type_, MemRefType) for type_ in types):
        return True
    return any(op_name(op).startswith(_LEVEL) for op in operations_in(function))


_ADVICE: Final[Mapping[str, str]] = {
    "linalg": " (convert-linalg-to-tir)",
    "tensor": " (bufferize-tensors)",
    "bufferization": " (bufferize-tensors)",
    "cf": " (MLIR's --lift-cf-to-scf)",
    "tir": " (lower-tir-to-low)",
}


def _drop_spaces(function: FuncOp) -> None:
    """Drop memory spaces, except of allocations in kernels: other buffers are in the one memory of host or device."""
    for op in operations_in(function):
        for value in values_of(op):
            type_ = value.type
            if isinstance(type_, MemRefType) and not isinstance(type_.memory_space, NoneAttr):
                plain = MemRefType(type_.element_type, type_.shape, type_.layout)
                value._type = plain  # pyright: ignore[reportPrivateUsage]
    function.update_function_type()


def _accesses_of(functions: Sequence[FuncOp]) -> dict[FuncOp, list[AccessMode]]:
    by_name = {function.sym_name.data: function for function in functions}
    found: dict[FuncOp, list[AccessMode | None]] = {f: [None] * len(f.args) for f in functions}

    def of_use(op: Operation, position: int) -> AccessMode | None:
        if isinstance(op, CallOp):
            return found[by_name[op.callee.string_value()]][position]
        if isinstance(op, memref.CastOp):
            return of_value(op.dest)
        if isinstance(op, LaunchOp):
            return found[by_name[op.kernel.string_value()]][position - len(op.grid) - len(op.block)]
        return access_by(op, op.operands[position])

    def of_value(buffer: SSAValue) -> AccessMode | None:
        modes = {of_use(use.operation, use.index) for use in buffer.uses}
        return None if modes <= {None} else joined(modes)

    # terminates, because accesses only join: none, one, both
    changed = True
    while changed:
        changed = False
        for function in functions:
            modes = [of_value(a) if isinstance(a.type, MemRefType) else None for a in function.args]
            changed = changed or modes != found[function]
            found[function] = modes
    return {function: [mode or AccessMode.READ for mode in modes] for function, modes in found.items()}


# Conversion of bodies


_View: TypeAlias = "StridedView[SSAValue, Index]"
"""Elements of a flat buffer; their offset is relative to upstream's start of the memory."""

_START: Final = Index({})


def _whole(
    buffer: SSAValue,
    extents: Sequence[int | SSAValue],
    anchor: Operation,
    strides: Sequence[int | SSAValue] | None = None,
    offset: Index = _START,
) -> _View:
    """All elements of a flat buffer, row-major unless it has other strides."""
    shape = tuple(map(Index.of, extents))
    steps = index_arithmetic(anchor).row_major(shape) if strides is None else tuple(map(Index.of, strides))
    return StridedView(buffer, offset, shape, steps)


class _Converter:
    def __init__(
        self, function: FuncOp, signatures: Mapping[str, FlatSignature], kernels: Mapping[str, FuncOp]
    ) -> None:
        self.function = function
        self.is_kernel = KERNEL in function.attributes
        self.kernels = kernels
        self.signatures = signatures
        self.views: dict[SSAValue, _View] = {}
        self.origins: dict[SSAValue, Index] = {}
        """The dynamic offset that upstream gives the first element of a parameter: a placeholder argument of `offsets`,
        which must remain unused."""
        self.offsets = Block()
        self.shared: dict[str, SSAValue] = {}
        """Variables of the module of a kernel, by name."""

    def run(self) -> None:
        signature, block = self.signatures[self.function.sym_name.data], self.function.body.block
        symbols = signature.add_symbols(self.function)
        for position in signature.memrefs:
            self._take_parameter(block.args[position], *signature.sizes_of(position, symbols))
        for op in operations_in(self.function):
            if op.parent is None:
                continue  # erased together with a loop
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            elif rewrite := VALUE_REWRITES.get(type(op)) or KERNEL_REWRITES.get(type(op)):
                rewrite(op)
        self._erase_views()
        self.function.update_function_type()

    def _take_parameter(
        self, argument: SSAValue, shape: Sequence[int | SSAValue], strides: Sequence[int | SSAValue] | None
    ) -> None:
        old, first = buffer_type(argument), self.function.body.block.first_op
        if first is None:
            return
        new = Rewriter.replace_value_with_new_type(argument, flat_type(old))
        offset = Index({})
        if strides is not None and cast("StridedLayoutAttr", old.layout).get_offset() is None:
            offset = Index.of(self.offsets.insert_arg(IndexType(), len(self.offsets.args)))
            self.origins[new] = offset
        self.views[new] = _whole(new, shape, first, strides, offset)

    def _erase_views(self) -> None:
        """Raises `CompileError` for other uses of the offset of a parameter."""
        for op in reversed(operations_in(self.function)):
            if (type(op) in _VIEWS or is_pure(op)) and all(result.first_use is None for result in op.results):
                Rewriter.erase_op(op)
        for offset in self.offsets.args:
            use = offset.first_use
            if use is not None:
                raise CompileError.at(use.operation, "the offset of a parameter is not known: a buffer starts anywhere")

    def view(self, buffer: SSAValue, op: Operation) -> _View:
        if buffer not in self.views:
            raise CompileError.at(op, f"convert-upstream-to-low: {op_name(op)} takes a buffer that no op here gives")
        return self.views[buffer]

    def place(self, view: _View, indices: Iterable[SSAValue], op: Operation) -> Index:
        return index_arithmetic(op).place(map(Index.of, indices), view.strides, self.start(view)).simplified(range_of)

    def start(self, view: _View) -> Index:
        return view.offset - self.origins.get(view.buffer, Index({}))

    # Views

    def part(self, op: Operation) -> None:
        self.views[op.results[0]] = self.view(op.operands[0], op).part(op, index_arithmetic(op))

    def metadata(self, op: Operation) -> None:
        view = self.view(op.operands[0], op)
        base, offset, *numbers = op.results
        self.views[base] = StridedView(view.buffer, self.origins.get(view.buffer, _START), (), ())
        for result, index in zip((offset, *numbers), (view.offset, *view.shape, *view.strides), strict=True):
            if result.first_use is not None:
                result.replace_all_uses_with(index_before(index, op, result.name_hint))

    def dimension(self, op: Operation) -> None:
        view, number = self.view(op.operands[0], op), constant_integer(op.operands[1])
        if number is None or not 0 <= number < len(view.shape):
            raise CompileError.at(op, f"memref.dim needs a constant dimension in 0 .. {len(view.shape) - 1}")
        OpRewriter(op).replace(index_before(view.shape[number], op, op.results[0].name_hint))

    def rank(self, op: Operation) -> None:
        OpRewriter(op).replace(constant_before(len(self.view(op.operands[0], op).shape), op))

    # Buffers

    def allocate(self, op: Operation) -> None:
        alloc = cast("memref.AllocOp | memref.AllocaOp", op)
        type_ = buffer_type(alloc.memref)
        if not isinstance(type_.layout, NoneAttr) or alloc.symbol_operands:
            raise CompileError.at(op, f"buffers that are allocated are dense, got {type_}")
        shape = mixed_extents(type_.get_shape(), alloc.dynamic_sizes)
        flat = flat_type(type_)
        size = flat.get_shape()[0] * bytes_of(flat.element_type)
        if isinstance(op, memref.AllocaOp) and (self.is_kernel or 0 <= size <= LOCAL_LIMIT):
            new = self._on_stack(op, flat, LOCAL, alloc.alignment)
        else:
            count = [] if size >= 0 else [index_before(index_arithmetic(op).product(map(Index.of, shape)), op)]
            new = allocate_before(op, memref.AllocOp, flat, alloc.memref.name_hint, alloc.alignment, count).memref
            if isinstance(op, memref.AllocaOp):  # the buffer is too large for a stack frame
                add_at_end(cast("Block", op.parent), memref.DeallocOp.get(new))
        self.views[new] = _whole(new, shape, op)
        OpRewriter(op).replace(new)

    def _on_stack(
        self, op: Operation, flat: MemRefType, space: StringAttr, alignment: IntegerAttr | None = None
    ) -> SSAValue:
        anchor = op
        if self.is_kernel:
            if flat.get_shape()[0] == DYNAMIC_INDEX:
                raise CompileError.at(op, f"{op.name} in a kernel needs a static size")
            anchor = cast("Operation", self.function.body.block.first_op)
        type_ = MemRefType(flat.element_type, flat.shape, memory_space=space)
        return allocate_before(anchor, memref.AllocaOp, type_, op.results[0].name_hint, alignment).memref

    def free(self, op: Operation) -> None:
        view = self.view(op.operands[0], op)
        op.operands[0] = view.buffer

    def get_global(self, op: Operation) -> None:
        value = op.results[0]
        flat, shape = flat_type(buffer_type(value)), buffer_type(value).get_shape()
        if self.is_kernel:  # shared by the threads of a block
            name = cast("memref.GetGlobalOp", op).name_.string_value()
            if name not in self.shared:
                self.shared[name] = self._on_stack(op, flat, SHARED)
            new = self.shared[name]
            OpRewriter(op).replace(new)
        else:
            new = Rewriter.replace_value_with_new_type(value, flat)
        self.views[new] = _whole(new, shape, op)

    def copy(self, op: Operation) -> None:
        source, target = (self.view(operand, op) for operand in op.operands)
        zero, one = constant_before(0, op), constant_before(1, op)
        anchor, variables = op, list[SSAValue]()
        for extent in source.shape:
            body = Block([end := scf.YieldOp()], arg_types=[IndexType()])
            insert_before(anchor, [scf.ForOp(zero, index_before(extent, anchor), one, [], Region(body))])
            variables.append(body.args[0])
            end.location, anchor = op.location, end
        at = index_before(self.place(source, variables, anchor), anchor)
        value = result_before(memref.LoadOp.get(source.buffer, [at]), anchor)
        at = index_before(self.place(target, variables, anchor), anchor)
        insert_before(anchor, [memref.StoreOp.get(value, target.buffer, [at])])
        OpRewriter(op).erase()

    def call(self, op: Operation) -> None:
        call = cast("CallOp", op)
        callee = self.signatures.get(call.callee.string_value())
        if callee is not None:
            op.operands = self._given(call.callee.string_value(), callee, call.arguments, op)

    def launch(self, op: Operation) -> None:
        launch = cast("gpu.LaunchFuncOp", op)
        name = self.kernels[launch.kernel.string_value()].sym_name.data
        given = self._given(name, self.signatures[name], launch.kernelOperands, op)
        sizes = [self._as_index(size, op) for size in (*grid_of(launch), *block_of(launch))]
        OpRewriter(op).become(LaunchOp(name, sizes[:3], sizes[3:], given))

    def _as_index(self, size: SSAValue, op: Operation) -> SSAValue:
        return size if isinstance(size.type, IndexType) else result_before(arith.IndexCastOp(size, IndexType()), op)

    def _given(self, name: str, callee: FlatSignature, arguments: Sequence[SSAValue], op: Operation) -> list[SSAValue]:
        """Buffers, at their first element, then extents and strides."""
        flat, given = list(arguments), dict[str, SSAValue]()
        for position in callee.memrefs:
            view = self.view(flat[position], op)
            if self.start(view).simplified(range_of) != Index({}):
                raise CompileError.at(op, f"@{name} is given a view that does not start at the first element")
            type_ = flat_type(cast("MemRefType", callee.types[position]))
            flat[position] = view.buffer
            if view.buffer.type != type_:
                flat[position] = result_before(memref.CastOp.get(view.buffer, type_), op)
            for own in quantities_of(position, callee.types[position]):
                index = (view.strides if own.is_stride else view.shape)[own.dimension]
                given.setdefault(callee.of_quantity[own], index_before(index, op))
        return [*flat, *(given[symbol] for symbol in callee.symbols)]

    # Accesses

    def access(self, op: Operation) -> None:
        at = _BUFFER_AT[type(op)]
        view = self.view(op.operands[at], op)
        rank = len(view.shape)
        indices = op.operands[at + 1 : at + 1 + rank]
        if op.name.startswith("vector."):
            self._check_lanes(view, op)
        place = index_before(self.place(view, indices, op), op)
        op.operands = [*op.operands[:at], view.buffer, place, *op.operands[at + 1 + rank :]]

    def _check_lanes(self, view: _View, op: Operation) -> None:
        stride = view.strides[-1] if view.strides else Index({}, 1)
        if stride != Index({}, 1):
            raise CompileError.at(
                op,
                f"{op.name} requires contiguous elements, and those of the last dimension are {stride} elements apart",
            )

    def prefetch(self, op: Operation) -> None:
        prefetch = cast("upstream_memref.PrefetchOp", op)
        view = self.view(prefetch.memref, op)
        rewriter = OpRewriter(op)
        if prefetch.isDataCache.value.data:
            at = index_before(self.place(view, prefetch.indices, op), op)
            rewriter.add(PrefetchOp(view.buffer, [at], for_write=bool(prefetch.isWrite.value.data)))
        rewriter.erase()

    def atomic(self, op: Operation) -> None:
        """Outside kernels, a load, the combination and a store, since no other thread runs."""
        atomic = cast("memref.AtomicRMWOp", op)
        kind = upstream_memref.ATOMIC_KINDS[atomic.kind.value.data]
        if self.is_kernel:
            self._atomic_in_kernel(atomic, kind)
            return
        if any(isinstance(parent, scf.ParallelOp | ParallelForOp) for parent in ancestors(op)):
            raise CompileError.at(op, f"{op.name} in a parallel loop has no low form for CPUs")
        view = self.view(atomic.memref, op)
        at = index_before(self.place(view, atomic.indices, op), op)
        old = result_before(memref.LoadOp.get(view.buffer, [at]), op)
        new = atomic.value
        if kind != "assign":
            new = result_before(arith_op(UPSTREAM_KINDS[kind], old, new), op)
        insert_before(op, [memref.StoreOp.get(new, view.buffer, [at])])
        OpRewriter(op).replace(old)

    def _atomic_in_kernel(self, atomic: memref.AtomicRMWOp, kind: str) -> None:
        combined = ATOMIC_KINDS.get(UPSTREAM_KINDS.get(kind, Operation))
        if combined is None:
            raise CompileError.at(atomic, f"{atomic.name} {kind} has no low form in kernels")
        view = self.view(atomic.memref, atomic)
        at = index_before(self.place(view, atomic.indices, atomic), atomic)
        OpRewriter(atomic).become(AtomicOp(combined, atomic.value, view.buffer, [at]))

    def gather(self, op: Operation) -> None:
        gather = cast("upstream_vector.GatherOp", op)
        rewriter, type_ = OpRewriter(op), gather.result.type
        view = self.view(gather.base, op)
        places = self._places(rewriter, view, gather.indices, gather.index_vec, op)
        mask = None if _is_all_true(gather.mask) else gather.mask
        self._gathered(rewriter, GatherOp(view.buffer, places, mask, type_), gather.pass_thru)

    def _gathered(self, rewriter: OpRewriter, gather: GatherOp, others: SSAValue | None) -> None:
        """Inactive lanes are `others`."""
        lanes = rewriter.insert(gather)
        if gather.mask is not None and others is not None:
            lanes = rewriter.op(LANE_FORMS[arith.SelectOp], (gather.mask, lanes, others), lanes.type)
        rewriter.replace(lanes)

    def scatter(self, op: Operation) -> None:
        scatter = cast("upstream_vector.ScatterOp", op)
        rewriter = OpRewriter(op)
        view = self.view(scatter.base, op)
        places = self._places(rewriter, view, scatter.indices, scatter.index_vec, op)
        mask = None if _is_all_true(scatter.mask) else scatter.mask
        rewriter.become(ScatterOp(scatter.value, view.buffer, places, mask))

    def _places(
        self, rewriter: OpRewriter, view: _View, indices: Sequence[SSAValue], lanes: SSAValue, op: Operation
    ) -> SSAValue:
        """Index of each lane; `lanes` are offsets along the last dimension."""
        count = lanes_of(lanes.type)
        places = VectorType(IndexType(), [count])
        if lanes.type != places:
            lanes = rewriter.op(LANE_FORMS[arith.IndexCastOp], (lanes,), places)
        stride = view.strides[-1] if view.strides else Index({}, 1)
        if stride != Index({}, 1):
            step = rewriter.insert(vector.BroadcastOp(index_before(stride, op), places))
            lanes = rewriter.insert(arith.MuliOp(lanes, step))
        first = self.place(view, indices, op)
        if first != Index({}):
            start = rewriter.insert(vector.BroadcastOp(index_before(first, op), places))
            lanes = rewriter.insert(arith.AddiOp(start, lanes))
        return lanes

    def transfer(self, op: Operation) -> None:
        """Lanes along one dimension; those out of bounds are masked."""
        transfer = cast("vector.TransferReadOp | vector.TransferWriteOp", op)
        view, rewriter = self.view(transfer.source, op), OpRewriter(op)
        type_ = cast("VectorType[Attribute]", (op.results[0] if op.results else op.operands[0]).type)
        (expr,) = transfer.permutation_map.data.results
        if not isinstance(expr, AffineDimExpr):
            raise CompileError.at(op, f"{op.name} of one element in all lanes has no low form")
        dimension, lanes = expr.position, lanes_of(type_)
        mask = transfer.mask
        if not transfer.in_bounds.data[0].value.data:
            left = view.shape[dimension] - Index.of(transfer.indices[dimension])
            inside = rewriter.insert(vector.CreateMaskOp([index_before(left, op)], mask_type(type_)))
            mask = inside if mask is None else rewriter.insert(arith.AndIOp(inside, mask))
        place = index_before(self.place(view, transfer.indices, op), op)
        padding = None
        if mask is not None and isinstance(transfer, vector.TransferReadOp):
            padding = rewriter.insert(vector.BroadcastOp(transfer.padding, type_))
        if view.strides[dimension] != Index({}, 1):
            places = VectorType(IndexType(), [lanes])
            step = rewriter.insert(vector.BroadcastOp(index_before(view.strides[dimension], op), places))
            at = rewriter.insert(arith.MuliOp(rewriter.constant_lanes(places, range(lanes)), step))
            at = rewriter.insert(arith.AddiOp(rewriter.insert(vector.BroadcastOp(place, places)), at))
            if isinstance(transfer, vector.TransferReadOp):
                self._gathered(rewriter, GatherOp(view.buffer, at, mask, type_), padding)
            else:
                rewriter.become(ScatterOp(transfer.vector, view.buffer, at, mask))
        elif isinstance(transfer, vector.TransferReadOp):
            operands = (view.buffer, place) if mask is None else (view.buffer, place, mask, padding)
            kind = vector.LoadOp if mask is None else vector.MaskedLoadOp
            rewriter.replace(rewriter.op(kind, cast("tuple[SSAValue, ...]", operands), type_))
        elif mask is None:
            rewriter.become(vector.StoreOp(transfer.vector, view.buffer, [place]))
        else:
            rewriter.become(vector.MaskedStoreOp(view.buffer, [place], mask, transfer.vector))

    # Loops

    def parallel(self, op: Operation) -> None:
        """Run the first dimension in parallel, the others in order. With reductions, all run in order."""
        loop = cast("scf.ParallelOp", op)
        spread = not loop.initVals and not any(isinstance(parent, ParallelForOp) for parent in ancestors(op))
        carried: Sequence[SSAValue] = loop.initVals
        loops: list[Operation] = []
        anchor, variables = op, list[SSAValue]()
        for lower, upper, step in zip(loop.lowerBound, loop.upperBound, loop.step, strict=True):
            body = Block([end := scf.YieldOp()], arg_types=[IndexType(), *(value.type for value in carried)])
            end.location, variable = op.location, cast("SSAValue", body.args[0])
            variable.name_hint = loop.body.block.args[len(loops)].name_hint
            if spread and not loops:
                made: Operation = ParallelForOp(_trips(lower, upper, step, anchor), Region(body))
                place = Index.of(lower) + product_before(Index.of(variable), Index.of(step), end)
                variable = index_before(place, end)
            else:
                made = scf.ForOp(lower, upper, step, carried, Region(body))
            insert_before(anchor, [made])
            if loops:
                anchor.operands = made.results
            loops.append(made)
            variables.append(variable)
            anchor, carried = end, body.args[1:]
        _inline_body(loop, anchor, variables, carried)
        if spread:  # a parallel loop has no terminator
            Rewriter.erase_op(cast("Operation", loops[0].regions[0].block.last_op))
        OpRewriter(op).replace(*loops[0].results)


def _inline_body(
    loop: scf.ParallelOp, anchor: Operation, variables: Sequence[SSAValue], carried: Sequence[SSAValue]
) -> None:
    reduce = cast("scf.ReduceOp", loop.body.block.last_op)
    Rewriter.inline_block(loop.body.block, InsertPoint.before(anchor), variables)
    totals: list[SSAValue] = []
    for region, value, total in zip(reduce.reductions, reduce.args, carried, strict=True):
        last = cast("scf.ReduceReturnOp", region.block.last_op)
        Rewriter.inline_block(region.block, InsertPoint.before(anchor), [total, value])
        totals.append(last.result)
        Rewriter.erase_op(last)
    Rewriter.erase_op(reduce)
    if totals:
        anchor.operands = totals


def _trips(lower: SSAValue, upper: SSAValue, step: SSAValue, anchor: Operation) -> SSAValue:
    distance = Index.of(upper) - Index.of(lower)
    by = constant_integer(step)
    if by is not None and by > 0:
        trips = index_before(divided_up(distance, by).simplified(range_of), anchor)
    else:
        trips = result_before(arith.CeilDivSIOp(index_before(distance, anchor), step), anchor)
    low, _ = Index.of(trips).range(range_of)
    if low is not None and low >= 0:
        return trips
    return result_before(arith.MaxSIOp(trips, constant_before(0, anchor)), anchor)


def _is_all_true(mask: SSAValue) -> bool:
    return known_number(mask) not in (None, 0)


_BUFFER_AT: Final[Mapping[type[Operation], int]] = {
    **dict.fromkeys((memref.LoadOp, vector.LoadOp, vector.MaskedLoadOp, vector.MaskedStoreOp), 0),
    **dict.fromkeys((memref.StoreOp, vector.StoreOp), 1),
}
"""Maps an op that accesses a buffer at an index per dimension to the position of the buffer operand."""

_VIEWS: Final[Mapping[type[Operation], Callable[[_Converter, Operation], None]]] = {
    **dict.fromkeys((*VIEWS, memref.AssumeAlignmentOp), _Converter.part),
    memref.ExtractStridedMetaDataOp: _Converter.metadata,
}
_HANDLERS: Final[Mapping[type[Operation], Callable[[_Converter, Operation], None]]] = {
    **_VIEWS,
    **dict.fromkeys(_BUFFER_AT, _Converter.access),
    **dict.fromkeys((memref.AllocOp, memref.AllocaOp), _Converter.allocate),
    memref.DeallocOp: _Converter.free,
    memref.GetGlobalOp: _Converter.get_global,
    memref.CopyOp: _Converter.copy,
    memref.DimOp: _Converter.dimension,
    memref.RankOp: _Converter.rank,
    memref.AtomicRMWOp: _Converter.atomic,
    upstream_memref.PrefetchOp: _Converter.prefetch,
    upstream_vector.GatherOp: _Converter.gather,
    upstream_vector.ScatterOp: _Converter.scatter,
    **dict.fromkeys((vector.TransferReadOp, vector.TransferWriteOp), _Converter.transfer),
    CallOp: _Converter.call,
    gpu.LaunchFuncOp: _Converter.launch,
    scf.ParallelOp: _Converter.parallel,
}
_HANDLED: Final = frozenset(
    (*_HANDLERS, *VALUE_REWRITES, *LOWERED, affine.ApplyOp, scf.IndexSwitchOp, scf.ReduceOp, scf.ReduceReturnOp)
)
_MAKES_BUFFERS: Final = frozenset((*_VIEWS, memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp))
