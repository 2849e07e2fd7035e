"""Every stage of the lowering keeps the meaning of hand-written programs: interpreted before and after each pass."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.universe import Universe

from weft.driver.parsing import parse_text
from weft.interp.compare import ORDERS, Reference
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.pipelines import tir_to_low
from weft.passes.verify_level import verify_level


def context() -> Context:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


def parse(text: str) -> ModuleOp:
    return parse_text(context(), text, "program.mlir")


def check_stages(text: str, *, tries: int = 3, orders: Sequence[str] = ORDERS) -> ModuleOp:
    """Lower step by step; after each the module means the same, is well formed, and prints and parses again.

    `orders` are those in which the iterations of parallel and vectorised loops are interpreted.
    """
    ctx = context()
    module = parse(text)
    module.verify()
    reference = Reference(module, tries=tries)
    assert not reference.skipped
    for step in tir_to_low():
        step.apply(ctx, module)
        module.verify()
        difference = reference.compare(module, orders=orders)
        assert difference is None, f"{step.name}: {difference}\n{module}"
    verify_level(module, "low")
    again = parse(str(module))
    assert str(again) == str(module)
    assert reference.compare(again) is None
    whole = parse(text)
    LowerTirToLowPass().apply(ctx, whole)
    assert str(whole) == str(module)
    return module


ELEMENTWISE = """
func.func @f(%A: memref<10x12xf32>, %B: memref<10x12xf32>, %C: memref<10x12xf32>) {
  tir.for %i in 10 KIND_I { tir.for %j in 12 KIND_J {
    tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
      %b = memref.load %B[%vi, %vj] : memref<10x12xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %C[%vi, %vj] : memref<10x12xf32>
    } } }
  func.return
}
"""


@pytest.mark.parametrize("outer", ["", "parallel", "vectorized", "unrolled"])
@pytest.mark.parametrize("inner", ["", "vectorized", "unrolled"])
def test_elementwise_kinds(outer: str, inner: str):
    check_stages(ELEMENTWISE.replace("KIND_I", outer).replace("KIND_J", inner))


PREFETCHING = """
func.func @f(%A: memref<10x12xf32>, %I: memref<10xi64>, %C: memref<10x12xf32>) {
  tir.for %i in 10 KIND_I { tir.for %j in 12 KIND_J {
    tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j]
        attributes {prefetch = [["read", 1, [1, 0]], ["read", 0, [-2, 0]], ["write", 0, [100, 0]]]} {
      %at = memref.load %I[%vi] : memref<10xi64>
      %zero = arith.constant 0 : i64
      %none = arith.muli %at, %zero : i64
      %row = arith.index_cast %none : i64 to index
      %gathered = memref.load %A[%row, %vj] : memref<10x12xf32>
      %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
      %c = arith.addf %a, %gathered : f32
      memref.store %c, %C[%vi, %vj] : memref<10x12xf32>
    } } }
  func.return
}
"""


@pytest.mark.parametrize("outer", ["", "parallel"])
@pytest.mark.parametrize("inner", ["", "vectorized", "unrolled"])
def test_prefetches_change_nothing(outer: str, inner: str):
    """Also of elements that the buffers do not have; what is gathered is not asked for."""
    lowered = check_stages(PREFETCHING.replace("KIND_I", outer).replace("KIND_J", inner))
    asked = str(lowered).count("low.prefetch %A"), str(lowered).count("low.prefetch %C")
    assert asked == (1, 1)


NONTEMPORAL = """
func.func @f(%A: memref<10x13xf32>, %C: memref<10x13xf32>, %D: memref<13x10xf32>) {
  tir.for %i in 10 KIND_I { tir.for %j in 13 KIND_J {
    tir.block "C" iters(%vi: spatial<10>, %vj: spatial<13>) = [%i, %j] attributes {nontemporal = [0, 1]} {
      %a = memref.load %A[%vi, %vj] : memref<10x13xf32>
      memref.store %a, %C[%vi, %vj] : memref<10x13xf32>
      %c = memref.load %C[%vi, %vj] : memref<10x13xf32>
      %d = arith.negf %c : f32
      memref.store %d, %D[%vj, %vi] : memref<13x10xf32>
    } } }
  func.return
}
"""


@pytest.mark.parametrize("outer", ["", "parallel", "vectorized"])
@pytest.mark.parametrize("inner", ["", "vectorized", "unrolled"])
def test_stores_past_the_caches_change_nothing(outer: str, inner: str):
    """Also where the block itself reads what it stored."""
    lowered = str(check_stages(NONTEMPORAL.replace("KIND_I", outer).replace("KIND_J", inner)))
    whole_rows = inner == "vectorized" and outer != "vectorized"
    assert ("vector.store" in lowered and "nontemporal = true" in lowered) >= whole_rows


ASKING_FOR_ANOTHER = """
func.func @f(%A: memref<10x12xf32>, %C: memref<12x10xf32>) {
  %T = memref.alloc() : memref<10x12xf32>
  tir.for %i in 10 KIND_I {
    tir.for %j in 12 KIND_J {
      tir.block "T" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j]
          attributes {prefetch = [["write", 0, [0, 0], "C"], ["read", 0, [1, 0]]]} {
        %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
        %t = math.absf %a : f32
        memref.store %t, %T[%vi, %vj] : memref<10x12xf32>
      }
    }
    tir.for %j in 12 {
      tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %t = memref.load %T[%vi, %vj] : memref<10x12xf32>
        memref.store %t, %C[%vj, %vi] : memref<12x10xf32>
      }
    }
  }
  func.return
}
"""


@pytest.mark.parametrize("outer", ["", "parallel"])
@pytest.mark.parametrize("inner", ["", "vectorized", "unrolled"])
def test_prefetches_for_another_block_change_nothing(outer: str, inner: str):
    """Nor what the parameter counts as: it is still only written. Lanes far apart are not asked for."""
    lowered = str(check_stages(ASKING_FOR_ANOTHER.replace("KIND_I", outer).replace("KIND_J", inner)))
    assert lowered.count("low.prefetch %C") == (0 if inner == "vectorized" else 1)
    assert '"C", memref<12x10xf32>, write' in lowered


MATMUL = """
func.func @matmul(%A: memref<MxKxf32>, %B: memref<KxNxf32>, %C: memref<MxNxf32>) {
  %zero = arith.constant 0.0 : f32
  LOOPS
    tir.block "C" iters(%vi: spatial<M>, %vj: spatial<N>, %vk: reduce<K>) = [BI, BJ, BK] WHERE {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<MxNxf32> }
      %a = memref.load %A[%vi, %vk] : memref<MxKxf32>
      %b = memref.load %B[%vk, %vj] : memref<KxNxf32>
      %p = arith.mulf %a, %b : f32
      %c = memref.load %C[%vi, %vj] : memref<MxNxf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<MxNxf32>
    }
  END
  func.return
}
"""


def matmul(m: int, n: int, k: int, loops: str, bi: str, bj: str, bk: str, where: str = "") -> str:
    text = MATMUL.replace("LOOPS", loops).replace("END", "}" * loops.count("{"))
    text = text.replace("BI", bi).replace("BJ", bj).replace("BK", bk).replace("WHERE", where)
    for letter, value in (("MxN", f"{m}x{n}"), ("MxK", f"{m}x{k}"), ("KxN", f"{k}x{n}")):
        text = text.replace(letter, value)
    return text.replace("<M>", f"<{m}>").replace("<N>", f"<{n}>").replace("<K>", f"<{k}>")


MATMULS = {
    "plain": matmul(5, 6, 7, "tir.for %i in 5 { tir.for %j in 6 { tir.for %k in 7 {", "%i", "%j", "%k"),
    "k outside": matmul(5, 6, 7, "tir.for %k in 7 { tir.for %i in 5 { tir.for %j in 6 {", "%i", "%j", "%k"),
    "tiled": matmul(
        8,
        16,
        6,
        "tir.for %i0 in 2 parallel { tir.for %j0 in 2 { tir.for %k in 6 { tir.for %i1 in 4 unrolled {"
        " tir.for %j1 in 8 vectorized {",
        "%i0 * 4 + %i1",
        "%j0 * 8 + %j1",
        "%k",
    ),
    "guarded": matmul(
        7,
        13,
        5,
        "tir.for %i0 in 2 parallel { tir.for %j0 in 4 { tir.for %k0 in 2 { tir.for %k1 in 3 {"
        " tir.for %i1 in 4 unrolled { tir.for %j1 in 4 {",
        "%i0 * 4 + %i1",
        "%j0 * 4 + %j1",
        "%k0 * 3 + %k1",
        "where [%i0 * 4 + %i1, %j0 * 4 + %j1, %k0 * 3 + %k1] < [7, 13, 5]",
    ),
    "guarded vectors": matmul(
        7,
        13,
        5,
        "tir.for %i0 in 2 { tir.for %j0 in 2 { tir.for %k in 5 { tir.for %i1 in 4 unrolled {"
        " tir.for %j1 in 8 vectorized {",
        "%i0 * 4 + %i1",
        "%j0 * 8 + %j1",
        "%k",
        "where [%i0 * 4 + %i1, %j0 * 8 + %j1] < [7, 13]",
    ),
    "fused": matmul(6, 4, 5, "tir.for %f in 24 parallel { tir.for %k in 5 {", "%f floordiv 4", "%f mod 4", "%k"),
    "fused with the reduction": matmul(
        6, 4, 5, "tir.for %j in 4 { tir.for %f in 30 {", "%f floordiv 5", "%j", "%f mod 5"
    ),
    "column major vectors": matmul(
        8, 3, 5, "tir.for %j in 3 { tir.for %k in 5 { tir.for %i in 8 vectorized {", "%i", "%j", "%k"
    ),
    "vectors around loops": matmul(
        4, 8, 6, "tir.for %i in 4 { tir.for %j in 8 vectorized { tir.for %k in 6 {", "%i", "%j", "%k"
    ),
    "reduction backwards": matmul(4, 3, 6, "tir.for %i in 4 { tir.for %j in 3 { tir.for %k in 6 {", "%i", "%j", "%k"),
}


@pytest.mark.parametrize("name", MATMULS)
def test_matmul(name: str):
    check_stages(MATMULS[name])


def conv2d(oh_kind: str, ow: str, bow: str, where: str) -> str:
    return f"""
func.func @conv(%X: memref<3x9x10xf32>, %W: memref<4x3x3x3xf32>, %Y: memref<4x9x10xf32>) {{
  %zero = arith.constant 0.0 : f32
  tir.for %o in 4 {oh_kind} {{ tir.for %h in 9 {{ {ow}
    tir.for %c in 3 {{ tir.for %r in 3 {{ tir.for %s in 3 {{
    tir.block "Y" iters(%vo: spatial<4>, %vh: spatial<9>, %vw: spatial<10>, %vc: reduce<3>, %vr: reduce<3>,
                        %vs: reduce<3>) = [%o, %h, {bow}, %c, %r, %s] {where} {{
      tir.init {{ memref.store %zero, %Y[%vo, %vh, %vw] : memref<4x9x10xf32> }}
      %y0 = affine.apply affine_map<(d0, d1) -> (d0 + d1 - 1)> (%vh, %vr)
      %x0 = affine.apply affine_map<(d0, d1) -> (d0 + d1 - 1)> (%vw, %vs)
      %n0 = arith.constant 0 : index
      %n9 = arith.constant 9 : index
      %n10 = arith.constant 10 : index
      %p0 = arith.cmpi sge, %y0, %n0 : index
      %p1 = arith.cmpi slt, %y0, %n9 : index
      %p2 = arith.cmpi sge, %x0, %n0 : index
      %p3 = arith.cmpi slt, %x0, %n10 : index
      %p4 = arith.andi %p0, %p1 : i1
      %p5 = arith.andi %p4, %p2 : i1
      %p6 = arith.andi %p5, %p3 : i1
      %x = scf.if %p6 -> (f32) {{
        %in = memref.load %X[%vc, %y0, %x0] : memref<3x9x10xf32>
        scf.yield %in : f32
      }} else {{
        scf.yield %zero : f32
      }}
      %weight = memref.load %W[%vo, %vc, %vr, %vs] : memref<4x3x3x3xf32>
      %m = arith.mulf %x, %weight : f32
      %y = memref.load %Y[%vo, %vh, %vw] : memref<4x9x10xf32>
      %sum = arith.addf %y, %m : f32
      memref.store %sum, %Y[%vo, %vh, %vw] : memref<4x9x10xf32>
    }}
  }} }} }} {"}" * ow.count("{")} }} }}
  func.return
}}
"""


@pytest.mark.parametrize(
    "text",
    [
        conv2d("", "tir.for %w in 10 {", "%w", ""),
        conv2d("parallel", "tir.for %w in 10 vectorized {", "%w", ""),
        conv2d("", "tir.for %w0 in 3 { tir.for %w1 in 4 vectorized {", "%w0 * 4 + %w1", "where [%w0 * 4 + %w1] < [10]"),
    ],
    ids=["plain", "vectorized", "split and vectorized"],
)
def test_conv2d_with_padding(text: str):
    check_stages(text)


ROW_SUM = """
func.func @rows(%A: memref<6x32xTYPE>, %S: memref<6xTYPE>) {
  %start = arith.constant START : TYPE
  tir.for %i in 6 {
    tir.block "start" iters(%vi: spatial<6>) = [%i] { memref.store %start, %S[%vi] : memref<6xTYPE> }
    tir.for %k0 in 4 { tir.for %k1 in 8 vectorized NOTE {
    tir.block "S" iters(%vi: spatial<6>, %vk: reduce<32>) = [%i, %k0 * 8 + %k1] {
      %a = memref.load %A[%vi, %vk] : memref<6x32xTYPE>
      %s = memref.load %S[%vi] : memref<6xTYPE>
      %r = COMBINE %s, %a : TYPE
      memref.store %r, %S[%vi] : memref<6xTYPE>
    } } } }
  func.return
}
"""


@pytest.mark.parametrize(
    ("type_", "start", "combine", "note", "reduced"),
    [
        ("f32", "0.0", "arith.addf", "attributes {reassociate}", True),
        ("f32", "1.0", "arith.mulf", "attributes {reassociate}", True),
        ("f32", "0.0", "arith.addf", "", False),
        ("f32", "-1.0e+30", "arith.maximumf", "", True),
        ("f64", "1.0e+30", "arith.minimumf", "", True),
        ("i32", "0", "arith.addi", "", True),
        ("i64", "-9000000000", "arith.maxsi", "", True),
        ("i8", "-1", "arith.andi", "", True),
        ("i16", "0", "arith.xori", "", True),
    ],
)
def test_reduction_over_lanes(type_: str, start: str, combine: str, note: str, reduced: bool):
    text = ROW_SUM.replace("TYPE", type_).replace("START", start).replace("COMBINE", combine).replace("NOTE", note)
    module = check_stages(text, orders=["forward"])
    # The extremum of all lanes of floats is that of halves on x86.
    assert any(op in str(module) for op in ("vector.reduction", "vector.shuffle")) == reduced


def test_masked_reduction_over_lanes():
    text = ROW_SUM.replace("TYPE", "i32").replace("START", "0").replace("COMBINE", "arith.addi").replace("NOTE", "")
    text = text.replace("reduce<32>", "reduce<29>").replace("x32x", "x29x")
    text = text.replace("= [%i, %k0 * 8 + %k1]", "= [%i, %k0 * 8 + %k1] where [%k0 * 8 + %k1] < [29]")
    assert "vector.reduction" in str(check_stages(text, orders=["forward"]))


def test_reduction_guard_stays_where_other_blocks_share_the_loop():
    check_stages("""
func.func @f(%A: memref<4x6xf32>, %S: memref<4xf32>, %T: memref<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 { tir.for %k in 6 {
    tir.block "S" iters(%vi: spatial<4>, %vk: reduce<6>) = [%i, %k] {
      tir.init { memref.store %zero, %S[%vi] : memref<4xf32> }
      %a = memref.load %A[%vi, %vk] : memref<4x6xf32>
      %s = memref.load %S[%vi] : memref<4xf32>
      %r = arith.addf %s, %a : f32
      memref.store %r, %S[%vi] : memref<4xf32>
    }
    tir.block "T" iters(%vi: spatial<4>, %vk: spatial<6>) = [%i, %k] {
      %s = memref.load %S[%vi] : memref<4xf32>
      memref.store %s, %T[%vi, %vk] : memref<4x6xf32>
    } } }
  func.return
}
""")


def test_argmax_with_two_buffers():
    check_stages("""
func.func @argmax(%A: memref<5x9xf32>, %V: memref<5xf32>, %I: memref<5xi64>) {
  %low = arith.constant -1.0e+30 : f32
  %none = arith.constant -1 : i64
  tir.for %i in 5 { tir.for %k in 9 {
    tir.block "A" iters(%vi: spatial<5>, %vk: reduce<9>) = [%i, %k] {
      tir.init {
        memref.store %low, %V[%vi] : memref<5xf32>
        memref.store %none, %I[%vi] : memref<5xi64>
      }
      %a = memref.load %A[%vi, %vk] : memref<5x9xf32>
      %v = memref.load %V[%vi] : memref<5xf32>
      %n = memref.load %I[%vi] : memref<5xi64>
      %k64 = arith.index_cast %vk : index to i64
      %better = arith.cmpf ogt, %a, %v : f32
      %v2 = arith.select %better, %a, %v : f32
      %n2 = arith.select %better, %k64, %n : i64
      memref.store %v2, %V[%vi] : memref<5xf32>
      memref.store %n2, %I[%vi] : memref<5xi64>
    } } }
  func.return
}
""")


SCALAR_BODY = """
func.func @f(%A: memref<40xTA>, %B: memref<40xTA>, %C: memref<40xTC>) {
  tir.for %i0 in 5 { tir.for %i1 in 8 vectorized {
    tir.block "C" iters(%vi: spatial<40>) = [%i0 * 8 + %i1] {
      %a = memref.load %A[%vi] : memref<40xTA>
      %b = memref.load %B[%vi] : memref<40xTA>
      BODY
      memref.store %r, %C[%vi] : memref<40xTC>
    } } }
  func.return
}
"""


@pytest.mark.parametrize(
    ("source", "target", "body"),
    [
        ("f32", "i1", "%r = arith.cmpf olt, %a, %b : f32"),
        ("i32", "i1", "%r = arith.cmpi sge, %a, %b : i32"),
        ("i1", "i1", "%r = arith.xori %a, %b : i1"),
        ("f32", "f32", "%m = arith.cmpf ogt, %a, %b : f32\n %r = arith.select %m, %a, %b : f32"),
        ("f16", "f16", "%r = arith.mulf %a, %b : f16"),
        ("bf16", "bf16", "%r = arith.addf %a, %b : bf16"),
        (
            "f16",
            "f32",
            "%x = arith.extf %a : f16 to f32\n %y = arith.extf %b : f16 to f32\n %r = arith.subf %x, %y : f32",
        ),
        ("f64", "f32", "%s = arith.addf %a, %b : f64\n %r = arith.truncf %s : f64 to f32"),
        (
            "i8",
            "i32",
            "%x = arith.extsi %a : i8 to i32\n %y = arith.extui %b : i8 to i32\n %r = arith.addi %x, %y : i32",
        ),
        ("i64", "i16", "%s = arith.muli %a, %b : i64\n %r = arith.trunci %s : i64 to i16"),
        ("i32", "f32", "%s = arith.subi %a, %b : i32\n %r = arith.sitofp %s : i32 to f32"),
        ("f32", "f32", "%e = math.absf %a : f32\n %s = math.sqrt %e : f32\n %r = arith.maximumf %s, %b : f32"),
        ("f32", "i64", "%s = arith.addf %a, %b : f32\n %r = arith.fptosi %s : f32 to i64"),
        (
            "f32",
            "i32",
            "%x = arith.bitcast %a : f32 to i32\n %y = arith.bitcast %b : f32 to i32\n %r = arith.xori %x, %y : i32",
        ),
        (
            "i32",
            "i32",
            "%c = arith.index_cast %vi : index to i32\n %s = arith.addi %a, %b : i32\n %r = arith.muli %s, %c : i32",
        ),
        (
            "i32",
            "i32",
            "%z = arith.constant 0 : i32\n %ok = arith.cmpi ne, %b, %z : i32\n"
            "%r = scf.if %ok -> (i32) { %q = arith.divsi %a, %b : i32\n scf.yield %q : i32 }"
            " else { scf.yield %z : i32 }",
        ),
    ],
)
def test_types_in_vectors(source: str, target: str, body: str):
    text = SCALAR_BODY.replace("TA", source).replace("TC", target).replace("BODY", body)
    module = check_stages(text)
    assert "vector.store" in str(module)


def test_transpose():
    for kinds in ("%i in 8 vectorized|%j in 6", "%i in 8|%j in 6 vectorized"):
        outer, inner = kinds.split("|")
        module = check_stages(f"""
func.func @t(%A: memref<8x6xf32>, %B: memref<6x8xf32>) {{
  tir.for {inner} {{ tir.for {outer} {{
    tir.block "B" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {{
      %a = memref.load %A[%vi, %vj] : memref<8x6xf32>
      memref.store %a, %B[%vj, %vi] : memref<6x8xf32>
    }} }} }}
  func.return
}}
""")
        assert "low.gather" in str(module) or "low.scatter" in str(module)


GATHER = """
func.func @gather(%T: memref<7x4xf32>, %I: memref<16xi64>, %O: memref<16x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  tir.for %j in 4 { tir.for %i in 16 KIND {
    tir.block "O" iters(%vi: spatial<16>, %vj: spatial<4>) = [%i, %j] {
      %n = memref.load %I[%vi] : memref<16xi64>
      %row = arith.index_cast %n : i64 to index
      %p = arith.cmpi sge, %row, %c0 : index
      %q = arith.cmpi slt, %row, %c7 : index
      %inside = arith.andi %p, %q : i1
      %v = scf.if %inside -> (f32) {
        %t = memref.load %T[%row, %vj] : memref<7x4xf32>
        scf.yield %t : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %v, %O[%vi, %vj] : memref<16x4xf32>
    } } }
  func.return
}
"""


@pytest.mark.parametrize("kind", ["", "vectorized", "parallel"])
def test_gather_by_data(kind: str):
    check_stages(GATHER.replace("KIND", kind))


DYNAMIC = """
func.func @f(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%m, %n] : memref<?x?xf32>
  tir.assume_shape %C[%m] : memref<?xf32>
  %T = memref.alloc(%m, %n) : memref<?x?xf32>
  %n4 = affine.apply affine_map<(d0) -> (d0 ceildiv 4)> (%n)
  tir.for %i in %m parallel {
    tir.for %j0 in %n4 { tir.for %j1 in 4 KIND {
      tir.block "T" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j0 * 4 + %j1] where [%j0 * 4 + %j1] < [%n] {
        %a = memref.load %A[%vi, %vj] : memref<?x?xf32>
        %b = memref.load %B[%vi, %vj] : memref<?x?xf32>
        %t = arith.mulf %a, %b : f32
        memref.store %t, %T[%vi, %vj] : memref<?x?xf32>
      } } }
    tir.for %k in %n {
      tir.block "C" iters(%vi: spatial<%m>, %vk: reduce<%n>) = [%i, %k] {
        tir.init { memref.store %zero, %C[%vi] : memref<?xf32> }
        %t = memref.load %T[%vi, %vk] : memref<?x?xf32>
        %c = memref.load %C[%vi] : memref<?xf32>
        %r = arith.addf %c, %t : f32
        memref.store %r, %C[%vi] : memref<?xf32>
      } }
  }
  func.return
}
"""


@pytest.mark.parametrize("kind", ["", "vectorized", "unrolled"])
def test_dynamic_extents(kind: str):
    check_stages(DYNAMIC.replace("KIND", kind), tries=6)


def test_dynamic_padding_and_triangle():
    check_stages(
        """
func.func @f(%A: memref<?xf32>, %B: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n, %n] : memref<?x?xf32>
  tir.for %i in %n {
    tir.for %j in %n {
      tir.block "B" iters(%vi: spatial<%n>, %vj: spatial<%n>) = [%i, %j] {
        %d = affine.apply affine_map<(d0, d1) -> (d0 - d1)> (%vi, %vj)
        %low = arith.cmpi sge, %d, %c0 : index
        %v = scf.if %low -> (f32) {
          %a = memref.load %A[%d] : memref<?xf32>
          scf.yield %a : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %v, %B[%vi, %vj] : memref<?x?xf32>
      } } }
  func.return
}
""",
        tries=5,
    )


def test_nested_blocks():
    check_stages("""
func.func @f(%A: memref<16x16xf32>, %B: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %io in 4 { tir.for %jo in 4 {
    tir.block "outer" iters(%vio: spatial<4>, %vjo: spatial<4>) = [%io, %jo] {
      tir.for %ii in 4 { tir.for %ji in 4 vectorized {
        tir.block "inner" iters(%vii: spatial<4>, %vji: spatial<4>) = [%ii, %ji] {
          %vi = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%vio, %vii)
          %vj = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%vjo, %vji)
          %a = memref.load %A[%vi, %vj] : memref<16x16xf32>
          %r = arith.maximumf %a, %zero : f32
          memref.store %r, %B[%vi, %vj] : memref<16x16xf32>
        } } }
    } } }
  func.return
}
""")


def test_blockized_reduction():
    check_stages("""
func.func @f(%A: memref<4x12xf32>, %S: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 { tir.for %ko in 3 {
    tir.block "tile" iters(%vi: spatial<4>, %vko: reduce<3>) = [%i, %ko] {
      tir.init { memref.store %zero, %S[%vi] : memref<4xf32> }
      tir.for %ki in 4 {
        tir.block "S" iters(%vki: reduce<4>) = [%ki] {
          %vk = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%vko, %vki)
          %a = memref.load %A[%vi, %vk] : memref<4x12xf32>
          %s = memref.load %S[%vi] : memref<4xf32>
          %r = arith.addf %s, %a : f32
          memref.store %r, %S[%vi] : memref<4xf32>
        } }
    } } }
  func.return
}
""")


PRODUCER_CONSUMER = """
func.func @f(%A: memref<20xf32>, %C: memref<18xf32>) {
  %T = memref.alloc() : memref<20xf32SPACE>
  tir.for %i0 in 5 KIND {
    tir.for %p in 6 INNER {
      tir.block "T" iters(%v: spatial<20>) = [%i0 * 4 + %p] where [%i0 * 4 + %p] < [20] {
        %a = memref.load %A[%v] : memref<20xf32>
        %t = arith.addf %a, %a : f32
        memref.store %t, %T[%v] : memref<20xf32SPACE>
      } }
    tir.for %i1 in 4 INNER {
      tir.block "C" iters(%v: spatial<18>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [18] {
        %w = affine.apply affine_map<(d0) -> (d0 + 2)> (%v)
        %x = memref.load %T[%v] : memref<20xf32SPACE>
        %y = memref.load %T[%w] : memref<20xf32SPACE>
        %z = arith.subf %x, %y : f32
        memref.store %z, %C[%v] : memref<18xf32>
      } }
  }
  func.return
}
"""


@pytest.mark.parametrize("kind", ["", "parallel", "unrolled"])
@pytest.mark.parametrize("inner", ["", "vectorized"])
@pytest.mark.parametrize("space", ["", ', "local"'])
def test_producer_in_the_loop_of_its_consumer(kind: str, inner: str, space: str):
    text = PRODUCER_CONSUMER.replace("KIND", kind).replace("INNER", inner).replace("SPACE", space)
    module = check_stages(text)
    assert "memref<6xf32" in str(module)


def test_temporary_that_carries_values_between_iterations_stays_outside():
    module = check_stages("""
func.func @scan(%A: memref<8xf32>, %B: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<1xf32>
  %c0 = arith.constant 0 : index
  memref.store %zero, %T[%c0] : memref<1xf32>
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %z = arith.constant 0 : index
      %a = memref.load %A[%v] : memref<8xf32>
      %t = memref.load %T[%z] : memref<1xf32>
      %s = arith.addf %a, %t : f32
      memref.store %s, %T[%z] : memref<1xf32>
      memref.store %s, %B[%v] : memref<8xf32>
    } }
  func.return
}
""")
    text = str(module)
    assert text.index("memref.alloca") < text.index("scf.for")


@pytest.mark.parametrize("kind", ["", "parallel", "vectorized"])
def test_private_temporary_of_each_iteration(kind: str):
    check_stages(f"""
func.func @f(%A: memref<16x3xf32>, %B: memref<16xf32>) {{
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<2xf32>
  tir.for %i in 16 {kind} {{
    tir.for %p in 2 {{
      tir.block "T" iters(%vi: spatial<16>, %vp: spatial<2>) = [%i, %p] {{
        %q = affine.apply affine_map<(d0) -> (d0 + 1)> (%vp)
        %a = memref.load %A[%vi, %q] : memref<16x3xf32>
        memref.store %a, %T[%vp] : memref<2xf32>
      }} }}
    tir.for %p in 2 {{
      tir.block "B" iters(%vi: spatial<16>, %vp: reduce<2>) = [%i, %p] {{
        tir.init {{ memref.store %zero, %B[%vi] : memref<16xf32> }}
        %t = memref.load %T[%vp] : memref<2xf32>
        %b = memref.load %B[%vi] : memref<16xf32>
        %s = arith.addf %t, %b : f32
        memref.store %s, %B[%vi] : memref<16xf32>
      }} }}
  }}
  func.return
}}
""")


def test_large_temporary_is_freed_in_its_scope():
    module = check_stages("""
func.func @f(%A: memref<2x70x70xf32>, %B: memref<2x70x70xf32>) {
  %T = memref.alloc() : memref<2x70x70xf32>
  tir.for %b in 2 {
    tir.for %i in 70 { tir.for %j in 70 {
      tir.block "T" iters(%vb: spatial<2>, %vi: spatial<70>, %vj: spatial<70>) = [%b, %i, %j] {
        %a = memref.load %A[%vb, %vi, %vj] : memref<2x70x70xf32>
        memref.store %a, %T[%vb, %vi, %vj] : memref<2x70x70xf32>
      } } }
    tir.for %i in 70 { tir.for %j in 70 {
      tir.block "B" iters(%vb: spatial<2>, %vi: spatial<70>, %vj: spatial<70>) = [%b, %i, %j] {
        %t = memref.load %T[%vb, %vj, %vi] : memref<2x70x70xf32>
        memref.store %t, %B[%vb, %vi, %vj] : memref<2x70x70xf32>
      } } }
  }
  func.return
}
""")
    assert "memref<4900xf32>" in str(module) and "memref.dealloc" in str(module)


def test_calls_pass_extents_on():
    check_stages(
        """
func.func @twice(%X: memref<?x4xf32>, %Y: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %X, %c0 : memref<?x4xf32>
  tir.assume_shape %Y[%n] : memref<?x4xf32>
  tir.for %i in %n { tir.for %j in 4 vectorized {
    tir.block "Y" iters(%vi: spatial<%n>, %vj: spatial<4>) = [%i, %j] {
      %x = memref.load %X[%vi, %vj] : memref<?x4xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %Y[%vi, %vj] : memref<?x4xf32>
    } } }
  func.return
}
func.func @main(%A: memref<?x4xf32>, %B: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?x4xf32>
  tir.assume_shape %B[%m] : memref<?x4xf32>
  %T = memref.alloc(%m) : memref<?x4xf32>
  func.call @twice(%A, %T) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
  func.call @twice(%T, %B) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
  func.return
}
""",
        tries=4,
    )


def test_calls_with_casts():
    check_stages("""
func.func @fill(%X: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %X, %c0 : memref<?x4xf32>
  tir.for %i in %n { tir.for %j in 4 { memref.store %one, %X[%i, %j] : memref<?x4xf32> } }
  func.return
}
func.func @main(%A: memref<8x4xf32>) attributes {tir.function} {
  %d = "memref.cast"(%A) : (memref<8x4xf32>) -> memref<?x4xf32>
  func.call @fill(%d) : (memref<?x4xf32>) -> ()
  func.return
}
""")


def test_masks_around_shared_loads_and_loops():
    check_stages("""
func.func @f(%A: memref<3x13xf32>, %K: memref<5xf32>, %O: memref<3x13xf32>) {
  tir.for %i in 3 { tir.for %j0 in 2 { tir.for %j1 in 8 vectorized {
    tir.block "O" iters(%vi: spatial<3>, %vj: spatial<13>) = [%i, %j0 * 8 + %j1] where [%j0 * 8 + %j1] < [13] {
      %half = arith.constant 6 : index
      %first = arith.cmpi slt, %vj, %half : index
      scf.if %first {
        tir.for %k in 5 {
          %w = memref.load %K[%k] : memref<5xf32>
          %a = memref.load %A[%vi, %vj] : memref<3x13xf32>
          %s = arith.mulf %w, %a : f32
          memref.store %s, %O[%vi, %vj] : memref<3x13xf32>
        }
      } else {
        %a = memref.load %A[%vi, %vj] : memref<3x13xf32>
        memref.store %a, %O[%vi, %vj] : memref<3x13xf32>
      }
    } } } }
  func.return
}
""")


def test_quotients_of_lanes():
    check_stages("""
func.func @f(%A: memref<8x3xf32>, %O: memref<24xf32>, %U: memref<6x4xf32>) {
  tir.for %f0 in 3 { tir.for %f1 in 8 vectorized {
    tir.block "O" iters(%v: spatial<24>) = [%f0 * 8 + %f1] {
      %i = affine.apply affine_map<(d0) -> (d0 floordiv 3)> (%v)
      %j = affine.apply affine_map<(d0) -> (d0 mod 3)> (%v)
      %a = memref.load %A[%i, %j] : memref<8x3xf32>
      memref.store %a, %O[%v] : memref<24xf32>
      %p = affine.apply affine_map<(d0) -> (d0 floordiv 4)> (%v)
      %q = affine.apply affine_map<(d0) -> (d0 mod 4)> (%v)
      memref.store %a, %U[%p, %q] : memref<6x4xf32>
    } } }
  func.return
}
""")


def test_inner_loop_whose_extent_differs_between_lanes_falls_back():
    module = check_stages("""
func.func @f(%A: memref<8xf32>, %O: memref<8x8xf32>) {
  tir.for %i in 8 vectorized {
    tir.for %j in %i {
      %a = memref.load %A[%j] : memref<8xf32>
      memref.store %a, %O[%i, %j] : memref<8x8xf32>
    }
  }
  func.return
}
""")
    assert "vector<" not in str(module) and "low.unroll" in str(module)


def test_scalar_parameters():
    check_stages("""
func.func @axpy(%a: f32, %n: index, %X: memref<12xf32>, %Y: memref<12xf32>) {
  tir.for %i in 12 vectorized {
    tir.block "Y" iters(%v: spatial<12>) = [%i] {
      %x = memref.load %X[%v] : memref<12xf32>
      %y = memref.load %Y[%v] : memref<12xf32>
      %p = arith.mulf %a, %x : f32
      %s = arith.addf %p, %y : f32
      memref.store %s, %Y[%v] : memref<12xf32>
    } }
  func.return
}
""")


def test_diagonal_and_falling_quotients():
    check_stages(
        """
func.func @f(%A: memref<6x6xf32>, %B: memref<24xf32>) {
  tir.for %i in 6 {
    %a = memref.load %A[%i, %i] : memref<6x6xf32>
    memref.store %a, %B[%i] : memref<24xf32>
  }
  tir.for %f in 18 KIND {
    %back = affine.apply affine_map<(d0) -> ((17 - d0) floordiv 3)> (%f)
    %rest = affine.apply affine_map<(d0) -> ((d0 - 40) mod 6)> (%f)
    %at = affine.apply affine_map<(d0) -> (d0 + 6)> (%f)
    %a = memref.load %A[%back, %rest] : memref<6x6xf32>
    memref.store %a, %B[%at] : memref<24xf32>
  }
  func.return
}
""".replace("KIND", "vectorized")
    )
    check_stages("""
func.func @f(%A: memref<6x6xf32>, %B: memref<24xf32>) {
  tir.for %f in 18 {
    %back = affine.apply affine_map<(d0) -> ((17 - d0) floordiv 3)> (%f)
    %rest = affine.apply affine_map<(d0) -> ((d0 - 40) mod 6)> (%f)
    %a = memref.load %A[%back, %rest] : memref<6x6xf32>
    memref.store %a, %B[%f] : memref<24xf32>
  }
  func.return
}
""")
