"""Recordings, made by snapana_recorder in this process."""

from __future__ import annotations

import importlib
import os
import sys
import types
from contextlib import AbstractContextManager
from typing import Any, Optional, Tuple, Type

from ._report import Report, report
from ._run import Error, Option, binary, run

_STACKS = "python"


def _recorder() -> Any:
    """The module snapana_recorder: the installed one, else the one that the program prints."""
    try:
        return importlib.import_module("snapana_recorder")
    except ModuleNotFoundError as err:
        if err.name != "snapana_recorder":
            raise
    module = types.ModuleType("snapana_recorder")
    module.__file__ = f"<{os.path.basename(binary())} recorder>"
    exec(compile(run("recorder"), module.__file__, "exec"), module.__dict__)
    sys.modules.setdefault("snapana_recorder", module)
    return sys.modules["snapana_recorder"]


class Recording:
    """A block that is recorded: `with snapana.record("run") as run:`."""

    def __init__(self, run: "str | os.PathLike[str]", **options: Any) -> None:
        self._run, self._options = os.fspath(run), options
        self._block: Any = None
        self._key: Optional[Tuple[int, ...]] = None
        self._report: Optional[Report] = None

    def __enter__(self) -> Recording:
        folder = os.path.dirname(self._run)
        if folder:
            os.makedirs(folder, exist_ok=True)
        recorder = _recorder()
        self._report = self._key = None
        self._block = recorder.record(self._run, **self._options)
        self._block.__enter__()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:
        self._block.__exit__(kind, value, trace)
        if self.path is not None:
            self._key = _key(self.path)

    @property
    def path(self) -> Optional[str]:
        """The snapshot, None where there is none: no CUDA, or no dump so far."""
        return self._block.files[0] if self._block is not None else None

    @property
    def sidecar(self) -> Optional[str]:
        """The recorder's file, None where nothing could be recorded."""
        return self._block.files[1] if self._block is not None else None

    def step(self, epoch: Optional[int] = None, label: Optional[str] = None) -> None:
        """A sample of the memory counters, once for each pass over the work that repeats."""
        _recorder().step(epoch, label)

    def phase(self, name: str) -> AbstractContextManager[Any]:
        """Names a part of the program, of which the report shows the peak."""
        found: AbstractContextManager[Any] = _recorder().phase(name)
        return found

    def dump(self) -> None:
        """Who holds what now. Two dumps, some steps apart, tell what only grows from what changes."""
        if self._block is not None:
            self._block.dump()

    @property
    def report(self) -> Report:
        """The report on the block, made when it is first asked for. Raises Error (code "no_snapshot") where none was
        recorded."""
        if self._report is None:
            path = self.path
            if path is None:
                raise Error("no snapshot was recorded", "no_snapshot", _why())
            if self._key is not None and _key(path) != self._key:
                raise Error(f"{path} has been replaced since by another recording", "changed",
                            "give each recording a name of its own, or ask for its report before the next one")
            made = report(path)
            if self._key is None:
                return made  # of a block that goes on
            self._report = made
        return self._report

    def __repr__(self) -> str:
        return f"<snapana.Recording {self.path or self._run}>"

    def _repr_html_(self) -> Optional[str]:
        return self.report._repr_html_() if self._key is not None else None

    def _repr_markdown_(self) -> Optional[str]:
        return self.report._repr_markdown_() if self._key is not None else None


def _key(path: str) -> Optional[Tuple[int, ...]]:
    """What changes when a file is replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _why() -> str:
    torch = sys.modules.get("torch")
    if torch is None:
        return "torch was not imported"
    if not torch.cuda.is_available():
        return "torch.cuda.is_available() is False"
    if not torch.cuda.is_initialized():
        return "the program used no CUDA in the block"
    return "the recorder's file tells why: snapana ghosts shows it"


def record(run: "str | os.PathLike[str]" = "run", *, max_entries: int = 1_000_000, stacks: str = _STACKS,
           history: bool = True, devices: str = "all") -> Recording:
    """Records a block: `with snapana.record("run") as run:` writes run.pickle and run.snapana (run.rank3.pickle where
    RANK is 3) at its end, also when it raises, and run.report is the report on them.

    torch's history is on in the block, of max_entries events at most and with stacks of "python" or "all", and off
    again behind it if it was off before; a history that the program records already is left as it is. Nothing that goes
    wrong in recording is raised. A block inside another one, or in another thread at the same time, has files of its
    own; its samples and phases are in those of the first. A forked child records nothing."""
    return Recording(run, max_entries=max_entries, stacks=stacks, history=history, devices=devices)


def on_oom(folder: "str | os.PathLike[str]", *, limit: int = 3, history: bool = True, max_entries: int = 1_000_000,
           stacks: str = _STACKS) -> None:
    """From now on, dumps when the GPU runs out of memory, before the error unwinds anything (torch 2.0 and later).

    Each of the first failures of the process, up to limit, writes oom1.pickle and oom1.snapana to the folder
    (oom1.rank3.pickle where RANK is 3), then oom2; they replace those of an earlier process. torch's history is turned
    on, unless history is False. The error itself stays as it is, and the dump raises nothing. Without CUDA nothing
    happens. Raises OSError where the folder cannot be made."""
    os.makedirs(folder, exist_ok=True)
    _recorder().on_oom(folder, limit, history, max_entries, stacks)
