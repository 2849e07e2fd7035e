"""Activations."""

from __future__ import annotations

import math

import numpy as np

from weft.texpr.references.arguments import Array
from weft.texpr.references.elementwise import erf


def sigmoid(data: Array) -> Array:
    small = np.exp(-np.abs(data))
    return np.where(data < 0, small, np.ones_like(small)) / (1 + small)


def relu(data: Array) -> Array:
    return np.maximum(data, np.zeros((), data.dtype))


def softplus(data: Array, beta: float = 1.0, threshold: float = math.inf) -> Array:
    return np.where(data * beta > threshold, data, np.logaddexp(data * beta, 0) / beta)


def silu(data: Array, alpha: float) -> Array:
    return data * sigmoid(data * alpha)


def mish(data: Array) -> Array:
    return data * np.tanh(softplus(data))


def hardsigmoid(data: Array, alpha: float = 1 / 6, beta: float = 0.5) -> Array:
    return np.clip(data * alpha + beta, 0, 1)


def hardswish(data: Array) -> Array:
    return data * hardsigmoid(data)


def leaky_relu(data: Array, alpha: float) -> Array:
    return np.where(data > 0, data, data * alpha)


def elu(data: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    return np.where(data > 0, data, np.expm1(data * input_scale) * alpha) * scale


def gelu(data: Array, approximate: str) -> Array:
    if approximate == "tanh":
        return 0.5 * data * (1 + np.tanh(math.sqrt(2 / math.pi) * (data + 0.044715 * data**3)))
    return 0.5 * data * (1 + erf(data / math.sqrt(2)))


def softsign(data: Array) -> Array:
    return data / (1 + np.abs(data))


def log_sigmoid(data: Array) -> Array:
    return -np.logaddexp(0, -data)


def celu(data: Array, alpha: float) -> Array:
    return np.where(data > 0, data, np.expm1(data / alpha) * alpha)


def selu(data: Array, alpha: float, gamma: float) -> Array:
    return elu(data, alpha) * gamma


def thresholded_relu(data: Array, alpha: float) -> Array:
    return np.where(data > alpha, data, 0)


def shrink(data: Array, lambd: float, bias: float) -> Array:
    return np.where(data < -lambd, data + bias, np.where(data > lambd, data - bias, 0))


def prelu(data: Array, slope: Array) -> Array:
    return np.where(data > 0, data, data * slope)
