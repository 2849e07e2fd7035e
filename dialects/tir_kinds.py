"""The kinds of tir loops and block iterators."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class LoopKind(StrEnum):
    SERIAL = auto()
    PARALLEL = auto()
    """Independent, possibly on several threads."""
    VECTORIZED = auto()
    """Independent, become lanes of vector values."""
    UNROLLED = auto()
    """Fully unrolled by LLVM or the C compiler."""
    THREAD_BINDING = auto()
    """Each iteration is a thread or block of the GPU axis `thread_axis`."""


class IterKind(StrEnum):
    SPATIAL = auto()
    """Instances with different values write different elements."""
    REDUCE = auto()
    """Instances with different values combine into the same element."""


@irdl_attr_definition
class IterKindAttr(EnumAttribute[IterKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a block iterator.

    ```mlir
    #tir<iter_kind spatial>
    ```
    """

    name = "tir.iter_kind"


@irdl_attr_definition
class LoopKindAttr(EnumAttribute[LoopKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a loop.

    ```mlir
    #tir<loop_kind parallel>
    ```
    """

    name = "tir.loop_kind"


DONATED = "tir.donated"
"""Unit attribute of a parameter that is not read after a call, so that results may replace it."""
RETURNED = "tir.returned"
"""Names of the donated parameters that contain a function's results, in order."""
SPATIAL = IterKindAttr(IterKind.SPATIAL)
REDUCE = IterKindAttr(IterKind.REDUCE)

TIR_FUNCTION = "tir.function"
"""Unit attribute of a function that tir passes lower even without a tir op."""

COMMUTATIVE = "tir.commutative"
"""Unit attribute of a reduction block whose update is associative and commutative, although its ops do not show it."""

PARAMETER_ACCESS = "tir.parameter_access"
"""The `low.access` of each parameter of a function in the given program, before schedules and lowering. `tir-flatten`
moves it to `low.params`."""

ELEMENT = "tir.element_of"
"""Attribute of a trailing index parameter, `[parameter, element]`: calls pass that element of an integer array, read
from host memory first."""
CONSTANT = "tir.constant"
"""Unit attribute of a buffer parameter of static shape: every call passes a constant of the module, and the function
does not write it."""

CONSTANTS_FROM_MEMORY = "tir.constants_from_memory"
"""Unit attribute of a function with such parameters: the constants exceed the caches, so that each call reads memory.
Tuning uses it for measurements."""

PART_OF = "tir.part_of"
"""Attribute of a block: a name. Blocks of a scope with the same name have the same domain and partition its instances:
each may skip those of the others."""

ORIGIN = "tir.origin"
"""Attribute of a structured upstream op, and its block: a number by which a caller of the conversion identifies the
block."""
INIT_ORIGIN = "tir.init_origin"
"""Attribute of a reduction: the `tir.origin` of the fill that became its init."""

REASSOCIATE = "reassociate"
"""Annotation of a loop: iterations may be combined into one accumulator in any order, including sums and products of
floats, so that it may be vectorized."""

MAX_PARALLEL, MAX_VECTORIZE = "meta_schedule.parallel", "meta_schedule.vectorize"
"""Annotations of a function (`tir-apply-annotations`): the maximum iterations of fused outer loops, and lanes."""
UNROLL_ANNOTATIONS = ("meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit")
"""Annotations of a function: `MAX_UNROLL_OF_LOOP` of each nest."""
MAX_UNROLL_OF_LOOP = "pragma_auto_unroll_max_step"
"""Annotation of a loop: the maximum copies of a body made by unrolling the loops inside."""

INTERIOR = "interior"
"""Annotation of a loop of symbolic extent: iterations in its interior, where all inner conditions hold, run without
conditions, others with masks (`tir-partition-loops`)."""

ACROSS_THREADS = "tir.across_threads"
"""String attribute of a reduction block in a kernel being lowered: the axis whose threads it combines."""

ASYNC = "tir.async"
"""Unit attribute of an allocation in a kernel being lowered: copies into it may be asynchronous."""

PIPELINE_STAGES = "pipeline_stages"
"""Annotation of a loop: the number of pipeline stages, the iterations in flight (at least 2), on targets whose kernels
can prefetch; ignored on others."""

PREFETCH = "prefetch"
"""Annotation of a block: a list of `["read" or "write", buffer, [shift, ...]]`. An instance prefetches the element of
that buffer (numbered as in schedule steps) that an instance with shifted iterators accesses. An optional fourth element
names a block with the same number of iterators, whose access is prefetched instead."""

NONTEMPORAL = "nontemporal"
"""Annotation of a block: buffers that it writes (numbered as in schedule steps) with non-temporal stores, because they
are not read again while they would stay in the caches."""

PREFETCHED = "tir.prefetched"
"""Attribute of a load or store: the distance in each dimension to the prefetched element."""

VIRTUAL_THREADS = "tir.virtual_threads"
"""Unit attribute of a loop in a kernel being lowered: it was bound to `vthread`."""

IN_STEP = "tir.threads_in_step"
"""Unit attribute of a function whose kernels are being lowered. Iterations of loops over threads run in lockstep and
synchronise at barriers, present or still to be inserted; the order of these loops is irrelevant."""

SOURCE = "tir.source"
"""String attribute of the outermost loop of a kernel being lowered: the names of its blocks."""

STORAGE_ALIGN = "tir.storage_align"
"""Attribute of an allocation: a list of `[axis, factor, offset]`. The stride of each axis, in elements, is a multiple
of factor plus offset."""

VIRTUAL = "vthread"
"""The axis that may be bound more than once: each loop has separate virtual threads."""
VIRTUAL_AXES = (*(f"{VIRTUAL}.{dimension}" for dimension in "xyz"), VIRTUAL)
