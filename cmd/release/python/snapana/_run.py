"""Finds the program `snapana`, runs it, and makes exceptions of what it complains of."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
"""A file's name, or an object's: s3://bucket/key."""

Option = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Union[int, float, str]]]
"""The value of a flag: True for one without a value, a sequence for one that is repeated, None for none."""

Json = Dict[str, Any]

_EXE = ".exe" if sys.platform == "win32" else ""
# Flags about what is printed and written: the package's own affair, also where a variable sets them.
_OWN = ("json", "format", "output", "quiet", "open", "fail-on", "brief", "color", "width", "help", "version")


class Error(Exception):
    """What could not be done, and why.

    code is a word for programs, hint what to do about it ("" where nothing is known), exit_code the program's: 2 for
    bad input or usage, 3 for the machine (no permission, no space), None where it did not run. file and offset, a byte
    of it when decoded, are there where the error is about a place in a file."""

    def __init__(self, message: str, code: str = "failed", hint: str = "", exit_code: Optional[int] = None,
                 file: Optional[str] = None, offset: Optional[int] = None) -> None:
        super().__init__(message, code, hint, exit_code, file, offset)
        self.message, self.code, self.hint, self.exit_code = message, code, hint, exit_code
        self.file, self.offset = file, offset

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint not in self.message else self.message


def binary() -> str:
    """The path of the program that is run: the one that SNAPANA_BINARY names, else the one installed with this package,
    else the first on PATH. Raises Error (code "no_binary") where there is none."""
    named = os.environ.get("SNAPANA_BINARY")
    if named:
        if _runs(named):
            return os.path.abspath(named)
        raise Error(f"SNAPANA_BINARY names {named!r}, which is no program that can be run", "no_binary")
    for folder in _folders():
        path = os.path.join(folder, "snapana" + _EXE)
        if _runs(path):
            return path
    found = shutil.which("snapana")
    if found:
        return os.path.abspath(found)
    raise Error("the program snapana is not beside this package, nor on PATH", "no_binary",
                "install the package again (pip install --force-reinstall snapana), or name it in SNAPANA_BINARY")


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _folders() -> Iterator[str]:
    """Where installers put the scripts of a wheel, the likeliest first."""
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    here = os.path.dirname(os.path.abspath(__file__))
    site = os.path.dirname(here)  # site-packages, or the folder of pip install --target
    yield here
    yield sysconfig.get_path("scripts")
    yield os.path.join(site, "bin")
    yield os.path.join(site, scripts)
    yield os.path.join(os.path.dirname(site) if scripts == "Scripts" else os.path.dirname(os.path.dirname(
        os.path.dirname(site))), scripts)  # pip install --prefix
    user = {"nt": "nt_user", "posix": "posix_user"}.get(os.name, "")
    if sys.platform == "darwin" and sysconfig.get_config_var("PYTHONFRAMEWORK"):
        user = "osx_framework_user"
    if user in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", user)


def name_of(path: Path) -> str:
    """A file's name as the program takes it."""
    name = os.fsdecode(path)
    if "\0" in name:
        raise Error("the name of a file has a zero byte in it", "usage", "give a name that a file can have")
    if name.startswith("s3:/") and not name.startswith("s3://"):
        name = "s3://" + name[len("s3:/"):]  # pathlib has made one of two slashes
    if name.startswith("~") and not os.path.exists(name):
        name = os.path.expanduser(name)
    return os.path.join(".", name) if name.startswith("-") else name


def flags(options: Mapping[str, Option]) -> List[str]:
    """The flags of a command line. A name that Python keeps for itself ends in _: from_ is --from."""
    line = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        if name in _OWN:
            raise TypeError(f"{key} is no option here: what the program prints is read by this package")
        values: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,)
        for one in values:
            if one is True:
                line.append(f"--{name}")
            elif one is not None:
                text = "false" if one is False else os.fspath(one) if isinstance(one, os.PathLike) else str(one)
                line.append(f"--{name}={text}")
    return line


def run(*line: str) -> str:
    """What the program prints on stdout. Raises Error where it ends with another code than 0."""
    program = binary()
    env = dict(os.environ)
    for name in _OWN:
        env.pop("SNAPANA_" + name.upper().replace("-", "_"), None)
    try:
        done = subprocess.run([program, *line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=env, check=False)
    except OSError as err:
        raise Error(f"cannot run {program}: {err.strerror or err}", "no_binary") from err
    out, said = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    if done.returncode:
        raise _error(out, said, done.returncode)
    return out


def _error(out: str, said: str, code: int) -> Error:
    for text in (out, said):
        try:
            told = json.loads(text)["error"]
            return Error(str(told["message"]), str(told.get("code") or "failed"), str(told.get("hint") or ""), code,
                         told.get("file"), told.get("offset"))
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    text = re.sub(r"(?m)^snapana: ", "", said).strip()
    if code < 0:
        return Error(f"snapana was ended by signal {-code}" + (f": {text}" if text else ""), "killed", exit_code=code)
    return Error(text or f"snapana ended with exit code {code}", "stopped" if code == 130 else "failed", exit_code=code)


def parse(text: str, *schemas: str) -> Json:
    """The JSON that the program has printed, of one of these schemas: ("snapana.report/1",). Later numbers mean that
    fields have another meaning; fields that are not known are kept."""
    try:
        found = json.loads(text)
        schema = found["schema"]
    except (ValueError, LookupError, TypeError) as err:
        raise Error(f"{binary()} printed something else than the JSON of snapana", "schema") from err
    if schema not in schemas:
        raise Error(f"{binary()} writes {schema}, and this package reads {' or '.join(schemas)}", "schema",
                    "install the package and the program of one release")
    result: Json = found
    return result


def figure(raw: Mapping[str, Any], *path: str) -> Any:
    """A field that the schema promises."""
    at: Any = raw
    try:
        for key in path:
            at = at[key]
    except (LookupError, TypeError) as err:
        raise Error(f"the program's JSON lacks {'.'.join(path)}", "schema",
                    "install the package and the program of one release") from err
    return at


def texts(value: Any) -> Tuple[str, ...]:
    return tuple(str(one) for one in value or ())
