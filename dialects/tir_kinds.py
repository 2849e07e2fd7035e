"""The kinds of tir loops and block iterators."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class LoopKind(StrEnum):
    """How the iterations of a loop run."""

    SERIAL = auto()
    PARALLEL = auto()
    """Iterations are independent and may run on several threads."""
    VECTORIZED = auto()
    """Iterations are independent and become the lanes of vector values."""
    UNROLLED = auto()
    """The body is repeated at emission."""
    THREAD_BINDING = auto()
    """Each iteration is a thread or block of a GPU axis, named by `thread_axis`."""


class IterKind(StrEnum):
    """The kind of an iterator of a block."""

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
"""Unit attribute of a parameter that is not read after a call, so that results may be written over it."""
RETURNED = "tir.returned"
"""Attribute of a function with donated parameters: the names of the parameters that hold its results, in order."""
SPATIAL = IterKindAttr(IterKind.SPATIAL)
REDUCE = IterKindAttr(IterKind.REDUCE)

TIR_FUNCTION = "tir.function"
"""Unit attribute of a function that tir passes lower even if it contains no tir op, such as a function of calls."""

COMMUTATIVE = "tir.commutative"
"""Unit attribute of a reduction block: its update is associative and commutative, although its ops do not show it."""

PARAMETER_ACCESS = "tir.parameter_access"
"""Attribute of a function: the `low.access` of each parameter in the program as given, before schedules and lowering
change its body. `tir-flatten` moves it to `low.params`."""

ELEMENT = "tir.element_of"
"""Attribute of a trailing index parameter, `[parameter, element]`: a call passes the value of that element of an
integer array, which it reads from host memory first."""
CONSTANT = "tir.constant"
"""Unit attribute of a parameter, a buffer of static shape: every call passes a constant of the module, and the function
does not write it."""

CONSTANTS_FROM_MEMORY = "tir.constants_from_memory"
"""Unit attribute of a function with such parameters: the constants of the module exceed the caches, so each call reads
them from memory. It does not affect semantics; tuning uses it for measurements."""

PART_OF = "tir.part_of"
"""Attribute of a block: a name. The blocks of a scope with the same name have the same domain and partition its
instances: each may skip the instances that the others run."""

ORIGIN = "tir.origin"
"""Attribute of a structured upstream op, and of the block that it becomes: a number by which a caller of the conversion
identifies the block."""
INIT_ORIGIN = "tir.init_origin"
"""Attribute of a reduction: the `tir.origin` of the fill that became its init."""

REASSOCIATE = "reassociate"
"""Annotation of a loop: its iterations may be combined into one accumulator in any order, including sums and products
of floats, so that the loop may be vectorized."""

MAX_PARALLEL, MAX_VECTORIZE = "meta_schedule.parallel", "meta_schedule.vectorize"
"""Annotations of a function (`tir-apply-annotations`): the maximum numbers of iterations of fused outer loops, and of
lanes."""
UNROLL_ANNOTATIONS = ("meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit")
"""Annotations of a function: `MAX_UNROLL_OF_LOOP` of each nest."""
MAX_UNROLL_OF_LOOP = "pragma_auto_unroll_max_step"
"""Annotation of a loop: the maximum number of copies of a body made by unrolling the loops inside."""

INTERIOR = "interior"
"""Annotation of a loop of symbolic extent: iterations in its interior, where all inner conditions hold, run without
conditions, and the others with masks (`tir-partition-loops`)."""

ACROSS_THREADS = "tir.across_threads"
"""String attribute of a reduction block in a kernel that is being lowered: the axis whose threads it combines."""

ASYNC = "tir.async"
"""Unit attribute of an allocation in a kernel that is being lowered: copies into it may be asynchronous."""

PIPELINE_STAGES = "pipeline_stages"
"""Annotation of a loop: the number of pipeline stages, the iterations in flight (an integer of at least 2), on targets
whose kernels can prefetch; ignored on other targets."""

PREFETCH = "prefetch"
"""Annotation of a block: a list of `["read" or "write", buffer, [shift, ...]]`. While an instance runs, it prefetches
the element of that buffer (numbered as in schedule steps) that an instance with shifted iterators accesses. An optional
fourth element, the name of a block with the same number of iterators, selects that block's access instead."""

NONTEMPORAL = "nontemporal"
"""Annotation of a block: a list of buffers that it writes (numbered as in schedule steps) with non-temporal stores:
they are not read again while they would stay in the caches."""

PREFETCHED = "tir.prefetched"
"""Attribute of a load or store: a list with the distance in each dimension from its element to the prefetched
element."""

VIRTUAL_THREADS = "tir.virtual_threads"
"""Unit attribute of a loop in a kernel that is being lowered: it was bound to `vthread`."""

IN_STEP = "tir.threads_in_step"
"""Unit attribute of a function whose kernels are being lowered. The iterations of loops over threads run in lockstep
and synchronise at barriers, present or still to be inserted; the order of these loops is irrelevant."""

SOURCE = "tir.source"
"""String attribute of the outermost loop of a kernel that is being lowered: the names of its blocks."""

STORAGE_ALIGN = "tir.storage_align"
"""Attribute of an allocation: a list of `[axis, factor, offset]`. In the layout of the buffer, the stride of each such
axis, in elements, is a multiple of factor plus offset."""

VIRTUAL = "vthread"
"""The axis that may be bound more than once: each such loop has separate virtual threads."""
VIRTUAL_AXES = (*(f"{VIRTUAL}.{dimension}" for dimension in "xyz"), VIRTUAL)
