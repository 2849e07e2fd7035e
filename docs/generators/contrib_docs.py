"""The page of operators that onnxruntime adds to ONNX, from the definitions of their converters.

    python docs/generators/contrib_docs.py > docs/onnx-contrib.md

A test compares the page with the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from onnx import helper

from weft.frontends.onnx.contrib.refused import REASONS
from weft.frontends.onnx.registry import definitions

_HEAD = """# Operators of onnxruntime

Generated from the converters in `frontends/onnx/contrib/` by `python docs/generators/contrib_docs.py`.

onnxruntime's tools rewrite models to operators of the domain `com.microsoft`: levels of the graph optimizer, the
optimizer of transformers, quantization, conversion to float16. `weft.from_onnx` imports such files; batch and sequence
may be symbolic, as elsewhere. Inputs and attributes have the names and the meaning of onnxruntime's definitions.
[27 variants of nine models](../benchmarks/results/2026-11-29-onnx-variants.md) are compared with onnxruntime and timed.

`python tests/helpers/contrib_cases.py [OPERATOR...] --seeds 150` compares random nodes of each operator with
onnxruntime. The results of onnxruntime 1.32 on the CPU are the reference. Deviations:

"""
_DEVIATIONS: Final[Sequence[tuple[str, str, str]]] = (
    (
        "MatMulNBits",
        "with `g_idx`, ignores zero points of uint8, and reads weights of 2 bits as 4",
        "dequantizes by the group of each row, with its zero point",
    ),
    (
        "NhwcMaxPool",
        "ignores dilations when it pads to the same extents: results are smaller than ONNX defines",
        "results of ONNX's extents",
    ),
    (
        "DynamicQuantizeLSTM",
        "rounds data, and the states at each step, to 8 bits with one scale for all sequences",
        "rounds the states of each sequence with a scale of its own, from -127 to 127",
    ),
    (
        "QMoE",
        "rounds activations to 8 bits for 8-bit weights in blocks",
        "keeps them in the element type of the input",
    ),
    (
        "QMoE",
        (
            "normalizes the shares of experts on the CPU, whatever `normalize_routing_weights` says; its text "
            "says otherwise"
        ),
        "the same as onnxruntime",
    ),
    (
        "QMoE",
        "`weights_prepacked` = -1 is a layout of the device",
        "the layout of the CPU, which is that of 0",
    ),
    (
        "MoE",
        "`gelu` is its approximation by tanh, which its text does not say",
        "the same as onnxruntime",
    ),
    (
        "QLinearAdd and other quantized operators",
        "multiply by quotients of scales",
        (
            "compute the operator on floats, then quantize: a number halfway between two steps may be rounded "
            "the other way"
        ),
    ),
    (
        "Attention",
        "refuses `past` together with `attention_bias`",
        "accepts both",
    ),
    (
        "DecoderMaskedMultiHeadAttention",
        "requires `past_present_share_buffer` = 1 for self-attention on the CPU",
        "accepts 0, too",
    ),
    (
        "GroupQueryAttention",
        "leaves rows of results that belong to padding unspecified",
        "computes other numbers there",
    ),
    (
        "Attention, MultiHeadAttention",
        "adds -10000 to the scores of hidden keys",
        "the same: for a query without visible keys, the third digit differs",
    ),
)
"""Operator, its behaviour in onnxruntime, and in weft."""
_BLOCKS = """
The domain `com.microsoft.nchwc` is the result of `ORT_ENABLE_ALL`, the highest level of the graph optimizer. The
weights of its convolutions are stored in blocks of 8 or 16 channels, after the CPU that the optimizer ran on, and the
file does not say which. They are refused: save the model with `ORT_ENABLE_EXTENDED`
([why](decisions/0112-operators-of-onnxruntime.md)).

Refused by name:

"""


def refusals() -> str:
    """A list of the operators that are refused, by reason."""
    by_reason: dict[str, list[str]] = {}
    for operator, reason in REASONS.items():
        by_reason.setdefault(reason, []).append(operator)
    return "".join(f"- {', '.join(names)}: {reason}\n" for reason, names in by_reason.items())


def _inputs(schema: Any) -> str:
    marks = {"Single": "{}", "Optional": "[{}]", "Variadic": "{}..."}
    return ", ".join(marks[formal.option.name].format(formal.name) for formal in schema.inputs)


def _attributes(schema: Any) -> str:
    found: list[str] = []
    for name, attribute in sorted(schema.attributes.items()):
        default = attribute.default_value
        value = helper.get_attribute_value(default) if default.type else None
        value = value.decode() if isinstance(value, bytes) else f"{value:.7g}" if isinstance(value, float) else value
        found.append(name if attribute.required else f"[{name}]" if value is None else f"{name}={value}")
    return ", ".join(found)


def contrib_markdown() -> str:
    """The page."""
    rows = ["\n| operator | inputs, [optional] | attributes, [optional], with defaults | notes |\n|---|---|---|---|\n"]
    for (domain, operator), schema in definitions().items():
        label = operator if domain == "com.microsoft" else f"{domain or 'ai.onnx'}.{operator}"
        notes = " ".join((schema.doc or "").split())
        rows.append(f"| {label} | {_inputs(schema)} | {_attributes(schema)} | {notes} |\n")
    deviations = "| operator | onnxruntime | weft |\n|---|---|---|\n"
    deviations += "".join(f"| {' | '.join(row)} |\n" for row in _DEVIATIONS)
    return _HEAD + deviations + _BLOCKS + refusals() + "".join(rows)


if __name__ == "__main__":
    print(contrib_markdown(), end="")
