"""`weft-lsp`: a language server for IR, its tests, and Python files with weft.script.

`docs/weft-lsp.md` documents its features and how editors start it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from weft.support.errors import CompileError
from weft.tools.failures import ArgumentParser, run_tool, versions


def execute(words: Sequence[str]) -> int:
    """Serve until the editor ends the connection. Raises `CompileError` without pygls."""
    parser = ArgumentParser(prog="weft-lsp", description="Language server for .mlir files and weft.script.")
    parser.add_argument("--stdio", action="store_true", help="serve on standard input and output (the default)")
    parser.add_argument("--tcp", type=int, metavar="PORT", help="serve on a port of this machine")
    parser.add_argument("-v", "--version", action="store_true", help="print the versions, and exit")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an internal error")
    arguments = parser.parse_args(words)
    if arguments.version:
        print(versions())
        return 0
    try:
        from weft.tools.lsp.server import make_server  # needs pygls
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise CompileError("weft-lsp needs the package pygls: pip install 'weft[lsp]'") from None
    server = make_server()
    if arguments.tcp is not None:
        server.start_tcp("127.0.0.1", arguments.tcp)
    else:
        server.start_io()
    return 0


def main() -> None:
    words = sys.argv[1:]
    sys.exit(run_tool(lambda: execute(words), debug="--debug" in words))


if __name__ == "__main__":
    main()
