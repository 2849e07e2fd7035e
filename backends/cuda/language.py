"""CUDA C++. Programs include no headers: NVRTC compiles them alone.

16-bit floats are their bits, converted by PTX instructions. Without `__CUDA_ARCH__` (for a CPU, in tests) helpers are
portable.

    func.func @scale_kernel(%A: memref<?xf32>, %n: index)
        attributes {low.kernel = #low.kernel<[256, 1, 1], source = "B">}
->
    // Block "B" of the program: 4 x 1 x 1 blocks of 256 x 1 x 1 threads.
    extern "C" __global__ void __launch_bounds__(256) scale_kernel(float *__restrict__ A, long long n) {

Buffers are 16-byte aligned and do not overlap; an index is a `long long`. Shared memory beyond the limit of
declarations (48 KiB) is one dynamic array: `KernelText.shared_bytes`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from string import Template
from typing import Final

from weft.backends.c.language import MATH_H
from weft.backends.c_family.helpers import helper_text, unary_helpers
from weft.backends.c_family.language import Language
from weft.backends.cuda.tensor_cores import tensor_core_helpers
from weft.backends.names import KEYWORDS, reserved

TYPES: Final = {
    **{"i1": "bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long"},
    **{"f16": "weft_f16", "bf16": "weft_bf16", "f32": "float", "f64": "double", "ptr": "void *"},
    **{"idx32": "int", "idx64": "long long"},
}
UNSIGNED: Final = {
    **{"i8": "unsigned char", "i16": "unsigned short", "i32": "unsigned int", "i64": "unsigned long long"},
    **{"idx32": "unsigned int", "idx64": "unsigned long long"},
}
_WORDS: Final = """
    threadIdx blockIdx blockDim gridDim warpSize signbit atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc
    atomicDec atomicAnd atomicOr atomicXor atomicCAS assert
"""
_INLINE: Final = "static __device__ __forceinline__"
_WIDE: Final = {
    **{("f32", 2): "float2", ("f32", 4): "float4", ("f64", 2): "double2", ("i32", 2): "int2", ("i32", 4): "int4"},
    **{("i64", 2): "longlong2", ("idx64", 2): "longlong2", ("index", 2): "longlong2"},
    **{("i16", 2): "short2", ("i16", 4): "short4", ("i16", 8): "int4"},
    **{("i8", 2): "char2", ("i8", 4): "char4", ("i8", 8): "int2", ("i8", 16): "int4"},
    **{(kind, lanes): f"ushort{lanes}" for kind in ("f16", "bf16") for lanes in (2, 4)},
    **{(kind, 8): "uint4" for kind in ("f16", "bf16")},
}


_PLAIN: Final = Language(name="CUDA C++", kind="cuda", types=TYPES, unsigned=UNSIGNED, functions=MATH_H, inline=_INLINE)


_ON_DEVICE: Final = "defined(__CUDA_ARCH__)"
_ON_SM_80: Final = "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800"


def _on_device(name: str, body: str, condition: str) -> str:
    """PTX on a device, portable C elsewhere."""
    common = helper_text(_PLAIN, name)
    lines = common.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(_INLINE))
    head, rest = lines[: start + 1], lines[start + 1 : -1]
    return "\n".join([*head, f"#if {condition}", *body.splitlines(), "#else", *rest, "#endif", "}"])


def _extreme(kind: str, instruction: str) -> str:
    body = (
        "  float result;\n"
        f'  asm("{instruction}.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));\n'
        "  return result;"
    )
    return _on_device(f"weft_{kind}_f32", body, _ON_SM_80)


def _convert(name: str, instruction: str, result: str, kinds: tuple[str, str], condition: str) -> str:
    body = (
        f'  {result} result;\n  asm("{instruction} %0, %1;" : "={kinds[0]}"(result) : "{kinds[1]}"(x));\n'
        "  return result;"
    )
    return _on_device(name, body, condition)


_CONVERSIONS: Final = {
    "weft_f16_to_f32": ("cvt.f32.f16", "float", ("f", "h"), _ON_DEVICE),
    "weft_f32_to_f16": ("cvt.rn.f16.f32", "weft_f16", ("h", "f"), _ON_DEVICE),
    "weft_f32_to_bf16": ("cvt.rn.bf16.f32", "weft_bf16", ("h", "f"), _ON_SM_80),
}
"""Helper -> instruction, result type, register classes of result and operand, and preprocessor condition."""


def _async_copy(size: int) -> str:
    cache = "cg" if size == 16 else "ca"
    type_ = {4: "int", 8: "int2", 16: "int4"}[size]
    return f"""\
// Starts to copy {size} bytes to shared memory; before sm_80 it copies them.
{_INLINE} void weft_async_copy_{size}(void *target, const void *source) {{
#if {_ON_SM_80}
  const unsigned int place = (unsigned int)__cvta_generic_to_shared(target);
  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size};" : : "r"(place), "l"(source) : "memory");
#else
  *({type_} *)target = *(const {type_} *)source;
#endif
}}"""


_COMMIT: Final = f"""\
{_INLINE} void weft_async_commit() {{
#if {_ON_SM_80}
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}}"""
_WAIT: Final = f"""\
// Waits until at most so many groups of copies are on their way.
template <int groups>
{_INLINE} void weft_async_wait() {{
#if {_ON_SM_80}
  asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory");
#endif
}}"""
_EXCHANGE: Final = Template("""\
// $what of what stands at `place` and `value`; gives what stood there.
$inline $type weft_atomic_${kind}_$element($type *place, $type value) {
  $bits seen = *(volatile $bits *)place;
  for (;;) {
    const $type old = $from(seen);
    const $bits best = ($bits)$to(weft_${kind}imum_$element(old, value));
    if (best == seen) return old;
    const $bits before = atomicCAS(($bits *)place, seen, best);
    if (before == seen) return old;
    seen = before;
  }
}""")


_BIT_TYPES: Final = {
    "f32": {"type": "float", "bits": "int", "from": "__int_as_float", "to": "__float_as_int"},
    "f64": {
        **{"type": "double", "bits": "unsigned long long"},
        **{"from": "__longlong_as_double", "to": "__double_as_longlong"},
    },
}
"""Float type -> the integer type of its bits, and conversions."""


def _atomic_extreme(kind: str, element: str) -> str:
    what = "The lesser" if kind == "min" else "The greater"
    return _EXCHANGE.substitute(_BIT_TYPES[element], what=what, inline=_INLINE, kind=kind, element=element)


_OPERATORS: Final = {"add": "+", "sub": "-", "mul": "*"}


def _rounded(op: str, element: str) -> str:
    type_, letter = ("float", "f") if element == "f32" else ("double", "d")
    return f"""\
// A {op} that is part of no fused multiply-add.
{_INLINE} {type_} weft_rounded_{op}_{element}({type_} a, {type_} b) {{
#if {_ON_DEVICE}
  return __{letter}{op}_rn(a, b);
#else
  return a {_OPERATORS[op]} b;
#endif
}}"""


def _atomic_64(kind: str, function: str) -> str:
    return f"""\
{_INLINE} long long weft_atomic_{kind}_i64(long long *place, long long value) {{
  return (long long){function}((unsigned long long *)place, (unsigned long long)value);
}}"""


_UNSIGNED_ATOMICS: Final = {"add": "atomicAdd", "and": "atomicAnd", "or": "atomicOr"}
"""CUDA has 64-bit functions only for unsigned integers."""


_RESERVED: Final = (
    KEYWORDS
    | frozenset(name for pair in MATH_H.values() for name in (*pair, "rsqrtf"))
    | frozenset(_WORDS.split())
    | {word for type_ in _WIDE.values() for word in (type_, f"make_{type_}")}
)

_DYNAMIC_SHARED: Final = "extern __shared__ __align__(32) unsigned char weft_shared[];"
_INFINITY: Final = """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif"""


def _head(name: str, threads: tuple[int, int, int], parameters: list[str]) -> str:
    opening = f'extern "C" __global__ void __launch_bounds__({prod(threads)}) {name}('
    line = f"{opening}{', '.join(parameters)})"
    return line if len(line) <= 118 else f"{opening}\n    {', '.join(parameters)})"


CUDA: Final = replace(
    _PLAIN,
    fast_functions={
        **{"exp": "__expf", "log": "__logf", "log2": "__log2f", "log10": "__log10f", "sin": "__sinf", "cos": "__cosf"},
        **{"tan": "__tanf", "powf": "__powf", "rsqrt": "rsqrtf"},
    },
    helpers={
        **unary_helpers(
            {
                "weft_f32_as_i32": "__float_as_int(x)",
                "weft_i32_as_f32": "__int_as_float(x)",
                "weft_f64_as_i64": "__double_as_longlong(x)",
                "weft_i64_as_f64": "__longlong_as_double(x)",
                "weft_popcount_i32": "__popc(x)",
                "weft_popcount_i64": "__popcll(x)",
                "weft_clz_i32": "__clz(x)",
                "weft_clz_i64": "__clzll(x)",
            }
        ),
        "weft_maximum_f32": _extreme("maximum", "max"),
        "weft_minimum_f32": _extreme("minimum", "min"),
        **{name: _convert(name, *how) for name, how in _CONVERSIONS.items()},
        **{f"weft_async_copy_{size}": _async_copy(size) for size in (4, 8, 16)},
        **tensor_core_helpers(),
        "weft_async_commit": _COMMIT,
        "weft_async_wait": _WAIT,
        **{f"weft_atomic_{kind}_i64": _atomic_64(kind, function) for kind, function in _UNSIGNED_ATOMICS.items()},
        **{f"weft_rounded_{op}_{t}": _rounded(op, t) for op in _OPERATORS for t in ("f32", "f64")},
        **{f"weft_atomic_{kind}_{t}": _atomic_extreme(kind, t) for kind in ("min", "max") for t in _BIT_TYPES},
    },
    reserved=_RESERVED,
    reserved_symbols=_RESERVED | reserved("cuda symbols") | reserved("c macros") | reserved("c symbols"),
    restrict="__restrict__",
    spaces={"shared": "__shared__ "},
    constant="static __device__ const",
    aligned="__align__({0}) ",
    pointer_types={"i1": "unsigned char"},
    wide_types=_WIDE,
    axes={f"{axis}Idx.{d}": f"{axis}Idx.{d}" for axis in ("thread", "block") for d in "xyz"},
    barrier="__syncthreads()",
    atomics={
        **{("add", t): "atomicAdd" for t in ("i32", "f32", "f64")},
        **{("and", "i32"): "atomicAnd", ("or", "i32"): "atomicOr"},
        **{("min", t): "atomicMin" for t in ("i32", "i64")},
        **{("max", t): "atomicMax" for t in ("i32", "i64")},
    },
    head=_head,
    preamble=(("INFINITY|NAN", _INFINITY),),
    dynamic_shared=_DYNAMIC_SHARED,
)
