"""Instructions for dot products that this machine lacks, as products and sums: code for another CPU runs here too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.backends.llvm.types import lane_list
from weft.support.dot_instructions import DotInstruction, dot_instructions
from weft.support.machine import host_cpu, host_features

if TYPE_CHECKING:
    from weft.support.target import Target


def with_emulated_dots(text: str, target: Target) -> str:
    """LLVM IR in which functions stand for the instructions that `target` has and the host has not: LLVM would stop
    the process where it is to select one."""
    if target.cpu == host_cpu() or ("dp" not in text and "madd" not in text):
        return text
    lacking = ",".join(f"-{name}" for name, present in host_features().items() if not present)
    features = ",".join(filter(None, (target.features, lacking)))
    here = {instruction.name for instruction in dot_instructions(replace(target, features=features))}
    for instruction in dot_instructions(target):
        call = f"@llvm.{instruction.name}("
        if instruction.name not in here and call in text:
            name = f"weft.{instruction.name}"
            text = f"{text.replace(call, f'@{name}(')}\n{emulation(instruction, name)}"
    return text


def emulation(instruction: DotInstruction, name: str) -> str:
    """A function with the operands of an instruction that computes what it does."""
    lanes, group = instruction.lanes, instruction.group
    sums, narrow, wide = f"<{lanes} x i32>", f"<{lanes * group} x i{instruction.bits}>", f"<{lanes * group} x i32>"
    first = f"{sums} %c, " if instruction.adds else ""
    lines = [f"define internal {sums} @{name}({first}{narrow} %a, {narrow} %b) alwaysinline nounwind {{"]
    for operand, signed in (("a", instruction.left_signed), ("b", instruction.right_signed)):
        lines.append(f"  %{operand}.wide = {'s' if signed else 'z'}ext {narrow} %{operand} to {wide}")
    lines.append(f"  %p = mul {wide} %a.wide, %b.wide")
    total = "%c" if instruction.adds else "zeroinitializer"
    for step in range(group):
        places = lane_list(range(step, lanes * group, group))
        lines.append(f"  %p{step} = shufflevector {wide} %p, {wide} poison, {places}")
        lines.append(f"  %s{step} = add {sums} {total}, %p{step}")
        total = f"%s{step}"
    return "\n".join([*lines, f"  ret {sums} {total}", "}", ""])
