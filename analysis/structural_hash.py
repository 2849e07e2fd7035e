"""Structural hashes of programs, which are equal if `structural_equality` finds no difference, up to bits of NaN."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute

from weft.analysis.structural_equality import compared_ops, scalar_constant


def structural_digest(root: Operation) -> bytes:
    """A digest of 16 bytes, the same in all processes and for other names of values, locations and places of scalar
    constants, but not of symbols: give functions one name first."""
    hasher = _Hasher()
    hasher.operation(root)
    return hasher.digest()


class _Hasher:
    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._numbers: dict[SSAValue, int] = {}
        self._known: dict[int, bytes] = {}
        """By identity, because attributes are shared; the attributes outlive the walk."""

    def digest(self) -> bytes:
        # Preceded by its length, so that different lists of parts have different bytes.
        state = hashlib.blake2b(digest_size=16)
        for part in self._parts:
            state.update(len(part).to_bytes(8, "little"))
            state.update(part)
        return state.digest()

    def operation(self, op: Operation) -> None:
        add = self._parts.append
        add(op.name.encode())
        for operand in op.operands:
            constant = scalar_constant(operand)
            add(b"%d" % self._number(operand) if constant is None else self._attribute(constant))
        self._attributes(op.properties)
        self._attributes(op.attributes)
        for result in op.results:
            add(b"%d" % self._number(result))
            add(self._attribute(result.type))
        for region in op.regions:
            blocks = {block: at for at, block in enumerate(region.blocks)}
            add(b"region %d" % len(blocks))
            for block in blocks:
                self._block(block, blocks)
        add(b"end")

    def _block(self, block: Block, blocks: Mapping[Block, int]) -> None:
        add = self._parts.append
        add(b"block")
        for argument in block.args:
            add(b"%d" % self._number(argument))
            add(self._attribute(argument.type))
        for op in compared_ops(block):
            self.operation(op)
            for successor in op.successors:
                add(b"%d" % blocks[successor])

    def _number(self, value: SSAValue) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _attributes(self, attributes: Mapping[str, Attribute]) -> None:
        add = self._parts.append
        add(b"%d" % len(attributes))
        for name in sorted(attributes):
            add(name.encode())
            add(self._attribute(attributes[name]))

    def _attribute(self, attribute: Attribute) -> bytes:
        found = self._known.get(id(attribute))
        if found is None:
            if isinstance(attribute, DenseIntOrFPElementsAttr):
                found = f"{attribute.type} ".encode() + hashlib.blake2b(attribute.data.data).digest()
            else:
                found = _type_text(attribute) if isinstance(attribute, TypeAttribute) else str(attribute).encode()
            self._known[id(attribute)] = found
        return found


@lru_cache(maxsize=4096)
def _type_text(type_: Attribute) -> bytes:
    """The text of a type, cached because types recur; not for attributes with numbers, since 0.0 and -0.0 are equal."""
    return str(type_).encode()
