"""Latency of `weft-lsp` on a file of 10,000 lines.

    python benchmarks/lsp.py [requests]

For each kind of request the median over the requests (default 5), as wall time and as CPU time of the server, which
other work on the machine disturbs less. Places are spread over the file. Diagnostics are those after a change; the
pause of the server before an analysis is part of the wall time. Needs `pip install 'weft[lsp]'`, and Linux.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from lsprotocol import types as lsp

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))

from lsp_session import Session, with_server

FUNCTION = """
// RUN: weft-opt %s -p 'cse,tir-split{block=B loop=0 factors=0,4}' | filecheck %s
func.func @add{n}(%A: memref<64x8xf32>, %B: memref<64x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<64x8xf32>
  tir.for %i in 64 {
    tir.for %j in 8 {
      tir.block "B" iters(%v: spatial<64>, %w: spatial<8>) = [%i, %j] {
        %a = memref.load %A[%v, %w] : memref<64x8xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %B[%v, %w] : memref<64x8xf32>
      }
    }
  }
  func.return
}
"""
COPIES = 640


def cpu_seconds() -> float:
    """CPU time of the server: of all children of this process."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


async def measure(name: str, rounds: int, request: Callable[[int], Awaitable[object]]) -> None:
    wall: list[float] = []
    cpu: list[float] = []
    for at in range(rounds):
        begun, used = time.perf_counter(), cpu_seconds()
        await request(at * (COPIES // rounds))
        wall.append(time.perf_counter() - begun)
        cpu.append(cpu_seconds() - used)
    print(f"{name:<24} {median(wall) * 1e3:>8.0f} {median(cpu) * 1e3:>8.0f}")


async def requests(session: Session, file: Path, rounds: int) -> None:
    client = session.client
    print(f"{'request':<24} {'wall ms':>8} {'CPU ms':>8}")
    begun, used = time.perf_counter(), cpu_seconds()
    uri = await session.open(file)
    await session.diagnostics()
    print(f"{'first diagnostics':<24} {(time.perf_counter() - begun) * 1e3:>8.0f} {(cpu_seconds() - used) * 1e3:>8.0f}")
    document = lsp.TextDocumentIdentifier(uri)
    flip = {"now": "addf", "next": "mulf"}

    async def change(_: int) -> None:
        session.change(uri, f"arith.{flip['now']} %a", f"arith.{flip['next']} %a")
        flip["now"], flip["next"] = flip["next"], flip["now"]
        await session.diagnostics()

    kinds: dict[str, Callable[[int], Awaitable[object]]] = {
        "hover value": lambda n: session.hover(uri, "addf %|a", n),
        "hover operation": lambda n: session.hover(uri, "memref.st|ore", n),
        "hover pass": lambda n: session.hover(uri, "tir-sp|lit", n),
        "complete operation": lambda n: session.completions(uri, "arith.|addf"),
        "complete value": lambda n: session.completions(uri, "addf %|a"),
        "complete pass": lambda n: session.completions(uri, "-p 'cse,tir|-split"),
        "complete option": lambda n: session.completions(uri, "block=B |loop"),
        "outline": lambda n: client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document)),
        "definition": lambda n: client.text_document_definition_async(
            lsp.DefinitionParams(**session.at(uri, "addf %|a", n))
        ),
        "references": lambda n: client.text_document_references_async(
            lsp.ReferenceParams(context=lsp.ReferenceContext(True), **session.at(uri, "addf %|a", n))
        ),
        "folding": lambda n: client.text_document_folding_range_async(lsp.FoldingRangeParams(document)),
        "hints of 60 lines": lambda n: client.text_document_inlay_hint_async(
            lsp.InlayHintParams(document, lsp.Range(lsp.Position(16 * n, 0), lsp.Position(16 * n + 60, 0)))
        ),
        "code actions": lambda n: session.actions(uri, "|tir.for %i"),
        "formatting": lambda n: client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(2, True))
        ),
    }
    for name, request in kinds.items():
        await measure(name, rounds, request)
    await measure("diagnostics of a change", rounds, change)
    session.change(uri, "func.return", "func.retur")
    for name in ("hover value", "complete operation", "outline"):
        await measure(f"{name}, invalid text", rounds, kinds[name])


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "large.mlir")
        file.write_text("".join(FUNCTION.replace("{n}", str(n)) for n in range(COPIES)))
        print(f"{file.read_text().count(chr(10))} lines")
        with_server(lambda session: requests(session, file, rounds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
