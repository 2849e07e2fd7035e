"""The page of error codes, from the classes of errors and the requirements of schedule primitives.

    python docs/generators/error_docs.py > docs/errors.md

A test compares the page with the output.
"""

from __future__ import annotations

from weft.passes.schedule.primitive import PRIMITIVES
from weft.tools.explain_command import explanations

_HEAD = """# Error codes

Generated from `support/error_codes.py` and the requirements of schedule primitives by
`python docs/generators/error_docs.py`.

Messages end with a code in brackets, `[tir.out-of-bounds]`. `weft explain CODE` prints its meaning, an example and
what to do; it takes the message itself as well. Messages of other causes, and of wrong
arguments of primitives, have no code.
"""


def errors_markdown() -> str:
    """The page: the classes with examples, then a table of requirements."""
    parts = [_HEAD, "## Classes of errors\n"]
    rows: list[str] = []
    for code, one in explanations().items():
        if code.partition(".")[0] in PRIMITIVES:
            name = code.partition(".")[0]
            rows.append(f"| `{code}` | {_cell(one.title)} | [{name}](primitives.md#{name}) |")
        else:
            parts.append(f"### {code}\n\n{one.meaning}\n\n{one.example}\n\n{one.fix}\n")
    parts.append(
        "## Requirements of schedule primitives\n\n| code | requirement | primitive |\n|---|---|---|\n"
        + "\n".join(rows)
    )
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(errors_markdown(), end="")
