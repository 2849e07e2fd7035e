"""Operators of onnxruntime that are not functions of tensors, refused with a suggestion of what to import instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SEARCH: Final = "a search generates many tokens: import the decoder in its attribute, and call it for each token"
_STRINGS: Final = "strings are not supported: prepare the input of the model before it is called"
_TRAINING: Final = "models are for inference"
_GPU: Final = "layouts of tensor cores: quantize the model for CPUs"
REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"), _SEARCH),
    **dict.fromkeys(("MurmurHash3", "Tokenizer", "WordConvEmbedding"), _STRINGS),
    **dict.fromkeys(("BitmaskBiasDropout", "BitmaskDropout"), _TRAINING),
    **dict.fromkeys(
        (
            *("DequantizeWithOrder", "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization"),
            *("QOrderedLongformerAttention", "QOrderedMatMul", "QuantizeWithOrder"),
        ),
        _GPU,
    ),
    "EPContext": "the node holds a program of another device: export the model without it",
}
"""Maps an operator of `com.microsoft` to the reason of its refusal."""
