"""Programs whose blocks access buffers at any affine map of their iterators."""

from __future__ import annotations

from collections.abc import Sequence

Shape = Sequence[int | str]
"""Extents; "n" is known at run time: the last extent of the first parameter that has it."""


def memref(shape: Shape) -> str:
    return "memref<" + "x".join("?" if extent == "n" else str(extent) for extent in shape) + "xf32>"


def stage(
    label: str, extents: Shape, source: tuple[str, Shape], read: Sequence[str], target: tuple[str, Shape],
    written: Sequence[str], *, guard: str = "",
) -> str:  # fmt: skip
    """`target[written] = source[read] * 2 + 1`, each index an expression over d0, d1, ... for the iterators."""
    names = ", ".join(f"d{at}" for at in range(len(extents)))
    values = ", ".join(f"%v{at}" for at in range(len(extents)))

    def indices(prefix: str, maps: Sequence[str]) -> str:
        return "\n".join(
            f"      %{prefix}{at} = affine.apply affine_map<({names}) -> ({expression})>({values})"
            for at, expression in enumerate(maps)
        )

    sizes = ["%n" if extent == "n" else str(extent) for extent in extents]
    loops = " ".join(f"tir.for %i{at} in {size} {{" for at, size in enumerate(sizes))
    iterators = ", ".join(f"%v{at}: spatial<{size}>" for at, size in enumerate(sizes))
    bindings = ", ".join(f"%i{at}" for at in range(len(extents)))
    return f"""  {loops}
    tir.block "{label}" iters({iterators}) = [{bindings}] {guard} {{
{indices("r", read)}
{indices("w", written)}
      %x = memref.load %{source[0]}[{", ".join(f"%r{at}" for at in range(len(read)))}] : {memref(source[1])}
      %y = arith.mulf %x, %two : f32
      %z = arith.addf %y, %one : f32
      memref.store %z, %{target[0]}[{", ".join(f"%w{at}" for at in range(len(written)))}] : {memref(target[1])}
    }} {"}" * len(extents)}"""


def chain(
    stages: Sequence[str], parameters: Sequence[tuple[str, Shape]], temporaries: Sequence[tuple[str, Shape]]
) -> str:
    """A function @f of the stages."""
    given = ", ".join(f"%{name}: {memref(shape)}" for name, shape in parameters)
    dynamic = [(name, shape) for name, shape in parameters if "n" in shape]
    sizes = [f"  tir.assume_shape %{name}[%n] : {memref(shape)}" for name, shape in dynamic[1:]]
    if dynamic:
        name, shape = dynamic[0]
        at = f"  %last = arith.constant {len(shape) - 1} : index\n"
        sizes.insert(0, f"{at}  %n = memref.dim %{name}, %last : {memref(shape)}")
    for name, shape in temporaries:
        sizes.append(f"  %{name} = memref.alloc({'%n' if 'n' in shape else ''}) : {memref(shape)}")
    return "\n".join([
        f"func.func @f({given}) {{",
        "  %one = arith.constant 1.0 : f32",
        "  %two = arith.constant 2.0 : f32",
        *sizes, *stages, "  func.return\n}",
    ])  # fmt: skip
