"""Discrete Fourier transforms, by those of NumPy."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array


def _complex(data: Array) -> Array:
    return data[..., 0] + (1j * data[..., 1] if data.shape[-1] == 2 else 0)


def dft(data: Array, axis: int, length: int | None, inverse: bool, onesided: bool) -> Array:
    along = axis % data.ndim
    if inverse and onesided:
        return np.fft.irfft(_complex(data), length, along)[..., None]
    found = (np.fft.ifft if inverse else np.fft.fft)(_complex(data), length, along)
    if onesided:
        found = np.split(found, [found.shape[along] // 2 + 1], along)[0]
    return np.stack([found.real, found.imag], -1)


def stft(signal: Array, frame_step: int, window: Array | None, frame_length: int | None, onesided: bool) -> Array:
    length = frame_length or (0 if window is None else window.shape[0])
    frames = np.lib.stride_tricks.sliding_window_view(_complex(signal), length, 1)[:, ::frame_step]
    found = np.fft.fft(frames if window is None else frames * window)
    found = found[..., : length // 2 + 1] if onesided else found
    return np.stack([found.real, found.imag], -1)
