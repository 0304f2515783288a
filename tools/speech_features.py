"""What Silero VAD and Resemblyzer compute from a sound before their recurrent layers read it. For `real_weights.py`."""

from __future__ import annotations

import io
import wave
from collections.abc import Mapping

import numpy as np

__all__ = ["mel_frames", "recording", "silero_frames"]


def recording(content: bytes) -> np.ndarray:
    """Samples in -1..1 of a WAV file or of raw 16-bit samples, both mono at 16 kHz."""
    if content[:4] == b"RIFF":
        with wave.open(io.BytesIO(content)) as file:
            assert file.getparams()[:3] == (1, 2, 16000)
            content = file.readframes(file.getnframes())
    return np.frombuffer(content, "<i2") / 32768


def _convolved(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """Convolution of width 3 over [channels, times] with one zero at each end, then the rectifier."""
    padded = np.pad(x, ((0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
    return np.maximum(np.einsum("oik,itk->ot", weight, windows) + bias[:, None], 0)


def silero_frames(tensors: Mapping[str, np.ndarray], samples: np.ndarray) -> np.ndarray:
    """What Silero VAD's LSTM reads, [steps, 128]: one frame per 512 samples, behind spectrum and four convolutions."""
    samples = samples[: len(samples) // 512 * 512]
    padded = np.concatenate([np.zeros(64), samples])
    frames = []
    for start in range(0, len(samples), 512):
        # 64 samples of the frame before, the frame, and its last 64 samples mirrored.
        piece = np.pad(padded[start : start + 576], (0, 64), mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(piece, 256)[::128]
        real, imaginary = np.split(tensors["stft_conv.weight"][:, 0] @ windows.T, 2)
        x = np.hypot(real, imaginary)
        for number, stride in ((1, 1), (2, 2), (3, 2), (4, 1)):
            x = _convolved(x, tensors[f"conv{number}.weight"], tensors[f"conv{number}.bias"], stride)
        frames.append(x[:, 0])
    return np.array(frames)


def _mel_of(hertz: np.ndarray | float) -> np.ndarray:
    """Mel as in Slaney's Auditory Toolbox (1998): linear up to 1 kHz, then 27 steps per factor 6.4."""
    above = 15 + 27 * np.log(np.maximum(hertz, 1000) / 1000) / np.log(6.4)
    return np.where(np.asarray(hertz) < 1000, np.asarray(hertz) * 3 / 200, above)


def _hertz_of(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))


def mel_frames(samples: np.ndarray) -> np.ndarray:
    """What Resemblyzer's first LSTM reads, [steps, 40]: mel power (no logarithm), windows of 25 ms every 10 ms.

    Triangles of equal area between 0 and 8 kHz; periodic Hann window; windows centred on multiples of 10 ms. The
    sound is made as loud as -30 dB of full scale first, if it is softer.
    """
    samples = samples * max(1, 10 ** (-30 / 20) / np.sqrt(np.mean(np.square(samples))))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    pieces = np.lib.stride_tricks.sliding_window_view(np.pad(samples, 200), 400)[::160]
    power = np.abs(np.fft.rfft(pieces * window)) ** 2
    edges = _hertz_of(np.linspace(0, _mel_of(8000), 42))[:, None]
    hertz = np.arange(201) * 40.0
    rising = (hertz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hertz) / (edges[2:] - edges[1:-1])
    filters = np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])
    return power @ filters.T
