"""Products of tiles in C: by tile registers (AMX) if the C compiler may use them, else by loops.

Each distinct product is a helper function, which configures and releases the tile registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.dialects.low_dots import is_signed, sign_of
from weft.dialects.low_tile_products import SUM_BYTES, TileProductOp, elements_of
from weft.support.errors import CompileError
from weft.support.machine import ARCH_REQ_XCOMP_PERM, SYS_ARCH_PRCTL, XFEATURE_XTILEDATA

if TYPE_CHECKING:
    from weft.backends.c_family.emitter import FunctionEmitter, Rules

_REQUEST: Final = f"""\
#if defined(__AMX_TILE__) && defined(__linux__) && defined(__x86_64__)
#define WEFT_TILES 1
#include <immintrin.h>
// Requests the tile registers from Linux once per process.
static void weft_request_tiles(void) {{
  static volatile int granted = 0;
  if (granted) return;
  long result = {SYS_ARCH_PRCTL};
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"({ARCH_REQ_XCOMP_PERM}L), "S"({XFEATURE_XTILEDATA}L)
                   : "rcx", "r11", "memory");
  if (result != 0) {{
    fprintf(stderr, "weft: the operating system grants this process no tile registers (AMX)\\n");
    abort();
  }}
  granted = 1;
}}
#else
#define WEFT_TILES 0
#endif"""
_MACROS: Final = {"tdpbf16ps": "__AMX_BF16__"}
"""Instruction -> the compiler's macro for its feature; `__AMX_INT8__` for others."""


def emit_tile_product(emitter: FunctionEmitter, op: TileProductOp) -> None:
    if emitter.language.kind != "c":
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name}: run low-lower-dots first")
    left, right = op.readings
    types = elements_of((sign_of(left), sign_of(right)))
    shape = "x".join(map(str, (*op.shape, *op.levels)))
    suffix = "" if op.from_zero is not None else "_onto"
    suffix += f"_ahead{op.bytes_ahead}" if op.bytes_ahead else ""
    name = f"weft_tiles_{shape}_{types}{suffix}"
    helper = emitter.module.helper(name, _text(name, op, types))
    emitter.line(f"{helper}({', '.join(expr.text for expr in emitter.exprs(op))});")


def _text(name: str, op: TileProductOp, types: str) -> str:
    instruction = "tdpbf16ps" if types == "bf16" else f"tdpb{types[0]}{types[2]}d"
    levels = ["rows", *range(len(op.levels))]
    parameters = [
        *("const void *a", *(f"int64_t a_{at}" for at in levels)),
        *("const void *b", *(f"int64_t b_{at}" for at in levels)),
        *("void *c", "int64_t c_rows"),
    ]
    rows, columns, depth = op.shape
    return f"""\
// {rows} x {columns} sums of {" x ".join(map(str, (*op.levels, depth)))} products.
static void {name}({", ".join(parameters)}) {{
#if WEFT_TILES && defined({_MACROS.get(instruction, "__AMX_INT8__")})
{_by_tiles(op, instruction)}
#else
{_by_loops(op)}
#endif
}}"""


def _loops(op: TileProductOp) -> tuple[str, str, str]:
    """Loop heads, and offsets in A and B, in elements."""
    numbers = range(len(op.levels))
    heads = "".join(f"for (int i{at} = 0; i{at} < {op.levels[at]}; ++i{at}) " for at in numbers)
    in_a, in_b = (" + ".join(f"i{at} * {side}_{at}" for at in numbers) or "0" for side in "ab")
    return heads, in_a, in_b


def _by_tiles(op: TileProductOp, instruction: str) -> str:
    registers, size = op.registers, op.element_bytes
    heads, at_a, at_b = _loops(op)
    numbers = ", ".join(map(str, registers.configuration()))
    sums = [
        (registers.of_sums(row, column), f"(char *)c + ({top} * c_rows + {left}) * {SUM_BYTES}")
        for row, (top, _) in enumerate(registers.rows)
        for column, (left, _) in enumerate(registers.columns)
    ]
    start = [
        f"_tile_zero({tile});" if op.from_zero is not None else f"_tile_loadd({tile}, {at}, c_rows * {SUM_BYTES});"
        for tile, at in sums
    ]
    body: list[str] = []
    for column, (left, _) in enumerate(registers.columns):
        of_b = registers.of_b(column)
        body.append(f"_tile_loadd({of_b}, right + {left * SUM_BYTES}, b_rows * {size});")
        for row, (top, _) in enumerate(registers.rows):
            of_a = registers.of_a(row)
            if column == 0:
                body.append(f"_tile_loadd({of_a}, left + {top} * a_rows * {size}, a_rows * {size});")
            body.append(f"_tile_{instruction[1:]}({registers.of_sums(row, column)}, {of_a}, {of_b});")
    if op.bytes_ahead:
        body += [
            f"for (int row = 0; row < {registers.depth // SUM_BYTES}; ++row)",
            f"  for (int at = {op.bytes_ahead}; at < {op.bytes_ahead + op.shape[1] * SUM_BYTES}; at += 64)",
            f"    _mm_prefetch(right + row * b_rows * {size} + at, _MM_HINT_T1);",
        ]
    lines = [
        f"  static const unsigned char configuration[64] __attribute__((aligned(64))) = {{{numbers}}};",
        "  weft_request_tiles();",
        "  _tile_loadconfig(configuration);",
        # GCC's _tile_loadd does not state that it reads memory.
        '  __asm__ volatile("" : : : "memory");',
        *(f"  {line}" for line in start),
        f"  {heads}{{",
        f"    const char *left = (const char *)a + ({at_a}) * {size}, *right = (const char *)b + ({at_b}) * {size};",
        *(f"    {line}" for line in body),
        "  }",
        *(f"  _tile_stored({tile}, {at}, c_rows * {SUM_BYTES});" for tile, at in sums),
        "  _tile_release();",
    ]
    return "\n".join(lines)


def _by_loops(op: TileProductOp) -> str:
    rows, columns, depth = op.shape
    heads, at_a, at_b = _loops(op)
    group = op.group
    left, right = op.readings
    if sign_of(left) is None:
        types, sum_type = ("weft_bf16", "weft_bf16"), "float"
        product = "weft_bf16_to_f32(left[k]) * weft_bf16_to_f32(right[place])"
    else:
        types, sum_type = tuple("int8_t" if is_signed(reading) else "uint8_t" for reading in (left, right)), "uint32_t"
        product = "(uint32_t)((int32_t)left[k] * (int32_t)right[place])"
    start = "0" if op.from_zero is not None else f"(({sum_type} *)c)[m * c_rows + n]"
    return f"""\
  for (int m = 0; m < {rows}; ++m)
    for (int n = 0; n < {columns}; ++n) {{
      {sum_type} sum = {start};
      {heads}{{
        const {types[0]} *left = (const {types[0]} *)a + m * a_rows + {at_a};
        const {types[1]} *right = (const {types[1]} *)b + n * {group} + {at_b};
        for (int k = 0; k < {depth}; ++k) {{
          const int64_t place = k / {group} * b_rows + k % {group};
          sum += {product};
        }}
      }}
      (({sum_type} *)c)[m * c_rows + n] = sum;
    }}"""


HELPERS: Final = {"weft_request_tiles": _REQUEST}
RULES: Final[Rules] = {TileProductOp: emit_tile_product}
