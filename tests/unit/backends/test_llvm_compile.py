"""LLVM IR text to text, assembly, objects and code in this process."""

import ctypes
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.backends.llvm.compile import CodegenOptions, assembly, object_code, optimize_ir
from weft.backends.llvm.jit import jit
from weft.backends.llvm.link import LinkedText, link_parts
from weft.backends.llvm.object_file import object_symbols
from weft.backends.llvm.pass_selection import PassSelection, pass_selection_of
from weft.support.errors import CompileError, InternalError
from weft.support.machine import process_features
from weft.support.target import Target

HOST = Target.of_process(2)
X86 = Target.parse("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell")

ADD = """
define float @add(float %a, float %b) {
  %c = fadd float %a, %b
  ret float %c
}
"""

FMA = """
define float @fma(float %a, float %b, float %c) {
  %m = fmul FLAGS float %a, %b
  %s = fadd FLAGS float %m, %c
  ret float %s
}
"""


def call(text: str, name: str, *arguments: float, target: Target = HOST) -> float:
    module = jit(text, target, {})
    prototype = ctypes.CFUNCTYPE(ctypes.c_float, *[ctypes.c_float] * len(arguments))
    return prototype(module.address(name))(*arguments)


def test_jit_runs() -> None:
    assert call(ADD, "add", 1.5, 2.0) == 3.5


@pytest.mark.parametrize("level", range(4))
def test_every_level_runs(level: int) -> None:
    assert call(ADD, "add", 1.0, 2.0, target=Target(opt_level=level)) == 3.0


def test_contract_makes_a_fused_multiply_add() -> None:
    assert "vfmadd" in assembly(FMA.replace("FLAGS", "contract"), X86)
    assert "vfmadd" not in assembly(FMA.replace("FLAGS ", ""), X86)


LOOP = """
define void @twice(ptr noalias %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  %w = fadd float %v, %v
  store float %w, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
"""


AS_WRITTEN = CodegenOptions(loop_unrolling=False, slp_vectorization=False)
VECTORIZING = CodegenOptions(loop_vectorization=True)


def test_marked_loops_are_unrolled_even_without_the_option() -> None:
    assert "phi" not in optimize_ir(LOOP, X86, AS_WRITTEN)
    unmarked = LOOP.replace(", !llvm.loop !0", "")
    assert "phi" in optimize_ir(unmarked, X86, AS_WRITTEN)
    assert "phi" not in optimize_ir(unmarked, X86)


def test_vectorisers_are_options() -> None:
    unmarked = LOOP.replace(", !llvm.loop !0", "").replace("ult i64 %next, 16", "ult i64 %next, 16000")
    assert "x float>" not in optimize_ir(unmarked, X86, AS_WRITTEN)
    assert "x float>" not in optimize_ir(unmarked, X86)
    assert "x float>" in optimize_ir(unmarked, X86, VECTORIZING)


def test_loops_of_imported_functions_are_vectorised() -> None:
    """Except for modules with calls that LLVM's loop vectoriser makes wrong reductions of."""
    unmarked = LOOP.replace(", !llvm.loop !0", "").replace("ult i64 %next, 16", "ult i64 %next, 16000")
    imported = f"{unmarked}\n!weft.imported = !{{}}\n"
    assert "x float>" in optimize_ir(imported, X86)
    maximum = imported.replace("fadd float %v, %v", "call float @llvm.maxnum.f32(float %v, float %v)")
    assert "x float>" not in optimize_ir(f"declare float @llvm.maxnum.f32(float, float)\n{maximum}", X86)


LEFT = """
define void @sum(ptr noalias %x, ptr noalias %s, i64 %n) {
entry:
  %local = alloca [8 x float]
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  store float %v, ptr %local
  %copy = load float, ptr %local
  %t = load float, ptr %s
  %w = fadd reassoc float %t, %copy
  store float %w, ptr %s
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
!0 = !{!"WORD"}
!weft.pass_selection = !{!0}
"""


def test_what_is_left_to_llvm_chooses_passes() -> None:
    """Nothing: local buffers still go to registers. Invariants: the sum does, too. Loops: it becomes a vector."""
    words = ("nothing", "invariants", "loops")
    nothing, invariants, loops = (optimize_ir(LEFT.replace("WORD", word), X86, VECTORIZING) for word in words)
    assert "alloca" not in nothing + invariants + loops
    assert re.search(r"phi float", nothing) is None
    assert re.search(r"phi float", invariants) is not None
    assert "x float>" not in invariants
    assert re.search(r"phi <8 x float>", loops) is not None
    unsaid = LEFT[: LEFT.index("!0 = ")]
    assert re.search(r"phi <8 x float>", optimize_ir(unsaid, X86, VECTORIZING)) is not None


def test_code_that_is_linked_to_others_is_left_to_llvm() -> None:
    text = link_parts(LEFT.replace("WORD", "nothing"), [LinkedText("define void @other() { ret void }")], X86)
    assert pass_selection_of(text) is PassSelection.LOOPS
    assert pass_selection_of(LEFT.replace("WORD", "nothing")) is PassSelection.NOTHING


@pytest.mark.parametrize(
    ("target", "mnemonic"),
    [
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", "fmadd"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+f,+d", "fmadd.s"),
        ("llvm -mtriple=arm64-apple-darwin", "fmadd"),
    ],
)
def test_cross_compilation(target: str, mnemonic: str) -> None:
    text = FMA.replace("FLAGS", "contract")
    assert mnemonic in assembly(text, Target.parse(target))
    assert object_code(text, Target.parse(target))


@pytest.mark.skipif(sys.platform != "linux", reason="ELF")
def test_object_symbols() -> None:
    text = """
    declare void @g()
    define float @f(float %x) {
      call void @g()
      %r = frem float %x, 3.0
      ret float %r
    }"""
    symbols = object_symbols(object_code(text, Target.parse("llvm -mtriple=x86_64-unknown-linux-gnu")))
    assert symbols is not None
    assert symbols.defined == ("f",)
    assert set(symbols.undefined) - {"_GLOBAL_OFFSET_TABLE_"} == {"g", "fmodf"}
    assert object_symbols(b"nothing") is None


def test_parse_error_is_ours_and_shows_the_line() -> None:
    with pytest.raises(InternalError, match=r"(?s)line 3: .*3:   %c = fadd flot %a, %b") as error:
        jit(ADD.replace("fadd float", "fadd flot"), HOST, {})
    assert "bug in weft" in str(error.value)


def test_verifier_error_is_ours() -> None:
    text = (
        "define i32 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i32 1, 2\n br label %b\n"
        "b:\n ret i32 %x\n}"
    )
    with pytest.raises(InternalError, match="does not dominate all uses"):
        optimize_ir(text, HOST)


def test_unknown_symbol_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    text = "declare void @my_fun()\ndefine void @f() {\n call void @my_fun()\n ret void\n}"
    with pytest.raises(CompileError, match="'my_fun', did you mean 'my_func'"):
        jit(text, HOST, {"my_func": 1})
    assert capfd.readouterr().err == ""


def test_given_symbols_are_called() -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(lambda x: x + 40.0)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    text = """
    declare float @cb(float)
    define float @f(float %x) {
      %r = call float @cb(float %x)
      ret float %r
    }"""
    module = jit(text, HOST, {"cb": address})
    assert ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(module.address("f"))(2.0) == 42.0


def test_unknown_function_name() -> None:
    with pytest.raises(CompileError, match="no function 'ad', did you mean 'add'"):
        jit(ADD, HOST, {}).address("ad")


def test_jit_refuses_other_machines() -> None:
    with pytest.raises(CompileError, match="riscv64-linux-gnu cannot run in this process"):
        jit(ADD, Target.parse("llvm -mtriple=riscv64-linux-gnu"), {})
    rare = "xop" if "x86_64" in HOST.triple else "sme2"
    if not process_features().get(rare, True):
        with pytest.raises(CompileError, match=rf"cannot run in this process: this CPU, .*, lacks .*\b{rare}\b"):
            jit(ADD, Target(features=f"+{rare}"), {})


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("exp", np.exp), ("exp2", np.exp2), ("log", np.log), ("log2", np.log2), ("log10", np.log10),
        ("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("asin", np.arcsin), ("acos", np.arccos),
        ("atan", np.arctan), ("sinh", np.sinh), ("cosh", np.cosh), ("tanh", np.tanh), ("sqrt", np.sqrt),
        ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rint", np.rint),
        ("roundeven", np.rint), ("fabs", np.abs),
    ],
)  # fmt: skip
def test_math_intrinsics_resolve(name: str, reference: Callable[[float], Any]) -> None:
    text = f"""
    declare float @llvm.{name}.f32(float)
    declare <4 x float> @llvm.{name}.v4f32(<4 x float>)
    define float @f(float %x) {{
      %v0 = insertelement <4 x float> poison, float %x, i64 0
      %v1 = shufflevector <4 x float> %v0, <4 x float> poison, <4 x i32> zeroinitializer
      %v2 = call <4 x float> @llvm.{name}.v4f32(<4 x float> %v1)
      %a = extractelement <4 x float> %v2, i64 3
      %b = call float @llvm.{name}.f32(float %x)
      %same = fcmp oeq float %a, %b
      %r = select i1 %same, float %a, float 0x7FF8000000000000
      ret float %r
    }}"""
    assert call(text, "f", 0.7) == pytest.approx(float(reference(0.7)), rel=1e-6)


@pytest.mark.parametrize("name", ["erff", "cbrtf", "expm1f", "log1pf", "lgammaf", "tgammaf", "roundf"])
def test_libm_calls_resolve(name: str) -> None:
    text = f"""
    declare float @{name}(float)
    define float @f(float %x) {{
      %r = call float @{name}(float %x)
      ret float %r
    }}"""
    assert np.isfinite(call(text, "f", 0.7))


def test_remainder_and_power_resolve() -> None:
    text = """
    declare float @llvm.pow.f32(float, float)
    define float @f(float %x, float %y) {
      %a = frem float %x, %y
      %b = call float @llvm.pow.f32(float %a, float %y)
      ret float %b
    }"""
    assert call(text, "f", 7.5, 2.0) == pytest.approx(2.25)


CONVERSIONS = [("float", "half"), ("double", "half"), ("half", "float"), ("half", "double"),
               ("float", "bfloat"), ("double", "bfloat"), ("bfloat", "float")]  # fmt: skip
BASE = "llvm" if "x86_64" not in HOST.triple else "llvm -mcpu=x86-64"
DTYPES = {"float": np.float32, "double": np.float64, "half": np.float16, "bfloat": np.uint16}


def convert(values: np.ndarray[Any, Any], source: str, destination: str, target: Target) -> np.ndarray[Any, Any]:
    """`values` converted element by element in machine code."""
    operation = "fpext" if source in ("half", "bfloat") else "fptrunc"
    text = f"""
    define void @f(ptr %x, ptr %y, i64 %n) {{
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %p = getelementptr {source}, ptr %x, i64 %i
      %v = load {source}, ptr %p
      %w = {operation} {source} %v to {destination}
      %q = getelementptr {destination}, ptr %y, i64 %i
      store {destination} %w, ptr %q
      %next = add i64 %i, 1
      %more = icmp ult i64 %next, %n
      br i1 %more, label %loop, label %done
    done:
      ret void
    }}"""
    module = jit(text, target, {})
    result = np.empty(values.shape, DTYPES[destination])
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    prototype(module.address("f"))(values.ctypes.data, result.ctypes.data, values.size)
    return result


def bfloat_bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Round floats to bfloat, ties to even (numbers only)."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


@pytest.mark.parametrize("machine", ["llvm", BASE, BASE + " -opt-level=0"])
@pytest.mark.parametrize(("source", "destination"), CONVERSIONS)
def test_conversions_of_16_bit_floats(source: str, destination: str, machine: str) -> None:
    target = Target.parse(machine)
    if source in ("half", "bfloat"):
        bits = np.arange(1 << 16, dtype=np.uint16)
        values = bits.view(DTYPES[source])
        expected = (
            values.astype(DTYPES[destination]) if source == "half" else (bits.astype(np.uint32) << 16).view(np.float32)
        )
        got = convert(values, source, destination, target)
        assert np.array_equal(got, expected, equal_nan=True)
        assert np.array_equal(np.signbit(got), np.signbit(expected))
        return
    random = np.random.default_rng(0)
    wide = random.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    near = random.normal(size=20000) * 2.0 ** random.integers(-28, 18, 20000)
    edges = [0.0, -0.0, 1.0, 65504.0, 65519.9, 65520.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, np.inf, -np.inf]
    # Subnormal floats are left out: AVX512-BF16 instructions flush them to zero.
    values = np.concatenate([wide, near.astype(np.float32), np.array(edges, np.float32)])
    values = values[(np.abs(values) >= np.finfo(np.float32).tiny) | (values == 0)].astype(DTYPES[source])
    if destination == "half":
        with np.errstate(all="ignore"):
            expected = values.astype(np.float16).view(np.uint16)
    else:
        expected = bfloat_bits(values)
    got = convert(values, source, destination, target).view(np.uint16)
    assert np.array_equal(got, expected)


def test_double_rounds_once() -> None:
    # Through float this would round to a tie first, and then to even.
    value = np.array([1.0 + 2.0**-11 + 2.0**-40])
    target = Target.parse(BASE)
    assert convert(value, "double", "half", target).view(np.uint16)[0] == 0x3C01
    value = np.array([1.0 + 2.0**-8 + 2.0**-40])
    assert convert(value, "double", "bfloat", target)[0] == 0x3F81


def test_not_a_number_stays_one() -> None:
    value = np.array([np.nan, -np.nan], np.float32)
    target = Target.parse(BASE)
    assert np.isnan(convert(value, "float", "half", target)).all()
    assert ((convert(value, "float", "bfloat", target) & 0x7FFF) > 0x7F80).all()


def test_invalid_code_of_the_optimizer_is_not_taken() -> None:
    """LLVM's vectorizers made a value that is used before it is defined; the code generator ended the process."""
    module = weft.parse("""
    func.func @main(%A: memref<5x3xi32>, %B: memref<3x9xi32>, %C: memref<5x9xi32>) {
      %zero = arith.constant 0 : i32
      %Y = memref.alloc() : memref<5x9xi32>
      tir.for %i in 5 { tir.for %j in 9 { tir.for %k in 3 {
        tir.block "Y" iters(%vi: spatial<5>, %vj: spatial<9>, %vk: reduce<3>) = [%i, %j, %k] {
          tir.init { memref.store %zero, %Y[%vi, %vj] : memref<5x9xi32> }
          %a = memref.load %A[%vi, %vk] : memref<5x3xi32>
          %b = memref.load %B[%vk, %vj] : memref<3x9xi32>
          %0 = arith.muli %a, %b : i32
          %1 = memref.load %Y[%vi, %vj] : memref<5x9xi32>
          %2 = arith.addi %1, %0 : i32
          memref.store %2, %Y[%vi, %vj] : memref<5x9xi32>
        }
      } } }
      tir.for %i in 5 { tir.for %j in 9 {
        tir.block "C" iters(%vi: spatial<5>, %vj: spatial<9>) = [%i, %j] {
          %y = memref.load %Y[%vi, %vj] : memref<5x9xi32>
          %3 = arith.maxsi %y, %zero : i32
          memref.store %3, %C[%vi, %vj] : memref<5x9xi32>
        }
      } }
      func.return
    }""")
    sch = weft.Schedule(module)
    sch.loop_partition(sch.get_loops("Y")[1], [1, None])
    sch.loop_partition(sch.get_loops("Y_j0")[0], [1, None])
    lib = weft.build(sch.mod, target="llvm -mcpu=znver3 -opt-level=3")
    assert "mul" in lib.get_source("asm")
