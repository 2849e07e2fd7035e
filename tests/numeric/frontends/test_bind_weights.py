"""`weft.bind_weights`: tensors of GGUF and safetensors files as constants, and files that are damaged."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.support.gguf import FORMATS, GgufTensor, blocks_of, read_gguf
from weft.support.safetensors import StoredTensor, write_safetensors

DEPTH, COLUMNS = 512, 6
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf_bytes(
    tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]], fields: bytes = b"", count: int = 0, **changes: int
) -> bytes:
    """A file of tensors: name -> type, shape, bytes. `fields` are `count` entries of metadata. `offset`, `kind`, `axes`
    and `version` replace what the file states."""
    info, data = b"", b""
    for name, (type_, shape, content) in tensors.items():
        info += text(name) + struct.pack("<I", changes.get("axes", len(shape)))
        info += b"".join(struct.pack("<Q", extent) for extent in reversed(shape))
        info += struct.pack("<IQ", changes.get("kind", TYPES[type_]), changes.get("offset", len(data)))
        data += content + b"\0" * (-len(content) % 32)
    head = b"GGUF" + struct.pack("<IQQ", changes.get("version", 3), len(tensors), count) + fields + info
    return head + b"\0" * (-len(head) % 32) + data


def blocks(type_: str, rows: int = COLUMNS, depth: int = DEPTH, seed: int = 0) -> bytes:
    """Random blocks with finite scales."""
    form, random = FORMATS[type_], np.random.default_rng(seed)
    data = random.integers(0, 256, (rows, depth // form.weights, form.size), np.uint8)
    factors = random.uniform(-2, 2, (*data.shape[:2], 2)).astype("<f2").view(np.uint8).reshape(*data.shape[:2], 4)
    at = {"Q6_K": 208}.get(type_, 0)
    count = 2 if type_ in ("Q4_0", "Q8_0", "Q6_K") else 4
    data[..., at : at + count] = factors[..., :count]
    return data.tobytes()


def dequantized(tensor: GgufTensor) -> Any:
    found = blocks_of(tensor)
    zero = 0 if found.zero_point is None else np.repeat(found.zero_point.astype(float), found.group, 1)
    return (found.integers - zero) * np.repeat(found.scale.astype(float), found.group, 1)


@pytest.mark.parametrize("type_", FORMATS)
def test_formats(type_: str, tmp_path: Path) -> None:
    """The weights are those that the package of llama.cpp computes."""
    gguf = pytest.importorskip("gguf")
    data = blocks(type_)
    (tmp_path / "w.gguf").write_bytes(gguf_bytes({"w": (type_, (COLUMNS, DEPTH), data)}))
    tensor = read_gguf(tmp_path / "w.gguf")["w"]
    assert tensor.shape == (COLUMNS, DEPTH)
    wanted = gguf.quants.dequantize(
        np.frombuffer(data, np.uint8).reshape(COLUMNS, -1), gguf.GGMLQuantizationType[type_]
    )
    assert np.abs(dequantized(tensor) - wanted).max() <= 2e-7 * np.abs(wanted).max()


def test_files_of_the_package(tmp_path: Path) -> None:
    """A file that llama.cpp's package writes, with metadata of all kinds."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "w.gguf", "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc"])
    writer.add_array("some.numbers", [1.5, 2.5])
    writer.add_bool("a.flag", True)
    weights = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    kinds = gguf.GGMLQuantizationType
    writer.add_tensor("half", weights.astype(np.float16))
    writer.add_tensor("bytes", gguf.quants.quantize(weights, kinds.Q8_0), raw_dtype=kinds.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(tmp_path / "w.gguf")
    assert (found["half"].data, found["half"].shape) == (weights.astype(np.float16).tobytes(), weights.shape)
    assert np.abs(dequantized(found["bytes"]) - weights).max() <= 0.02


def net() -> Any:
    bb = G.BlockBuilder()
    x, at, w = G.var("x", ("m", DEPTH)), G.var("at", ("k",), "int64"), G.var("blk_w", (COLUMNS, DEPTH))
    with bb.function("main", [x, at, w]):
        bb.emit_func_output([bb.emit(G.dense(x, w)), bb.emit(G.take(w, at, axis=0, mode="fast"))])
    return bb.get()


@pytest.mark.parametrize(
    "type_", ["Q4_1", *(pytest.param(t, marks=pytest.mark.slow) for t in ("Q8_0", "Q4_0", "Q4_K", "Q6_K"))]
)
def test_products_and_rows_of_blocks(type_: str, tmp_path: Path) -> None:
    """Neither stores floats of the size of the weights."""
    (tmp_path / "w.gguf").write_bytes(gguf_bytes({"blk.w": (type_, (COLUMNS, DEPTH), blocks(type_))}))
    lib = weft.build(weft.bind_weights(net(), tmp_path / "w.gguf"), target="llvm -num-threads=1")
    weights = dequantized(read_gguf(tmp_path / "w.gguf")["blk.w"])
    x = np.random.default_rng(1).standard_normal((5, DEPTH)).astype(np.float32)
    found, rows = lib["main"](x, np.array([5, 0]))
    expected = x.astype(float) @ weights.T
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert np.abs(rows - weights[[5, 0]]).max() <= 1e-6 * np.abs(weights).max()
    assert sum(array.nbytes for array in lib.constants.values()) < COLUMNS * DEPTH * 4


@pytest.mark.parametrize("type_", ("F16", "BF16", "F32"))
def test_plain_tensors(type_: str, tmp_path: Path) -> None:
    weights = np.random.default_rng(0).integers(-9, 9, (COLUMNS, DEPTH)).astype(np.float32)
    stored = weights.astype(np.float16) if type_ == "F16" else weights
    data = (weights.view(np.uint32) >> 16).astype(np.uint16).tobytes() if type_ == "BF16" else stored.tobytes()
    (tmp_path / "w.gguf").write_bytes(gguf_bytes({"blk.w": (type_, (COLUMNS, DEPTH), data)}))
    write_safetensors(tmp_path / "w.safetensors", {"v": StoredTensor(type_, (COLUMNS, DEPTH), memoryview(data))})
    at = np.array([3, 3, 1])
    for file, names in (("w.gguf", None), ("w.safetensors", {"blk_w": "v"})):
        module = weft.bind_weights(net(), tmp_path / file, names)
        found = weft.Interpreter(module).call("main", np.ones((2, DEPTH), np.float32), at)
        assert np.array_equal(found[1], weights[at])


def test_groups_of_scale_0(tmp_path: Path) -> None:
    """A group of Q4_1 with the scale 0 consists of its offset."""
    data = np.frombuffer(blocks("Q4_1"), np.uint8).reshape(COLUMNS, -1, 20).copy()
    data[2, 3, :2] = 0
    (tmp_path / "w.gguf").write_bytes(gguf_bytes({"w": ("Q4_1", (COLUMNS, DEPTH), data.tobytes())}))
    found = dequantized(read_gguf(tmp_path / "w.gguf")["w"])
    offset = data[2, 3, 2:4].copy().view("<f2")[0]
    assert np.array_equal(found[2, 96:128], np.full(32, offset, float))


BAD_SCALE = np.frombuffer(blocks("Q8_0"), np.uint8).reshape(COLUMNS, -1, 34).copy()
BAD_SCALE[4, 2, :2] = np.array([np.nan], "<f2").view(np.uint8)
GOOD = {"blk.w": ("Q8_0", (COLUMNS, DEPTH), blocks("Q8_0"))}
ENDLESS = text("numbers") + struct.pack("<IIQ", 9, 0, 1 << 60)
NESTED = text("nested") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 2000
LONG = text("name") + struct.pack("<IQ", 8, 1 << 63)
REFUSED = {
    "cut off": (
        gguf_bytes(GOOD)[:-33],
        r"tensor 'blk\.w' of shape \(6, 512\) and type Q8_0 takes 3264 bytes from 0 on",
    ),
    "no header": (b"GGUF\3\0", "is cut off: the version of 4 bytes begins at byte 4 of 6"),
    "version": (gguf_bytes(GOOD, version=1), "is GGUF of version 1: weft reads versions 2 and 3"),
    "outside": (gguf_bytes(GOOD, offset=1 << 63), "takes 3264 bytes from 9223372036854775808 on"),
    "between": (gguf_bytes(GOOD, offset=8), "from 8 on, a multiple of 32, of"),
    "axes": (gguf_bytes(GOOD, axes=1 << 31), r"tensor 'blk\.w' has 2147483648 axes, GGUF has up to 4"),
    "large": (
        gguf_bytes({"blk.w": ("F32", (1 << 40, 1 << 40), b"")}),
        "takes 4835703278458516698824704 bytes from 0 on",
    ),
    "no blocks": (gguf_bytes({"blk.w": ("Q8_0", (COLUMNS, 40), b"")}), "rows are no whole blocks of 32 weights"),
    "type": (gguf_bytes(GOOD, kind=6), r"tensor 'blk\.w' is of type Q5_0; weft reads F32, F16, BF16, Q8_0"),
    "unknown type": (gguf_bytes(GOOD, kind=99), r"tensor 'blk\.w' is of type 99; weft reads"),
    "shape": (
        gguf_bytes({"blk.w": ("F32", (2, 3), bytes(24))}),
        r"tensor 'blk\.w' of .* has shape \(2, 3\), but parameter 'blk_w' is tensor<6x512xf32>",
    ),
    "scale": (
        gguf_bytes({"blk.w": ("Q8_0", (COLUMNS, DEPTH), BAD_SCALE.tobytes())}),
        r"tensor 'blk\.w' of type Q8_0: the scale of row 4, group 2 must be finite, is nan",
    ),
    "endless array": (gguf_bytes(GOOD, ENDLESS, 1), "is cut off: 'numbers' of 1152921504606846976 bytes begins at"),
    "nested arrays": (gguf_bytes(GOOD, NESTED, 1), "'nested' has the unknown type 9"),
    "long text": (gguf_bytes(GOOD, LONG, 1), "is cut off: 'name' of 9223372036854775808 bytes"),
    "alignment": (
        gguf_bytes(GOOD, text("general.alignment") + struct.pack("<II", 4, 24), 1),
        r"general\.alignment is no power of two",
    ),
    "no parameter": (gguf_bytes({"other": GOOD["blk.w"]}), "no parameter of @main has the name of a tensor"),
    "not UTF-8": (gguf_bytes(GOOD).replace(b"blk.w", b"bl\xff.w"), "is no text in UTF-8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_files(case: str, tmp_path: Path) -> None:
    content, message = REFUSED[case]
    (tmp_path / "w.gguf").write_bytes(content)
    with pytest.raises(weft.CompileError, match=message):
        weft.bind_weights(net(), tmp_path / "w.gguf")


def test_refused_names(tmp_path: Path) -> None:
    (tmp_path / "w.gguf").write_bytes(gguf_bytes(GOOD))
    for names, message in (
        ({"blk": "blk.w"}, "@main has no parameter 'blk'"),
        ({"blk_w": "blk.v"}, r"has no tensor 'blk\.v'"),
    ):
        with pytest.raises(weft.CompileError, match=message):
            weft.bind_weights(net(), tmp_path / "w.gguf", names)
    with pytest.raises(weft.CompileError, match="the module has no function @other"):
        weft.bind_weights(net(), tmp_path / "w.gguf", function="other")
    (tmp_path / "w.gguf").write_bytes(b"something else")
    with pytest.raises(weft.CompileError, match="is no safetensors file"):
        weft.bind_weights(net(), tmp_path / "w.gguf")


def test_damaged_files(tmp_path: Path) -> None:
    """Files with changed bytes are read, or refused by an error that names the file or the tensor."""
    whole, random = bytearray(gguf_bytes(GOOD, LONG[:-8] + struct.pack("<Q", 2) + b"ab", 1)), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for at in random.integers(0, 160, 2):
            damaged[int(at)] = int(random.integers(256))
        (tmp_path / "w.gguf").write_bytes(damaged[: int(random.integers(8, len(damaged)))])
        try:
            for tensor in read_gguf(tmp_path / "w.gguf").values():
                if tensor.type in FORMATS:
                    blocks_of(tensor)
        except weft.CompileError as error:
            assert "w.gguf" in error.message or "tensor '" in error.message


def test_a_model_of_pytorch(tmp_path: Path) -> None:
    torch = import_module("torch") if pytest.importorskip("torch") else None
    assert torch is not None
    model, x = torch.nn.Sequential(torch.nn.Linear(64, 32, bias=False)), torch.randn(3, 64)
    mod = weft.from_torch(model, (x,), params="arguments")
    data = blocks("Q4_0", 32, 64)
    (tmp_path / "w.gguf").write_bytes(gguf_bytes({"output.weight": ("Q4_0", (32, 64), data)}))
    bound = weft.bind_weights(mod, tmp_path / "w.gguf", {"p_0_weight": "output.weight"})
    weights = dequantized(read_gguf(tmp_path / "w.gguf")["output.weight"])
    found = weft.Interpreter(bound).call("main", x.numpy())
    assert np.abs(found - x.double().numpy() @ weights.T).max() <= 1e-3
