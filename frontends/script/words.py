"""The names that scripts write after `T.`, shared by the parser and the printer.

Functions of values (`T.max`, `T.exp`) are those of `weft.te`; the others are constructs. `sblock` of newer versions of
TVM is a block.
"""

from __future__ import annotations

import builtins as _builtins
import re
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import cast as _known

from weft.dialects.tir import AccessRegionOp as _AccessRegionOp
from weft.dialects.tir import ReadsOp as _ReadsOp
from weft.dialects.tir import WritesOp as _WritesOp
from weft.dialects.tir_kinds import LoopKind as _LoopKind
from weft.frontends.script import constructs as _constructs
from weft.frontends.script.constructs import (
    DTYPES,
    Annotation,
    Construct,
    DType,
    IntrinsicWord,
    Namespace,
)
from weft.texpr import math as _math
from weft.texpr.expr import BinaryKind, Expr, ExprLike, as_expr, cast_to, checked_dtype, is_float
from weft.texpr.expr import Const as _Const
from weft.texpr.expr import Predicate as _Predicate
from weft.texpr.expr import binary as _binary
from weft.texpr.expr import compare as _compare
from weft.texpr.expr import error as _error
from weft.texpr.math import *  # pyright: ignore[reportAssignmentType] (T.cast has another one)
from weft.texpr.math import binary_function as _binary_function
from weft.texpr.math import reinterpret as _reinterpreted

Buffer = Annotation("Buffer", 'A: T.Buffer((128, 128), "float32")')
let = Annotation("let", "x: T.let[T.float32] = A[0] + A[1]")
handle = Annotation("handle", "a: T.handle")
type = Annotation("type", 'A: T.type("memref<4x4xf32, strided<[8, 1]>>")')
bool, int8, int16, int32, int64 = (DTYPES[name] for name in ("bool", "int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (DTYPES[name] for name in ("uint8", "uint16", "uint32", "uint64"))
int2, uint2, int4, uint4 = (DTYPES[name] for name in ("int2", "uint2", "int4", "uint4"))
float4_e2m1fn = DTYPES["float4_e2m1fn"]
float8_e4m3fn, float8_e5m2 = DTYPES["float8_e4m3fn"], DTYPES["float8_e5m2"]
float6_e2m3fn, float6_e3m2fn = DTYPES["float6_e2m3fn"], DTYPES["float6_e3m2fn"]
float8_e3m4, float8_e4m3 = DTYPES["float8_e3m4"], DTYPES["float8_e4m3"]
float8_e4m3b11fnuz, float8_e8m0fnu = DTYPES["float8_e4m3b11fnuz"], DTYPES["float8_e8m0fnu"]
float8_e4m3fnuz, float8_e5m2fnuz = DTYPES["float8_e4m3fnuz"], DTYPES["float8_e5m2fnuz"]
boolean = bool
i8, i16, i32, i64, u8, u16, u32, u64 = int8, int16, int32, int64, uint8, uint16, uint32, uint64
float16, bfloat16, float32, float64 = (DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64"))
f16, bf16, f32, f64 = float16, bfloat16, float32, float64


func_attr = Construct("func_attr", 'T.func_attr({"global_symbol": "main"})')
match_buffer = Construct("match_buffer", 'A = T.match_buffer(a, (m, n), "float32")')
alloc_buffer = Construct("alloc_buffer", 'Y = T.alloc_buffer((128, 128), "float32", scope="global")')
sblock_alloc_buffer = alloc_buffer
allocate = Construct("allocate", 'C_data = T.allocate([16], "float32", "global")')
alloc_shared = Construct("alloc_shared", 'Y = T.alloc_shared((128,), "float32")')
alloc_local = Construct("alloc_local", 'Y = T.alloc_local((8,), "float32")')
alloc_scalar = Construct("alloc_scalar", 's = T.alloc_scalar("float32")')
local_scalar = Construct("local_scalar", 's = T.local_scalar("float32")')
shared_scalar = Construct("shared_scalar", 's = T.shared_scalar("float32")')
decl_buffer = Construct("decl_buffer", "A_2 = T.decl_buffer((A.strides[0] * m,), data=A.data)")


grid = Construct("grid", "for i, j in T.grid(128, 128):")
serial = Construct("serial", "for i in T.serial(128):")
parallel = Construct("parallel", "for i in T.parallel(128):")
vectorized = Construct("vectorized", "for i in T.vectorized(8):")
unroll = Construct("unroll", "for i in T.unroll(4):")
thread_binding = Construct("thread_binding", 'for i in T.thread_binding(64, thread="threadIdx.x"):')
launch_thread = Construct("launch_thread", 'i = T.launch_thread("threadIdx.x", 64)')
env_thread = Construct("env_thread", 'tx = T.env_thread("threadIdx.x")')
device_entry = Construct("device_entry", "T.device_entry()")
LOOPS = {
    _LoopKind.SERIAL: serial,
    _LoopKind.PARALLEL: parallel,
    _LoopKind.VECTORIZED: vectorized,
    _LoopKind.UNROLLED: unroll,
    _LoopKind.THREAD_BINDING: thread_binding,
}


block = Construct("block", 'with T.block("Y"):')
sblock = block
init = Construct("init", "with T.init():")
reads = Construct("reads", "T.reads(A[vi, 0:4])")
writes = Construct("writes", "T.writes(C[vi, vj])")
REGIONS: Mapping[_builtins.type[_AccessRegionOp], Construct] = {_ReadsOp: reads, _WritesOp: writes}
where = Construct("where", "T.where(i * 4 + j < 126)")
block_attr = Construct("block_attr", 'T.block_attr({"key": 1})')
sblock_attr = block_attr
axis = _constructs.AXIS


evaluate = Construct("evaluate", "T.evaluate(0)")
buffer_store = Construct("buffer_store", "T.buffer_store(B, x, [i])")
ret = Construct("ret", "T.ret(0)")
LetStmt = Construct("LetStmt", "with T.LetStmt(A[0]) as x:")
static_assert = Construct("static_assert", "T.static_assert(N % 4 == 0)")
assume = Construct("assume", "T.assume(n % 32 == 0)")
op = Construct("op", 'x = T.op("arith.divui", a, b, results=["i32"])')
call_extern = Construct("call_extern", 'T.call_extern("kernel", C.access_ptr("w"), A.access_ptr("r"), dtype="int32")')
call_pure_extern = Construct("call_pure_extern", 'y = T.call_pure_extern("erff", x, dtype="float32")')
access_ptr = Construct("access_ptr", 'T.access_ptr(A[vi, 0:4], "read")')
tvm_access_ptr = Construct("tvm_access_ptr", 'T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 16, 1)')
address_of = Construct("address_of", "T.address_of(A[vi, vj])")
attr = Construct("attr", 'T.attr("1 : i8")')


Ramp = Construct("Ramp", "B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)]")
Broadcast = Construct("Broadcast", "B[0:4] = T.Broadcast(T.float32(0), 4)")
ramp, broadcast = Ramp, Broadcast
Let = Construct("Let", "T.Let(x * x, where={x: A[0] + 1.0})")
Expression = Expr
fabs = abs
fmod = truncmod
Select = _math.select
truncate = trunc
And = _math.logical_and
Or = _math.logical_or
Not = _math.logical_not
eq = _math.equal
max = _binary_function(BinaryKind.MAX, "The greater of two numbers; NaN wins.")
min = _binary_function(BinaryKind.MIN, "The less of two numbers; NaN wins.")
bitwise_and = _binary_function(BinaryKind.AND, "`x & y`.")
bitwise_or = _binary_function(BinaryKind.OR, "`x | y`.")
bitwise_xor = _binary_function(BinaryKind.XOR, "`x ^ y`.")
Add = _binary_function(BinaryKind.ADD, "`x + y`.")
Sub = _binary_function(BinaryKind.SUB, "`x - y`.")
Mul = _binary_function(BinaryKind.MUL, "`x * y`.")


def shift_left(x: ExprLike, y: ExprLike, dtype: object = None) -> Expr:
    """`x << y`. `dtype` is that of `x`."""
    return _shifted(BinaryKind.SHL, x, y, dtype)


def shift_right(x: ExprLike, y: ExprLike, dtype: object = None) -> Expr:
    """`x >> y`, with the sign. `dtype` is that of `x`."""
    return _shifted(BinaryKind.SHR, x, y, dtype)


def _shifted(kind: BinaryKind, x: ExprLike, y: ExprLike, dtype: object) -> Expr:
    shifted = _binary(kind, x, y)
    if dtype is not None and checked_dtype(dtype) != shifted.dtype:
        raise _error(f"a shift of {shifted.dtype} is {shifted.dtype}, got dtype={dtype!r}: cast what is shifted")
    return shifted


def bitwise_not(x: ExprLike) -> Expr:
    return ~as_expr(x)


def _compared(predicate: _Predicate) -> Callable[[ExprLike, ExprLike], Expr]:
    return lambda x, y: _compare(predicate, x, y)


def nextafter(x: ExprLike, y: ExprLike) -> Expr:
    """The next representable float after `x` towards `y`."""
    return _math.next_after(x, y)


def hypot(x: ExprLike, y: ExprLike) -> Expr:
    """`sqrt(x * x + y * y)`."""
    left, right = as_expr(x), as_expr(y)
    return sqrt(left * left + right * right)


def fma(x: ExprLike, y: ExprLike, z: ExprLike) -> Expr:
    """`x * y + z`. The product of narrow floats is exact, that of doubles is rounded."""
    left, right, added = as_expr(x), as_expr(y), as_expr(z)
    if left.dtype == "float64" or not is_float(left.dtype):
        return left * right + added
    wide = cast_to(left, "float64") * cast_to(right, "float64") + cast_to(added, "float64")
    return cast_to(wide, left.dtype)


def exp10(x: ExprLike) -> Expr:
    """10 to the power of a float."""
    expr = as_expr(x)
    return pow(cast_to(10.0, expr.dtype), expr)


def ldexp(x: ExprLike, exponent: ExprLike) -> Expr:
    """`x * 2 ** exponent`."""
    expr = as_expr(x)
    return expr * exp2(cast_to(exponent, expr.dtype))


def q_multiply_shift(x: ExprLike, y: ExprLike, q: int, s: int) -> Expr:
    """The product of int32 `x` and the fixed-point number `y * 2 ** -q`, times `2 ** s`, rounded half up. `q` and `s`
    are numbers in the text or constant expressions."""
    return _fixed_point(x, y, _number(q), _number(s))


def q_multiply_shift_per_axis(
    x: ExprLike, y: ExprLike, ls: ExprLike, rs: ExprLike, q: int, is_lshift_required: object, is_rshift_required: object
) -> Expr:
    """`q_multiply_shift` per axis, with optional shifts left by `ls` before and right by `rs` after the product."""
    before = cast_to(x, "int64") << (cast_to(ls, "int64") if _number(is_lshift_required) else as_expr(0))
    shift = as_expr(_number(q)) + (cast_to(rs, "int64") if _number(is_rshift_required) else 0)
    product = before * cast_to(y, "int64")
    return cast_to((product + (cast_to(1, "int64") << cast_to(shift - 1, "int64"))) >> cast_to(shift, "int64"), "int32")


def _fixed_point(x: ExprLike, y: ExprLike, q: int, s: int) -> Expr:
    """`q_multiply_shift` as TVM expands it in 64 bits."""
    wide = cast_to(x, "int64")
    product = (wide << s if s > 0 else wide) * cast_to(y, "int64")
    shift = q - s if s < 0 else q
    return cast_to((product + (1 << (shift - 1))) >> shift, "int32")


def _number(value: object) -> int:
    number = value.value if isinstance(value, _Const) else value
    if not isinstance(number, int):
        raise _error(f"a fixed-point format is given by numbers, got {value!r}")
    return number


def target(target: object, host: object = None) -> str:
    """A target as text: `T.target("llvm -mcpu=native")`, `T.target({"kind": "cuda", "arch": "sm_80"})`. `host` has no
    effect."""
    if isinstance(target, Mapping):
        options = {str(key): value for key, value in _known("Mapping[object, object]", target).items()}
        named = options.pop("kind", None)
        parts = [f"-{key}={value}" for key, value in options.items() if isinstance(value, str | int)]
        return " ".join([str(named), *parts])
    if not isinstance(target, str):
        raise _error(f"a target is text or a dict of its kind and options, got {target!r}")
    return target


def meta_var(value: object) -> object:
    """Return `value`, which is known at parse time."""
    return value


def bind(value: ExprLike) -> Expr:
    return as_expr(value)


def Cast(dtype: object, value: ExprLike) -> Expr:
    return cast_to(value, checked_dtype(dtype))


def cast(value: ExprLike, dtype: object) -> Expr:
    """`Cast` with swapped arguments."""
    return cast_to(value, checked_dtype(dtype))


def reinterpret(dtype: object, value: ExprLike) -> Expr:
    """The bits of `value` as `dtype`, of the same width."""
    return _reinterpreted(value, dtype)


def ceildiv(x: ExprLike, y: ExprLike) -> Expr:
    """Quotient of integers, rounded up."""
    return (as_expr(x) + as_expr(y) - 1) // y


def likely(condition: ExprLike) -> Expr:
    """`condition`. The hint has no effect."""
    return as_expr(condition)


def type_annotation(dtype: object) -> DType:
    """The element type of a pointer."""
    return DTYPES[checked_dtype(dtype)]


def Div(x: ExprLike, y: ExprLike) -> Expr:
    """Quotient; integers are rounded towards zero."""
    left, right = as_expr(x), as_expr(y)
    return left / right if is_float(left.dtype) else truncdiv(left, right)


LT, LE, GT, GE, NE = (_compared(p) for p in (_Predicate.LT, _Predicate.LE, _Predicate.GT, _Predicate.GE, _Predicate.NE))
_COMPARED = {"LT": LT, "LE": LE, "GT": GT, "GE": GE, "NE": NE}
_PRINTED = _COMPARED | {
    "indexdiv": floordiv,
    "indexmod": floormod,
    "FloorDiv": floordiv,
    "FloorMod": floormod,
    "Mod": truncmod,
    "Max": max,
    "Min": min,
    "EQ": eq,
}
"""Functions that TVM prints for operators that Python lacks or would evaluate."""
_OF_TE = ("call_intrin", "const", "equal", "logical_and", "logical_not", "logical_or", "not_equal", "select")
"""Functions with another spelling in scripts."""
FUNCTIONS: Mapping[str, Callable[..., object]] = _PRINTED | {
    name: value
    for name, value in globals().items()
    if isinstance(value, FunctionType)
    and value.__module__ in (__name__, _math.__name__)
    and name not in _OF_TE
    and not name.startswith("_")
}
"""Functions of values by their name in scripts."""

WORDS: dict[str, object] = {
    name: value for name, value in globals().items() if isinstance(value, Construct | Namespace | DType)
}

_INTRINSICS = re.compile(
    r"(tvm|ptx|mma|simdgroup|cooperative_tensor)_\w+|call_(c?packed|intrin|llvm_intrin|llvm_pure_intrin)"
    r"|cuda|metal|webgpu|nvshmem|ptx|ptx_legacy"
)


def intrinsic(name: str) -> IntrinsicWord | None:
    """A function of TVM called for its effects, such as `call_packed`; kept as text."""
    if _INTRINSICS.fullmatch(name) is None:
        return None
    return IntrinsicWord(name, f'T.{name}("name", A.data, 4)')


def is_namespace(module: ModuleType) -> _builtins.bool:
    """Whether a module is `T`, or TVM's spelling of it."""
    return getattr(module, "WORDS", None) is WORDS
