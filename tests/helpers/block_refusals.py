"""Refusals of the primitives on blocks: where they are computed, inlining, copies, reductions."""

from __future__ import annotations

from loop_refusals import PLAIN, SCAN, SUM_READ_BEFORE
from refusal import (
    DOUBLED,
    PRODUCER_CONSUMER,
    SHIFTED,
    TEMPORARY,
    Refusal,
    block,
    copy,
    function,
    loop,
)
from schedule_programs import PROGRAMS

MATMUL = PROGRAMS["matmul_relu"].text
GATHER_FROM_RESULT = (
    PROGRAMS["gather"]
    .text.replace("%A:", "%B: memref<11xf32>, %A:")
    .replace("  %B = memref.alloc() : memref<11xf32>\n", "")
)
TWO_CONSUMERS = PROGRAMS["two_consumers"].text
TWO_FUNCTIONS = PRODUCER_CONSUMER + PLAIN.replace("@f", "@g")
TWO_WRITERS = function(
    block("B", copy("A", "B")), block("B2", copy("A", "B")), block("C", copy("B", "C")), temporaries=TEMPORARY
)
THREE_BUFFERS = "%A: memref<12xf32>, %C: memref<12xf32>, %D: memref<12xf32>"
READ_IN_PART = function(
    block("C", copy("A", "C")), block("D", copy("C", "D"), "%i in 4", "%v: spatial<4>").replace("%D", "%C2"),
    parameters="%A: memref<12xf32>, %C: memref<12xf32>", temporaries="  %C2 = memref.alloc() : memref<12xf32>",
)  # fmt: skip
RAN_BEFORE = function(
    block("B", copy("A", "B")), block("D", copy("A", "D")), block("C", copy("B", "C")),
    parameters=THREE_BUFFERS, temporaries=TEMPORARY,
)  # fmt: skip
UNREAD = function(block("B", copy("A", "B")), block("C", copy("A", "C")), temporaries=TEMPORARY)
READ_BEFORE = function(block("C", copy("B", "C")), block("B", copy("A", "B")), temporaries=TEMPORARY)
READ_OUTSIDE = function(
    block("B", copy("A", "B")),
    block("C", copy("B", "C")),
    "  %b = memref.load %B[%c0] : memref<12xf32>\n  memref.store %b, %C[%c0] : memref<12xf32>",
    temporaries=TEMPORARY,
)
WRITTEN_OUTSIDE = function(
    block("B", copy("A", "B")),
    "  memref.store %one, %B[%c0] : memref<12xf32>",
    block("C", copy("B", "C")),
    temporaries=TEMPORARY,
)
READ_TWICE = function(
    block("B", copy("A", "B")),
    block("C", "%x = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)\n"
          "%b = memref.load %B[%x] : memref<12xf32>\n" + copy("B", "C")),
    temporaries=TEMPORARY,
)  # fmt: skip
# B[i] = A[i]; A[i + 1] = B[i]
IN_PLACE = function(
    block("B", copy("A", "B")),
    block("C", SHIFTED + copy("B", "A", to="%x"), "%i in 11", "%v: spatial<11>"),
    parameters="%A: memref<12xf32>",
    temporaries=TEMPORARY,
)
BETWEEN = function(
    block("B", copy("A", "B")),
    block("X", copy("A", "D")),
    block("C", "%b = memref.load %B[%v] : memref<12xf32>\n" + copy("D", "C")),
    parameters=THREE_BUFFERS,
    temporaries=TEMPORARY,
)
# C reads B, and stands behind X in one loop; D reads what X writes
BEHIND = function(
    block("B", copy("A", "B")),
    f"""tir.for %i in 12 {{
      tir.block "X" iters(%v: spatial<12>) = [%i] {{ {copy("A", "E")} }}
      tir.block "C" iters(%v: spatial<12>) = [%i] {{ {copy("B", "C")} }} }}""",
    block("D", copy("E", "D")),
    parameters=THREE_BUFFERS,
    temporaries=TEMPORARY + "\n  %E = memref.alloc() : memref<12xf32>",
)
ADDED_IN_PLACE = """%a = memref.load %A[%v] : memref<12xf32>
%s = arith.addf %a, %one : f32
memref.store %s, %A[%v] : memref<12xf32>"""
UPDATED_AND_READ = function(
    f"""tir.for %i in 12 {{
      tir.block "U" iters(%v: spatial<12>) = [%i] {{ {ADDED_IN_PLACE} }}
      tir.block "C" iters(%v: spatial<12>) = [%i] {{ {copy("A", "C")} }} }}"""
)
# B[0..2] and B[9..11] are written, and added up in place, all in one iteration of %u
BOTH_ENDS = function(
    "tir.for %u in 1 {",
    block("P", "%x = affine.apply affine_map<(d0) -> (d0 + 9)>(%v)\n" + copy("A", "B") + "\n"
          "memref.store %a, %B[%x] : memref<12xf32>", "%i in 3", "%v: spatial<3>"),
    "}",
    """tir.for %u in 1 { tir.for %i in 3 { tir.block "U" iters(%v: spatial<3>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 + 9)>(%v)
      %b = memref.load %B[%v] : memref<12xf32>
      %c = memref.load %B[%x] : memref<12xf32>
      %d = arith.addf %b, %c : f32
      memref.store %d, %UPDATED[%v] : memref<12xf32>
    } } }""",
    temporaries=TEMPORARY,
)  # fmt: skip
# instance 0 adds up A[0], A[5], A[7], instance 1 A[1], A[6], A[8]
APART = function(
    """tir.for %i in 2 { tir.block "O" iters(%vo: spatial<2>) = [%i] {
      tir.block "U" iters() = [] {
        %x = affine.apply affine_map<(d0) -> (d0 + 5)>(%vo)
        %y = affine.apply affine_map<(d0) -> (d0 + 7)>(%vo)
        %a = memref.load %A[%x] : memref<12xf32>
        %b = memref.load %A[%y] : memref<12xf32>
        %c = arith.addf %a, %b : f32
        memref.store %c, %A[%vo] : memref<12xf32>
      } } }""",
    parameters="%A: memref<12xf32>",
)
EVEN = function(
    block("B", DOUBLED + copy("A", "B", at="%x", to="%x"), "%i in 6", "%v: spatial<6>"),
    block("C", DOUBLED + copy("B", "C2", at="%x", to="%x"), "%i in 6", "%v: spatial<6>"),
    temporaries=TEMPORARY + "\n  %C2 = memref.alloc() : memref<12xf32>",
    parameters="%A: memref<12xf32>",
)
CORNER_READ_AT_RANDOM = """
func.func @f(%A: memref<6xf32>, %I: memref<3xindex>, %C: memref<3xf32>) {
  %B = memref.alloc() : memref<6xf32>
  tir.for %i in 6 {
    tir.block "B" iters(%v: spatial<6>) = [%i] where [%i] < [5] {
      %a = memref.load %A[%v] : memref<6xf32>
      memref.store %a, %B[%v] : memref<6xf32>
    } }
  tir.for %i in 3 {
    tir.block "C" iters(%v: spatial<3>) = [%i] {
      %x = memref.load %I[%v] : memref<3xindex>
      %b = memref.load %B[%x] : memref<6xf32>
      memref.store %b, %C[%v] : memref<3xf32>
    } }
  func.return
}"""
STRIDED = function(
    block("B", copy("A", "B"), "%i in 3 { tir.for %j in 4", at="(%j * 3 + %i * 5) mod 12") + "}",
    block("C", copy("B", "C")),
    temporaries=TEMPORARY,
)
# C[v] = B[v] where v < 8, else 0; B has no more than 8 elements with a value.
PADDED = function(
    block("B", copy("A", "B"), "%i in 8"),
    block("C", """%p = arith.cmpi slt, %v, %c8 : index
      %x = scf.if %p -> (f32) {
        %b = memref.load %B[%v] : memref<12xf32>
        scf.yield %b : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %x, %C[%v] : memref<12xf32>"""),
    temporaries=TEMPORARY,
)  # fmt: skip
SAME_LOOP = function(
    f"""tir.for %i in 12 {{
      tir.block "B" iters(%v: spatial<12>) = [%i] {{ {copy("A", "B")} }}
      tir.block "C" iters(%v: spatial<12>) = [%i] {{ {copy("B", "C")} }} }}""",
    temporaries=TEMPORARY,
)
EVEN_SHARED = function(
    f"""tir.for %i in 6 {{
      tir.for %j in 2 {{
      tir.block "B" iters(%v: spatial<12>) = [%i * 2 + %j] where [%j] < [1] {{ {copy("A", "B")} }} }}
      tir.block "C" iters(%v: spatial<6>) = [%i] {{ {DOUBLED}{copy("B", "E", at="%x")} }} }}""",
    temporaries=TEMPORARY + "\n  %E = memref.alloc() : memref<12xf32>",
)
TO_ONE_ELEMENT = (
    function(block("B", copy("A", "B")), block("C", copy("B", "C", to="%c0")), temporaries=TEMPORARY)
    .replace("%C: memref", "%D: memref")
    .replace("  %B =", "  %C = memref.alloc() : memref<12xf32>\n  %B =")
)
INNER_VALUE = function(
    """tir.for %i in 12 {
      %k = arith.muli %i, %i : index
      tir.block "B" iters(%v: spatial<12>) = [%i] {
        %f = arith.index_cast %k : index to i32
        %g = arith.sitofp %f : i32 to f32
        memref.store %g, %B[%v] : memref<12xf32>
      } }""",
    block("C", copy("B", "C")),
    temporaries=TEMPORARY,
)
LATER_VALUE = function(
    block("B", copy("A", "B")),
    "  %late = memref.load %A[%c0] : memref<12xf32>",
    block("C", """%b = memref.load %B[%v] : memref<12xf32>
      %s = arith.addf %b, %late : f32
      memref.store %s, %C[%v] : memref<12xf32>"""),
    temporaries=TEMPORARY,
)  # fmt: skip
CORNER = """
func.func @f(%A: memref<6x12xf32>) {
  %B = memref.alloc() : memref<6x12xf32>
  %C = memref.alloc() : memref<6x12xf32>
  tir.for %i in 6 { tir.for %j in 12 {
    tir.block "B" iters(%v: spatial<6>, %w: spatial<12>) = [%i, %j] where [%i + %j] < [5] {
      %a = memref.load %A[%v, %w] : memref<6x12xf32>
      memref.store %a, %B[%v, %w] : memref<6x12xf32>
    } } }
  tir.for %i in 3 { tir.for %j in 2 {
    tir.block "C" iters(%v: spatial<6>, %w: spatial<12>) = [%i, %j] {
      %b = memref.load %B[%v, %w] : memref<6x12xf32>
      memref.store %b, %C[%v, %w] : memref<6x12xf32>
    } } }
  func.return
}"""
SUM_OF_B = """
func.func @f(%A: memref<4x8xf32>, %C: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<4x8xf32>
  tir.for %i in 4 { tir.for %j in 8 {
    tir.block "B" iters(%vi: spatial<4>, %v: spatial<8>) = [%i, %j] {
      %a = memref.load %A[%vi, %v] : memref<4x8xf32>
      memref.store %a, %B[%vi, %v] : memref<4x8xf32>
    } } }
  tir.for %i in 4 { tir.for %j in 8 {
    tir.block "C" iters(%vi: spatial<4>, %vj: reduce<8>) = [%i, %j] {
      tir.init { memref.store %zero, %C[%vi] : memref<4xf32> }
      %a = memref.load %B[%vi, %vj] : memref<4x8xf32>
      %b = memref.load %C[%vi] : memref<4xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %C[%vi] : memref<4xf32>
    } } }
  func.return
}"""
# The sum again and again, a guard that always holds, and an init that uses a value of the loop.
REPEATED_SUM = SUM_OF_B.replace("tir.for %i in 4 { tir.for %j in 8 {\n    tir.block \"C\"",
                                "tir.for %r in 3 { tir.for %i in 4 { tir.for %j in 8 {\n    tir.block \"C\"").replace(
                                    "} } }\n  func.return", "} } } }\n  func.return")  # fmt: skip
# C[0] = C[0] * 2, then A is added up there
DOUBLED_AT_START = function(
    """tir.for %i in 12 {
      tir.block "C" iters(%v: reduce<12>) = [%i] {
        tir.init {
          %o = memref.load %C[%c0] : memref<12xf32>
          %p = arith.addf %o, %o : f32
          memref.store %p, %C[%c0] : memref<12xf32>
        }
        %a = memref.load %A[%v] : memref<12xf32>
        %c = memref.load %C[%c0] : memref<12xf32>
        %s = arith.addf %c, %a : f32
        memref.store %s, %C[%c0] : memref<12xf32>
      } }"""
)
GUARDED_SUM = SUM_OF_B.replace("reduce<8>) = [%i, %j]", "reduce<8>) = [%i, %j] where [%i + %j] < [99]")
INNER_INIT = SUM_OF_B.replace(
    'tir.for %i in 4 { tir.for %j in 8 {\n    tir.block "C"',
    """tir.for %i in 4 {
    %n = arith.index_cast %i : index to i32
    %start = arith.sitofp %n : i32 to f32
    tir.for %j in 8 {\n    tir.block "C\"""",
).replace("store %zero", "store %start")
# Each element adds its neighbour, which may have its sum by then or not.
SUM_OF_NEIGHBOURS = """
func.func @f(%C: memref<5xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 { tir.for %j in 8 {
    tir.block "C" iters(%vi: spatial<4>, %vj: reduce<8>) = [%i, %j] {
      tir.init { memref.store %zero, %C[%vi] : memref<5xf32> }
      %x = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %a = memref.load %C[%x] : memref<5xf32>
      %b = memref.load %C[%vi] : memref<5xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %C[%vi] : memref<5xf32>
    } } }
  func.return
}"""
SUM_OF_NEXT = """
func.func @f(%A: memref<4x8xf32>, %C: memref<5xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 { tir.for %j in 8 {
    tir.block "C" iters(%vi: spatial<4>, %vj: reduce<8>) = [%i, %j] {
      tir.init { memref.store %zero, %C[%vi] : memref<5xf32> }
      %x = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %a = memref.load %A[%vi, %vj] : memref<4x8xf32>
      %b = memref.load %C[%x] : memref<5xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %C[%x] : memref<5xf32>
    } } }
  func.return
}"""
"""C[i + 1] += A[i, j], where the init stores to C[i]."""
NEXT_IS_NOT_STARTED = r'instance \(vi=0, vj=0\) of block "C" reads C\[1\], which its init does not store to'
FIRST_OF_NEXT = {"instance": {"vi": 0, "vj": 0}}
ROW_REPEATED = function(
    """tir.for %i in 4 { tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<4>, %v: spatial<12>) = [%i, %j] {
        %a = memref.load %A[%v] : memref<12xf32>
        memref.store %a, %B[%v] : memref<12xf32>
      } } }""",
    block("C", copy("B", "C")),
    temporaries=TEMPORARY,
)
READ_WHERE_WRITTEN = function(
    block("B", copy("A", "B")).replace("= [%i] {", "= [%i] where [0] < [%i] {"),
    block("C", SHIFTED + copy("B", "C", at="%x"), "%i in 11", "%v: spatial<11>"),
    parameters="%A: memref<12xf32>, %C: memref<12xf32>",
    temporaries=TEMPORARY,
)
STORED_IN_PART = function(
    block("B", copy("A", "B"), "%i in 11"),
    block("C", copy("B", "C"), "%i in 11", "%v: spatial<11>"),
    parameters="%A: memref<12xf32>, %C: memref<12xf32>",
    temporaries=TEMPORARY,
)
IF_EVEN = """%r = affine.apply affine_map<(d0) -> (d0 mod 2)>(%v)
%even = arith.cmpi eq, %r, %c0 : index
scf.if %even {
{}
}"""
# Instances 0, 2, ... 10 of each block store to B and to E.
EVENLY = function(
    block("B", copy("A", "B"), "%i in 6", at="%i * 2"),
    block("C", copy("B", "E"), "%i in 6", at="%i * 2"),
    block("D", IF_EVEN.replace("{}", copy("E", "D"), 1)),
    parameters="%A: memref<12xf32>, %D: memref<12xf32>",
    temporaries=TEMPORARY + "\n  %E = memref.alloc() : memref<12xf32>",
)
FILLED_EVENLY = EVENLY.replace("%i in 6", "%i in 12", 1).replace("[%i * 2]", "[%i]", 1)
AS_MANY_AS_LOADED = function(
    block("B", copy("A", "B"), "%i in %m", "%v: spatial<%m>"),
    block("C", copy("B", "C"), "%i in %m", "%v: spatial<%m>"),
    parameters="%A: memref<12xf32>, %C: memref<12xf32>, %I: memref<1xindex>",
    temporaries=TEMPORARY + "\n  %m = memref.load %I[%c0] : memref<1xindex>",
)
READ_BY_PAIRS = function(
    block("B", copy("A", "B")),
    block("C", "%x = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)\n" + copy("B", "C", at="%x")),
    temporaries=TEMPORARY,
)
READ_UNEVENLY = function(
    block("B", copy("A", "B")),
    block(
        "C",
        "%x = affine.apply affine_map<(d0) -> (d0 floordiv 2 + d0 floordiv 4)>(%v)\n" + copy("B", "C", at="%x"),
    ),
    temporaries=TEMPORARY,
)


STORED_FROM_N = function(
    block("B", "%x = affine.apply affine_map<(d0, d1) -> ((d0 + d1) mod 12)>(%v, %n)\n" + copy("A", "B", to="%x")),
    block("C", copy("B", "C")),
    parameters="%A: memref<12xf32>, %C: memref<12xf32>, %n: index",
    temporaries=TEMPORARY,
)


def stored_at(expression: str) -> str:
    """B[expression] = A[v], for an expression over d0."""
    at = f"%x = affine.apply affine_map<(d0) -> ({expression})>(%v)\n"
    if expression == "d0 * d0":
        at = "%x = arith.muli %v, %v : index\n"
    temporary = "  %B = memref.alloc() : memref<122xf32>"
    store = copy("A", "B", to="%x").replace("%B[%x] : memref<12xf32>", "%B[%x] : memref<122xf32>")
    load = f"{at}%b = memref.load %B[%x] : memref<122xf32>\nmemref.store %b, %C[%v] : memref<12xf32>"
    return function(block("B", at + store), block("C", load), temporaries=temporary)


# an iteration of i reads what the next one writes
LATER_ROW = """
func.func @f(%B: memref<9xf32>, %C: memref<8xf32>, %A: memref<9xf32>) {
  tir.for %i in 8 {
    tir.for %j in 2 {
      tir.block "B" iters(%v: spatial<9>) = [%i + %j] {
        %a = memref.load %A[%v] : memref<9xf32>
        memref.store %a, %B[%v] : memref<9xf32>
      } }
    tir.block "C" iters(%v: spatial<8>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (8 - d0)>(%v)
      %a = memref.load %B[%x] : memref<9xf32>
      memref.store %a, %C[%v] : memref<8xf32>
    } }
  func.return
}"""
LOWER_HALF = """
func.func @f(%A: memref<8xf32>, %C: memref<4x8xf32>) {
  tir.for %i in 2 { tir.for %j in 8 {
    tir.block "U" iters(%v: spatial<2>, %w: spatial<8>) = [%i, %j] {
      %a = memref.load %A[%w] : memref<8xf32>
      memref.store %a, %C[%v, %w] : memref<4x8xf32>
    } } }
  tir.for %i in 2 {
    tir.block "O" iters(%v: spatial<2>) = [%i] {
      tir.for %j in 8 {
        tir.block "S" iters(%w: spatial<8>) = [%j] {
          %x = affine.apply affine_map<(d0) -> (d0 + 2)>(%v)
          %a = memref.load %A[%w] : memref<8xf32>
          memref.store %a, %C[%x, %w] : memref<4x8xf32>
        } } } }
  func.return
}"""
# S[i] sums B[(9 * i + k) mod 4, (9 * i + k) floordiv 4], whose columns run inside of its rows
SUM_OF_COLUMNS = """
func.func @f(%A: memref<18xf32>, %S: memref<2xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<4x5xf32>
  tir.for %r in 4 { tir.for %c in 5 {
    tir.block "B" iters(%v: spatial<4>, %w: spatial<5>) = [%r, %c] where [%c * 4 + %r] < [18] {
      %x = affine.apply affine_map<(d0, d1) -> (d1 * 4 + d0)>(%v, %w)
      %a = memref.load %A[%x] : memref<18xf32>
      memref.store %a, %B[%v, %w] : memref<4x5xf32>
    } } }
  tir.for %i in 2 { tir.for %k in 9 {
    tir.block "S" iters(%v: spatial<2>, %w: reduce<9>) = [%i, %k] {
      tir.init { memref.store %zero, %S[%v] : memref<2xf32> }
      %x = affine.apply affine_map<(d0, d1) -> ((d0 * 9 + d1) mod 4)>(%v, %w)
      %y = affine.apply affine_map<(d0, d1) -> ((d0 * 9 + d1) floordiv 4)>(%v, %w)
      %b = memref.load %B[%x, %y] : memref<4x5xf32>
      %s = memref.load %S[%v] : memref<2xf32>
      %t = arith.addf %s, %b : f32
      memref.store %t, %S[%v] : memref<2xf32>
    } } }
  func.return
}"""
NESTED_ROWS = """
func.func @f(%A: memref<4x8xf32>, %C: memref<4x8xf32>, %I: memref<4xi32>) {
  tir.for %i in 4 {
    tir.block "O" iters(%vo: spatial<4>) = [%i] {
      %n = memref.load %I[%vo] : memref<4xi32>
      %length = arith.index_cast %n : i32 to index
      tir.for %j in %length {
        tir.block "C" iters(%v: spatial<%length>) = [%j] {
          %a = memref.load %A[%vo, %v] : memref<4x8xf32>
          memref.store %a, %C[%vo, %v] : memref<4x8xf32>
        } } } }
  func.return
}"""
FIRST_ROW = NESTED_ROWS.replace("%A[%vo,", "%A[%c0,").replace(
    "  tir.for", "  %c0 = arith.constant 0 : index\n  tir.for", 1
)
LATER_ROW_ONCE = LATER_ROW.replace("tir.for %i in 8 {", "tir.for %u in 1 { tir.for %i in 8 {").replace(
    "} }\n  func", "} } }\n  func"
)
FIRST_ROW_ONCE = FIRST_ROW.replace("tir.for %j in", "tir.for %u in 1 { tir.for %j in").replace("} } } }", "} } } } }")
DIAGONALS = """
func.func @f(%A: memref<12xf32>, %C: memref<4x8xf32>, %I: memref<4xi32>) {
  tir.for %i in 4 {
    tir.block "O" iters(%vo: spatial<4>) = [%i] {
      tir.for %j in 8 {
        tir.block "C" iters(%v: spatial<8>) = [%j] {
          %x = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%v, %vo)
          %a = memref.load %A[%x] : memref<12xf32>
          memref.store %a, %C[%vo, %v] : memref<4x8xf32>
        } } } }
  func.return
}"""
ROWS_AT_DIAGONALS = DIAGONALS.replace("spatial<8>", "spatial<%length>").replace(
    "tir.for %j in 8",
    """
      %n = memref.load %I[%vo] : memref<4xi32>
      %length = arith.index_cast %n : i32 to index
      tir.for %j in %length""",
)
UNDER_CONDITION = function(
    f"""tir.for %i in 12 {{
      %p = arith.cmpi slt, %i, %c8 : index
      scf.if %p {{
        tir.block "B" iters(%v: spatial<12>) = [%i] {{ {copy("A", "B")} }}
        tir.block "C" iters(%v: spatial<12>) = [%i] {{ {copy("B", "E")} }} }} }}""",
    temporaries=TEMPORARY + "\n  %E = memref.alloc() : memref<12xf32>",
)

# fmt: off
MOVES = [
    Refusal("compute_at", 1, TWO_FUNCTIONS, lambda s: s.compute_at("B", loop(s, "X")),
            "the loop is in another function or block"),
    Refusal("compute_at", 1, PRODUCER_CONSUMER, lambda s: s.compute_at("B", loop(s, "B")),
            "the loop is already around the block"),
    Refusal("compute_at", 2, TWO_WRITERS, lambda s: s.compute_at("B", loop(s, "C")),
            'block "B" is not the only writer of B: block "B2" writes it too'),
    Refusal("compute_at", 2, CORNER, lambda s: s.compute_at("B", loop(s, "C")),
            "its loops or guards leave out instance", ...),
    Refusal("compute_at", 2, EVENLY, lambda s: s.compute_at("C", loop(s, "D")),
            "it would also run instances that it does not run at its present place", proved=False),
    Refusal("compute_at", 3, READ_IN_PART, lambda s: s.compute_at("C", loop(s, "D")),
            r"instance \(v=\d+\) would run in none", ...),
    Refusal("compute_at", 4, TWO_CONSUMERS, lambda s: s.compute_at("B", loop(s, "C")),
            'block "D" uses B and is not inside the loop(.|\n)*legal: a loop around all its consumers'),
    Refusal("compute_at", 4, READ_OUTSIDE, lambda s: s.compute_at("B", loop(s, "C")),
            "memref.load uses B and is not inside the loop"),
    Refusal("compute_at", 4, READ_BEFORE, lambda s: s.compute_at("B", loop(s, "C")), 'block "C" uses B before'),
    Refusal("compute_at", 4, UNREAD, lambda s: s.compute_at("B", loop(s, "C")), "no op uses what it writes"),
    Refusal("compute_at", 2, stored_at("d0 * d0"), lambda s: s.compute_at("B", loop(s, "C")),
            "whether its instances store to different elements of B: it depends on", proved=False),
    Refusal("compute_at", 5, STORED_FROM_N, lambda s: s.compute_at("B", loop(s, "C")),
            "is not an affine function of the iterators alone", proved=False),
    Refusal("compute_at", 6, IN_PLACE, lambda s: s.compute_at("B", loop(s, "C")),
            r'block "B" reads A\[1\]; iteration \(i=0\) of block "C" writes A\[1\] and would change places',
            {"first iteration": {"i": 1}, "second iteration": {"i": 0}}),
    Refusal("compute_at", 7, INNER_VALUE, lambda s: s.compute_at("B", loop(s, "C")),
            "it uses %k, which is not known there"),
    Refusal("compute_at", 8, GATHER_FROM_RESULT, lambda s: s.compute_at("B", loop(s, "C")),
            r'block "B" writes B\[0\]; iteration .* writes B\[0\] and %i is parallel',
            ..., prepare=lambda s: s.parallel(loop(s, "C"))),
    Refusal("compute_at", 9, BEHIND, lambda s: s.compute_at("B", loop(s, "C"), index=2),
            r"2 is not(.|\n)*legal: -1, -2 or 0 \.\. 1"),
    Refusal("reverse_compute_at", 1, TWO_FUNCTIONS, lambda s: s.reverse_compute_at("C", loop(s, "X")),
            "the loop is in another function or block"),
    Refusal("reverse_compute_at", 2, TO_ONE_ELEMENT, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            "store to the same element of C, so their order matters",
            {"first instance": {"v": 0}, "second instance": {"v": 1}}),
    Refusal("reverse_compute_at", 2, FILLED_EVENLY, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            "it would also run instances that it does not run at its present place", proved=False),
    Refusal("reverse_compute_at", 3, TWO_WRITERS, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            'block "B2" writes what it reads and is not inside the loop'),
    Refusal("reverse_compute_at", 3, PRODUCER_CONSUMER, lambda s: s.reverse_compute_at("B", loop(s, "C")),
            "no block writes what it reads"),
    Refusal("reverse_compute_at", 3, RAN_BEFORE, lambda s: s.reverse_compute_at("C", loop(s, "D")),
            "all that write what it reads run before the loop"),
    Refusal("reverse_compute_at", 4, READ_UNEVENLY, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            r"instances \(v=\d+\) and \(v=\d+\) touch the same element", ...),
    Refusal("reverse_compute_at", 4, STRIDED, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            "not proved: what an iteration of %i writes of B is not one dense range of iterator %v(.|\n)*legal: a loop "
            "below which the producer's loops step through that range by 1", proved=False),
    Refusal("reverse_compute_at", 5, MATMUL, lambda s: s.reverse_compute_at("C", loop(s, "Y", 2)),
            'iteration k=0 would read an element of Y that block "Y" writes in iteration k=1',
            {"reading iteration": {"k": 0}, "writing iteration": {"k": 1}}),
    Refusal("reverse_compute_at", 6, PADDED, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            r"instance \(v=\d+\) would run in none", ...),
    Refusal("reverse_compute_at", 6, SUM_OF_COLUMNS, lambda s: s.reverse_compute_at("S", loop(s, "B", 1)),
            r"iteration \(r=0, c=\d\) would update an element that iteration \(r=1, c=\d\) starts", ...),
    Refusal("reverse_compute_at", 7, IN_PLACE, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            'iteration i=0 would write an element of A that block "B" reads in iteration i=1',
            {"writing iteration": {"i": 0}, "reading iteration": {"i": 1}}),
    Refusal("reverse_compute_at", 8, LATER_VALUE, lambda s: s.reverse_compute_at("C", loop(s, "B")),
            "it uses %late, which is not known there"),
    Refusal("reverse_compute_at", 9, SUM_OF_B, lambda s: s.reverse_compute_at("C", loop(s, "B", 1)),
            r'block "C" writes C\[0\](.|\n)*%j is parallel',
            {"first iteration": {"i": 0, "j": 0}, "second iteration": {"i": 0, "j": 1}},
            prepare=lambda s: s.parallel(loop(s, "B", 1))),
    Refusal("reverse_compute_at", 10, BEHIND, lambda s: s.reverse_compute_at("D", loop(s, "X"), index=0),
            r"0 is not(.|\n)*legal: -1, -2 or 1 \.\. 2"),
]

INLINES = [
    Refusal("compute_inline", 1, MATMUL, lambda s: s.compute_inline("Y"),
            r'block "Y" has an init: it is a reduction(.|\n)*legal: compute_at moves it to its readers'),
    Refusal("compute_inline", 2, PRODUCER_CONSUMER, lambda s: s.compute_inline("C"), "it writes the parameter C"),
    Refusal("compute_inline", 2, WRITTEN_OUTSIDE, lambda s: s.compute_inline("B"),
            "memref.store outside of the blocks of its scope uses B"),
    Refusal("compute_inline", 3, stored_at("d0 floordiv 2"), lambda s: s.compute_inline("B"),
            r"instances \(v=\d+\) and \(v=\d+\) touch the same element", ...),
    Refusal("compute_inline", 3, stored_at("d0 * 3 mod 7"), lambda s: s.compute_inline("B"),
            r"instances \(v=\d+\) and \(v=\d+\) touch the same element", ...),
    Refusal("compute_inline", 3, stored_at("d0 * d0"), lambda s: s.compute_inline("B"),
            "is not an affine function of the iterators alone", proved=False),
    Refusal("compute_inline", 3, CORNER_READ_AT_RANDOM, lambda s: s.compute_inline("B"),
            "guards leave out elements, and the subscripts are not affine", proved=False),
    Refusal("compute_inline", 4, IN_PLACE, lambda s: s.compute_inline("B"),
            r'block "B" reads A\[1\]; iteration \(i=0\) of block "C" writes A\[1\]',
            {"first iteration": {"i": 1}, "second iteration": {"i": 0}}),
    Refusal("compute_inline", 5, READ_BEFORE, lambda s: s.compute_inline("B"), 'block "C" reads it before'),
    Refusal("compute_inline", 6, INNER_VALUE, lambda s: s.compute_inline("B"), "it uses %k, which is not known there"),
    Refusal("reverse_compute_inline", 1, SUM_OF_B, lambda s: s.reverse_compute_inline("C"), "has an init"),
    Refusal("reverse_compute_inline", 1, TO_ONE_ELEMENT, lambda s: s.reverse_compute_inline("C"),
            "store to the same element of C", {"first instance": {"v": 0}, "second instance": {"v": 1}}),
    Refusal("reverse_compute_inline", 1, FILLED_EVENLY, lambda s: s.reverse_compute_inline("C"),
            r"its loops or guards leave out instance \(v=\d+\)", ...),
    Refusal("reverse_compute_inline", 2, TWO_WRITERS, lambda s: s.reverse_compute_inline("C"), "2 blocks write B"),
    Refusal("reverse_compute_inline", 2, TWO_CONSUMERS, lambda s: s.reverse_compute_inline("C"),
            'block "D" reads B too'),
    Refusal("reverse_compute_inline", 2, READ_BEFORE, lambda s: s.reverse_compute_inline("C"),
            'block "B" writes it after'),
    Refusal("reverse_compute_inline", 2, PRODUCER_CONSUMER, lambda s: s.reverse_compute_inline("B"),
            "it reads no temporary that a block of its scope writes"),
    Refusal("reverse_compute_inline", 3, MATMUL, lambda s: s.reverse_compute_inline("C"),
            r'block "Y" has an init(.|\n)*legal: reverse_compute_at moves the block to its producer'),
    Refusal("reverse_compute_inline", 4, READ_BY_PAIRS, lambda s: s.reverse_compute_inline("C"),
            r"instances \(v=\d+\) and \(v=\d+\) touch the same element", ...),
    Refusal("reverse_compute_inline", 4, READ_TWICE, lambda s: s.reverse_compute_inline("C"),
            "B is read at different indices"),
    Refusal("reverse_compute_inline", 4, PADDED, lambda s: s.reverse_compute_inline("C"),
            "a load is conditional or in a loop"),
    Refusal("reverse_compute_inline", 5, ROW_REPEATED, lambda s: s.reverse_compute_inline("C"),
            "store to the same element of B, so their order matters", ...),
    Refusal("reverse_compute_inline", 5, READ_WHERE_WRITTEN, lambda s: s.reverse_compute_inline("C"),
            r"its loops or guards leave out instance \(v=0\)", {"instance": {"v": 0}}),
    Refusal("reverse_compute_inline", 5, STORED_IN_PART, lambda s: s.reverse_compute_inline("C"),
            r"its loops or guards leave out instance \(v=11\)", {"instance": {"v": 11}}),
    Refusal("reverse_compute_inline", 5, AS_MANY_AS_LOADED, lambda s: s.reverse_compute_inline("C"),
            "the subscripts of B or the conditions around it are not affine", proved=False),
    Refusal("reverse_compute_inline", 6, BETWEEN, lambda s: s.reverse_compute_inline("C"),
            r'block "C" reads D\[0\]; iteration \(i=0\) of block "X" writes D\[0\]',
            {"first iteration": {"i": 0}, "second iteration": {"i": 0}}),
    Refusal("reverse_compute_inline", 7, LATER_VALUE, lambda s: s.reverse_compute_inline("C"),
            "it uses %late, which is not known there"),
]

COPIES = [
    Refusal("cache_read", 1, PRODUCER_CONSUMER, lambda s: s.cache_read("C", 7, "local"),
            "there is no buffer 7(.|\n)*legal: the buffers it reads are 0: B"),
    Refusal("cache_read", 2, PRODUCER_CONSUMER, lambda s: s.cache_read("C", 0, "registers"),
            "'registers' is not a memory scope(.|\n)*legal: \"global\", \"shared\", \"local\""),
    Refusal("cache_read", 3, TWO_WRITERS, lambda s: s.cache_read("C", "B", "local"), 'blocks "B", "B2" write B'),
    Refusal("cache_read", 3, SCAN, lambda s: s.cache_read("X", "X", "local"),
            'block "X" writes X while "X" reads it'),
    Refusal("cache_read", 1, TWO_CONSUMERS, lambda s: s.cache_read("C", "B", "local", ["C", "B"]),
            r'no block "B" of the scope reads B(.|\n)*legal: "C", "D"'),
    Refusal("cache_write", 5, LATER_ROW, lambda s: s.cache_write("B", 0, "local", consumer_blocks=["C"]),
            r'block "C" may read of B what was there before', proved=False),
    Refusal("cache_read", 4, EVEN, lambda s: s.cache_read("C", "B", "local"), r"it never writes B\[\d+\]", ...),
    Refusal("cache_read", 5, FIRST_ROW, lambda s: s.cache_read("C", "A", "local"),
            "not proved: whether an iteration reads of A_local only what it wrote depends on the data",
            prepare=lambda s: s.parallel(loop(s, "O")), proved=False),
    Refusal("cache_write", 1, PRODUCER_CONSUMER, lambda s: s.cache_write("C", -1, "local"),
            "there is no buffer -1(.|\n)*legal: the buffers it writes are 0: C"),
    Refusal("cache_write", 2, PRODUCER_CONSUMER, lambda s: s.cache_write("C", 0, "wmma.matrix_c"),
            "'wmma.matrix_c' is not a memory scope"),
    Refusal("cache_write", 3, TWO_WRITERS, lambda s: s.cache_write("B", 0, "local"), 'block "B2" writes B too'),
    Refusal("cache_write", 4, UNDER_CONDITION, lambda s: s.cache_write("B", 0, "local"),
            "B is used elsewhere in scf.if around it"),
    Refusal("cache_write", 5, LOWER_HALF, lambda s: s.cache_write("S", 0, "local"),
            "the copies would not hold all of the parameter C", proved=False),
    Refusal("cache_write", 5, EVEN_SHARED, lambda s: s.cache_write("B", 0, "local"),
            "in an iteration of a loop around it, it may not write every element of a box of B", proved=False),
    Refusal("cache_write", 5, EVEN, lambda s: s.cache_write("B", 0, "local"), r"it never writes B\[\d+\]", ...),
    Refusal("cache_write", 5, SCAN, lambda s: s.cache_write("X", 0, "local"), "it reads X as it was before"),
    Refusal("cache_write", 5, SUM_OF_NEXT, lambda s: s.cache_write("C", 0, "local"),
            NEXT_IS_NOT_STARTED, FIRST_OF_NEXT),
    Refusal("cache_inplace", 1, PRODUCER_CONSUMER, lambda s: s.cache_inplace("C", 0, "local"),
            r"it only reads B(.|\n)*legal: cache_read"),
    Refusal("cache_inplace", 2, SCAN, lambda s: s.cache_inplace("X", 0, "registers"), "is not a memory scope"),
    Refusal("cache_inplace", 3, UPDATED_AND_READ, lambda s: s.cache_inplace("U", 0, "local"),
            "memref.load accesses A too"),
    Refusal("cache_inplace", 4, BOTH_ENDS.replace("UPDATED", "B"), lambda s: s.cache_inplace("U", 0, "local"),
            r"the copy would hold B\[\d\], which nothing writes", ...),
    Refusal("cache_inplace", 5, APART, lambda s: s.cache_inplace("U", 0, "local"),
            r"writes A\[\d\](.|\n)*and %i is parallel", ..., prepare=lambda s: s.parallel(loop(s, "O"))),
    Refusal("read_at", 1, PRODUCER_CONSUMER, lambda s: s.read_at(loop(s, "C"), "C", 1, "local"),
            "there is no buffer 1"),
    Refusal("read_at", 2, PRODUCER_CONSUMER, lambda s: s.read_at(loop(s, "C"), "C", 0, "here"),
            "is not a memory scope"),
    Refusal("read_at", 3, PRODUCER_CONSUMER, lambda s: s.read_at(loop(s, "B"), "C", 0, "local"),
            r"the loop is not around it(.|\n)*legal: %i"),
    Refusal("read_at", 3, SCAN, lambda s: s.read_at(loop(s, "X"), "X", 0, "local"), 'block "X" writes X'),
    Refusal("read_at", 4, BOTH_ENDS.replace("UPDATED", "C"), lambda s: s.read_at(loop(s, "U"), "U", 0, "local"),
            r"the copy would hold B\[\d\], which nothing writes", ...),
    Refusal("read_at", 5, FIRST_ROW_ONCE,
            lambda s: s.read_at(loop(s, "C"), "C", "A", "local"),
            "not proved: whether an iteration reads of A_local only what it wrote depends on the data",
            prepare=lambda s: s.parallel(loop(s, "O")), proved=False),
    Refusal("write_at", 1, PRODUCER_CONSUMER, lambda s: s.write_at(loop(s, "C"), "C", 1, "local"),
            "there is no buffer 1"),
    Refusal("write_at", 2, PRODUCER_CONSUMER, lambda s: s.write_at(loop(s, "C"), "C", 0, "here"),
            "is not a memory scope"),
    Refusal("write_at", 3, TWO_WRITERS, lambda s: s.write_at(loop(s, "B"), "B", 0, "local"), 'block "B2" writes B too'),
    Refusal("write_at", 4, LATER_ROW_ONCE, lambda s: s.write_at(loop(s, "B"), "B", 0, "local"),
            "memref.load uses B in a loop that it shares"),
    Refusal("write_at", 5, MATMUL, lambda s: s.write_at(loop(s, "Y", 2), "Y", 0, "local"),
            "loop %k is thread_binding, and combines in its iterations(.|\n)*legal: outside of that loop",
            prepare=lambda s: s.bind(loop(s, "Y", 2), "threadIdx.x")),
    Refusal("write_at", 5, SCAN, lambda s: s.write_at(loop(s, "X"), "X", 0, "local"), "it reads X as it was before"),
    Refusal("write_at", 5, BOTH_ENDS.replace("UPDATED", "C"), lambda s: s.write_at(loop(s, "P"), "P", 0, "local"),
            "it may not write every element of a box of B", proved=False),
    Refusal("write_at", 6, PRODUCER_CONSUMER, lambda s: s.write_at(loop(s, "B"), "C", 0, "local"),
            "the loop is not around it"),
    Refusal("cache_index", 1, DIAGONALS, lambda s: s.cache_index("C", "here"), "is not a memory scope"),
    Refusal("cache_index", 2, ROWS_AT_DIAGONALS, lambda s: s.cache_index("C", "local"), "the extent of %v is not"),
    Refusal("annotate_buffer_access", 1, DIAGONALS,
            lambda s: s.annotate_buffer_access("C", 1, "read", lambda v: ((v, v + 12),)), "there is no buffer 1"),
    Refusal("annotate_buffer_access", 2, EVEN, lambda s: s.annotate_buffer_access("C", 0, "read", lambda v: (v, v, v)),
            r"it has 6 results(.|\n)*legal: 2: begin and end of 1 dimensions"),
    Refusal("annotate_buffer_access", 2, EVEN,
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda v: ((v, v * 2),)),
            r"dimension 0 ends %v\w* above its begin"),
    Refusal("annotate_buffer_access", 2, EVEN,
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda v: ((v, v + (1 << 64)),)),
            "18446744073709551616 is not an index of 64 bits"),
    Refusal("annotate_buffer_access", 2, EVEN,
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda v: ((v - (1 << 62), v + (1 << 62)),)),
            "dimension 0 ends 9223372036854775808 above its begin"),
    Refusal("annotate_buffer_access", 3, EVEN,
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda v: ((v, v + 5),)),
            r"instance \(v=5\) reads an element of B that is outside, in dimension 0", {"instance": {"v": 5}}),
    Refusal("annotate_buffer_access", 3, PROGRAMS["gather"].text,
            lambda s: s.annotate_buffer_access("C", "B", "read", lambda v: (v,)),
            "which elements of B it touches is not known", proved=False),
    Refusal("set_scope", 1, PRODUCER_CONSUMER, lambda s: s.set_scope("B", 1, "local"), "there is no buffer 1"),
    Refusal("set_scope", 2, PRODUCER_CONSUMER, lambda s: s.set_scope("B", 0, "Local"),
            "'Local' is not a memory scope"),
    Refusal("set_scope", 3, PRODUCER_CONSUMER, lambda s: s.set_scope("C", 0, "local"), "C is a parameter of @f"),
]

REDUCTIONS = [
    Refusal("decompose_reduction", 1, PRODUCER_CONSUMER, lambda s: s.decompose_reduction("B", loop(s, "B")),
            'block "B" has no init'),
    Refusal("decompose_reduction", 1, SUM_OF_NEIGHBOURS, lambda s: s.decompose_reduction("C", loop(s, "C")),
            'block "C" reads C at another place than it combines into'),
    Refusal("decompose_reduction", 1, SUM_OF_NEXT, lambda s: s.decompose_reduction("C", loop(s, "C")),
            NEXT_IS_NOT_STARTED, FIRST_OF_NEXT),
    Refusal("decompose_reduction", 1, DOUBLED_AT_START, lambda s: s.decompose_reduction("C", loop(s, "C")),
            r'block "C" reads C in its init'),
    Refusal("decompose_reduction", 2, MATMUL, lambda s: s.decompose_reduction("Y", loop(s, "C")),
            r"the loop is not around it(.|\n)*legal: %i, %j, %k"),
    Refusal("decompose_reduction", 3, MATMUL, lambda s: s.decompose_reduction("Y", loop(s, "Y", 1)),
            "%k is outside of %j and a reduce iterator is bound to it: the init would run again between updates",
            prepare=lambda s: s.reorder(loop(s, "Y", 2), loop(s, "Y", 0))),
    Refusal("decompose_reduction", 4, SUM_READ_BEFORE, lambda s: s.decompose_reduction("S", loop(s, "S")),
            'block "C" touches S inside the loop'),
    Refusal("decompose_reduction", 5, GUARDED_SUM, lambda s: s.decompose_reduction("C", loop(s, "C", 1)),
            "the guard .* < 99 mixes them"),
    Refusal("decompose_reduction", 6, REPEATED_SUM, lambda s: s.decompose_reduction("C", loop(s, "C")),
            r"iterations \(r=0, i=0, j=0\) and \(r=1, i=0, j=0\) run the same instance",
            {"first iteration": {"r": 0, "i": 0, "j": 0}, "second iteration": {"r": 1, "i": 0, "j": 0}}),
    Refusal("decompose_reduction", 7, INNER_INIT, lambda s: s.decompose_reduction("C", loop(s, "C")),
            "it uses %start, which is not known there"),
    Refusal("decompose_reduction", 8, MATMUL, lambda s: s.decompose_reduction("Y", loop(s, "Y", 2)),
            "loop %k of the reduction is bound to threadIdx.x, in the same kernel",
            prepare=lambda s: (s.bind(loop(s, "Y"), "blockIdx.x"), s.bind(loop(s, "Y", 2), "threadIdx.x"))),
]
# fmt: on
BLOCKS = [*MOVES, *INLINES, *COPIES, *REDUCTIONS]
