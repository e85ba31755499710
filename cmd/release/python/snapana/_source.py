"""What a result is made of: a file, or a snapshot that was just taken."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from typing import Any, List, Mapping, Union

from ._run import Error, Path, name_of

Snapshot = Union[Path, Mapping[str, Any], List[Any]]
"""A file's name, or what torch.cuda.memory._snapshot() gives."""


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked child: the folder is its parent's
        shutil.rmtree(folder, ignore_errors=True)


class Source:
    """The name of a file. A snapshot from memory has one in a folder of its own, for as long as this object lives."""

    def __init__(self, what: Snapshot) -> None:
        self.own = isinstance(what, (Mapping, list))
        self.name = self._write(what) if self.own else name_of(what)  # type: ignore[arg-type]

    def _write(self, snapshot: Any) -> str:
        if not snapshot or isinstance(snapshot, Mapping) and "segments" not in snapshot:
            raise Error("this is no snapshot: it has no segments", "not_a_snapshot",
                        "give what torch.cuda.memory._snapshot() returns")
        folder = tempfile.mkdtemp(prefix="snapana-")
        weakref.finalize(self, _remove, folder, os.getpid())
        name = os.path.join(folder, "snapshot.pickle")
        with open(name, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)
        return name
