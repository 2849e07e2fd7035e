"""Products of tiles (AMX).

Each distinct product is a function with a loop for each level of the reduction. Tile registers are configured at a
product unless the function has configured them so already:

    low.tile_product ...   ->     %known = load i32, ptr %tiles            ; the number of the current configuration
                                  %same = icmp eq i32 %known, 1
                                  br i1 %same, label %configured, label %configure
                                configure:
                                  call void @weft.tiles.configure(ptr @weft.tiles.1)
                                  store i32 1, ptr %tiles
                                  br label %configured
                                configured:
                                  call void @weft.tile_product.3(ptr %a, ...)

LDTILECFG takes about 90 ns, two tiles of 16 x 16 x 32 bf16 products 13 ns. The registers are released before the
function returns. They are unknown after calls of functions that may use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import memref

from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_dots import sign_of
from weft.dialects.low_tile_products import SUM_BYTES, TileProductOp, parts_of
from weft.support.cpu_instructions import tile_product_intrinsic
from weft.support.errors import CompileError
from weft.support.machine import ARCH_REQ_XCOMP_PERM, SYS_ARCH_PRCTL, XFEATURE_XTILEDATA

if TYPE_CHECKING:
    from weft.backends.llvm.emitter import FunctionEmitter, ModuleEmitter, Rules

_CONFIGURE: Final = "weft.tiles.configure"
_REFUSED: Final = "weft: the operating system grants this process no tile registers (AMX)\n"


def _string(data: bytes) -> str:
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'c"{text}"'


def _configuring_functions() -> str:
    """The tile registers are requested from Linux once per process."""
    size = len(_REFUSED)
    return f"""\
@weft.tiles.granted = internal global i8 0
@weft.tiles.refused = private unnamed_addr constant [{size} x i8] {_string(_REFUSED.encode())}

define internal void @{_CONFIGURE}(ptr %configuration) noinline nounwind {{
entry:
  %known = load atomic i8, ptr @weft.tiles.granted monotonic, align 1
  %granted = icmp ne i8 %known, 0
  br i1 %granted, label %load, label %request
request:
  %result = call i64 (i64, ...) @syscall(i64 {SYS_ARCH_PRCTL}, i64 {ARCH_REQ_XCOMP_PERM}, i64 {XFEATURE_XTILEDATA})
  %works = icmp eq i64 %result, 0
  br i1 %works, label %note, label %refused
refused:
  %written = call i64 @write(i32 2, ptr @weft.tiles.refused, i64 {size})
  call void @abort()
  unreachable
note:
  store atomic i8 1, ptr @weft.tiles.granted monotonic, align 1
  br label %load
load:
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  ret void
}}"""


def emit_tile_product(emitter: FunctionEmitter, op: TileProductOp) -> None:
    module = emitter.module
    intrinsic = tile_product_intrinsic(module.target, *map(sign_of, op.readings))
    if not intrinsic:
        shown = f"tiles of {op.a_as} and {op.b_as}"
        raise CompileError.at(
            op, f"{op.name}: {module.target.cpu} has no instruction for {shown}; run low-lower-dots for it"
        )
    bytes_ = op.registers.configuration()
    if bytes_ not in module.tile_configurations:
        number = len(module.tile_configurations)
        if not number:
            module.functions.append(_configuring_functions())
            module.declare("syscall", "declare i64 @syscall(i64, ...)")
            module.declare("write", "declare i64 @write(i32, ptr, i64)")
            module.declare("abort", "declare void @abort() noreturn")
        module.tile_configurations[bytes_] = number
        constant = f"private unnamed_addr constant [{len(bytes_)} x i8] {_string(bytes_)}"
        module.functions.append(f"@weft.tiles.{number} = {constant}, align 64")
    _configure(emitter, module.tile_configurations[bytes_])
    operands = [f"{emitter.type_of(value, op).text} {emitter.text(value)}" for value in op.operands]
    emitter.line(f"call void @{_function(module, op, intrinsic)}({', '.join(operands)})")


def _configure(emitter: FunctionEmitter, number: int) -> None:
    configure, configured = (emitter.names.fresh(label) for label in ("configure", "configured"))
    known = emitter.emit(f"load i32, ptr {emitter.tiles}", "known")
    same = emitter.emit(f"icmp eq i32 {known}, {number}", "same")
    emitter.line(f"br i1 {same}, label %{configured}, label %{configure}")
    emitter.start_block(configure)
    emitter.line(f"call void @{_CONFIGURE}(ptr @weft.tiles.{number})")
    emitter.line(f"store i32 {number}, ptr {emitter.tiles}")
    emitter.line(f"br label %{configured}")
    emitter.start_block(configured)


def _function(module: ModuleEmitter, op: TileProductOp, intrinsic: str) -> str:
    key = (intrinsic, op.shape, op.levels, op.from_zero is not None, op.bytes_ahead, _is_in_memory(op))
    if key not in module.tile_products:
        name = module.tile_products[key] = f"weft.tile_product.{len(module.tile_products)}"
        module.functions.append(_function_text(name, op, intrinsic))
    return module.tile_products[key]


def _function_text(name: str, op: TileProductOp, intrinsic: str) -> str:
    rows, columns, depth = op.shape
    levels = range(len(op.levels))
    distances = [f"i64 %a.{at}" for at in ("rows", *levels)], [f"i64 %b.{at}" for at in ("rows", *levels)]
    parameters = ["ptr %a", *distances[0], "ptr %b", *distances[1], "ptr %c", "i64 %c.rows"]
    lines = [
        f"; {rows} x {columns} sums of {' x '.join(map(str, (*op.levels, depth)))} products, {op.a_as} by {op.b_as}.",
        f"define internal void @{name}({', '.join(parameters)}) noinline nounwind {{",
        "entry:",
    ]
    sizes = {f"a.{at}": op.element_bytes for at in ("rows", *levels)}
    sizes |= {f"b.{at}": op.element_bytes for at in ("rows", *levels)} | {"c.rows": SUM_BYTES}
    lines += [f"  %{value}.bytes = mul i64 %{value}, {size}" for value, size in sizes.items()]
    lines += _sums(op, "tilezero" if op.from_zero is not None else "tileloadd64")
    lines += _prefetches(op) if _is_in_memory(op) else []
    lines += _level(op, intrinsic, 0, "%a", "%b", "entry")
    lines += [*_sums(op, "tilestored64", "stored"), "  ret void", "}"]
    return "\n".join(lines)


def _is_in_memory(op: TileProductOp) -> bool:
    """Whether C may be outside the caches nearest to the core: it is no small temporary."""
    return not (isinstance(op.c.owner, AccessPtrOp) and isinstance(op.c.owner.buffer.owner, memref.AllocaOp))


def _prefetches(op: TileProductOp) -> list[str]:
    """Prefetch the lines of C, which are stored to after the reduction."""
    rows, columns, _ = op.shape
    lines: list[str] = []
    for row in range(rows):
        lines += _address(f"%line.{row}", "%c", f"mul i64 %c.rows.bytes, {row}")
        for first, _ in parts_of(columns):
            lines += _prefetch(f"%line.{row}.{first}", f"%line.{row}", first, "i32 1, i32 3")
    return lines


def _prefetch(name: str, row: str, column: int, kind: str) -> list[str]:
    return [*_moved(name, row, column * SUM_BYTES), f"  call void @llvm.prefetch.p0(ptr {name}, {kind}, i32 1)"]


def _level(op: TileProductOp, intrinsic: str, level: int, a: str, b: str, before: str) -> list[str]:
    """The loop of a level, and those inside; blocks `body.N` to `latch.N`, and then `exit.N`."""
    if level == len(op.levels):
        return _products(op, intrinsic, a, b)
    at_a, at_b = f"%at.a.{level}", f"%at.b.{level}"
    return [
        f"  br label %body.{level}",
        f"body.{level}:",
        f"  %i.{level} = phi i64 [ 0, %{before} ], [ %next.{level}, %latch.{level} ]",
        f"  {at_a} = phi ptr [ {a}, %{before} ], [ %next.a.{level}, %latch.{level} ]",
        f"  {at_b} = phi ptr [ {b}, %{before} ], [ %next.b.{level}, %latch.{level} ]",
        *_level(op, intrinsic, level + 1, at_a, at_b, f"body.{level}"),
        f"  br label %latch.{level}",
        f"latch.{level}:",
        f"  %next.a.{level} = getelementptr i8, ptr {at_a}, i64 %a.{level}.bytes",
        f"  %next.b.{level} = getelementptr i8, ptr {at_b}, i64 %b.{level}.bytes",
        f"  %next.{level} = add nuw nsw i64 %i.{level}, 1",
        f"  %more.{level} = icmp ult i64 %next.{level}, {op.levels[level]}",
        f"  br i1 %more.{level}, label %body.{level}, label %exit.{level}",
        f"exit.{level}:",
    ]


def _products(op: TileProductOp, intrinsic: str, a: str, b: str) -> list[str]:
    """Parts of A are loaded at their first use, so that loads and products overlap."""
    registers, lines = op.registers, list[str]()
    for number, (first, _) in enumerate(registers.rows):
        if first:
            lines += _address(f"%a.part.{number}", a, f"mul i64 %a.rows.bytes, {first}")
    for column, (first, _) in enumerate(registers.columns):
        lines += _moved(f"%b.part.{column}", b, first * SUM_BYTES) if first else []
        of_b = registers.of_b(column)
        lines.append(_move("tileloadd64", of_b, f"%b.part.{column}" if first else b, "%b.rows.bytes"))
        for row, (start, _) in enumerate(registers.rows):
            of_a = registers.of_a(row)
            if column == 0:
                lines.append(_move("tileloadd64", of_a, f"%a.part.{row}" if start else a, "%a.rows.bytes"))
            tiles = (registers.of_sums(row, column), of_a, of_b)
            lines.append(f"  call void @llvm.{intrinsic}({', '.join(f'i8 {tile}' for tile in tiles)})")
    return [*lines, *_prefetches_of_b(op, b)] if op.bytes_ahead else lines


def _prefetches_of_b(op: TileProductOp, b: str) -> list[str]:
    """Prefetch to L2."""
    registers = op.registers
    lines = _moved("%b.ahead", b, op.bytes_ahead)
    for row in range(registers.depth // SUM_BYTES):
        lines += _address(f"%ahead.{row}", "%b.ahead", f"mul i64 %b.rows.bytes, {row}")
        for first, _ in registers.columns:
            lines += _prefetch(f"%ahead.{row}.{first}", f"%ahead.{row}", first, "i32 0, i32 2")
    return lines


def _sums(op: TileProductOp, instruction: str, hint: str = "c") -> list[str]:
    """Move all sums, or set them to zero."""
    registers, lines = op.registers, list[str]()
    for row, (top, _) in enumerate(registers.rows):
        for column, (left, _) in enumerate(registers.columns):
            tile = registers.of_sums(row, column)
            if instruction == "tilezero":
                lines.append(f"  call void @llvm.x86.tilezero(i8 {tile})")
                continue
            name = f"%{hint}.{row}.{column}"
            lines += _address(f"{name}.row", "%c", f"mul i64 %c.rows.bytes, {top}")
            lines += _moved(name, f"{name}.row", left * SUM_BYTES)
            lines.append(_move(instruction, tile, name, "%c.rows.bytes"))
    return lines


def _address(name: str, base: str, offset: str) -> list[str]:
    return [f"  {name}.offset = {offset}", f"  {name} = getelementptr i8, ptr {base}, i64 {name}.offset"]


def _moved(name: str, base: str, offset: int) -> list[str]:
    return [f"  {name} = getelementptr i8, ptr {base}, i64 {offset}"]


def _move(instruction: str, tile: int, pointer: str, distance: str) -> str:
    return f"  call void @llvm.x86.{instruction}(i8 {tile}, ptr {pointer}, i64 {distance})"


RULES: Final[Rules] = {TileProductOp: emit_tile_product}
