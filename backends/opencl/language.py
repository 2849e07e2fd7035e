"""OpenCL C 1.2, without extensions: 16-bit floats are their bits.

    func.func @scale_kernel(%A: memref<?xf32>, %n: index)
        attributes {low.kernel = #low.kernel<[256, 1, 1], source = "B">}
->
    // Block "B" of the program: 4 x 1 x 1 blocks of 256 x 1 x 1 threads.
    __kernel __attribute__((reqd_work_group_size(256, 1, 1)))
    void scale_kernel(__global float *restrict A, long n) {

A thread block is a work group. Buffers are 16-byte aligned and do not overlap; an index is a `long`, a boolean
parameter is a byte.
"""

from __future__ import annotations

from typing import Final

from weft.backends.c.language import MATH_H
from weft.backends.c_family.helpers import unary_helpers
from weft.backends.c_family.language import GNU_MAY_ALIAS, SIZED_TYPES, SIZED_UNSIGNED, Language
from weft.backends.names import KEYWORDS, reserved

_WORDS: Final = """
    kernel global local private constant generic pipe uniform read_only write_only read_write image1d_t image1d_array_t
    image1d_buffer_t image2d_t image2d_array_t image3d_t sampler_t event_t queue_t ndrange_t clk_event_t reserve_id_t
"""
_RESERVED: Final = KEYWORDS | frozenset(_WORDS.split()) | reserved("opencl macros") | reserved("opencl symbols")
_WIDE: Final = {
    **{("f32", 2): "float2", ("f32", 4): "float4", ("f64", 2): "double2", ("i32", 2): "int2", ("i32", 4): "int4"},
    **{("i64", 2): "long2", ("idx64", 2): "long2", ("index", 2): "long2"},
    **{("i16", lanes): f"short{lanes}" for lanes in (2, 4, 8)},
    **{("i8", lanes): f"char{lanes}" for lanes in (2, 4, 8, 16)},
    **{(kind, lanes): f"ushort{lanes}" for kind in ("f16", "bf16") for lanes in (2, 4, 8)},
}
_SHUFFLED: Final = {
    "down": "lane + offset < width ? id + offset : id",
    "up": "lane - offset >= 0 ? id - offset : id",
    "xor": "id - lane + (lane ^ offset)",
    "idx": "id - lane + (offset & (width - 1))",
}
"""Mode -> source thread."""


def _shuffle(mode: str, element: str) -> str:
    return f"""\
// The value of another thread of the warp; all threads of the block come by.
$inline ${element} weft_shuffle_{mode}_{element}(
    __local ${element} *exchange, ${element} value, int offset, int width) {{
  const int id = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
  const int count = get_local_size(0) * get_local_size(1) * get_local_size(2);
  const int lane = id & (width - 1);
  const int source = {_SHUFFLED[mode]};
  exchange[id] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  const ${element} other = exchange[source < count ? source : id];
  barrier(CLK_LOCAL_MEM_FENCE);
  return other;
}}"""


_COMBINED: Final = {
    "add": "old + value",
    "min": "weft_minimum_f32(old, value)",
    "max": "weft_maximum_f32(old, value)",
}


def _atomic(kind: str, space: str) -> str:
    place = f"__{'local' if space == 'shared' else 'global'}"
    return f"""\
// Combines a value into memory at once; gives what stood there.
$inline float weft_atomic_{kind}_f32_{space}(volatile {place} float *place, float value) {{
  volatile {place} int *bits = (volatile {place} int *)place;
  int seen = atomic_or(bits, 0);
  for (;;) {{
    const float old = as_float(seen);
    const int before = atomic_cmpxchg(bits, seen, as_int({_COMBINED[kind]}));
    if (before == seen) return old;
    seen = before;
  }}
}}"""


def _to_f16(source: str) -> str:
    return f"""\
$inline weft_f16 weft_{source}_to_f16(${source} x) {{
  weft_f16 result;
  vstore_half_rte(x, 0, (half *)&result);
  return result;
}}"""


def _head(name: str, threads: tuple[int, int, int], parameters: list[str]) -> str:
    size = ", ".join(map(str, threads))
    line = f"void {name}({', '.join(parameters)})"
    if len(line) > 118:
        line = f"void {name}(\n    {', '.join(parameters)})"
    return f"__kernel __attribute__((reqd_work_group_size({size})))\n{line}"


OPENCL: Final = Language(
    name="OpenCL C",
    kind="opencl",
    types={**SIZED_TYPES, "f64": "double"},
    unsigned=SIZED_UNSIGNED,
    # Overloaded under C's names for double.
    functions={op: (double, double) for op, (_, double) in MATH_H.items()},
    fast_functions={
        **{name: f"native_{name}" for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan")},
        **{"rsqrt": "native_rsqrt", "sqrt": "native_sqrt"},
    },
    helpers={
        **{
            f"weft_shuffle_{mode}_{t}": _shuffle(mode, t)
            for mode in _SHUFFLED
            for t in ("i32", "i64", "idx64", "f32", "f64")
        },
        **{
            f"weft_atomic_{kind}_f32_{space}": _atomic(kind, space)
            for kind in _COMBINED
            for space in ("global", "shared")
        },
        **unary_helpers(
            {
                "weft_f32_as_i32": "as_int(x)",
                "weft_i32_as_f32": "as_float(x)",
                "weft_f64_as_i64": "as_long(x)",
                "weft_i64_as_f64": "as_double(x)",
                "weft_f16_to_f32": "vload_half(0, (const half *)&x)",
                **{f"weft_{name}_i{bits}": f"{name}(x)" for name in ("popcount", "clz") for bits in (8, 16, 32, 64)},
            }
        ),
        "weft_f32_to_f16": _to_f16("f32"),
        "weft_f64_to_f16": _to_f16("f64"),
    },
    reserved=_RESERVED,
    longest_symbol=120,  # PoCL uses kernel names as file names
    reserved_symbols=_RESERVED | reserved("c macros") | reserved("c symbols"),
    spaces={"global": "__global ", "shared": "__local "},
    pointer_spaces={"global": "__global ", "shared": "__local "},
    constant="__constant",
    aligned="__attribute__((aligned({0}))) ",
    wide_types=_WIDE,
    pointer_types={"i1": "uchar"},
    axes={
        **{f"threadIdx.{axis}": f"get_local_id({number})" for number, axis in enumerate("xyz")},
        **{f"blockIdx.{axis}": f"get_group_id({number})" for number, axis in enumerate("xyz")},
    },
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    atomics={(kind, "i32"): f"atomic_{kind}" for kind in ("add", "min", "max", "and", "or")},
    head=_head,
    no_contraction="#pragma OPENCL FP_CONTRACT OFF",
    shared_type=f"typedef {{type}} {GNU_MAY_ALIAS} {{name}};",
    preamble=(("double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"),),
)
