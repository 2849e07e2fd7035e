"""Programs with the passes that failed on them, in the format of MLIR's reproducers.

module {...}
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(cse,tir-flatten)",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
"""

from __future__ import annotations

from weft.driver.parsing import Resources
from weft.support.errors import CompileError

_KEY = "mlir_reproducer"


def reproducer_text(program: str, pipeline: str, *, verify_each: bool) -> str:
    escaped = pipeline.replace("\\", "\\\\").replace('"', "\\22").replace("\n", "\\0A")
    return f"""{program}

{{-#
  external_resources: {{
    {_KEY}: {{
      pipeline: "{escaped}",
      disable_threading: true,
      verify_each: {str(verify_each).lower()}
    }}
  }}
#-}}
"""


def pipeline_of(resources: Resources, file: str) -> tuple[str, bool]:
    """Returns the passes, and whether to verify the IR after each. Raises `CompileError` if it is not a reproducer."""
    entries = resources.get(_KEY, {})
    pipeline = entries.get("pipeline")
    if not isinstance(pipeline, str):
        raise CompileError(f"'{file}' is not a reproducer: it has no external_resources {{{_KEY}: {{pipeline: ...}}}}")
    return pipeline, entries.get("verify_each") is not False
