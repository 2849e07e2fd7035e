"""What others can change is not relied on: folders, files and the lock of the machine lease."""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from pathlib import Path

import pytest

from weft.support import machine_lease as leases
from weft.support.machine_lease import machine_lease
from weft.support.trusted_files import (
    UntrustedError,
    file_problem,
    folder_problem,
    made_folder,
    open_trusted,
    read_trusted,
    trusted_folder,
    write_trusted,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no numbers of users")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
PATH = Path("/some/place")


def status(kind: int, mode: int, owner: int) -> os.stat_result:
    return os.stat_result((kind | mode, 1, 1, 1, owner, 7, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "owner", "user", "shared", "problem"),
    [
        (0o700, 1000, 1000, False, ""),
        (0o755, 0, 1000, False, ""),
        (0o755, 1000, 0, False, "belongs to user 1000, not to you (user 0): name another folder"),
        (0o755, 1001, 1000, False, "belongs to user 1001, not to you (user 1000) or root: name another folder"),
        (0o775, 1000, 1000, False, "can be written by its group: chmod go-w '/some/place'"),
        (0o757, 0, 0, True, "can be written by others: chmod go-w '/some/place'"),
        (0o1777, 0, 1000, True, ""),
        (0o1777, 0, 1000, False, "can be written by its group and others"),
        (0o1777, 1001, 1000, True, "belongs to user 1001"),
    ],
)
def test_folders(mode: int, owner: int, user: int, shared: bool, problem: str) -> None:
    found = folder_problem(PATH, status(stat.S_IFDIR, mode, owner), user, shared=shared)
    assert problem in found and bool(problem) == bool(found)


@pytest.mark.parametrize(
    ("kind", "mode", "owner", "problem"),
    [
        (stat.S_IFREG, 0o600, 1000, ""),
        (stat.S_IFREG, 0o644, 0, ""),
        (stat.S_IFREG, 0o600, 1001, "belongs to user 1001, not to you (user 1000) or root: remove it"),
        (stat.S_IFREG, 0o620, 1000, "can be written by its group: chmod go-w"),
        (stat.S_IFREG, 0o606, 0, "can be written by others"),
        (stat.S_IFIFO, 0o600, 1000, "is no regular file: remove it"),
        (stat.S_IFCHR, 0o600, 0, "is no regular file"),
        (stat.S_IFDIR, 0o700, 1000, "is no regular file"),
    ],
)
def test_files(kind: int, mode: int, owner: int, problem: str) -> None:
    found = file_problem(PATH, status(kind, mode, owner), 1000)
    assert problem in found and bool(problem) == bool(found)
    assert bool(file_problem(PATH, status(kind, mode, owner), None)) == (kind != stat.S_IFREG)


def test_links_on_the_way_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/../a")
    (tmp_path / "absolute").symlink_to(tmp_path / "link")
    assert trusted_folder(tmp_path / "absolute" / "b") == folder.resolve()
    assert trusted_folder(tmp_path / "link" / ".." / "a") == folder.parent.resolve()
    folder.parent.chmod(0o777)
    with pytest.raises(UntrustedError, match=r"a' can be written by its group and others"):
        trusted_folder(tmp_path / "absolute" / "b")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="too many links"):
        trusted_folder(tmp_path / "loop")


def test_folders_above_may_have_the_sticky_bit(tmp_path: Path) -> None:
    shared, folder = tmp_path / "shared", tmp_path / "shared" / "mine"
    folder.mkdir(parents=True, mode=0o700)
    shared.chmod(0o1777)
    assert trusted_folder(folder) == folder.resolve()
    with pytest.raises(UntrustedError, match="shared' can be written"):
        trusted_folder(shared)
    shared.chmod(0o777)
    with pytest.raises(UntrustedError, match="shared' can be written"):
        made_folder(folder / "more")
    assert not (folder / "more").exists()


@as_root
def test_what_belongs_to_another_user(tmp_path: Path) -> None:
    folder, file = tmp_path / "theirs", tmp_path / "file"
    folder.mkdir()
    write_trusted(file, [b"content"])
    os.chown(folder, 12345, 12345)
    os.chown(file, 12345, 12345)
    (tmp_path / "link").symlink_to(tmp_path)
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    for call in (trusted_folder, made_folder):
        with pytest.raises(UntrustedError, match=r"theirs' belongs to user 12345, not to you \(user 0\): name another"):
            call(folder)
        with pytest.raises(UntrustedError, match="theirs' belongs to user 12345"):
            call(folder / "mine")
        with pytest.raises(UntrustedError, match=r"the link '.*link' belongs to user 12345.*: remove it"):
            call(tmp_path / "link")
    with pytest.raises(UntrustedError, match=r"file' belongs to user 12345.*: remove it"):
        read_trusted(file, 100)


@as_root
def test_a_user_takes_what_belongs_to_root() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_trusted(folder / "file", [b"con", b"tent"])
        (folder / "file").chmod(0o644)
        folder.chmod(0o755)
        os.seteuid(12345)
        try:
            assert read_trusted(trusted_folder(folder) / "file", 100) == b"content"
            with pytest.raises(PermissionError):
                made_folder(folder / "new")
        finally:
            os.seteuid(0)


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(os.devnull)
    for path, problem in ((tmp_path / "pipe", "no regular file"), (tmp_path / "link", "is a link"), (tmp_path, "no")):
        with pytest.raises(UntrustedError, match=problem):
            read_trusted(path, 100)
    for name in ("pipe", "link"):
        write_trusted(tmp_path / name, [b"file"])
        assert read_trusted(tmp_path / name, 100) == b"file"
    with pytest.raises(ValueError, match="has 4 bytes, more than 3"):
        read_trusted(tmp_path / "pipe", 3)
    with pytest.raises(OSError):
        read_trusted(tmp_path / "missing", 3)


@pytest.mark.parametrize("what", ["pipe", "link", "two names", "others", "open folder", "folder"])
def test_a_lock_that_others_may_have_made_is_not_used(what: str, tmp_path: Path) -> None:
    lock = tmp_path / f"weft-lease-{os.getuid()}"
    match what:
        case "pipe":
            os.mkfifo(lock)
        case "link":
            (tmp_path / "victim").write_text("kept")
            lock.symlink_to("victim")
        case "two names":
            (tmp_path / "victim").write_text("kept")
            lock.hardlink_to(tmp_path / "victim")
        case "others":
            lock.write_text("")
            lock.chmod(0o666)
        case "folder":
            lock.mkdir()
        case _:
            tmp_path.chmod(0o777)
    leases._warn.cache_clear()
    for count in (1, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with machine_lease(exclusive=True, folder=tmp_path), machine_lease(exclusive=True, folder=tmp_path):
                pass
        assert [str(tmp_path) in str(warning.message) for warning in caught] == [True] * count
    tmp_path.chmod(0o700)


def test_a_lock_in_a_folder_that_all_share(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with machine_lease(exclusive=True, folder=tmp_path):
            pass
    locks = [path for path in tmp_path.iterdir() if path.name.startswith("weft-")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in locks] == [0o600] * 2
    handle = open_trusted(locks[0], make=True)
    os.close(handle)
    tmp_path.chmod(0o700)
