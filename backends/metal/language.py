"""The Metal Shading Language 3. It has no f64.

    func.func @scale_kernel(%A: memref<?xf32>, %n: index)
        attributes {low.kernel = #low.kernel<[256, 1, 1], source = "B">}
->
    // Block "B" of the program: 4 x 1 x 1 blocks of 256 x 1 x 1 threads.
    [[max_total_threads_per_threadgroup(256)]]
    kernel void scale_kernel(
        device float *A [[buffer(0)]],
        constant long &n [[buffer(1)]],
        uint3 blockIdx [[threadgroup_position_in_grid]], ...) {

A thread block is a threadgroup, a warp is a SIMD group.
"""

from __future__ import annotations

from math import prod
from typing import Final

from weft.backends.c.language import MATH_H
from weft.backends.c_family.helpers import unary_helpers
from weft.backends.c_family.language import GNU_MAY_ALIAS, SIZED_TYPES, SIZED_UNSIGNED, Language
from weft.backends.names import KEYWORDS, reserved

_MISSING: Final = ("erf", "expm1", "log1p")
"""`low-expand-math` removes them from kernels."""
_WORDS: Final = """
    kernel device threadgroup thread constant vertex fragment texture sampler metal precise fast access as_type ctz
    threadIdx blockIdx lane_in_warp simd_shuffle threadgroup_barrier mem_flags atomic_int atomic_float
    atomic_load_explicit atomic_compare_exchange_weak_explicit memory_order_relaxed texture1d texture2d texture3d
    depth2d array vec matrix packed_float2 packed_float3 packed_float4 ray_data object_data payload mesh
    patch_control_point
"""
_PLAIN: Final = ("fabs", "ceil", "copysign", "floor", "fma", "rint", "round", "trunc", "fmax", "fmin")
"""Functions without separate fast and precise forms."""


def _function(op: str, name: str) -> tuple[str, str]:
    if op in _MISSING:
        return "", ""
    if op == "cbrt":
        return "weft_cbrt_f32", ""
    return (name if name in _PLAIN else f"precise::{name}"), ""


_SOURCES: Final = {
    "down": "group_lane + offset < width ? lane + offset : lane",
    "up": "group_lane - offset >= 0 ? lane - offset : lane",
    "xor": "lane - group_lane + (group_lane ^ offset)",
    "idx": "lane - group_lane + (offset & (width - 1))",
}


_CBRT: Final = """\
// By a power, and one step of Newton's method.
$inline float weft_cbrt_f32(float x) {
  const float size = fabs(x), root = precise::pow(size, 1.0f / 3.0f);
  if (!(size > 0.0f) || isinf(size)) return x;
  return copysign(root - (root * root * root - size) / (3.0f * root * root), x);
}"""


def _shuffle(mode: str, element: str) -> str:
    is_wide = element in ("i64", "idx64")  # shuffle both halves: shuffles support at most 32 bits
    value, taken = ("as_type<int2>(value)", "as_type<long>({0})") if is_wide else ("value", "{0}")
    shuffled = taken.format(f"simd_shuffle({value}, ushort({_SOURCES[mode]}))")
    return f"""\
// The value of another thread of the SIMD group.
$inline ${element} weft_shuffle_{mode}_{element}(int lane, ${element} value, int offset, int width) {{
  const int group_lane = lane & (width - 1);
  return {shuffled};
}}"""


def _atomic(kind: str, element: str, space: str) -> str:
    place = "threadgroup" if space == "shared" else "device"
    type_ = {"i32": "int", "f32": "float"}[element]
    if element == "i32" or kind == "add":
        function = f"atomic_fetch_{kind}_explicit"
        body = f"  return {function}(({place} atomic_{type_} *)place, value, memory_order_relaxed);"
    else:
        body = (
            f"  {place} atomic_int *bits = ({place} atomic_int *)place;\n"
            "  int seen = atomic_load_explicit(bits, memory_order_relaxed);\n"
            "  for (;;) {\n"
            "    const float old = as_type<float>(seen);\n"
            f"    const int best = as_type<int>(weft_{kind}imum_f32(old, value));\n"
            "    if (best == seen) return old;\n"
            "    if (atomic_compare_exchange_weak_explicit(\n"
            "            bits, &seen, best, memory_order_relaxed, memory_order_relaxed)) return old;\n"
            "  }"
        )
    return (
        "// Combines a value into memory at once; gives what stood there.\n"
        f"$inline {type_} weft_atomic_{kind}_{element}_{space}({place} {type_} *place, {type_} value) {{\n{body}\n}}"
    )


_RESERVED: Final = (
    KEYWORDS
    | frozenset(_WORDS.split())
    | {f"atomic_fetch_{kind}_explicit" for kind in ("add", "and", "max", "min", "or", "sub", "xor")}
    # Many names are those of OpenCL.
    | reserved("opencl macros")
    | reserved("opencl symbols")
)
_COMBINED: Final = [
    *((kind, element) for kind in ("add", "min", "max") for element in ("i32", "f32")),
    *((kind, "i32") for kind in ("and", "or")),
]

_PLACES: Final = (
    "uint3 blockIdx [[threadgroup_position_in_grid]]",
    "uint3 threadIdx [[thread_position_in_threadgroup]]",
    "uint lane_in_warp [[thread_index_in_simdgroup]]",
)
# The default mode reassociates sums and assumes the absence of NaNs.
_PREAMBLE: Final = "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp math_mode(safe)"


def _head(name: str, threads: tuple[int, int, int], parameters: list[str]) -> str:
    numbered = [f"{text} [[buffer({number})]]" for number, text in enumerate(parameters)]
    listed = ",\n    ".join((*numbered, *_PLACES))
    return f"[[max_total_threads_per_threadgroup({prod(threads)})]]\nkernel void {name}(\n    {listed})"


METAL: Final = Language(
    name="Metal",
    kind="metal",
    types=SIZED_TYPES,
    unsigned=SIZED_UNSIGNED,
    functions={op: _function(op, name) for op, (_, name) in MATH_H.items()},
    fast_functions={
        **{name: f"fast::{name}" for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "sqrt")},
        "rsqrt": "fast::rsqrt",
    },
    helpers={
        **{f"weft_shuffle_{mode}_{t}": _shuffle(mode, t) for mode in _SOURCES for t in ("i32", "i64", "idx64", "f32")},
        "weft_cbrt_f32": _CBRT,
        **{
            f"weft_atomic_{k}_{t}_{space}": _atomic(k, t, space) for k, t in _COMBINED for space in ("global", "shared")
        },
        **unary_helpers(
            {
                "weft_f32_as_i32": "as_type<int>(x)",
                "weft_i32_as_f32": "as_type<float>(x)",
                "weft_f16_to_f32": "float(as_type<half>(x))",
                "weft_f32_to_f16": "as_type<ushort>(half(x))",
            }
        ),
    },
    reserved=_RESERVED,
    reserved_symbols=_RESERVED | reserved("c symbols"),
    restrict="",
    spaces={"global": "device ", "shared": "threadgroup "},
    pointer_spaces={"global": "device ", "shared": "threadgroup ", "local": "thread "},
    constant="constant",
    aligned="__attribute__((aligned({0}))) ",
    by_value="constant {type} &{name}",
    pointer_types={"i1": "uchar"},
    wide_types={
        **{("f32", 2): "float2", ("f32", 4): "float4", ("i32", 2): "int2", ("i32", 4): "int4"},
        **{("i64", 2): "long2", ("i16", 2): "short2", ("i16", 4): "short4", ("i8", 2): "char2", ("i8", 4): "char4"},
        **{(kind, lanes): f"ushort{lanes}" for kind in ("f16", "bf16") for lanes in (2, 4)},
    },
    axes={f"{axis}Idx.{d}": f"{axis}Idx.{d}" for axis in ("thread", "block") for d in "xyz"},
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)",
    head=_head,
    preamble=(("", _PREAMBLE),),
    no_contraction="#pragma METAL fp contract(off)",
    shared_type=f"typedef {{type}} {GNU_MAY_ALIAS} {{name}};",
)
