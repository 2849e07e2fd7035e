"""Allowed values of string attributes, and lower bounds of integer attributes.

They are from the text of ONNX's definitions: `onnx.defs` states only types. Converters check words that only
some opsets allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_PADDING: Final = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_WAY: Final = ("forward", "reverse", "bidirectional")
_LOSS: Final = ("none", "sum", "mean")
_UPDATE: Final = ("none", "add", "mul", "max", "min")
_SCORES: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_BLOCKS: Final = ("DCR", "CRD")
_BRANCHES: Final = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_FRAMES: Final = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    *("tf_half_pixel_for_nn", "tf_crop_and_resize"),
)

_WORDS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "activation": {"CausalConvWithState": ("none", "silu", "swish")},
    "aggregate_function": {"TreeEnsembleRegressor": ("AVERAGE", "SUM", "MIN", "MAX")},
    "approximate": {"Gelu": ("none", "tanh")},
    "auto_pad": dict.fromkeys(
        (
            *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "ConvTransposeWithDynamicPads", "FusedConv"),
            *("LpPool", "MaxPool", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "QLinearAveragePool", "QLinearConv"),
        ),
        _PADDING,
    ),
    "case_change_action": {"StringNormalizer": ("LOWER", "UPPER", "NONE")},
    "coordinate_transformation_mode": {"Resize": _FRAMES, "RoiAlign": ("half_pixel", "output_half_pixel")},
    "direction": {"BitShift": ("LEFT", "RIGHT"), "DynamicQuantizeLSTM": _WAY, "GRU": _WAY, "LSTM": _WAY, "RNN": _WAY},
    "keep_aspect_ratio_policy": {"Resize": ("stretch", "not_larger", "not_smaller")},
    "kernel_type": dict.fromkeys(("SVMClassifier", "SVMRegressor"), ("LINEAR", "POLY", "RBF", "SIGMOID")),
    "mode": {
        "CropAndResize": ("bilinear", "nearest"),
        "DepthToSpace": _BLOCKS,
        "GridSample": ("bilinear", "nearest", "bicubic", "linear", "cubic"),
        "Momentum": ("nesterov", "standard"),
        "Pad": ("constant", "reflect", "edge", "wrap"),
        "Resize": ("nearest", "linear", "cubic"),
        "RoiAlign": ("avg", "max"),
        "SpaceToDepth": _BLOCKS,
        "TensorScatter": ("linear", "circular"),
        "TfIdfVectorizer": ("TF", "IDF", "TFIDF"),
        "Upsample": ("nearest", "linear", "bilinear"),
    },
    "nearest_mode": {"Resize": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
    "nodes_modes": dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor"), _BRANCHES),
    "norm": {"Normalizer": ("MAX", "L1", "L2")},
    "padding_mode": {"GridSample": ("zeros", "border", "reflection")},
    "post_transform": dict.fromkeys(
        (
            *("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"),
            *("TreeEnsembleClassifier", "TreeEnsembleRegressor"),
        ),
        _SCORES,
    ),
    "reduction": {
        "NegativeLogLikelihoodLoss": _LOSS,
        "ScatterElements": _UPDATE,
        "ScatterND": _UPDATE,
        "SoftmaxCrossEntropyLoss": _LOSS,
    },
    "round_mode": dict.fromkeys(("Cast", "CastLike"), ("up", "down", "nearest")),
    "update_rule": {"LinearAttention": ("linear", "gated", "delta", "gated_delta")},
}
"""Maps an attribute and an operator to the allowed words."""


def words_of(operator: str, attribute: str) -> Sequence[str] | None:
    return _WORDS.get(attribute, {}).get(operator)


_LEAST: Final[Mapping[str, int]] = {
    **dict.fromkeys(("blocksize", "dilations", "group", "kernel_shape", "offset_group", "p", "size", "strides"), 1),
    **dict.fromkeys(("n_targets", "num_outputs", "output_height", "output_shape", "output_width", "targets"), 1),
    **dict.fromkeys(("max_gram_length", "min_gram_length", "kv_num_heads", "num_heads", "q_num_heads"), 1),
    **dict.fromkeys(("block_size", "max_skip_count", "ngram_counts", "ngram_indexes", "output_padding"), 0),
    **dict.fromkeys(("pads", "sampling_ratio"), 0),
}
"""Maps an attribute to its least value."""


def least_of(operator: str, attribute: str) -> int | None:
    return None if operator == "Pad" else _LEAST.get(attribute)
