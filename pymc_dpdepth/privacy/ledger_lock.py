"""Opening a ledger's file under a lock, and what is said when that fails."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["created", "locked", "refused"]

LOCK_BYTE = 1 << 40  # Windows keeps others from reading what is locked, so a byte far behind the end is
FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.02  # seconds between two tries for the lock
BUSY = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}


@contextlib.contextmanager
def locked(path: Path, *, write: bool, timeout: float) -> Iterator[int]:
    """Open a ledger and hold its lock, shared among readers; yield the file descriptor.

    The lock belongs to the open file: it excludes threads and other `Ledger` objects as well as processes, by whatever
    name they opened the file, and the system drops it when the process dies.

    Parameters
    ----------
    path : Path
        The ledger.
    write : bool
        Open it for appending, alone.
    timeout : float
        Seconds to wait for others.

    Yields
    ------
    int
        The descriptor.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, OSError, TimeoutError
        If the file cannot be opened or locked.
    """
    deadline = time.monotonic() + timeout
    while True:
        descriptor = _open(path, write)
        try:
            _lock(descriptor, path, write, deadline)
            if _is_still(descriptor, path):  # it may have been replaced while we waited
                try:
                    yield descriptor
                finally:
                    _unlock(descriptor)  # a forked child may hold a copy of the descriptor, so closing is not enough
                return
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def created(path: Path, timeout: float) -> Iterator[int]:
    """Make a new file and yield its descriptor; nobody else gets its lock before the block has ended without an error.

    After an error the file is removed while the lock is held, so nobody can have charged what is removed.

    Parameters
    ----------
    path : Path
        Where; an existing file is never touched.
    timeout : float
        Seconds to wait for others, who may have opened the file while it was empty.

    Yields
    ------
    int
        The descriptor.

    Raises
    ------
    FileExistsError, FileNotFoundError, PermissionError, OSError, TimeoutError
        If the file cannot be made or locked.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o666)  # less the umask: several curators may share a ledger
    except FileExistsError:
        raise FileExistsError(
            f"Expected a new file; {path} exists and is not overwritten. Open it with Ledger(path), or choose another "
            "name; a budget that is spent stays spent."
        ) from None
    except FileNotFoundError:
        raise FileNotFoundError(f"Expected a folder {path.parent} for the ledger; make it first.") from None
    except OSError as error:
        raise refused(error, f"A ledger cannot be made at {path}") from None
    try:
        _lock(descriptor, path, True, time.monotonic() + timeout)
        yield descriptor
    except BaseException:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)  # Windows removes no file that is open; an empty one grants nothing
            path.unlink()
        raise
    finally:
        with contextlib.suppress(OSError):
            _unlock(descriptor)
        os.close(descriptor)


def refused(error: OSError, what: str) -> OSError:
    """Return an error of the system with its cure, of the same type."""
    cures = {errno.EACCES: "Ask for the right to do so", errno.ENOSPC: "Free some space"}
    cures |= {errno.EPERM: cures[errno.EACCES], errno.EROFS: "Move it to a disk that can be written"}
    cure = cures.get(error.errno or 0, "Check its path and the disk")
    return type(error)(f"{what}: {error.strerror}. {cure}; nothing has been charged.")


def _open(path: Path, write: bool) -> int:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"Expected the file of a ledger; {path} is a folder.")
        if not stat.S_ISREG(mode):
            raise ValueError(f"Expected the file of a ledger; {path} is a device or a pipe.")
        return os.open(path, (os.O_RDWR if write else os.O_RDONLY) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"Expected a ledger; there is no {path}. Make one with Ledger.create(path, ...) or `pymc-dpdepth ledger "
            "init PATH`; if there was one, restore it from a backup."
        ) from None
    except OSError as error:
        if error.errno is None:
            raise
        raise refused(error, f"The ledger {path} cannot be {'written' if write else 'read'}") from None


def _lock(descriptor: int, path: Path, write: bool, deadline: float) -> None:
    pause = FIRST_PAUSE
    while True:
        try:
            return _try_lock(descriptor, write)
        except OSError as error:
            if error.errno not in BUSY:
                raise OSError(
                    f"Expected a file system that locks files; that of {path} does not ({error.strerror}). Keep the "
                    "ledger on a local disk; nothing has been charged."
                ) from None
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"Expected the ledger {path} to be free; another process or thread holds its lock. Nothing has been "
                "charged; try again, or pass a longer timeout to Ledger."
            )
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _try_lock(descriptor: int, write: bool) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)


def _unlock(descriptor: int) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
