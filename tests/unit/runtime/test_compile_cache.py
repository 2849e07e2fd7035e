"""The compile cache: its files, what is evicted, and what makes an entry unusable."""

import os
import re
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from weft.runtime import compile_cache
from weft.runtime.compile_cache import CompileCache, CompiledKernel, ModelEntry, decoded, encoded
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute

KERNEL = CompiledKernel(
    "func.func private @k()", "call", ("sched.func @a", "b"), "define void @k()\n", b"\x7fELF\n\0\xff" * 9
)

MODEL = ModelEntry(
    {"weights/a": "12ab"},
    "{}",
    ("one", "two"),
    "define void @main()\n",
    {"c0": np.arange(6, dtype=np.float32).reshape(2, 3), "c1": np.array([True])},
)


def bytes_of(kernel: CompiledKernel, key: str) -> bytes:
    return b"".join(encoded(key, *kernel.parts()))


@pytest.fixture(autouse=True)
def first_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test warns anew."""
    monkeypatch.setattr(compile_cache, "_warned", set())


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path / "a" / "cache")


def test_a_kernel_comes_back_as_it_was(cache: CompileCache) -> None:
    assert cache.load("key") is None
    assert cache.store("key", KERNEL)
    assert cache.load("key") == KERNEL
    assert [entry.path.name for entry in cache.entries()] == ["key.kernel"]


def test_code_of_the_runtime_comes_back_as_it_was(cache: CompileCache) -> None:
    assert cache.load_code("key") is None
    assert cache.store_code("key", b"\x7fELF")
    assert cache.load_code("key") == b"\x7fELF"
    (entry,) = cache.entries()
    assert entry.path.name == "key.code"
    entry.path.write_bytes(entry.path.read_bytes()[:-1])
    assert cache.load_code("key") is None
    assert not entry.path.exists()


@pytest.mark.parametrize("switch", ["0", "1"])
def test_the_native_call_is_compiled_once(tmp_path: Path, switch: str) -> None:
    """A second process finds the code that the first one stored; without a cache, both compile it."""
    code = (
        "import numpy as np, weft; from weft import te; n = te.var('n'); A = te.placeholder((n,), name='A')\n"
        "f = weft.build(te.create_func([A, te.compute((n,), lambda i: A[i] + 1)]), cache=False)['main']\n"
        "assert (f(np.ones(3, 'float32')) == 2).all()"
    )
    kept = []
    for _ in range(2):
        environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "cache"), "WEFT_CACHE": switch}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        kept.append({path: path.read_bytes() for path in (tmp_path / "cache").glob("*.code")})
    assert kept[0] == kept[1]
    assert len(kept[0]) == int(switch)


@pytest.mark.parametrize("damage", ["truncated", "one byte", "empty", "of another key", "text", "another version"])
def test_an_unusable_entry_is_none_and_is_removed(cache: CompileCache, damage: str) -> None:
    data = bytes_of(KERNEL, "key")
    content = {
        "truncated": data[:-1],
        "one byte": data[:-20] + b"x" + data[-19:],
        "empty": b"",
        "of another key": bytes_of(KERNEL, "other"),
        "text": b"not a kernel\n",
        "another version": data.replace(b"cache 3", b"cache 9"),
    }[damage]
    cache.store("key", KERNEL)
    cache.entries()[0].path.write_bytes(content)
    assert cache.load("key") is None
    assert not cache.entries()


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b'{"key": "key", "fields": {}, "sizes": [1, 2]}',
        b'{"key": "key", "fields": {}, "sizes": ["1"]}',
        b'{"key": "key", "fields": [], "sizes": []}',
        b'{"key": "key", "fields": {"declarations": "", "caller": "", "traces": []}, "sizes": []}',
        b"\xff",
        b"",
    ],
)
@pytest.mark.parametrize("rest", [b"", b"\n", b"\nabc"])
def test_a_content_that_nothing_has_is_none(header: bytes, rest: bytes, cache: CompileCache) -> None:
    content = header + rest
    head = b"weft cache 3 " + compile_cache.hashlib.sha256(content).hexdigest().encode()
    cache.folder.mkdir(parents=True)
    for suffix in ("kernel", "model"):
        (cache.folder / f"key.{suffix}").write_bytes(head + b"\n" + content)
    assert cache.load("key") is None and cache.load_model("key") is None
    assert not cache.entries()


def test_a_model_comes_back_as_it_was(cache: CompileCache) -> None:
    assert cache.load_model("key") is None
    assert cache.store("key", KERNEL) and cache.store_model("key", MODEL)
    found = cache.load_model("key")
    assert found is not None and cache.load("key") == KERNEL
    assert (found.files, found.signatures, found.kernels, found.ir) == (
        MODEL.files,
        MODEL.signatures,
        MODEL.kernels,
        MODEL.ir,
    )
    for name, array in MODEL.constants.items():
        assert found.constants[name].tobytes() == array.tobytes()
        assert found.constants[name].ctypes.data % 64 == 0
    assert sorted(entry.path.name for entry in cache.entries()) == ["key.kernel", "key.model"]


def test_a_model_of_more_than_half_of_the_limit_is_not_kept(cache: CompileCache) -> None:
    assert not CompileCache(cache.folder, 49).store_model("key", MODEL)
    assert CompileCache(cache.folder, 50).store_model("key", MODEL)


def test_blobs_lie_at_multiples_of_64_bytes() -> None:
    content = memoryview(b"".join(encoded("key", {"a": 1}, [b"x" * 3, b"", b"y" * 65])))
    found = decoded(content, "key")
    assert found is not None
    assert found[0] == {"a": 1} and [bytes(blob) for blob in found[1]] == [b"xxx", b"", b"y" * 65]
    assert content.tobytes().index(b"xxx") % 64 == content.tobytes().index(b"yyy") % 64 == 0


def test_the_least_recently_used_are_evicted(cache: CompileCache) -> None:
    size = len(bytes_of(KERNEL, "0"))
    small = CompileCache(cache.folder, 2 * size)
    for at in range(4):
        small.store(str(at), KERNEL)
        os.utime(small.entries()[-1].path, (at, at))
    for entry in small.entries():
        at = int(entry.path.stem)
        os.utime(entry.path, (at, at))
    assert small.load("0") == KERNEL  # now the most recently used
    assert small.evict() == 2
    assert sorted(entry.path.stem for entry in small.entries()) == ["0", "3"]
    assert small.evict() == 0


def test_what_a_process_left_behind_is_removed_when_it_is_old(cache: CompileCache) -> None:
    cache.store("key", KERNEL)
    old, new = cache.folder / ".weft-0123", cache.folder / ".weft-4567"
    for file in (old, new):
        file.write_bytes(b"begun")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    cache.evict()
    assert not old.exists() and new.exists()


def test_a_folder_that_cannot_be_written_warns_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = CompileCache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match=r"the compile cache '.*file/cache' is off: '.*file' is no folder"):
        assert not cache.store("key", KERNEL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cache.store("other", KERNEL)
    assert cache.load("key") is None and not cache.entries() and cache.evict() == 0 and cache.clear() == 0


def test_the_folder_and_its_files_are_of_the_user_alone(cache: CompileCache) -> None:
    before = os.umask(0)
    try:
        assert cache.store("key", KERNEL)
    finally:
        os.umask(before)
    made = [cache.folder.parent, cache.folder, cache.entries()[0].path]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700, 0o700, 0o600]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no numbers of users")
@pytest.mark.parametrize("folder", ["cache", "a"])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_nothing_is_taken_from_a_folder_that_others_write(
    cache: CompileCache, mode: int, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.store("key", KERNEL)
    open_folder = cache.folder if folder == "cache" else cache.folder.parent
    open_folder.chmod(mode)
    who = {0o770: "its group", 0o707: "others", 0o777: "its group and others"}[mode]
    reason = f"'{open_folder}' can be written by {who}: chmod go-w '{open_folder}'"
    with pytest.warns(UserWarning, match=f"'{cache.folder}' is off: {re.escape(reason)}") as warned:
        assert cache.load("key") is None and cache.load_model("key") is None
        assert not cache.store("key", KERNEL) and not cache.store_model("key", MODEL)
        assert not cache.entries() and cache.evict() == 0 and cache.clear() == 0
    assert len(warned) == 1
    monkeypatch.setenv("WEFT_CACHE_DIR", str(cache.folder))
    assert execute(["cache", "--clear"]) == 0
    assert f"off       {reason}\n" in capsys.readouterr().out
    open_folder.chmod(0o700)
    assert cache.load("key") == KERNEL


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
@pytest.mark.parametrize("what", ["pipe", "link", "folder", "for its group", "for all", "dangling link"])
def test_a_file_that_others_may_have_put_there_is_not_read(cache: CompileCache, what: str) -> None:
    cache.store("key", KERNEL)
    path = cache.entries()[0].path
    if what.startswith("for"):
        path.chmod(0o660 if what == "for its group" else 0o606)
    else:
        path.rename(path.with_name("elsewhere"))
    match what:
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("elsewhere")
        case "dangling link":
            path.symlink_to("nowhere")
        case "folder":
            path.mkdir()
        case _:
            pass
    with pytest.warns(UserWarning, match=r"is off: '.*key\.kernel' (is no regular file|is a link|can be written by)"):
        assert cache.load("key") is None
    if what != "folder":
        assert cache.store("key", KERNEL) and cache.load("key") == KERNEL


def test_constants_outlive_their_file(cache: CompileCache) -> None:
    cache.store_model("key", MODEL)
    found = cache.load_model("key")
    assert found is not None
    with cache.entries()[0].path.open("r+b") as file:
        file.truncate(0)  # of a mapped file nothing could be read now
    assert {name: array.tobytes() for name, array in found.constants.items()} == {
        name: array.tobytes() for name, array in MODEL.constants.items()
    }
    with pytest.raises(ValueError, match="read-only"):
        found.constants["c0"][0] = 1


def test_an_entry_longer_than_the_cache_may_be_is_removed(cache: CompileCache) -> None:
    cache.store("key", KERNEL)
    os.truncate(cache.entries()[0].path, 1 << 40)  # a hole
    assert cache.load("key") is None
    assert not cache.entries()


@pytest.mark.parametrize(
    ("text", "size"), [("", 4 << 30), ("4096", 4096), ("500M", 500 << 20), ("2 GiB", 2 << 30), ("3kb", 3 << 10)]
)
def test_the_limit_of_the_environment(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", text)
    assert CompileCache.of_user().limit == size


def test_a_limit_that_is_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "much")
    with pytest.raises(CompileError, match="WEFT_CACHE_LIMIT is a number of bytes, as 500M or 2G, got 'much'"):
        CompileCache.of_user()


def test_the_folder_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    assert CompileCache.of_user().folder == tmp_path
    monkeypatch.delenv("WEFT_CACHE_DIR")
    assert CompileCache.of_user().folder.name in ("weft", "cache")


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.warns(UserWarning, match=f"is off: '{os.devnull}' is no folder"):
        assert not CompileCache.of_user().store("key", KERNEL)


def test_weft_cache(cache: CompileCache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(cache.folder))
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "3M")
    assert execute(["cache"]) == 0
    assert (
        f"folder    {cache.folder}, switched off\nentries   0 of 0 B, the limit is 3.0 MiB\n" in capsys.readouterr().out
    )
    monkeypatch.delenv("WEFT_CACHE")
    cache.store("key", KERNEL)
    execute(["cache", "--clear"])
    shown = capsys.readouterr().out
    assert "switched off" not in shown and "entries   1 of" in shown and "removed   1\n" in shown
    assert not cache.entries()
