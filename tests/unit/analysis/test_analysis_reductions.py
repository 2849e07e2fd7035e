"""Whether the init of a block starts what its updates read: proved, refuted by an instance, or not proved."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.analysis.block_scopes import buffers_written
from weft.analysis.code_motion import shared_element
from weft.analysis.reductions import why_not_reduction, why_not_started, why_reads_earlier
from weft.dialects.tir import BlockOp
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.support.errors import Violation

STORE = "memref.store %zero, %C[{at}] : memref<16xf32>"
UPDATE = """
%a = memref.load %A[%vi, %vk] : memref<8x8xf32>
%c = memref.load %C[{at}] : memref<16xf32>
%s = arith.addf %c, %a : f32
memref.store %s, %C[{at}] : memref<16xf32>"""
IF_FIRST_ROWS = "%g{n} = arith.cmpi slt, %vi, %two : index\nscf.if %g{n} {{ {body} }}"


def index(name: str, expression: str) -> str:
    return f"%{name} = affine.apply affine_map<(i) -> ({expression})>(%vi)\n"


def block_of(init: str, updates: str, *, loop: str = "%i in 8", where: str = "") -> BlockOp:
    text = f"""
    func.func @f(%A: memref<8x8xf32>, %X: memref<8xindex>, %C: memref<16xf32>, %D: memref<16xf32>) {{
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2 : index
      tir.for {loop} {{ tir.for %k in 8 {{
        tir.block "C" iters(%vi: spatial<8>, %vk: reduce<8>) = [%i, %k] {where} {{ tir.init {{ {init} }} {updates} }}
      }} }}
      func.return
    }}"""
    return block_in(parse_text(context(), text, "<string>"))


def block_in(module: ModuleOp) -> BlockOp:
    return next(op for op in module.walk() if isinstance(op, BlockOp))


TWICE = "tir.for %x in 2 {{ %q = affine.apply affine_map<(i, x) -> ({at})>(%vi, %x)\n{store} }}"
OF_D = UPDATE.format(at="%vi").replace("%C", "%D").replace("%c", "%d").replace("%a", "%e").replace("%s", "%t")
STARTED = {
    "the same indices": (STORE.format(at="%vi"), UPDATE.format(at="%vi")),
    "the same element in another form": (
        index("q", "i * 2 floordiv 2 + 1") + STORE.format(at="%q"),
        index("w", "i + 1") + UPDATE.format(at="%w"),
    ),
    "by a loop": (
        TWICE.format(at="i * 2 + x", store=STORE.format(at="%q")),
        index("w", "i * 2 + 1") + UPDATE.format(at="%w"),
    ),
    "under the same condition": (
        IF_FIRST_ROWS.format(n=0, body=STORE.format(at="%vi")),
        IF_FIRST_ROWS.format(n=1, body=UPDATE.format(at="%vi")),
    ),
    "updates under a condition": (
        STORE.format(at="%vi"),
        IF_FIRST_ROWS.format(n=1, body=UPDATE.format(at="%vi")),
    ),
    "stored by the updates before": (
        STORE.format(at="%vi"),
        UPDATE.format(at="%vi") + "\nmemref.store %a, %D[%vi] : memref<16xf32>"
        "\n%d = memref.load %D[%vi] : memref<16xf32>",
    ),
}  # fmt: skip
MISSED = {
    "shifted": (
        STORE.format(at="%vi"), index("w", "i + 1") + UPDATE.format(at="%w"),
        "instance (vi=0, vk=0) of block \"C\" reads C[1], which its init does not store to",
        "an init that stores to C[%vi + 1]",
    ),
    "reversed": (
        STORE.format(at="%vi"), index("w", "7 - i") + UPDATE.format(at="%w"),
        "instance (vi=0, vk=0) of block \"C\" reads C[7]", "an init that stores to C[-1*%vi + 7]",
    ),
    "beyond what a loop starts": (
        TWICE.format(at="i * 2 + x", store=STORE.format(at="%q")),
        index("w", "i * 2 + 2 - i floordiv 7") + UPDATE.format(at="%w"),
        "instance (vi=0, vk=0) of block \"C\" reads C[2]", "an init that stores to C[",
    ),
    "under a condition": (
        IF_FIRST_ROWS.format(n=0, body=STORE.format(at="%vi")), UPDATE.format(at="%vi"),
        "instance (vi=2, vk=0) of block \"C\" reads C[2]", "an init that stores to C[%vi]",
    ),
    "one of two accumulators": (
        STORE.format(at="%vi"), UPDATE.format(at="%vi") + OF_D,
        "instance (vi=0, vk=0) of block \"C\" reads D[0]", "an init that stores to D[%vi]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTED)
def test_proved(name: str) -> None:
    block = block_of(*STARTED[name])
    assert why_not_started(block) is None
    assert why_not_reduction(block) is None
    assert all(why_reads_earlier(block, buffer) is None for buffer in buffers_written(block))


@pytest.mark.parametrize("name", MISSED)
def test_refuted(name: str) -> None:
    init, updates, told, legal = MISSED[name]
    block = block_of(init, updates)
    found = why_not_started(block)
    assert found is not None
    assert found.kind == "refuted"
    assert told in found.detail
    assert legal in str(found.legal)
    assert set(found.counterexample) == {"instance"}
    assert why_not_reduction(block) == found
    assert any(why_reads_earlier(block, buffer) == found for buffer in buffers_written(block))


def test_guards_decide_which_instances_run() -> None:
    """A split guard leaves no instance out; a guard that no iteration meets leaves the claim unproved."""
    init, updates, *_ = MISSED["shifted"]
    found = why_not_started(block_of(init, updates, loop="%i in 9", where="where [%i] < [8]"))
    assert found is not None
    assert found.kind == "refuted"
    found = why_not_started(block_of(init, updates, where="where [%i] < [0]"))
    assert found is not None
    assert str(found).startswith("not proved: leaving out guards, instance (vi=")


def test_not_proved() -> None:
    picked = "%x{n} = memref.load %X[%vi] : memref<8xindex>\n"
    block = block_of(
        picked.format(n=0) + STORE.format(at="%x0"), picked.format(n=1) + UPDATE.format(at="%x1")
    )  # fmt: skip
    found = why_not_started(block)
    assert found is not None
    assert found.kind == "not proved"
    assert "indices or conditions depend on data" in found.detail


def test_symbols_of_a_counterexample() -> None:
    text = """
    func.func @f(%A: memref<?x8xf32>, %C: memref<?xf32>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %n = memref.dim %A, %c0 : memref<?x8xf32>
      tir.assume_shape %C[%n] : memref<?xf32>
      tir.for %i in %n { tir.for %k in 8 {
        tir.block "C" iters(%vi: spatial<%n>, %vk: reduce<8>) = [%i, %k] {
          tir.init { memref.store %zero, %C[%vi] : memref<?xf32> }
          %a = memref.load %A[%vi, %vk] : memref<?x8xf32>
          %w = affine.apply affine_map<(i, n) -> (n - 1 - i)>(%vi, %n)
          %c = memref.load %C[%w] : memref<?xf32>
          %s = arith.addf %c, %a : f32
          memref.store %s, %C[%w] : memref<?xf32>
        } } }
      func.return
    }"""
    found = why_not_started(block_in(weft.parse(text)))
    assert found is not None
    assert found.kind == "refuted"
    assert found.detail.startswith('with n = 2: instance (vi=0, vk=0) of block "C" reads C[1]')
    assert found.counterexample == {"symbols": {"n": 2}, "instance": {"vi": 0, "vk": 0}}


def test_two_stores_to_one_element() -> None:
    """Instances may share an element through two stores that are each injective."""
    both = STORE.format(at="%vi") + "\n" + index("w", "i + 1") + STORE.format(at="%w")
    found = shared_element(block_of(both, UPDATE.format(at="%vi")))
    assert isinstance(found, Violation)
    assert found.kind == "refuted"
    assert "store to the same element of C" in found.detail
    apart = STORE.format(at="%vi") + "\n" + index("w", "i + 8") + STORE.format(at="%w")
    assert shared_element(block_of(apart, UPDATE.format(at="%vi"))) is None
