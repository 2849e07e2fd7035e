"""sched: schedules as IR. A trace is a `sched.func`: it prints, parses, verifies and replays.

```mlir
sched.func @schedule {
  %y = sched.get_block "Y" in @mm_relu : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop
  sched.reorder %j0, %k, %j1
}
```
Handles are SSA values. A step that replaces a loop *consumes* its handle: the verifier rejects later uses.

Steps are declared once (`sched_parameters.Step`); `get_block` has custom syntax.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import IntegerAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Dialect, Operation
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from weft.dialects import sched_parameters as kinds
from weft.dialects.sched_parameters import (
    BLOCK,
    INT,
    LOOP,
    BlockType,
    FuncOp,
    IntType,
    LoopType,
    Parameter,
    Step,
    StepOp,
    define,
    integers_of,
    verify_handles,
)
from weft.dialects.sched_parameters import SAMPLED as SAMPLED
from weft.support.locations import record_places

_BLOCK = Parameter("block", kinds.BLOCK_HANDLE)
_LOOP = Parameter("loop", kinds.LOOP_HANDLE)
_LOOPS = Parameter("loops", kinds.LOOP_HANDLES)
_TARGET = Parameter("target", kinds.LOOP_OR_BLOCK, "block_or_loop")
_FACTORS = Parameter("factors", kinds.FACTORS)
_KEY = Parameter(
    "key", kinds.STRING, "ann_key", stated_meaning="The key of the annotation.", stated_example="pipeline_stages"
)
_READ = Parameter("index", kinds.READ_BUFFER, "read_buffer_index")
_WRITTEN = Parameter("index", kinds.WRITTEN_BUFFER, "write_buffer_index")
_BUFFER_INDEX = Parameter("index", kinds.WRITTEN_BUFFER, "buffer_index")
_BUFFER = Parameter("buffer", kinds.BUFFER)
_SCOPE = Parameter(
    "scope",
    kinds.STRING,
    "storage_scope",
    stated_meaning="The memory scope of the copy: `global`, `shared`, `local`.",
    stated_example="local",
)
_CONSUMERS = Parameter(
    "consumer_blocks",
    kinds.BLOCKS,
    default=None,
    stated_meaning="The blocks that use the copy; by default all blocks of the scope.",
)
_INDEX_MAP = Parameter("index_map", kinds.BLOCK_MAP)
_MOVE = (
    _BLOCK,
    Parameter("loop", kinds.LOOP_ELSEWHERE),
    Parameter(
        "preserve_unit_loops", kinds.FLAG, default=False, stated_meaning="Whether loops of one iteration are kept."
    ),
    Parameter(
        "index",
        kinds.PLACE,
        default=-1,
        stated_meaning="The position in the loop body: before its n-th loop or block, -1 at the end, -2 at the start.",
    ),
)
_NO_PREDICATE = Parameter(
    "disable_predication",
    kinds.FLAG,
    default=False,
    keyword_only=True,
    stated_meaning="Whether a split that requires a predicate is refused.",
)
_UNIT_ITERS = ("preserve_unit_iters",)
_THRESHOLD = "The minimum number of loads at an index for precomputing it; 0 precomputes all."
_ALIGNMENT = {
    "axis": "The axis of the buffer; negative axes count from the end.",
    "factor": "The stride of the axis, in elements, is a multiple of `factor` plus `offset`.",
    "offset": "The number of elements added to the multiple of `factor`.",
}


def _factors(step: StepOp) -> list[int]:
    return integers_of(step.properties["factors"])


def _verify_tile(step: StepOp) -> None:
    verify_handles(step, 2 * sum(handle.type == LOOP for handle in step.operands))


def _verify_partition(step: StepOp) -> None:
    factors = _factors(step)
    leaves_some = len(step.results) == len(factors) + 1 and all(factors)
    verify_handles(step, len(factors) + leaves_some)


def _verify_annotate(step: StepOp) -> None:
    if (len(step.operands) == 2) == ("value" in step.properties):
        raise VerifyException("sched.annotate takes a value or a sampled integer")


def _verify_tiling(step: StepOp) -> None:
    n = step.properties["n"]
    if isinstance(n, IntegerAttr):
        verify_handles(step, n.value.data)


def _by_name(*steps: Step) -> dict[str, Step]:
    return {step.name: step for step in steps}


QUERY_STEPS: Final = _by_name(
    Step(
        "get_loops",
        "The loops around a block (a handle or a name), outermost first.",
        (_BLOCK,),
        (LOOP,),
        example="%i, %j = sched.get_loops %block : loop, loop",
    ),
    Step(
        "get_producers",
        "The blocks of the scope that write a buffer that the block reads.",
        (_BLOCK,),
        (BLOCK,),
        example="%b = sched.get_producers %block : block",
    ),
    Step(
        "get_consumers",
        "The blocks of the scope that read a buffer that the block writes.",
        (_BLOCK,),
        (BLOCK,),
        example="%b = sched.get_consumers %block : block",
    ),
    Step(
        "get_child_blocks",
        "The outermost blocks in the body of a block or loop, in order.",
        (_TARGET,),
        (BLOCK,),
        on_root=True,
        example="%b, %c = sched.get_child_blocks %target : block, block",
    ),
    Step(
        "get_output_blocks",
        "The blocks in a block, possibly the root, that write buffers other than temporaries, in order.",
        (Parameter("scope_block", kinds.BLOCK_HANDLE),),
        (BLOCK,),
        on_root=True,
        example="%b = sched.get_output_blocks %scope_block : block",
    ),
)
"""Steps that do not change the program."""

SAMPLING_STEPS: Final = _by_name(
    Step(
        "sample_perfect_tile",
        "Sample n factors whose product is the extent of a loop.",
        (
            _LOOP,
            Parameter("n", kinds.INTEGER),
            Parameter("max_innermost_factor", kinds.INTEGER, default=16),
            Parameter("decision", kinds.DECISIONS, default=None),
        ),
        (INT,),
        verify=_verify_tiling,
        example=(
            "%a, %b = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16, decision = [16, 8]} : int, int\n"
            "%o, %n = sched.split %i [%a, %b] : loop, loop"
        ),
    ),
    Step(
        "sample_partitioned_tile",
        "Sample n factors whose product is the extent of a loop; those from a position on multiply to a multiple.",
        (
            _LOOP,
            Parameter("n", kinds.INTEGER),
            Parameter("partition_pos", kinds.INTEGER, default=0),
            Parameter("innerpart_factor", kinds.INTEGER, default=1),
            Parameter("decision", kinds.DECISIONS, default=None),
        ),
        (INT,),
        verify=_verify_tiling,
        example=(
            "%a, %b = sched.sample_partitioned_tile %i {n = 2, partition_pos = 1, innerpart_factor = 4, "
            "decision = [16, 8]} : int, int"
        ),
    ),
    Step(
        "sample_categorical",
        "Sample one of several integers; `decision` is its position.",
        (
            Parameter("candidates", kinds.INTEGERS),
            Parameter("probs", kinds.FLOATS),
            Parameter("decision", kinds.DECISION, default=None),
        ),
        INT,
        example=(
            "%v = sched.sample_categorical {candidates = [0, 16, 64], probs = [0.5, 0.25, 0.25], decision = 1} : int\n"
            'sched.annotate %b, %v {key = "note"}'
        ),
    ),
    Step(
        "sample_compute_location",
        "Sample a loop at which a producer is computed, for `compute_at`.",
        (_BLOCK, Parameter("decision", kinds.DECISION, default=None)),
        LOOP,
        example="%l = sched.sample_compute_location %b {decision = 1} : loop\nsched.compute_at %b, %l",
    ),
)
"""Steps that sample integers or a loop, recorded as `decision`."""

PRIMITIVE_STEPS: Final = _by_name(
    Step(
        "split",
        "Split a loop into `len(factors)` loops; None (at most one) is inferred.",
        (_LOOP, _FACTORS, _NO_PREDICATE),
        (LOOP,),
        consumes=True,
        verify=lambda step: verify_handles(step, len(_factors(step))),
        ignores=_UNIT_ITERS,
        example="%o, %n = sched.split %i {factors = [0, 4]} : loop, loop",
    ),
    Step(
        "fuse",
        "Fuse nested loops, outermost first, into one.",
        (_LOOPS,),
        LOOP,
        consumes=True,
        ignores=_UNIT_ITERS,
        example="%f = sched.fuse %i, %j : loop",
    ),
    Step(
        "tile",
        "Split each loop of a perfect nest by its factor; returns the outer, then the tile loops.",
        (_LOOPS, Parameter("factors", kinds.TILE_FACTORS)),
        (LOOP,),
        consumes=True,
        verify=_verify_tile,
        example="%i0, %j0, %i1, %j1 = sched.tile %i, %j {factors = [4, 4]} : loop, loop, loop, loop",
    ),
    Step(
        "reorder",
        "Reorder loops of one chain.",
        (_LOOPS,),
        example="sched.reorder %j, %i",
    ),
    Step(
        "parallel",
        "Distribute the iterations over threads.",
        (_LOOP,),
        example="sched.parallel %i",
    ),
    Step(
        "vectorize",
        "Turn the iterations into vector lanes.",
        (_LOOP,),
        example="sched.vectorize %i",
    ),
    Step(
        "unroll",
        "Mark the loop to be fully unrolled by LLVM or the C compiler.",
        (_LOOP,),
        example="sched.unroll %i",
    ),
    Step(
        "bind",
        'Bind the iterations to threads (`"threadIdx.x"`) or thread blocks (`"blockIdx.x"`).',
        (
            _LOOP,
            Parameter(
                "thread_axis",
                kinds.STRING,
                stated_meaning="The axis: `threadIdx.x`, `blockIdx.y`, `vthread`, ...",
                stated_example='"threadIdx.x"',
            ),
        ),
        example='sched.bind %i {thread_axis = "threadIdx.x"}',
    ),
    Step(
        "merge",
        "Merge consecutive loops of equal extent into one.",
        (Parameter("loops", kinds.LOOPS_OF_BLOCKS),),
        LOOP,
        consumes=True,
        example="%m = sched.merge %i, %j : loop",
    ),
    Step(
        "loop_partition",
        "Split the range of a loop into consecutive loops of the given extents; None (at most one) is inferred.",
        (_LOOP, _FACTORS),
        (LOOP,),
        consumes=True,
        verify=_verify_partition,
        ignores=_UNIT_ITERS,
        example="%k0, %k1, %k2 = sched.loop_partition %k {factors = [2, 0, 3]} : loop, loop, loop",
    ),
    Step(
        "add_unit_loop",
        "Add a loop of one iteration around a block or loop.",
        (_TARGET,),
        LOOP,
        example="%u = sched.add_unit_loop %i : loop",
    ),
    Step(
        "reorder_block_iter_var",
        "Reorder the iterators of a block.",
        (
            _BLOCK,
            Parameter(
                "new_order",
                kinds.INTEGERS,
                stated_meaning="The old positions of the iterators, in the new order.",
                stated_example="1,0",
            ),
        ),
        example="sched.reorder_block_iter_var %b {new_order = [1, 0]}",
    ),
    Step(
        "annotate",
        "Attach an annotation to a block or loop.",
        (_TARGET, _KEY, Parameter("value", kinds.ANNOTATION, "ann_val")),
        on_root=True,
        verify=_verify_annotate,
        example='sched.annotate %i {key = "pipeline_stages", value = 3}',
    ),
    Step(
        "unannotate",
        "Remove an annotation from a block or loop.",
        (_TARGET, _KEY),
        on_root=True,
        example='sched.unannotate %i {key = "pipeline_stages"}',
    ),
    Step(
        "compute_at",
        "Move a producer into a loop of its consumers, to position `index`: -1 is the last, -2 the first.",
        _MOVE,
        example="sched.compute_at %b, %i {preserve_unit_loops = true}",
    ),
    Step(
        "reverse_compute_at",
        "Move a consumer into a loop of its producers, to position `index`: -1 is the last, -2 the first.",
        _MOVE,
        example="sched.reverse_compute_at %b, %i",
    ),
    Step(
        "compute_inline",
        "Inline a producer into every block that reads it.",
        (_BLOCK,),
        example="sched.compute_inline %b",
    ),
    Step(
        "reverse_compute_inline",
        "Inline a consumer into the block that it reads.",
        (_BLOCK,),
        example="sched.reverse_compute_inline %b",
    ),
    Step(
        "cache_read",
        "Read a copy of the index-th (or named) buffer that the block reads, in all or the given blocks of the scope. "
        "Returns the copying block.",
        (_BLOCK, _READ, _SCOPE, _CONSUMERS),
        BLOCK,
        example='%copy = sched.cache_read %b {index = 0, scope = "local"} : block',
    ),
    Step(
        "cache_write",
        "Write a copy of the index-th (or named) buffer that the block writes; the given blocks read the copy. Returns "
        "the copying block.",
        (_BLOCK, _WRITTEN, _SCOPE, _CONSUMERS),
        BLOCK,
        example='%copy = sched.cache_write %b {index = 0, scope = "local"} : block',
    ),
    Step(
        "cache_inplace",
        "Update a copy of the index-th (or named) buffer that a block reads. Returns the blocks that copy to it and "
        "back.",
        (_BLOCK, _READ, _SCOPE),
        (BLOCK,),
        example='%copy, %back = sched.cache_inplace %b {index = 1, scope = "local"} : block, block',
    ),
    Step(
        "cache_index",
        "Precompute the load indices of a block before its nest. Returns the computing blocks.",
        (_BLOCK, _SCOPE, Parameter("cse_thresh", kinds.INTEGER, default=0, stated_meaning=_THRESHOLD)),
        (BLOCK,),
        example='%indices = sched.cache_index %b {scope = "global", cse_thresh = 0} : block',
    ),
    Step(
        "read_at",
        "Read a copy of the elements of a buffer that an iteration of `loop` reads. Returns the copying block.",
        (_LOOP, _BLOCK, _READ, _SCOPE),
        BLOCK,
        example='%copy = sched.read_at %i, %b {index = 0, scope = "shared"} : block',
    ),
    Step(
        "write_at",
        "Write a copy of the elements of a buffer that an iteration of `loop` writes. Returns the copying block.",
        (_LOOP, _BLOCK, _WRITTEN, _SCOPE),
        BLOCK,
        example='%copy = sched.write_at %i, %b {index = 0, scope = "local"} : block',
    ),
    Step(
        "set_scope",
        "Move the index-th (or named) temporary that the block writes to a memory scope.",
        (_BLOCK, _BUFFER_INDEX, _SCOPE),
        example='sched.set_scope %b {index = 0, scope = "local"}',
    ),
    Step(
        "decompose_reduction",
        "Move the init of a reduction to a separate block before `loop`. Returns that block.",
        (_BLOCK, _LOOP),
        BLOCK,
        example="%init = sched.decompose_reduction %b, %i : block",
    ),
    Step(
        "fuse_reduction_epilogue",
        "Initialise a reduction with the operand, such as a bias, that an epilogue block combines with its result.",
        (Parameter("reduction_block", kinds.BLOCK_HANDLE), Parameter("epilogue_block", kinds.BLOCK_HANDLE)),
        example="sched.fuse_reduction_epilogue %b, %epilogue",
    ),
    Step(
        "rfactor",
        "Reduce to partial results for each iteration of `loop`, in a new dimension, then over these. "
        "Returns the block of the partial results.",
        (_LOOP, Parameter("factor_axis", kinds.INTEGER, stated_meaning="The position of the new dimension.")),
        BLOCK,
        example="%rf = sched.rfactor %k {factor_axis = 0} : block",
    ),
    Step(
        "blockize",
        "Combine a loop and its body, or several blocks, into one block, which is returned.",
        (Parameter("target", kinds.LOOP_OR_BLOCKS),),
        BLOCK,
        ignores=_UNIT_ITERS,
        example="%outer = sched.blockize %i : block",
    ),
    Step(
        "tensorize",
        "Replace a block, or a loop and its body, by a registered tensor intrinsic.",
        (
            _TARGET,
            Parameter("intrinsic", kinds.STRING, "tensor_intrin", stated_meaning="The name of the tensor intrinsic."),
        ),
        ignores=_UNIT_ITERS,
        example='sched.tensorize %i {intrinsic = "dot_4x4"}',
    ),
    Step(
        "storage_align",
        "Make the stride of an axis of a temporary a multiple of `factor` plus `offset`.",
        (
            _BLOCK,
            _BUFFER_INDEX,
            *(Parameter(name, kinds.INTEGER, stated_meaning=text) for name, text in _ALIGNMENT.items()),
        ),
        example="sched.storage_align %b {index = 0, axis = 0, factor = 32, offset = 8}",
    ),
    Step(
        "annotate_buffer_access",
        'State the region of a buffer that a block reads (`buf_type` "read") or writes ("write"): '
        "`gen_new_ranges(*iterators)` returns for each dimension a `(begin, end)` or an index, or alternating begins "
        "and ends.",
        (
            _BLOCK,
            Parameter("index", kinds.READ_OR_WRITTEN_BUFFER, "buffer_index"),
            Parameter(
                "buffer_type", kinds.STRING, "buf_type", stated_meaning="`read` or `write`.", stated_example="read"
            ),
            Parameter("region", kinds.REGION, "gen_new_ranges"),
        ),
        example=(
            'sched.annotate_buffer_access %b {index = 0, buffer_type = "write", region = affine_map<(d0) -> '
            "(d0, d0 + 1)>}"
        ),
    ),
    Step(
        "reindex",
        "Access a copy of a buffer that is indexed only by the iterators of the block. Returns the copying block.",
        (_BLOCK, _BUFFER),
        BLOCK,
        example='%copy = sched.reindex %b {buffer = ["write", 0]} : block',
    ),
    Step(
        "reindex_cache_read",
        "Read a copy of a buffer in a memory scope, at `index_map(*iterators)`. Returns the copying block.",
        (_BLOCK, _READ, _SCOPE, _INDEX_MAP),
        BLOCK,
        example=(
            '%copy = sched.reindex_cache_read %b {index = 0, scope = "local", index_map = affine_map<(d0, d1) '
            "-> (d1, d0)>} : block"
        ),
    ),
    Step(
        "reindex_cache_write",
        "Write a copy of a buffer in a memory scope, at `index_map(*iterators)`. Returns the block that copies back.",
        (_BLOCK, _WRITTEN, _SCOPE, _INDEX_MAP),
        BLOCK,
        example=(
            '%copy = sched.reindex_cache_write %b {index = 0, scope = "local", index_map = affine_map<(d0, d1) '
            "-> (d1, d0)>} : block"
        ),
    ),
    Step(
        "transform_layout",
        """Store a buffer that the block accesses in another layout: its element at `indices` moves to
`index_map(*indices)`.

Padding elements of the new buffer get `pad_value`, a number or a function of the new indices; those of a temporary
may be "undefined". If the buffer is a parameter, callers pass it in the new layout.""",
        (
            _BLOCK,
            _BUFFER,
            Parameter("index_map", kinds.BUFFER_MAP),
            Parameter("pad_value", kinds.PADDING, default=None, stated_meaning="The value of padding elements."),
        ),
        ignores=("assume_injective_transform",),
        example='sched.transform_layout %b {buffer = ["write", 0], index_map = affine_map<(d0, d1) -> (d1, d0)>}',
    ),
    Step(
        "transform_block_layout",
        "Transform the domain of a block: the instance at `indices` moves to `index_map(*indices)`. Returns the new "
        "loops.",
        (_BLOCK, _INDEX_MAP),
        (LOOP,),
        example=(
            "%i, %j = sched.transform_block_layout %b {index_map = affine_map<(d0, d1) -> (d1, d0)>} : loop, loop"
        ),
    ),
    Step(
        "recode",
        'Read a factor of a sum of products from a copy in another integer encoding: "unsigned", "signed", or a '
        'wider type such as "int16". Returns the copying block and, for the first two, the block that sums up the '
        "other factor and the block that writes the results.",
        (
            _BLOCK,
            _READ,
            Parameter(
                "encoding",
                kinds.STRING,
                stated_meaning="`unsigned`, `signed`, or a wider integer type.",
                stated_example="int16",
            ),
        ),
        (BLOCK,),
        example='%copy = sched.recode %b {index = 0, encoding = "int16"} : block',
    ),
    Step(
        "decompose_padding",
        "Separate a padding block into a fill with the padding value before `loop`, and a copy without predicates. "
        "Returns the fill block.",
        (_BLOCK, _LOOP),
        BLOCK,
        example="%fill = sched.decompose_padding %b, %i : block",
    ),
    Step(
        "pad_einsum",
        "Pad the iterator extents of a block to multiples, over padded copies of its buffers.",
        (
            _BLOCK,
            Parameter(
                "padding",
                kinds.INTEGERS,
                stated_meaning="For each iterator, the number that its extent is padded to a multiple of.",
                stated_example="8,8",
            ),
        ),
        example="sched.pad_einsum %b {padding = [16, 16, 16]}",
    ),
    Step(
        "rolling_buffer",
        "Keep the overlap of the windows of consecutive iterations in a circular buffer.",
        (_BLOCK, _WRITTEN),
        example="sched.rolling_buffer %b {index = 0}",
    ),
)
"""Steps that change the program."""

DECLARATIONS: Final = {**QUERY_STEPS, **SAMPLING_STEPS, **PRIMITIVE_STEPS}


class QueryOp(StepOp):
    pass


class SamplingOp(StepOp):
    """Samples if it has no `decision`."""


@irdl_op_definition
class GetBlockOp(QueryOp):
    """A block by its name; the function is optional if the name is unique. "root" is a function's root block, with its
    annotations and outermost blocks.

    ```mlir
    %y = sched.get_block "Y" in @mm_relu : block
    ```
    """

    name = "sched.get_block"

    label = prop_def(StringAttr)
    func = opt_prop_def(SymbolNameConstraint())
    block = result_def(BLOCK)

    assembly_format = "$label (`in` $func^)? attr-dict `:` `block`"


STEPS: dict[str, type[StepOp]] = {
    "get_block": GetBlockOp,
    **{
        step.name: define(step, base)
        for base, steps in ((QueryOp, QUERY_STEPS), (SamplingOp, SAMPLING_STEPS), (StepOp, PRIMITIVE_STEPS))
        for step in steps.values()
    },
}

_OPERATIONS: list[type[Operation]] = record_places([FuncOp, *STEPS.values()])
SCHED = Dialect("sched", _OPERATIONS, [BlockType, LoopType, IntType])


def add_primitive_step(step: Step) -> None:
    """Add a primitive's step that another package declares."""
    PRIMITIVE_STEPS[step.name] = DECLARATIONS[step.name] = step
    STEPS[step.name] = define(step)
    _OPERATIONS.extend(record_places([STEPS[step.name]]))


def remove_primitive_step(name: str) -> None:
    del PRIMITIVE_STEPS[name], DECLARATIONS[name]
    _OPERATIONS.remove(STEPS.pop(name))
