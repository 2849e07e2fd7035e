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
    """What an iterator of a block means."""

    SPATIAL = auto()
    """Instances with different values write different places."""
    REDUCE = auto()
    """Instances with different values combine into the same place."""


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
"""Unit attribute of a function that tir passes lower though it may hold no op of the level, such as one of calls."""

COMMUTATIVE = "tir.commutative"
"""Unit attribute of a reduction block: its update is associative and commutative, though its ops do not tell."""

PARAMETER_ACCESS = "tir.parameter_access"
"""Attribute of a function: the `low.access` of each parameter in the program as given, before schedules and lowering
change its body. `tir-flatten` moves it to `low.params`."""

ELEMENT = "tir.element_of"
"""Attribute of an index parameter after the others, `[parameter, element]`: a call passes the value of that element
of an array of integers, which it reads from host memory before anything runs."""
CONSTANT = "tir.constant"
"""Unit attribute of a parameter, a buffer of known shape: every call passes a constant of the module, and the function
does not write it."""

CONSTANTS_FROM_MEMORY = "tir.constants_from_memory"
"""Unit attribute of a function with such parameters: all constants of the module take more than caches keep beside
other data, so each call reads them from memory. Programs mean the same without; tuning measures by it."""

PART_OF = "tir.part_of"
"""Attribute of a block: a name. The blocks of a scope with the same name have the same domain, and run its instances
together: each of them may leave out what the others run."""

ORIGIN = "tir.origin"
"""Attribute of a structured op of upstream, and of the block that it becomes: a number by which a caller of the
conversion finds it again."""
INIT_ORIGIN = "tir.init_origin"
"""Attribute of a reduction: the `tir.origin` of the fill that became its init."""

REASSOCIATE = "reassociate"
"""Annotation of a loop: its iterations may combine into one accumulator in any order, sums and products of floats too,
so that the loop may be vectorized."""

MAX_PARALLEL, MAX_VECTORIZE = "meta_schedule.parallel", "meta_schedule.vectorize"
"""Annotations of a function: the iterations that its outer loops are fused to, and lanes; `tir-apply-annotations`."""
UNROLL_ANNOTATIONS = ("meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit")
"""Annotations of a function: `MAX_UNROLL_OF_LOOP` of each nest."""
MAX_UNROLL_OF_LOOP = "pragma_auto_unroll_max_step"
"""Annotation of a loop: how many copies of a body loops inside are unrolled to."""

INTERIOR = "interior"
"""Annotation of a loop whose extent is symbolic: iterations in the interior, for which all conditions in it hold, run
without conditions, and the others with masks (`tir-partition-loops`)."""

ACROSS_THREADS = "tir.across_threads"
"""String attribute of a reduction block in a kernel that is being lowered: the axis whose threads it combines."""

ASYNC = "tir.async"
"""Unit attribute of an allocation in a kernel that is being lowered: copies into it may run beside the threads."""

PIPELINE_STAGES = "pipeline_stages"
"""Annotation of a loop: how many iterations are on their way at once (an integer of at least 2), on targets whose
kernels can fetch early; others run it as it is."""

PREFETCH = "prefetch"
"""Annotation of a block: a list of `["read" or "write", buffer, [shift, ...]]`. While an instance runs, the element of
that buffer (counted as schedule steps count them) that an instance with shifted iterators accesses is asked for. With a
fourth element, the name of a block with as many iterators, it is what an instance of that one accesses."""

NONTEMPORAL = "nontemporal"
"""Annotation of a block: a list of buffers that it writes (counted as schedule steps count them), whose stores go past
the caches: they are not read again while they would stay there."""

PREFETCHED = "tir.prefetched"
"""Attribute of a load or store: a list with an integer a dimension, how far from its element the one lies that is asked
for."""

VIRTUAL_THREADS = "tir.virtual_threads"
"""Unit attribute of a loop in a kernel that is being lowered: it was bound to `vthread`."""

IN_STEP = "tir.threads_in_step"
"""Unit attribute of a function: its kernels are being lowered. The iterations of loops over threads run in step, and
wait for each other where barriers stand or will come to stand; their order in the loops says nothing any more."""

SOURCE = "tir.source"
"""String attribute of the outermost loop of a kernel that is being lowered: the labels of the blocks in it."""

STORAGE_ALIGN = "tir.storage_align"
"""Attribute of an allocation: a list of `[axis, factor, offset]`. When the buffer is placed, the stride of such an
axis, in elements, is a multiple of factor plus offset."""

VIRTUAL = "vthread"
"""The axis that may be bound more than once: each such loop has virtual threads of its own."""
VIRTUAL_AXES = (*(f"{VIRTUAL}.{dimension}" for dimension in "xyz"), VIRTUAL)
