"""Records who keeps device memory alive in a PyTorch program, for `snapana ghosts` and `snapana report`.

    import snapana_recorder as r
    r.start("run")                  # writes run.snapana (run.rank3.snapana under torchrun)
    for batch in loader:
        train(batch)
        r.step()                    # a sample of the memory counters
    r.dump()                        # who holds what, and run.pickle, the snapshot, beside it
    r.stop()                        # writes no dump of its own

`with r.phase("rollout"):` names a part of the program, of which the report then shows the peak; it decorates functions,
too. `with r.record("run"):` starts, dumps when the block ends or raises, and stops. `r.on_oom()` dumps when an
allocation fails, before anything is unwound; `r.on_oom("folder")` does so without a recording, into files of their own.
`python -m snapana_recorder [-o FOLDER/NAME] train.py args` (or `-m module
args`) does all this for a program as it is; this file must lie in the current folder or in one of PYTHONPATH. It writes
NAME.snapana and NAME.pickle, run without -o: it counts the steps of optimizers, and dumps now and then, when memory has
grown, at errors, and at the end. From Python 3.12 on it dumps as the function returns that ran most of the program,
too: its variables are gone then. Of a program without an optimizer it takes two samples in each second that CUDA is up,
in a thread. A dump that finds less memory leaves the snapshot of an earlier one as it is. os._exit waits up to 10 s for
a last dump, and so does SIGTERM in a program that has no handler for it, as soon as the main thread is in no C
function; SIGKILL leaves what was recorded before it.

`pytest -p snapana_recorder --snapana=DIR` is a plugin: limits on the GPU memory of tests, and verdicts on those that fail.

`r.listen()` lets `snapana attach PID` take a recording from outside, at the next step or within two seconds; -m listens
by itself.

What it promises:
  * It runs no code of the program: it looks at foreign objects through type(), C descriptors and gc.get_referents only.
    While it reads tensors and autograd nodes a trace function refuses every Python call but its own, so that torch
    function modes, tensor subclasses and the unpack hooks of saved tensors (checkpointing) cannot run.
  * Signal handlers of the program run meanwhile as they would in time.sleep(): for the main thread, another thread
    looks. What a handler raises ends the look and reaches the program.
  * It collects nothing: unreachable cycles are found by counting references. The garbage collector is off while it
    looks, so that gc.callbacks and finalizers run where the program expects them.
  * It keeps nothing alive that it saw, and raises nothing of its own: what went wrong is a `fault` record in the file.
  * Each record is one write to a file opened for appending: a killed process loses at most its last record. It writes
    to the file that it made and no other: a program may close all descriptors, fork, or fill the disk.
  * Only the owner can read its files. What looks like a token, key or password, by name or form, is <redacted>.

One file, standard library only, Python 3.8 to 3.14, torch 1.13 to 2.15. The file format is FORMAT.md of snapana's
snapshot/sidecar package.
"""
import ast
import atexit
import bisect
import contextvars
import errno
import functools
import gc
import itertools
import operator
import os
import platform
import re
import signal
import stat
import struct
import sys
import threading
import time
import types
import _thread
from array import array
from collections import OrderedDict, deque
from itertools import compress, repeat

if __name__ == "__main__":  # python -m snapana_recorder: this is the module that a program imports, too
    __name__ = "snapana_recorder"
    sys.modules[__name__] = sys.modules["__main__"]

__version__ = "1.0"
__all__ = ["start", "step", "dump", "on_oom", "stop", "record", "phase", "listen"]

_FILE = sys._getframe().f_code.co_filename
_SAMPLE_BYTES = 64 << 20  # samples beyond this are thinned out to every 2nd, beyond twice this to every 4th, ...
_SHARE = 0.01  # of wall time, for what a sample may do without
_CHEAP = 0.0003  # seconds: what costs no more is in every sample
_MAX_NODES = 200_000  # Python objects in one holder graph, tensors not counted
_MAX_EDGES = 1_000_000
_MAX_HOST = 20_000  # tensors in host memory; of more, every 2nd, 3rd, ... is recorded
_MAX_GRAPH_NODES = 200_000  # autograd nodes walked in one dump
_GRAPH_SECONDS = 5.0  # for walking them
_EXIT_SECONDS = 10  # at most, for the dump of a program that leaves by os._exit
_DUMP_SHARE = 0.05  # of wall time, for dumps of a program that makes none itself: the first after some 10 s
_FREE_DUMPS = 1.0  # seconds beyond that share: short programs are dumped, too
_TICK = 0.5  # seconds between the samples of a program without an optimizer
_RICH = 0.9  # a snapshot is replaced by one with this share of its allocated bytes, or more
_STEEP = 1.25  # a dump is due when this many times the allocated bytes of the last one are
_SLICE = 0.005  # seconds in one step, for what may be spread over several
_COUNT_SECONDS = 3e-8  # for each allocated block, to count tensors
_COUNT_MOST = 0.02  # seconds: where it takes longer, dumps count them, and steps do not
_COUNT_STEPS = 2000  # between counts that take longer than a slice
_COUNT_ASKS = 64  # steps between questions whether to count, which take a millisecond in a large process
_PHASES = 1000  # names of phases
_PHASE_BYTES = 4 << 20  # of one name: beyond this every 2nd lap is recorded, beyond twice this every 4th, ...
_FREE_PHASES = 0.1  # seconds beyond _SHARE for all laps of one name
_SOURCE_BYTES = 1 << 19  # of the program's text, to see how it uses what it keeps
_SOURCE_SECONDS = 0.25  # for reading that
_USED_NAMES = 300  # of containers that are looked for there
_NUMBERS = 32  # integers beside a container that are noted, as one may be its bound
_RETURN_DUMPS = 3  # at most, as functions return
_RETURN_STEPS = 4  # at least, that the function ran
_RETURN_SECONDS = 0.1  # or that it took, where the program has too few steps to tell
_OWN_FUNCTIONS = 10_000  # of the program, that are looked at
_TOOL, _TOOL_NAME = 4, "snapana_recorder"  # of sys.monitoring
_OOM_DUMPS = 3  # in one run: a program that searches for its batch size fails often
_ATTACHED = "_snapana_attach"  # the module's name where it was brought into a running program
_STACK = 1 << 20  # bytes: where the program's threads have less, none looks at the heap
_WAIT = 0.25  # seconds between looks at a thread that looks at the heap
_PATIENCE = 5  # seconds for a finalizer in that
_POLL = 0.25  # seconds between looks whether `snapana attach` asks for something
_UNTIL_STEP = 1.5  # seconds that it waits for a step


# ---------------------------------------------------------------- msgpack

def _pack(value, out):
    """Appends value to the bytearray out. Knows the exact builtin types only."""
    kind = type(value)
    if kind is int:
        if 0 <= value < 0x80:
            out.append(value)
        elif -32 <= value < 0:
            out.append(value & 0xFF)
        elif value >= 0:
            if value < 1 << 8:
                out += struct.pack(">BB", 0xCC, value)
            elif value < 1 << 16:
                out += struct.pack(">BH", 0xCD, value)
            elif value < 1 << 32:
                out += struct.pack(">BI", 0xCE, value)
            elif value < 1 << 64:
                out += struct.pack(">BQ", 0xCF, value)
            else:
                out.append(0xC0)
        elif value >= -(1 << 63):
            out += struct.pack(">Bq", 0xD3, value)
        else:
            out.append(0xC0)
    elif kind is str:
        if len(value) > _SHORT and not value.isdigit():
            value = _redact(value)
        elif _short_secrets[0] is not None and len(value) > 2:
            value = _short_secrets[0].sub(REDACTED, value)
        try:
            data = value.encode("utf-8")
        except UnicodeEncodeError:
            data = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode("utf-8")
        size = len(data)
        if size < 32:
            out.append(0xA0 | size)
        elif size < 1 << 8:
            out += struct.pack(">BB", 0xD9, size)
        elif size < 1 << 16:
            out += struct.pack(">BH", 0xDA, size)
        else:
            out += struct.pack(">BI", 0xDB, size)
        out += data
    elif kind is list or kind is tuple or kind is array:
        size = len(value)
        if size < 16:
            out.append(0x90 | size)
        elif size < 1 << 16:
            out += struct.pack(">BH", 0xDC, size)
        else:
            out += struct.pack(">BI", 0xDD, size)
        for item in value:
            _pack(item, out)
    elif kind is dict:
        size = len(value)
        if size < 16:
            out.append(0x80 | size)
        elif size < 1 << 16:
            out += struct.pack(">BH", 0xDE, size)
        else:
            out += struct.pack(">BI", 0xDF, size)
        for key, item in value.items():
            _pack(key, out)
            _pack(item, out)
    elif kind is bool:
        out.append(0xC3 if value else 0xC2)
    elif kind is float:
        out += struct.pack(">Bd", 0xCB, value)
    else:  # None, and what no record should hold
        out.append(0xC0)


# ---------------------------------------------------------------- the file

def _identity(fd):
    """Device and inode of what a descriptor is open on, None where it is not."""
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_STDERR = _identity(2)
_told = []


def _tell(text):
    """One line on stderr, unless descriptor 2 has become a file of the program's since."""
    if __name__ == _ATTACHED:  # for whoever attached, not for the program
        _told.append(text)
        return
    try:
        if _identity(2) == _STDERR or not stat.S_ISREG(os.fstat(2).st_mode):
            os.write(2, ("snapana_recorder: %s\n" % text).encode("utf-8", "replace"))
    except OSError:
        pass


class _File:
    """Appends records to one file that no other process writes with it."""

    def __init__(self, base):
        self.pid = os.getpid()
        self.size = 0  # bytes written
        self.lock = threading.RLock()
        self.writing, self.waiting, self.told = False, [], False
        self.base = base = os.path.abspath(base)  # the program may change its folder
        self.fd = _claim(base)
        if self.fd is None:  # another process, or the parent of this one, is writing there
            self.base = "%s.pid%d" % (base, self.pid)
            self.fd = _claim(self.base)
        for number in range(2, 1000):  # several recordings of one process, at once
            if self.fd is not None:
                break
            self.base = "%s.pid%d.%d" % (base, self.pid, number)
            self.fd = _claim(self.base)
        if self.fd is None:
            raise OSError("%s.snapana is in use by another process" % base)
        self.key = _identity(self.fd)

    def write(self, record):
        """Returns how many bytes were written."""
        out = bytearray()
        _pack(record, out)
        with self.lock:
            if self.writing:  # a signal handler of the program records, in the middle of a record
                self.waiting.append(out)
                return 0
            self.writing, before = True, self.size
            try:
                self.append(out)
                while self.waiting:
                    self.append(self.waiting.pop(0))
            except OSError as err:
                if _of_handler(err):
                    raise
                if not self.told:
                    self.told = True
                    _tell("%s.snapana: %s; the program goes on, and what was recorded before can be read"
                          % (self.base, os.strerror(err.errno) if err.errno else "cannot be written"))
            finally:
                self.writing = False
            return self.size - before

    def append(self, out):
        if self.fd is None or os.getpid() != self.pid or not self.is_ours():
            return
        begin = os.fstat(self.fd).st_size
        view, wrote, done = memoryview(out), [], 0
        try:
            while done < len(out):
                # Noted from C: a signal handler that raises cannot come between a write and its count.
                wrote.extend(map(os.write, (self.fd,), (view[done:],)))
                done = sum(wrote)
        finally:
            done = sum(wrote)
            if done == len(out):
                self.size += done
            elif done and os.fstat(self.fd).st_size == begin + done:
                os.ftruncate(self.fd, begin)  # what follows half a record could not be read

    def is_ours(self):
        """Whether the descriptor is still open on our file. A program that closes all descriptors (daemons do) may have
        been given the number for a file of its own, which is not to be written to or closed."""
        if _identity(self.fd) == self.key:
            return True
        self.fd = fd = None
        try:
            fd = os.open(self.base + ".snapana", _FLAGS & ~os.O_CREAT)
            if _identity(fd) == self.key and _lock(fd):
                self.fd, fd = fd, None
                return True
        except OSError:
            pass
        finally:
            if fd is not None:
                os.close(fd)
        _tell("%s.snapana was closed by the program and cannot be opened again; the recording ends here" % self.base)
        return False

    def close(self):
        with self.lock:
            fd, self.fd = self.fd, None
            if fd is not None and _identity(fd) == self.key:
                os.close(fd)


_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FLAGS |= getattr(os, "O_NONBLOCK", 0)  # not to wait until somebody reads a pipe; files do not care


def _lock(fd):
    """Takes a file for this process, unless another has it."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        return err.errno in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # a filesystem without locks
    return True


def _claim(base):
    """Opens BASE.snapana, for the eyes of its owner, for this process alone, or returns None. What an earlier run left
    there becomes BASE.snapana.old."""
    path = base + ".snapana"
    for _ in range(10):
        try:
            fd = os.open(path, _FLAGS & ~os.O_CREAT)
        except FileNotFoundError:
            try:
                fd = os.open(path, _FLAGS | os.O_EXCL, 0o600)
            except FileExistsError:
                if os.path.islink(path):
                    raise OSError("%s is a link to nothing" % path)
                continue  # another process has made it just now
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            if not _lock(fd):
                return None
            try:
                there = os.stat(path)
            except OSError:
                there = None
            if there is None or (there.st_dev, there.st_ino) != (found.st_dev, found.st_ino):
                continue  # another process has put it aside just now
            if not found.st_size:
                if stat.S_IMODE(found.st_mode) != 0o600 and hasattr(os, "fchmod"):
                    _quiet(lambda: os.fchmod(fd, 0o600))
                taken, fd = fd, None
                return taken
            for name in (path, base + ".pickle"):  # with the lock held
                if os.path.exists(name):
                    os.replace(name, name + ".old")
        except OSError:
            return None
        finally:
            if fd is not None:
                os.close(fd)
    return None


# ---------------------------------------------------------------- secrets

_SECRET_NAME = re.compile(r"(?i)(?:^|[_.-])(?:\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)|PASS|PWD|"
                          r"AUTH|\w*(?:API|ACCESS|PRIVATE|SECRET|ENCRYPTION|SIGNING)[_-]?KEY|KEY)(?:S|_?ID|_?VALUE)?$")
_SECRET_SHAPE = re.compile(
    r"\b(?:hf_|gh[opsru]_|glpat-|npm_|gsk_|r8_|sk_live_|sk_test_|rk_live_|pk_live_)[A-Za-z0-9]{20,}|"
    r"\b(?:sk-|github_pat_|xox[abeoprs]-|pypi-|dckr_pat_|nvapi-|ya29\.)[\w-]{16,}|"
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.?[\w-]*|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)|(?i:\bbearer +)[\w.~+/=-]{16,}|"
    r"(?i:(?:token|secret|password|passwd|api[_-]?key|access[_-]?key) *[=:] *['\"]?)[^\s'\",;&]{8,}")
_OPAQUE = re.compile(r"(?![/.])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{24,}")
REDACTED = "<redacted>"
_SHORT = 5  # characters: a secret of no more is one as a word of its own only
_secrets, _short_secrets = [], [None]  # values of this process's environment and arguments; a pattern


def _opaque(name):
    """Whether the value of a variable that may be written could be a key all the same."""
    return name not in _VARIABLES and _OPAQUE.match(os.environ[name]) is not None


def _find_secrets():
    """Notes the values of variables and arguments that have the name of a secret, so that they are written nowhere."""
    found = {value for name, value in list(os.environ.items()) if _SECRET_NAME.search(name) and name != "PWD"}
    after = False
    for arg in list(getattr(sys, "argv", None) or ())[1:] + list(getattr(sys, "orig_argv", None) or ())[1:]:
        if type(arg) is not str:
            continue
        if after and not arg.startswith("-"):
            found.add(arg)
        name, given, value = arg.partition("=")
        secret = _SECRET_NAME.search(name.lstrip("-")) is not None
        if secret and given:
            found.add(value)
        after = secret and not given and arg.startswith("-")
    found = sorted((v for v in found if len(v) > 2 and not os.path.exists(v)), key=len, reverse=True)
    _secrets[:] = [v for v in found if len(v) > _SHORT]
    # Not what is letters only, or few digits: such are words of records, and settings ("none", "loss").
    short = [re.escape(v) for v in found if len(v) <= _SHORT and not v.isalpha() and (len(v) > 3 or not v.isdigit())]
    _short_secrets[0] = re.compile(r"(?<![\w./-])(?:%s)(?![\w./-])" % "|".join(short)) if short else None


def _redact(text):
    """A text without what looks like a secret."""
    for value in _secrets:
        if value in text:
            text = text.replace(value, REDACTED)
    if _short_secrets[0] is not None:
        text = _short_secrets[0].sub(REDACTED, text)
    return _SECRET_SHAPE.sub(REDACTED, text)


# ---------------------------------------------------------------- what torch shows in C

class _Refused(Exception):
    """Raised in place of Python code that is not ours."""


class _Stopped(Exception):
    """Raised in a look at the heap that nobody waits for any more."""


_call = operator.methodcaller("__call__")


class _Guarded:
    """While it gets results of C functions, no Python function of the program can run in this thread: each raises
    instead.

    The results, and the notes that they are being made, come from C, so that the interpreter has no chance in between
    to run a finalizer, which is not to be refused. Where a debugger and a profiler hold both places for a trace
    function, nothing can be refused and `on` stays false."""

    def __init__(self, torch):
        disable = torch._C.DisableTorchFunction()
        self.inside, self.refused = [], 0
        self.before = [functools.partial(self.inside.append, True), functools.partial(disable.__enter__)]
        self.after = [functools.partial(disable.__exit__, None, None, None), functools.partial(self.inside.clear)]
        self.on, self.peek, self.set, self.trace = False, None, None, None

    def refuse(self, frame, event, arg):
        if self.inside and event == "call":
            self.refused += 1
            raise _Refused()

    def arm(self):
        self.on = True
        for self.peek, self.set in ((sys.gettrace, sys.settrace), (sys.getprofile, sys.setprofile)):
            if self.peek() is None or self.peek() is self.trace:
                self.set(self.trace)
                return
        self.on = False

    def get(self, *results):
        """All that these iterators yield, which C functions make. The first that fails raises."""
        if not self.on or self.peek() is not self.trace:  # who refuses is not asked again
            self.arm()
        out, ends = [], map(_call, self.after)
        try:
            out.extend(itertools.chain(map(_call, self.before), *results, map(_call, self.after)))
        except BaseException:
            any(ends)
            raise
        return out[2:-2]

    def __enter__(self):
        self.trace = self.refuse
        self.arm()
        return self

    def __exit__(self, *exc):
        if self.on and self.peek() is self.trace:
            self.set(None)
        self.trace = None  # it refers to this


def _of(o, gets):
    """What each of some C functions gets of an object, for _Guarded."""
    return map(operator.methodcaller("__call__", o), gets)


def _of_handler(err):
    """Where in the traceback a signal handler of the program begins that raised this while the recorder ran, None where
    none did: it gets the interrupted frame as an argument, as nothing else does. That exception is to reach the program.
    Others in the recorder are its own."""
    if not _in_main_thread():
        return None
    codes = None
    trace = err.__traceback__
    while trace is not None:
        found, frame, trace = trace, trace.tb_frame, trace.tb_next
        code, caller = frame.f_code, frame.f_back
        if code.co_filename == _FILE or caller is None:
            continue
        space = frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:count + (code.co_flags >> 2 & 1)]:
            value = space.get(name)
            if value is caller or type(value) is tuple and any(v is caller for v in value):
                return found
        if codes is None:
            codes = _handler_codes()
        if code in codes:
            return found
    return None


def _in_main_thread():
    """Whether signal handlers of the program may run in this thread."""
    return threading.get_ident() == _main_thread[0]


_main_thread = [threading.main_thread().ident]


def _handler_codes():
    """Code objects of the Python functions that handle signals."""
    found = []
    for number in range(1, getattr(signal, "NSIG", 65)):
        try:
            handler = signal.getsignal(number)
        except ValueError:
            continue
        for _ in range(8):
            if type(handler) is functools.partial:
                handler = handler.func
            elif type(handler) is types.MethodType:
                handler = handler.__func__
        if type(handler) is types.FunctionType:
            found.append(handler.__code__)
        else:
            for base in _mro(type(handler)):
                call = _type_dict(base).get("__call__")
                if type(call) is types.FunctionType:
                    found.append(call.__code__)
                    break
    return found


def _without_us(trace, until=False):
    """A traceback without the frames of the recorder, which would keep alive what it has seen; and without those of what
    it called until a signal handler began, where that is given."""
    first = last = None
    called = False
    while trace is not None:
        ours = trace.tb_frame.f_code.co_filename == _FILE
        if trace is until:
            until = False
        called = until is not False and (ours or called)
        if not ours and not called:
            if last is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = trace.tb_next
    if last is not None:
        last.tb_next = None
    return first


def _public(function):
    """A function for programs: from it nothing is raised but what their own signal handlers raise. It does nothing once
    the interpreter clears modules, and ours: finalizers of the program may still call it then."""
    over = sys.is_finalizing

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return None if over() else function(*args, **kwargs)
        except BaseException as err:
            handler = _of_handler(err)
            if isinstance(err, Exception) and handler is None:
                return None
            err.__traceback__ = trace = _without_us(err.__traceback__, handler)
            handler = None
            if sys.version_info < (3, 11):
                raise err.with_traceback(trace)
            raise
    return call


class _Torch:
    """The C descriptors of tensors and storages: unlike attributes, they cannot be overridden by a subclass."""

    def __init__(self, torch):
        c = torch._C
        base = getattr(c, "_TensorBase", None) or c.TensorBase
        find = base.__dict__
        self.tensor, self.parameter = base, torch.nn.Parameter
        for name in ("shape", "dtype", "requires_grad", "is_leaf", "grad_fn", "grad", "retains_grad", "_base",
                     "_backward_hooks"):
            setattr(self, name, find[name].__get__)
        self.storage_offset = find["storage_offset"]
        self.element_size = find["element_size"]
        self.untyped = find.get("untyped_storage") or find["_storage"]  # 2.0, 1.13
        storage = c.StorageBase
        self.nbytes = storage.__dict__["nbytes"]
        self.storage_device = storage.__dict__["device"].__get__
        address = getattr(c, "_data_address", None)  # data_ptr would give a lazy copy memory of its own
        data_ptr = storage.__dict__["data_ptr"]
        self.address_of_tensor, self.address_get = address is not None, address or data_ptr
        self.is_pinned = find.get("is_pinned") if torch.cuda.is_initialized() else None
        self.reference_gets = (self.grad_fn, self._base, self.untyped, self.retains_grad, self._backward_hooks)
        self.form_gets = (self.shape, self.requires_grad, self.is_leaf, self.storage_offset, self.element_size,
                          self.dtype)

    def location(self, t, storage):
        """Iterators over the device, size and address of a storage."""
        return (_of(storage, (self.storage_device, self.nbytes)),
                _of(t if self.address_of_tensor else storage, (self.address_get,)))


_bases = type.__dict__["__mro__"].__get__
_type_dict = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_GetSet = types.GetSetDescriptorType
_Member = types.MemberDescriptorType


def _mro(tp):
    """A class and those above it. None of types of C that the interpreter never made ready: of contextvars, up to 3.9."""
    return _bases(tp) or ()


def _type_name(tp):
    name = _qualname(tp)
    module = _type_dict(tp).get("__module__")
    name = str.__str__(name) if type(name) is not str else name
    if type(module) is str and module != "builtins":
        return module + "." + name
    return name


def _key(key, depth=0):
    """repr of a dictionary key, of exact builtin types only: others could run code."""
    kind = type(key)
    if kind is str or kind is bytes:
        return repr(key[:80])[:80]
    if kind is int:
        return repr(key) if key.bit_length() < 256 else "<int>"
    if kind is float or kind is bool or key is None:
        return repr(key)
    if kind is tuple and depth < 3:
        parts = [_key(k, depth + 1) for k in key[:8]]
        if len(key) > 8:
            parts.append("...")
        return ("(%s,)" if len(parts) == 1 else "(%s)") % ", ".join(parts)
    return "<%s>" % _type_name(kind)


# ---------------------------------------------------------------- the holder graph

# Kinds of objects, by their C layout.
_OBJECT, _TENSOR, _NODE, _MODULE, _CLASS, _DICT, _LIST, _TUPLE, _SET, _DEQUE, _CELL, _FUNCTION, _METHOD, _PARTIAL, \
    _LRU, _FRAME, _GENERATOR, _TRACEBACK, _EXCEPTION, _BUILTIN, _ARRAY = range(21)

_KIND_NAMES = ("object", "tensor", "node", "module", "class", "dict", "list", "tuple", "set", "deque", "cell",
               "function", "method", "partial", "lru_cache", "frame", "generator", "traceback", "exception", "method", "array")

# Containers with their lengths, attributes that often bound one of the same object, and the queues of which "maxsize"
# is kept to.
_SIZED = {_DICT: dict.__len__, _LIST: list.__len__, _SET: set.__len__, _DEQUE: deque.__len__}
_LENGTHS = {id(kind): len for kind in (dict, list, tuple, set, frozenset, deque, range)}  # no class is hashed
_LIMITS = tuple(p + w for w in ("maxsize", "max_size", "maxlen", "max_len", "max_length", "capacity", "max_entries",
                                "max_items", "buffer_size", "cache_size", "queue_size", "limit") for p in ("", "_"))
_QUEUES = frozenset(("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "asyncio.queues.Queue",
                     "asyncio.queues.LifoQueue", "asyncio.queues.PriorityQueue"))

_LruCache = type(functools.lru_cache(maxsize=1)(lambda: None))
_Cell = type((lambda x: lambda: x)(0).__closure__[0])
_FrameLocals = type((lambda: sys._getframe().f_locals)())  # a write-through proxy from 3.13 on

_LAYOUTS = (
    (types.ModuleType, _MODULE), (type, _CLASS), (dict, _DICT), (list, _LIST), (tuple, _TUPLE), (set, _SET),
    (frozenset, _SET), (deque, _DEQUE),
    (_Cell, _CELL), (types.FunctionType, _FUNCTION), (types.MethodType, _METHOD), (functools.partial, _PARTIAL),
    (_LruCache, _LRU),
    (types.FrameType, _FRAME), (types.GeneratorType, _GENERATOR), (types.CoroutineType, _GENERATOR),
    (types.AsyncGeneratorType, _GENERATOR),
    (types.TracebackType, _TRACEBACK), (BaseException, _EXCEPTION), (types.BuiltinFunctionType, _BUILTIN),
)

# Attributes of modules, optimizers and tensors that hold callbacks.
_HOOKS = frozenset((
    "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_always_called", "_backward_hooks", "_backward_pre_hooks", "_non_full_backward_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    "_post_accumulate_grad_hooks", "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks", "_global_forward_hooks",
    "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks"))


_id = object.__hash__  # of the address, as id() is, which would run the program's audit hooks each time
_BLOCK = 128  # objects of which the references are looked at in one call
_PIECE = 1 << 12  # of the references of one object
_SWEEPS = 12  # over the heap, before what is left of it is indexed
_FROZEN = 1000  # objects: Python 3.12 itself freezes 375

# What a look takes the instances of a class for: nothing that leads to a tensor, anything, tensors and autograd nodes,
# arrays of numpy, modules, functions, classes.
_ATOM, _ANY, _TORCH, _NUMPY, _SPACE, _CODE, _CLASSES = range(7)
_ONLY_TORCH, _ONLY_SPACE, _ONLY_CODE, _ONLY_CLASS = [bytes(n == kind for n in range(256))
                                                     for kind in (_TORCH, _SPACE, _CODE, _CLASSES)]
_BARE = frozenset(map(_id, (types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType,
                           types.WrapperDescriptorType, types.ClassMethodDescriptorType)))
_CONTAINERS = frozenset((dict, list, tuple, set, frozenset, deque))
_class_flags = type.__dict__["__flags__"].__get__
_HAS_REFERENCES = 1 << 14  # Py_TPFLAGS_HAVE_GC


# Of Python 3.12. Asked what _asyncio refers to, the collector shows dead objects, which that keeps to use them again:
# they die a second time as they are let go, and from then on the next question has no end.
_BROKEN_MODULES = ("_asyncio",) if sys.version_info[:2] == (3, 12) else ()
_space_of = types.ModuleType.__dict__["__dict__"].__get__


def _sound(objs, modules):
    """Takes out of a list of objects, in place, what must not be asked for its references. Returns the namespaces of
    the modules that it took: all that holds anything is there, too. modules says of each object whether it is one."""
    spaces = []
    if _BROKEN_MODULES:
        for at in list(compress(range(len(objs)), modules)):
            space = _space_of(objs[at])
            if _module_name(space) in _BROKEN_MODULES:
                objs[at] = None
                spaces.append(space)
    return spaces


def _array_class():
    """numpy.ndarray, where the program has imported it."""
    numpy = sys.modules.get("numpy")
    if type(numpy) is not types.ModuleType:
        return None
    found = dict.get(_space_of(numpy), "ndarray")
    return found if type(found) is type else None


class _Arrays:
    """What an array of numpy refers to, which the collector cannot see: its objects, or the owner of its memory."""

    def __init__(self, array):
        find = _type_dict(array)
        self.base, self.flat, self.shape, self.dtype = [find[name].__get__ for name in
                                                        ("base", "flat", "shape", "dtype")]
        self.char = None

    def of_objects(self, a):
        dtype = self.dtype(a)
        if self.char is None:
            for base in _mro(type(dtype)):
                if "char" in _type_dict(base):
                    self.char = _type_dict(base)["char"].__get__
        return self.char(dtype) == "O"

    def referents(self, a):
        base = self.base(a)
        if base is not None:
            return [base]
        return list(self.flat(a)) if self.of_objects(a) else []

    def label(self, a, number):
        """Where in an array its n-th object is."""
        places = []
        for size in reversed(self.shape(a)):
            places.append(str(number % size))
            number //= size
        return ", ".join(reversed(places))


class _Classes(dict):
    """What a look takes the instances of a class for. Where `targets`, as what something else refers to: modules and
    classes are nothing then, as they end every walk.

    Keys are classes: theirs is the quickest look-up."""

    def __init__(self, torch, targets):
        self.torch, self.targets = torch, targets
        self.array = _array_class()
        self.atoms = set()

    def __missing__(self, tp):
        kind = self[tp] = self.sort(tp)
        if kind == _ATOM:
            self.atoms.add(tp)
        return kind

    def sort(self, tp):
        functions = False
        for base in _mro(tp):
            if base is type:
                return _ATOM if self.targets else _CLASSES
            if self.torch is not None and base is self.torch.tensor:
                return _TORCH
            if base is self.array:
                return _NUMPY
            if base is types.ModuleType:
                return _ATOM if self.targets else _SPACE
            functions = functions or type(_type_dict(base).get("next_functions")) is _GetSet
        if functions:
            return _TORCH
        if not _class_flags(tp) & _HAS_REFERENCES or _id(tp) in _BARE:
            return _ATOM
        return _CODE if tp is types.FunctionType else _ANY

    def of(self, objs):
        return map(self.__getitem__, map(type, objs))

    def are_atoms(self, objs):
        """Whether all are known to be nothing that leads to a tensor: far quicker than to ask of each."""
        return self.atoms.issuperset(map(type, objs))

    def are_containers(self, objs):
        return _CONTAINERS.issuperset(map(type, objs))


class _ClassIds(_Classes):
    """The same by ids of classes, where a metaclass of the program has a __hash__ or __eq__, which a look-up would
    run."""

    def see(self, objs):
        for at, tp in dict(zip(map(_id, map(type, objs)), map(type, objs))).items():
            self[at] = self.sort(tp)
            if self[at] == _ATOM:
                self.atoms.add(at)

    def __missing__(self, at):
        return _ANY

    def of(self, objs):
        return map(self.__getitem__, map(_id, map(type, objs)))

    def are_atoms(self, objs):
        return self.atoms.issuperset(map(_id, map(type, objs)))

    def are_containers(self, objs):
        return False


def _is_known(module):
    """Whether the metaclasses of a module, which are many programs', hash and compare classes by no more than what they
    are made of. To look for instances of theirs takes as long as all else about classes."""
    return type(module) is str and (module in ("typing", "typing_extensions") or module.startswith("torch."))


def _classes(torch, objs):
    """_Classes for these objects, as sources and as targets of references."""
    todo, odd = [type], False
    while todo and not odd:
        for meta in type.__subclasses__(todo.pop()):
            todo.append(meta)
            own = [base for base in _mro(meta) if base is not type and base is not object]
            if _is_known(_type_dict(meta).get("__module__")):
                continue
            if any("__hash__" in _type_dict(base) or "__eq__" in _type_dict(base) for base in own):
                odd = odd or any(map(operator.is_, map(type, map(type, objs)), repeat(meta)))
    if not odd:
        return _Classes(torch, False), _Classes(torch, True)
    found = _ClassIds(torch, False), _ClassIds(torch, True)
    for classes in found:
        classes.see(["", 0, 0.0, True, b"", 0j, None, range(0), _classes.__code__])
        classes.see(objs)
    return found


class _Type:
    """What there is to know about one class: its layout, and the C descriptors that show its instances' insides."""

    def __init__(self, tp, torch):
        self.kind, self.dict, self.slots = _OBJECT, None, ()
        self.next, self.saved, self.variable = None, (), None
        self.parameter = False
        self.name = _type_name(tp)
        mro, array = _mro(tp), _array_class()
        for base in mro:
            for layout, kind in _LAYOUTS:
                if base is layout:
                    self.kind = kind
                    break
            if torch is not None and base is torch.tensor:
                self.kind = _TENSOR
                self.parameter = any(cls is torch.parameter for cls in mro)
            if base is array:
                self.kind = _ARRAY
            if self.kind != _OBJECT:
                break
        slots, raw, saved = [], set(), []
        for base in mro:
            for name, value in list(_type_dict(base).items()):
                vt = type(value)
                if type(name) is not str or vt is not _GetSet and vt is not _Member:
                    continue
                if name == "__dict__":
                    if self.dict is None and base is not type:
                        self.dict = value.__get__
                elif vt is _Member:
                    if not name.startswith("__"):
                        slots.append((name, value.__get__))
                elif name == "next_functions":
                    self.next = self.next or value.__get__
                elif name == "variable":
                    self.variable = value.__get__
                elif name.startswith("_raw_saved_"):
                    raw.add(name[4:])
                elif name.startswith("_saved_") or name == "saved_tensors":
                    saved.append((name, value.__get__))
        if self.next is not None and self.kind == _OBJECT:
            self.kind = _NODE
            self.saved = tuple(s for s in saved if s[0] in raw or s[0] == "saved_tensors")
        if self.kind in (_OBJECT, _NODE, _TENSOR, _DICT, _LIST, _TUPLE, _SET, _DEQUE, _EXCEPTION, _PARTIAL):
            self.slots = tuple(slots)


_CONTEXT_PARTS = frozenset(("hamt", "hamt_bitmap_node", "hamt_array_node", "hamt_collision_node"))


def _region(path, mode):
    """What sort of memory a mapped region of the process is, by its path and rights in /proc/self/maps."""
    if path.startswith(("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero")):
        return "shared"
    return "" if path.startswith("/dev/") or "x" in mode else "mapped"


_start_thread, _new_lock = _thread.start_new_thread, _thread.allocate_lock  # later gevent may put its own there


def _look(heap, do):
    """What do() finds in the heap. For the main thread another one looks, while that waits: signal handlers run in the
    main thread only, so that none can run in the middle of our C functions, which lose what it raises. What it raises
    here, in the waiting thread, ends the look and goes on to the program. The collector is off meanwhile: its callbacks
    and finalizers may count on the thread that they run in."""
    restore = gc.enable if gc.isenabled() else gc.isenabled
    try:
        try:
            gc.disable()
            if _in_main_thread() and type(_start_thread) is types.BuiltinFunctionType and \
                    not 0 < threading.stack_size() < _STACK:
                return _look_apart(heap, do)
            return do()
        finally:
            restore()
    finally:
        restore()  # up to Python 3.10 a handler may have run before the first


def _look_apart(heap, do):
    out, failed, threads, ended, done, pid = [], [], [], [], _new_lock(), os.getpid()

    def run():
        try:
            out.append(do())
        except BaseException as err:
            failed.append(err.with_traceback(None))  # its frames refer to all that was looked at
        finally:
            ended.append(True)
            done.release()
    done.acquire()
    try:
        # Noted from C: no handler can raise between a thread and its note.
        threads.extend(map(_start_thread, (run,), ((),)))
    except BaseException as err:
        if threads or not isinstance(err, Exception) or _of_handler(err):
            heap.stopped = True
            _join(heap, threads, ended, done, pid)
            raise
    if not threads:  # no more of them: the interpreter ends, or there is a limit
        return do()
    _join(heap, threads, ended, done, pid)
    if failed:
        raise failed.pop()
    if not out:
        raise _Stopped("a finalizer of the program does not end")
    return out.pop()


def _join(heap, threads, ended, done, pid):
    """Waits for a look to end. Not so in a child that a signal handler forks, and not for long where a finalizer of the
    program, run in that thread, does not end: it may wait for this one."""
    foreign = 0
    try:
        while threads and not ended and not done.acquire(True, _WAIT) and os.getpid() == pid:
            frame = sys._current_frames().get(threads[0])
            foreign = foreign + 1 if frame is not None and frame.f_code.co_filename != _FILE else 0
            if foreign * _WAIT > _PATIENCE:
                heap.stopped = True
                return
    except BaseException:  # a signal handler's
        heap.stopped = True
        _join(heap, threads, ended, done, pid)
        raise


class _Heap:
    """One look at the heap. Objects are known by their place in `objs`; references to them as numbers in arrays, so
    that looking makes next to no containers, and gives the collector no reason to run."""

    def __init__(self, torch, all_devices, out_of_memory=False):
        self.module, self.out_of_memory, self.busy = torch, out_of_memory, False
        self.waits, self.stopped = threading.get_ident(), False  # the thread that this is for; whether it waits no more
        self.handled = set(map(_id, _handled()))  # exceptions
        self.engine = "" if torch is None else os.path.join(os.path.dirname(torch.__file__), "autograd") + os.sep
        self.torch = None if torch is None else _Torch(torch)
        self.all_devices = all_devices
        self.notes, self.dropped = [], {}
        self.types = {}  # id of a class -> _Type
        self.rest = []  # objects that may lead to a tensor
        self.sources = self.targets = None  # _Classes
        self.arrays, self.shown = None, []  # _Arrays, and arrays that refer to something
        self.spaces = []  # namespaces of modules that cannot be asked themselves
        self.last = []  # classes, and namespaces of modules
        self.skip = set()  # ids of what is not looked through: the recorder's own, running frames
        self.objs, self.info = [], []  # tensors, autograd nodes, and what leads to a storage
        self.index = {}  # id of an object -> place, for objects that references to are followed
        self.head, self.next, self.src = [], array("q"), array("q")  # reverse references: linked lists of sources
        self.special = (array("q"), array("q"), [], [])  # references that gc does not see: from, to, kind, label
        self.storages, self.storage_rows = {}, []
        self.host_every = 1
        self.host = itertools.count()  # tensors in host memory that were met
        self.pinned = set()  # addresses of storages
        self.dtypes = {}  # ids of torch's types -> their names
        self.tensors = {}  # place -> index of its storage, shape, dtype, flags, offset
        self.hooks = {}  # place of a tensor -> place of its _backward_hooks
        self.bounds = {}  # place of a container -> entries now, entries at most, name of the attribute that says so
        self.numbers = []  # place of an object, container or frame, and the name and value of an integer there
        self.shared = set()  # frames that share their locals() with the program
        self.names = {}  # place of a module's namespace -> its name
        self.dicts = {}  # place of an instance dictionary -> its owner's place
        self.frames = []  # running
        self.fetched, self.single = {}, 0  # what fetch() has found, and the place from which on it may look
        self.counted, self.hidden = set(), set()
        self.counts = {"cpu_count": 0, "cpu_bytes": 0, "device_count": 0, "device_bytes": 0}
        self.looked = 0  # objects in all

    def look(self):
        """The columns of a holders record."""
        self.scan()
        if self.torch is not None:
            self.look_at_tensors()
        return self.describe()

    def go_on(self):
        if self.stopped:
            raise _Stopped()

    def clear(self):
        for name in list(self.__dict__):
            self.__dict__[name] = None

    # -- references

    def type_of(self, tp):
        found = self.types.get(_id(tp))
        if found is None:
            found = self.types[_id(tp)] = _Type(tp, self.torch)
        return found

    def in_backward(self):
        """Whether another thread is in the autograd engine, which frees without the interpreter's lock what we would
        read.

        Once it was, it counts for the rest of this look. While an allocation fails in a thread of the engine, it stands
        still."""
        if not self.busy and not self.out_of_memory:
            ours = (self.waits, threading.get_ident())
            for thread, frame in sys._current_frames().items():
                while thread not in ours and frame is not None:
                    if frame.f_code.co_filename.startswith(self.engine):
                        self.busy = True
                    frame = frame.f_back
            frame = None  # this very frame: a cycle
        return self.busy

    def set_aside(self):
        """While another thread is in the autograd engine: lets go of tensors that C++ alone may own.

        C++ keeps the wrapper of a tensor that Python no longer refers to, and gc shows it, but it does not keep the
        tensor."""
        if not self.in_backward():
            return
        local = {_id(value) for frame in self.frames for _, value in self.variables(frame)}
        base, count = _list_references() + 2, 0  # two lists, and getrefcount's own
        alone = {}
        for i in range(len(self.objs)):
            if self.info[i].kind == _TENSOR and sys.getrefcount(self.objs[i]) <= base:
                alone[_id(self.objs[i])] = i
        for key in local:
            alone.pop(key, None)
        for at in range(0, len(self.rest), _BLOCK):
            refs = gc.get_referents(*self.rest[at:at + _BLOCK])
            if not alone.keys().isdisjoint(map(_id, refs)):
                for r in refs:
                    alone.pop(_id(r), None)
        refs = r = None
        if not alone:
            return
        self.rest = [o for o in self.rest if _id(o) not in alone]
        for key, i in alone.items():
            self.index.pop(key, None)
            self.objs[i], self.info[i] = None, self.type_of(type(None))
        self.notes.append("%d tensors that only C++ seems to hold were left out: another thread was in the autograd "
                          "engine" % len(alone))

    def add(self, obj):
        """The place of an object that may be new: wrappers of what C++ owns are made when they are asked for."""
        at = self.index.get(_id(obj))
        if at is None:
            at = len(self.objs)
            self.objs.append(obj)
            self.info.append(self.type_of(type(obj)))
            self.head.append(-1)
            self.index[_id(obj)] = at
        return at

    def link(self, a, b):
        self.next.append(self.head[b])
        self.head[b] = len(self.src)
        self.src.append(a)

    def special_edge(self, a, b, kind, label=""):
        self.special[0].append(a)
        self.special[1].append(b)
        self.special[2].append(kind)
        self.special[3].append(label)
        self.link(a, b)

    def scan(self):
        """Lists all objects, and takes the tensors and autograd nodes among them."""
        own, skip = globals(), self.skip
        skip.update((_id(own), _id(self), _id(self.__dict__), _id(self.frames)))
        for frame in sys._current_frames().values():
            while frame is not None:
                if frame.f_globals is not own:
                    self.frames.append(frame)
                skip.add(_id(frame))
                frame = frame.f_back
        skip.update(_id(v) for v in self.__dict__.values())
        rest = self.rest = gc.get_objects()
        self.sources, self.targets = _classes(self.torch, rest)
        kinds = bytes(self.sources.of(rest))
        self.spaces = _sound(rest, kinds.translate(_ONLY_SPACE))
        if self.sources.array is not None:
            self.arrays = _Arrays(self.sources.array)
        if gc.get_freeze_count() >= _FROZEN:
            self.thaw()
            kinds = bytes(self.sources.of(rest))
        self.looked = len(rest)
        objs = self.objs = list(compress(rest, kinds.translate(_ONLY_TORCH)))
        self.info = list(map(self.type_of, map(type, objs)))
        self.head = [-1] * len(objs)
        self.index = dict(zip(map(_id, objs), range(len(objs))))
        # What ends the walk is no target: classes, running frames, the namespaces of modules.
        code_space = types.FunctionType.__dict__["__globals__"]
        modules = [o for o in compress(rest, kinds.translate(_ONLY_SPACE)) if o is not None]
        ends = self.ends = set(map(_id, map(_space_of, modules)))
        ends.update(map(_id, self.spaces))
        ends.update(map(_id, map(code_space.__get__, compress(rest, kinds.translate(_ONLY_CODE)))))
        ends.update(_id(frame.f_globals) for frame in self.frames)

    def thaw(self):
        """Adds what gc.freeze has put where gc does not list it: what something else leads to, and may lead on."""
        rest, hidden = self.rest, gc.get_freeze_count()
        seen = set(map(_id, rest))
        seen.update(self.skip)
        rest.append(sys.modules)
        rest.extend(self.frames)
        at = 0
        while at < len(rest):
            self.go_on()
            part = rest[at:at + _BLOCK]
            at += len(part)
            refs = gc.get_referents(*part)
            for n in range(0, len(refs), _PIECE):  # a list may refer to millions
                self.thaw_some(refs[n:n + _PIECE], seen)
        self.notes.append("%d objects are frozen (gc.freeze): those were looked at that modules, classes or running "
                          "functions lead to" % hidden)

    def thaw_some(self, refs, seen):
        """Adds those of some objects, and of their classes, that were not seen yet and may lead to a tensor."""
        kinds = bytes(self.sources.of(refs))
        if _SPACE in kinds:
            spaces = _sound(refs, kinds.translate(_ONLY_SPACE))
            self.spaces += spaces
            refs += spaces
            kinds = bytes(self.sources.of(refs))
        refs = list(compress(refs, kinds))
        refs += map(type, list(refs))
        found = dict(zip(map(_id, refs), refs))
        found = list(map(found.__getitem__, found.keys() - seen))
        kinds = bytes(self.sources.of(found))
        new = list(compress(found, map(_ANY.__ne__, kinds)))
        plain = list(compress(found, map(_ANY.__eq__, kinds)))
        for n in range(0, len(plain), _BLOCK):
            new += self.worth(plain[n:n + _BLOCK])[0]
        seen.update(map(_id, new))
        self.rest.extend(filter(gc.is_tracked, new))

    # -- what leads to a storage

    def sift(self):
        """Leaves out of `rest` what holds nothing but strings, numbers and classes: most of a data set. Adds what gc
        does not list: arrays of objects, tuples made in C."""
        rest, write, read, again = self.rest, 0, 0, 0
        while read < len(rest):
            self.go_on()
            part = rest[read:read + _BLOCK]
            read += len(part)
            stay, refs = self.worth(part, read >= again)
            self.uncover(refs)
            if read >= again and len(stay) > 0.75 * len(part):
                again = read + 8 * _BLOCK  # it tells them apart no more
            rest[write:write + len(stay)] = stay
            write += len(stay)
        del rest[write:]
        # What ends a walk is looked at once, when all else is known.
        kinds = bytes(self.sources.of(rest)).translate(_ONLY_CLASS)
        last = bytes(map(operator.or_, kinds, map(self.ends.__contains__, map(_id, rest))))
        self.last = list(compress(rest, last))
        rest[:] = compress(rest, map(operator.not_, last))

    def worth(self, part, each=True):
        """Those of some objects that may lead to a tensor, and what they refer to that may."""
        targets = self.targets
        refs = gc.get_referents(*part)
        if targets.are_atoms(refs):
            return [], []
        refs = list(compress(refs, targets.of(refs)))
        if not refs:
            return refs, refs
        if self.sources.are_containers(refs) and sum(map(len, refs)) < 16 * _BLOCK:
            below = gc.get_referents(*refs)
            if targets.are_atoms(below) or not any(targets.of(below)):
                return [], refs  # all hold containers of strings and numbers, at most
        if each:
            part = [o for o in part if not targets.are_atoms(gc.get_referents(o))]
        return part, refs

    def uncover(self, refs):
        """Adds to `rest` those of some objects that gc does not list."""
        refs = list(compress(refs, map(operator.not_, map(gc.is_tracked, refs))))
        kinds = bytes(self.targets.of(refs))
        if _NUMPY not in kinds:
            below = gc.get_referents(*refs)
            if self.targets.are_atoms(below) or not any(self.targets.of(below)):
                return  # empty dictionaries, and such
        for o, kind in zip(refs, kinds):
            if _id(o) in self.hidden:
                continue
            self.hidden.add(_id(o))
            if kind != _NUMPY:
                self.rest.append(o)
            elif self.arrays.of_objects(o) or self.all_devices and self.arrays.base(o) is not None:
                self.shown.append(o)
                below = self.arrays.referents(o)
                self.uncover(list(compress(below, self.targets.of(below))))

    def referents(self, i):
        """What an object refers to."""
        o = self.objs[i]
        return self.arrays.referents(o) if self.info[i].kind == _ARRAY else gc.get_referents(o)

    def climb(self):
        """Finds what leads to a storage, in sweeps over `rest`: what refers to something found is found, too."""
        self.inside = inside = set()
        targets = self.up(list(self.tensors))
        self.sift()
        rest, referents = self.rest, gc.get_referents
        sweeps = 0
        while targets and rest:
            if sweeps == _SWEEPS:
                self.climb_by_index(targets)
                break
            sweeps += 1
            rest.reverse()  # what refers to a thing may be older or younger than it
            write = 0
            fresh = set()
            apart = targets.isdisjoint
            for at in range(0, len(rest), _BLOCK):
                self.go_on()
                part = rest[at:at + _BLOCK]
                if not apart(map(_id, referents(*part))):
                    stay = []
                    for o in part:
                        if apart(map(_id, referents(o))):
                            stay.append(o)
                        else:
                            more = self.found(o)
                            targets.update(more)
                            fresh.update(more)
                    part = stay
                rest[write:write + len(part)] = part
                write += len(part)
            del rest[write:]
            targets = fresh
            for o in self.shown:
                if not apart(map(_id, self.arrays.referents(o))):
                    targets.update(self.found(o))
        apart = set(map(_id, map(self.objs.__getitem__, inside))).isdisjoint
        for o in self.last:
            if not apart(map(_id, referents(o))):
                self.found(o)
        self.rest = self.shown = self.last = rest = part = stay = o = None
        self.link_all()

    def climb_by_index(self, targets):
        """climb, for chains so long that each sweep finds few of their links."""
        objs = self.rest + self.shown
        places, sources = set(map(_id, objs)), {}
        for at, o in enumerate(objs):
            self.go_on()
            refs = gc.get_referents(o) if at < len(self.rest) else self.arrays.referents(o)
            for key in map(_id, refs):
                if key in places or key in targets:
                    sources.setdefault(key, []).append(at)
        todo, done = list(targets), set()
        while todo:
            for at in sources.get(todo.pop(), ()):
                if at not in done:
                    done.add(at)
                    todo.extend(self.found(objs[at]))

    def found(self, o):
        """Notes an object that leads to a storage. Returns the ids by which others are found from it."""
        key = _id(o)
        at = self.index.get(key)
        if at is not None:
            return () if at in self.inside else self.up([at])
        if key in self.skip:
            return ()
        at, info = len(self.objs), self.type_of(type(o))
        self.objs.append(o)
        self.info.append(info)
        self.head.append(-1)
        self.inside.add(at)
        if key in self.ends:
            self.names[at] = _module_name(o)
            return ()
        if info.kind == _CLASS:
            return ()
        self.index[key] = at
        return (key,)

    def up(self, places):
        """Notes places, and those from which references lead to them that gc does not see. Returns their ids."""
        inside, keys = self.inside, set()
        while places:
            j = places.pop()
            if j in inside:
                continue
            inside.add(j)
            keys.add(_id(self.objs[j]))
            e = self.head[j]
            while e >= 0:
                places.append(self.src[e])
                e = self.next[e]
        return keys

    def link_all(self):
        """Notes the references between what leads to a storage."""
        self.special_edges = len(self.src)
        get, inside, link = self.index.get, self.inside, self.link
        for i in sorted(inside):
            for r in self.referents(i):
                j = get(_id(r))
                if j is not None and j in inside:
                    link(i, j)

    # -- tensors and the autograd graph

    def fetch(self, i, guard):
        """Asks for what read wants to know of the next tensors from place i on, all at once."""
        self.go_on()
        torch, objs, info = self.torch, self.objs, self.info
        places = [j for j in range(i, min(i + 256, len(objs))) if info[j].kind == _TENSOR][:64]
        tensors = [objs[j] for j in places]

        def ask(gets, of):
            return list(zip(*guard.get(map(list, [map(get, of) for get in gets])))) if of else []
        try:
            rows = ask(torch.reference_gets, tensors)
            storages = [row[2] for row in rows]
            where = list(zip(ask((torch.storage_device, torch.nbytes), storages),
                             ask((torch.address_get,), tensors if torch.address_of_tensor else storages)))
            where = [(device, size, address) for (device, size), (address,) in where]
            shown = [self.wanted(place[0].type, place[1]) for place in where]
            forms = iter(ask(torch.form_gets, list(compress(tensors, shown))))
            asked = [row[0] is None or row[3] for row in rows]
            grads = iter(ask((torch.grad,), list(compress(tensors, asked))))
            for n, j in enumerate(places):
                self.fetched[j] = (rows[n], where[n], next(forms) if shown[n] else (),
                                   next(grads) if asked[n] else ())
        except Exception as err:
            if _of_handler(err):
                raise
            self.fetched.clear()
            self.single = places[-1] + 1  # one of them cannot be read: each by itself

    def wanted(self, kind, size):
        """Whether a storage on this kind of device is shown."""
        if kind == "cpu":
            return self.all_devices and size > 0 and next(self.host) % self.host_every == 0
        return kind != "meta" and size > 0

    def read(self, i, guard):
        """Notes the storage of a tensor, and what hangs on it. Returns its grad_fn."""
        torch, t = self.torch, self.objs[i]
        if i not in self.fetched and i >= self.single:
            self.fetch(i, guard)
        (fn, base, storage, retains, hooks), place, form, grad = self.fetched.pop(i, None) or (
            guard.get(_of(t, torch.reference_gets)), (), (), ())
        device, size, address = place or guard.get(*torch.location(t, storage))
        kind = device.type
        if kind != "meta" and size and (kind, device.index, address) not in self.counted:
            self.counted.add((kind, device.index, address))
            where = "cpu" if kind == "cpu" else "device"
            self.counts[where + "_count"] += 1
            self.counts[where + "_bytes"] += size
        if form or not place and self.wanted(kind, size):
            if kind == "cpu" and torch.is_pinned is not None:
                try:
                    if guard.get(_of(t, (torch.is_pinned,)))[0]:
                        self.pinned.add(address & 0xFFFFFFFFFFFFFFFF)
                except Exception as err:
                    if _of_handler(err):
                        raise
            number = -1 if kind == "cpu" else device.index or 0
            row = (number, address & 0xFFFFFFFFFFFFFFFF, size)
            at = self.storages.get(row[:2])
            if at is None:
                at = self.storages[row[:2]] = len(self.storage_rows)
                self.storage_rows.append(row)
            elif size > self.storage_rows[at][2]:
                self.storage_rows[at] = row
            shape, requires, leaf, offset, element, dtype = form or guard.get(_of(t, torch.form_gets))
            flags = (1 if requires else 0) | (2 if leaf else 0) | (4 if base is not None else 0) | (
                8 if self.info[i].parameter else 0)
            name = self.dtypes.get(_id(dtype))
            if name is None:
                name = self.dtypes[_id(dtype)] = repr(dtype).replace("torch.", "")
            self.tensors[i] = (at, "x".join(map(str, shape)), name, flags, offset * element)
        if fn is None or retains:
            grad = (grad or guard.get(_of(t, (torch.grad,))))[0]
            if grad is not None:
                self.special_edge(i, self.add(grad), "grad")
        if hooks is not None:
            self.hooks[i] = self.add(hooks)
            self.special_edge(i, self.hooks[i], "hook", "_backward_hooks")
        if base is not None:
            self.special_edge(i, self.add(base), "base")
        return fn

    def look_at_tensors(self):
        """Reads all tensors and walks the graph of each. Tensors that come up on the way are added and read too."""
        self.set_aside()
        failed = hooked = changed = unread_graph = 0
        unread = ""
        with _Guarded(self.module) as guard:
            if not guard.on:
                self.notes.append("a debugger and a profiler are active: saved tensors of the autograd graph were not "
                                  "read")
            self.host_every += sum(1 for info in self.info if info.kind == _TENSOR) // _MAX_HOST
            live, spent = deque(), deque()  # nodes of graphs that backward has not yet been through, and others
            seen = set()
            stop = time.monotonic() + _GRAPH_SECONDS
            read, count = 0, 0
            while True:
                while read < len(self.objs):
                    i, read = read, read + 1
                    kind = self.info[i].kind
                    if kind == _TENSOR:
                        before = guard.refused
                        try:
                            fn = self.read(i, guard)
                            if fn is not None:
                                at = self.add(fn)
                                self.special_edge(i, at, "grad_fn")
                                if at not in seen:
                                    seen.add(at)
                                    live.append(at)
                        except Exception as err:
                            if _of_handler(err):
                                raise
                            failed += 1
                            if guard.refused == before:
                                unread = _text(err)
                    elif kind == _NODE and i not in seen:
                        seen.add(i)
                        live.append(i)
                if not live and not spent:
                    break
                if count >= _MAX_GRAPH_NODES or count & 255 == 255 and time.monotonic() > stop:
                    self.dropped["graph_nodes"] = len(live) + len(spent)
                    break
                if count & 63 == 0:
                    self.go_on()
                    self.in_backward()
                count += 1
                is_spent = not live
                i = (spent if is_spent else live).popleft()
                node, info = self.objs[i], self.info[i]
                if guard.on and not is_spent and not self.busy:
                    names = [get for _, get in info.saved] + [info.next]
                    names += [info.variable] if info.variable is not None else []
                    try:
                        values = guard.get(_of(node, names))
                    except Exception as err:
                        if _of_handler(err):
                            raise
                    else:  # as below, where one of them fails
                        if info.variable is not None and values[-1] is not None:
                            self.special_edge(i, self.add(values[-1]), "variable")
                        for (name, _), value in zip(info.saved, values):
                            self.saved(i, name, value)
                        value = None
                        self.follow(i, values[len(info.saved)], seen, live)
                        continue
                try:
                    if info.variable is not None:
                        variable = guard.get(_of(node, (info.variable,)))[0]
                        if variable is not None:
                            self.special_edge(i, self.add(variable), "variable")
                except Exception as err:
                    if _of_handler(err):
                        raise
                    failed += 1
                if self.busy and info.saved:
                    unread_graph += 1
                for name, get in info.saved if guard.on and not is_spent and not self.busy else ():
                    before = guard.refused
                    try:
                        value = guard.get(_of(node, (get,)))[0]
                    except Exception as err:
                        if _of_handler(err):
                            raise
                        if guard.refused != before:
                            hooked += 1
                            continue
                        if "second time" in _text(err):
                            is_spent = True  # each failure is dear before torch 2.4: ask no more on this path
                            break
                        changed += 1
                        continue
                    self.saved(i, name, value)
                    value = None
                try:
                    edges = guard.get(_of(node, (info.next,)))[0]
                except Exception as err:
                    if _of_handler(err):
                        raise
                    failed += 1
                    continue
                self.follow(i, edges, seen, spent if is_spent else live)
            if unread_graph:
                self.notes.append("saved tensors of %d autograd nodes were not read: another thread was in the "
                                  "autograd engine" % unread_graph)
            if failed:
                self.notes.append("%d tensors or autograd nodes could not be read%s"
                                  % (failed, ": " + unread if unread else ""))
            if hooked:
                self.notes.append("%d saved tensors are behind unpack hooks (checkpointing, offloading), which were "
                                  "not run" % hooked)
            if changed:
                self.notes.append("%d saved tensors were modified in place since, and cannot be read" % changed)

    def follow(self, i, edges, seen, todo):
        """Notes where the edges of an autograd node lead."""
        for number, edge in enumerate(edges):
            fn = edge[0]
            if fn is None:
                continue
            at = self.add(fn)
            self.special_edge(i, at, "next", str(number))
            if at not in seen:
                seen.add(at)
                todo.append(at)

    def count(self):
        """Tensors that gc can see, and the sizes of their distinct storages."""
        if self.in_backward():
            return None
        objs = gc.get_objects()
        total = len(objs)
        self.sources, self.targets = _classes(self.torch, objs)
        objs = list(compress(objs, bytes(self.sources.of(objs)).translate(_ONLY_TORCH)))
        counts, seen = {"cpu_count": 0, "cpu_bytes": 0, "device_count": 0, "device_bytes": 0, "objects": total}, set()
        torch = self.torch
        with _Guarded(self.module) as guard:
            for number, obj in enumerate(objs):
                if self.type_of(type(obj)).kind != _TENSOR:
                    continue
                if number & 255 == 0 and self.in_backward():
                    return None
                try:
                    storage = guard.get(_of(obj, (torch.untyped,)))[0]
                    device, size, address = guard.get(*torch.location(obj, storage))
                    kind = device.type
                    row = (kind, device.index, address)
                except Exception as err:
                    if _of_handler(err):
                        raise
                    continue
                if kind == "meta" or not size or row in seen:
                    continue
                seen.add(row)
                where = "cpu" if kind == "cpu" else "device"
                counts[where + "_count"] += 1
                counts[where + "_bytes"] += size
        return counts

    def saved(self, i, name, value):
        if value is None:
            return
        kind = type(value)
        if kind is tuple or kind is list:
            for number, item in enumerate(value):
                if item is not None and self.type_of(type(item)).kind == _TENSOR:
                    self.special_edge(i, self.add(item), "saved", "%s[%d]" % (name, number))
        elif self.type_of(kind).kind == _TENSOR:
            self.special_edge(i, self.add(value), "saved", name)

    # -- what reaches a tensor

    def reach(self):
        """Places of all that leads to a storage, nearest first; module namespaces, classes and running frames end the
        walk."""
        head, nxt, src, info, names = self.head, self.next, self.src, self.info, self.names
        order, seen, at = [], set(), 0
        rows = self.storage_rows
        for host in (False, True):  # what leads to devices comes first
            order.extend([i for i, t in self.tensors.items() if (rows[t[0]][0] < 0) == host and i not in seen])
            seen.update(order[at:])
            limit = len(order) + _MAX_NODES
            while at < len(order):
                j = order[at]
                at += 1
                if info[j].kind == _CLASS or j in names:
                    continue
                e = head[j]
                while e >= 0:
                    i = src[e]
                    e = nxt[e]
                    if i not in seen:
                        if len(order) >= limit:
                            self.dropped["nodes"] = self.dropped.get("nodes", 0) + 1
                            continue
                        seen.add(i)
                        order.append(i)
        return order

    def storage_kinds(self):
        """What sort of memory each storage in host memory is: pinned, shared with other processes, mapped from a file,
        or "" for the process's own."""
        rows, found = self.storage_rows, [""] * len(self.storage_rows)
        regions = []  # begin, end, kind; in the order of addresses
        if any(row[0] < 0 for row in rows):
            for line in _read_all("/proc/self/maps").splitlines():
                words = line.split(None, 5)
                if len(words) == 6 and words[5].startswith("/"):
                    begin, _, end = words[0].partition("-")
                    regions.append((int(begin, 16), int(end, 16), _region(words[5], words[1])))
        for at, (device, address, size) in enumerate(rows):
            if device >= 0:
                continue
            if address in self.pinned:
                found[at] = "pinned"
                continue
            n = bisect.bisect_right(regions, (address, 1 << 65, "")) - 1
            if n >= 0 and address < regions[n][1]:
                found[at] = regions[n][2]
        return found

    # -- what the references are

    def describe(self):
        """The columns of a holders record, without its numbers of the run."""
        self.climb()
        order = self.reach()
        self.inside = set(order)
        self.absorbed = set()
        self.edges = (array("q"), array("q"), [], [])
        special = self.special
        for e in range(len(special[0])):
            a = special[0][e]
            if a in self.inside and special[1][e] in self.inside:
                self.edges[0].append(a)
                self.edges[1].append(special[1][e])
                self.edges[2].append(special[2][e])
                self.edges[3].append(special[3][e])
        failed = 0
        for i in order:
            self.go_on()
            try:
                self.label(i)
            except Exception as err:
                if _of_handler(err):
                    raise
                failed += 1
        if failed:
            self.notes.append("%d objects could not be inspected" % failed)
        running = self.label_frames()
        if self.shared:
            self.notes.append("%d frames share locals() with the program; the dump updated them" % len(self.shared))
        return _Table(self, order, running).columns()

    def edge(self, i, value, kind, label=""):
        """Notes that object i refers to value, if that leads to a storage."""
        j = self.index.get(_id(value))
        if j is None or j not in self.inside:
            return
        edges = self.edges
        edges[0].append(i)
        edges[1].append(j)
        edges[2].append(kind)
        edges[3].append(label)
        self.covered.add(j)

    def absorb(self, value):
        """Lets an object that only serves another (its __dict__, a __closure__) vanish from the graph."""
        j = self.index.get(_id(value))
        if j is not None and j in self.inside:
            self.covered.add(j)
            e, sources = self.head[j], 0
            while e >= 0 and sources < 2:
                sources += 1
                e = self.next[e]
            if sources == 1:
                self.absorbed.add(j)

    def items(self, i, space, kind="attr"):
        """Edges to the values of a dictionary whose keys are names. Returns their number."""
        before = len(self.edges[0])
        for name, value in dict.items(space):
            name = name if type(name) is str else _key(name)
            self.edge(i, value, "hook" if kind == "attr" and name in _HOOKS else kind, name)
        return len(self.edges[0]) - before

    def integers(self, i, items):
        """Notes the integers beside containers, and the lengths of others: one of them may be a bound."""
        found = 0
        for name, value in items:
            size = _LENGTHS.get(id(type(value)))
            if size is not None:
                name, value = "len " + name, size(value)
            elif type(value) is not int:
                continue
            if type(name) is str and 0 < value < 1 << 62 and found < _NUMBERS:
                found += 1
                self.numbers.append((i, name, value))

    def entries(self, i, o, kind):
        """Notes how many entries a container has, and of a list that ends in None how many of them are that."""
        size = _SIZED[kind](o)
        if size >= 4:
            self.numbers.append((i, "len()", size))
            if kind == _LIST and list.__getitem__(o, -1) is None:
                self.numbers.append((i, "None", sum(map(operator.is_, list.__iter__(o), repeat(None)))))

    def sequence(self, i, items, kind="index"):
        number = 0
        for value in items:
            self.edge(i, value, kind, str(number))
            number += 1

    def label(self, i):
        o, info = self.objs[i], self.info[i]
        kind = info.kind
        self.covered = {self.hooks[i]} if i in self.hooks else set()
        if i in self.names:
            self.items(i, o, "global")
            return
        if kind == _CLASS:
            space = _type_dict(o)
            for name, value in types.MappingProxyType.items(space):
                self.edge(i, value, "attr", name if type(name) is str else _key(name))
            return
        if kind == _DICT:
            for key, value in dict.items(o):
                j = self.index.get(_id(value))
                if j is not None and j in self.inside:
                    self.edge(i, value, "key", _key(key))
                j = self.index.get(_id(key))
                if j is not None and j in self.inside:
                    self.edge(i, key, "dictkey")
        elif kind == _LIST:
            self.sequence(i, list.__iter__(o))
        elif kind == _TUPLE:
            self.sequence(i, tuple.__iter__(o))
        elif kind == _DEQUE:
            self.sequence(i, deque.__iter__(o))
            limit = deque.__dict__["maxlen"].__get__(o)
            if limit is not None:
                self.bounds[i] = (deque.__len__(o), limit, "")
        elif kind == _SET:
            for value in gc.get_referents(o):
                if _id(value) != _id(type(o)):
                    self.edge(i, value, "element")
        elif kind == _ARRAY:
            if self.arrays.base(o) is not None:
                self.edge(i, self.arrays.base(o), "base")
            else:
                for number, value in enumerate(self.arrays.referents(o)):
                    j = self.index.get(_id(value))
                    if j is not None and j in self.inside:
                        self.edge(i, value, "index", self.arrays.label(o, number))
        elif kind == _CELL:
            for value in gc.get_referents(o):
                self.edge(i, value, "contents")
        elif kind == _FUNCTION:
            self.label_function(i, o)
        elif kind == _METHOD or kind == _BUILTIN:
            self.edge(i, o.__self__, "self")
            if kind == _METHOD:
                self.edge(i, o.__func__, "func")
        elif kind == _PARTIAL:
            of = functools.partial.__dict__
            self.edge(i, of["func"].__get__(o), "func")
            args, keywords = of["args"].__get__(o), of["keywords"].__get__(o)
            self.sequence(i, args, "args")
            self.absorb(args)
            if type(keywords) is dict:
                self.items(i, keywords, "args")
                self.absorb(keywords)
        elif kind == _EXCEPTION:
            of = BaseException.__dict__
            self.edge(i, of["__traceback__"].__get__(o), "frame")
            self.edge(i, of["__cause__"].__get__(o), "cause", "__cause__")
            self.edge(i, of["__context__"].__get__(o), "cause", "__context__")
            self.edge(i, of["args"].__get__(o), "attr", "args")
        elif kind == _TRACEBACK:
            self.edge(i, o.tb_frame, "frame")
            self.edge(i, o.tb_next, "frame", "next")
        elif kind == _FRAME:
            self.locals(i, o)
            self.edge(i, o.f_back, "frame", "f_back")
        elif kind == _GENERATOR:
            of = _type_dict(type(o))
            for prefix in ("gi", "cr", "ag"):
                if prefix + "_frame" in of:
                    frame = of[prefix + "_frame"].__get__(o)
                    if frame is not None:
                        self.locals(i, frame)
                        self.absorb(frame)
                    waits = of.get(prefix + "_yieldfrom") or of.get(prefix + "_await")
                    if waits is not None:
                        self.edge(i, waits.__get__(o), "yield")
        for name, get in info.slots:
            try:
                self.edge(i, get(o), "attr", name)
            except AttributeError:
                pass
        if kind in _SIZED:
            self.entries(i, o, kind)
        # The rest is in its __dict__, or is something that only C knows the name of.
        left = self.left(i, o)
        if left and info.dict is not None and kind != _MODULE:
            space = info.dict(o)
            if type(space) is dict or issubclass(type(space), dict):
                if self.items(i, space) and not info.name.startswith("torch."):
                    self.integers(i, space.items() if type(space) is dict else ())
                self.bound_by_attribute(i, space)
                self.absorb(space)
                left = self.left(i, o)
        elif info.dict is not None and kind in _SIZED and type(o) is not OrderedDict:
            space = info.dict(o)
            if type(space) is dict:
                self.bound_by_attribute(i, space)
        if kind == _LRU:
            self.bound_of_cache(i, o)
        elif type(o) is contextvars.Context:
            for variable, value in contextvars.Context.items(o):
                self.edge(i, value, "context", variable.name)
            left = [j for j in left if self.info[j].name not in _CONTEXT_PARTS and j not in self.covered]
        elif info.name in _CONTEXT_PARTS:
            self.absorbed.add(i)
        for j in left:
            self.edge(i, self.objs[j], "cache" if kind == _LRU else "other")

    def bound_of_cache(self, i, o):
        """What functools.lru_cache was given as maxsize: its cache_info() would run Python, a cell of cache_parameters
        (3.9) need not."""
        space = self.info[i].dict(o)
        asks = dict.get(space, "cache_parameters")
        if type(asks) is not types.FunctionType or "maxsize" not in asks.__code__.co_freevars:
            return
        limit = asks.__closure__[asks.__code__.co_freevars.index("maxsize")].cell_contents
        for r in gc.get_referents(o):
            if type(r) is dict and r is not space and type(limit) is int:
                self.bounds[i] = (len(r), limit, "")

    def bound_by_attribute(self, i, space):
        """A bound of the containers of an object, or of a container with attributes, as the name of another attribute
        hints."""
        name, limit = "", 0
        for key in _LIMITS:
            value = dict.get(space, key)
            if type(value) is int and value > 0:
                name, limit = key, value
                break
        if not limit:
            return
        if self.info[i].name in _QUEUES:
            name = ""  # no hint: it keeps to it
        for j in [i] + [self.index.get(_id(value)) for value in dict.values(space)]:
            size = _SIZED.get(self.info[j].kind) if j in self.inside else None
            if size is not None and j not in self.bounds and size(self.objs[j]) <= limit:
                self.bounds[j] = (size(self.objs[j]), limit, name)

    def left(self, i, o):
        inside, covered, tp, get = self.inside, self.covered, type(o), self.index.get
        found = []
        for r in gc.get_referents(o):
            if r is tp:
                continue
            j = get(_id(r))
            if j is not None and j in inside and j not in covered and j != i:
                found.append(j)
        return found

    def label_function(self, i, o):
        code = o.__code__
        closure = o.__closure__
        if closure is not None:
            for name, cell in zip(code.co_freevars, closure):
                self.edge(i, cell, "closure", name)
            self.absorb(closure)
        defaults = o.__defaults__
        if defaults:
            names = code.co_varnames[:code.co_argcount][-len(defaults):]
            for name, value in zip(names, defaults):
                self.edge(i, value, "default", name)
            self.absorb(defaults)
        keywords = o.__kwdefaults__
        if keywords:
            self.items(i, keywords, "default")
            self.absorb(keywords)

    def variables(self, frame):
        """Names and values of a frame's local variables.

        Up to 3.12 f_locals is a dictionary that stays with the frame, and would keep alive what the function has let go
        of. It is emptied again, unless the program called locals() itself and still has it."""
        space = frame.f_locals
        if space is frame.f_globals:
            return []
        if type(space) is dict:
            found = [(name if type(name) is str else _key(name), value) for name, value in dict.items(space)]
            if frame.f_code.co_flags & 1:  # CO_OPTIMIZED: the variables live elsewhere, this is a copy
                ours = 3 if _id(space) not in self.index else 4  # there since an earlier look: in objs too
                if sys.getrefcount(space) <= ours:
                    space.clear()
                else:
                    self.shared.add(_id(frame))
            return found
        return list(space.items()) if type(space) is _FrameLocals else []

    def locals(self, i, frame):
        """Edges to the local variables of a frame. Returns their number."""
        before = len(self.edges[0])
        found = self.variables(frame)
        for name, value in found:
            self.edge(i, value, "local", name)
        count = len(self.edges[0]) - before
        if count:
            self.integers(i, found)
        return count

    def label_frames(self):
        """Running frames that have a local variable in the graph, by the number that their edges start from."""
        found = []
        for frame in self.frames:
            at = -2 - len(found)
            self.covered = set()
            if self.locals(at, frame):
                found.append(frame)
        return found


class _Table:
    """Numbers the objects of a heap that are shown, finds out what keeps each alive, and lays them out in columns."""

    def __init__(self, heap, order, running):
        self.heap, self.running = heap, running
        self.places = [i for i in order if i not in heap.absorbed]
        number = dict(zip(self.places, range(len(self.places))))
        for k in range(len(running)):
            number[-2 - k] = len(self.places) + k
        self.count = len(self.places) + len(running)
        self.root = [""] * self.count
        self.cycle = array("q", bytes(8 * self.count))
        self.strings, self.words = [""], {"": 0}
        self.src, self.dst, self.kind, self.text = array("q"), array("q"), [], []
        src, dst, kind, text = heap.edges
        for e in range(len(src)):
            a, b = number.get(src[e]), number.get(dst[e])
            if a is None or b is None:
                continue
            if len(self.src) >= _MAX_EDGES:
                heap.dropped["edges"] = heap.dropped.get("edges", 0) + 1
                continue
            self.src.append(a)
            self.dst.append(b)
            self.kind.append(kind[e])
            self.text.append(text[e])
        self.number = number
        self.base = _list_references()

    def columns(self):
        heap = self.heap
        self.find_roots()
        kinds, type_names, names, files, lines = [], [], [], [], []
        word = self.word
        for n in range(self.count):
            heap.go_on()
            if n < len(self.places):
                row = self.node(self.places[n])
            elif n < len(self.places) + len(self.running):
                frame = self.running[n - len(self.places)]
                row = ("frame", "", _code_name(frame.f_code), frame.f_code.co_filename, frame.f_lineno or 0)
            else:
                row = ("cpp", "", "", "", 0)
            kinds.append(word(row[0]))
            type_names.append(word(row[1]))
            names.append(word(row[2]))
            files.append(word(row[3]))
            lines.append(row[4])
        graph_only = self.graph_only()
        tensors = {"node": [], "storage": [], "shape": [], "dtype": [], "flags": [], "offset": []}
        for i, (storage, shape, dtype, flags, offset) in heap.tensors.items():
            n = self.number[i]
            tensors["node"].append(n)
            tensors["storage"].append(storage)
            tensors["shape"].append(word(shape))
            tensors["dtype"].append(word(dtype))
            tensors["flags"].append(flags | (16 if n in graph_only else 0))
            tensors["offset"].append(offset)
        rows = heap.storage_rows
        bounds = [(self.number[i],) + row for i, row in heap.bounds.items() if i in self.number]
        numbers = [row for row in heap.numbers if row[0] in self.number]
        held = {heap.tensors[i][0] for i in heap.tensors if self.reached[self.number[i]]}
        return {
            "lost": sum(rows[at][2] for at in range(len(rows)) if at not in held and rows[at][0] >= 0),
            "counted": dict(heap.counts, objects=heap.looked),
            "objects": heap.looked,
            "collected": self.collected,
            "storages": {"device": [r[0] for r in rows], "address": [r[1] for r in rows],
                         "bytes": [r[2] for r in rows], "kind": [word(k) for k in heap.storage_kinds()]},
            "host_every": heap.host_every,
            "tensors": tensors,
            "nodes": {"kind": kinds, "type": type_names, "name": names, "file": files, "line": lines,
                      "root": [word(r) for r in self.root], "cycle": self.cycle},
            "edges": {"from": self.src, "to": self.dst, "kind": [word(k) for k in self.kind],
                      "label": [word(t) for t in self.text]},
            "bounds": {"node": [b[0] for b in bounds], "length": [b[1] for b in bounds],
                       "limit": [b[2] for b in bounds], "hint": [word(b[3]) for b in bounds]},
            "strings": self.strings,
            "numbers": {"node": [self.number[i] for i, _, _ in numbers], "name": [word(n) for _, n, _ in numbers],
                        "value": [v for _, _, v in numbers]},
            "dropped": heap.dropped,
            "notes": heap.notes,
            "uses": self.used(),
        }

    def used(self):
        """The names of the containers, and the files beside the program's modules in which it may use them."""
        heap, names, files, modules = self.heap, set(), set(), set()
        for e in range(len(self.src)):
            edge, name = self.kind[e], self.text[e]
            if edge not in ("attr", "local", "global", "closure", "default") or self.dst[e] >= len(self.places) or \
                    not name.isidentifier() or name in _OF_TORCH or name.startswith("__"):
                continue
            kind = heap.info[self.places[self.dst[e]]].kind
            if kind not in _SIZED and kind != _CELL and (edge == "local" or kind != _TUPLE and kind != _TENSOR):
                continue
            names.add(name)
            if self.src[e] < len(self.places):
                owner = heap.objs[self.places[self.src[e]]]
                if heap.info[self.places[self.src[e]]].kind == _FUNCTION:
                    files.add(owner.__code__.co_filename)
                else:
                    modules.update(map(_type_name, _mro(owner if issubclass(type(owner), type) else type(owner))))
        for frame in self.running:
            files.add(frame.f_code.co_filename)
        files = [path for path in sorted(filter(None, files)) if path.endswith(".py") or path in _cells()]
        return names, files, sorted(set(map(self.file_of, modules)) - {""})

    def file_of(self, module):
        """The file of a class by its full name; "" for what has none."""
        while "." in module and module not in sys.modules:
            module = module.rpartition(".")[0]
        found = sys.modules.get(module)
        path = dict.get(found.__dict__, "__file__") if type(found) is types.ModuleType else None
        return path if type(path) is str and path.endswith(".py") else ""

    def word(self, text):
        at = self.words.get(text)
        if at is None:
            at = self.words[text] = len(self.strings)
            self.strings.append(text)
        return at

    def node(self, i):
        """Kind, class, name, file and line of one object."""
        heap = self.heap
        o, info = heap.objs[i], heap.info[i]
        kind = info.kind
        if i in heap.names:
            return "module", "", heap.names[i], "", 0
        if kind == _CLASS:
            return "class", "", _type_name(o), "", 0
        if kind == _FUNCTION:
            return "function", "", o.__qualname__, o.__code__.co_filename, o.__code__.co_firstlineno
        if kind == _FRAME:
            return "frame", "", _code_name(o.f_code), o.f_code.co_filename, o.f_lineno or 0
        if kind == _TRACEBACK:
            code = o.tb_frame.f_code
            return "traceback", "", _code_name(code), code.co_filename, o.tb_lineno or 0
        if kind == _GENERATOR:
            of = _type_dict(type(o))
            for prefix in ("gi", "cr", "ag"):
                if prefix + "_code" in of:
                    code, frame = of[prefix + "_code"].__get__(o), of[prefix + "_frame"].__get__(o)
                    line = (frame.f_lineno if frame is not None else 0) or 0
                    return "generator", info.name, _code_name(code), code.co_filename, line
        if kind == _LRU or kind == _PARTIAL or kind == _METHOD:
            fn = o
            for _ in range(8):
                tp = type(fn)
                if tp is types.BuiltinFunctionType:
                    return _KIND_NAMES[kind], info.name, fn.__qualname__, "", 0
                if tp is types.FunctionType:
                    code = fn.__code__
                    return _KIND_NAMES[kind], info.name, fn.__qualname__, code.co_filename, code.co_firstlineno
                if tp is types.MethodType:
                    fn = fn.__func__
                elif heap.type_of(tp).kind == _PARTIAL:
                    fn = functools.partial.__dict__["func"].__get__(fn)
                elif tp is _LruCache:
                    fn = dict.get(heap.type_of(tp).dict(fn), "__wrapped__")
                else:
                    break
        return _KIND_NAMES[kind], info.name, "", "", 0

    # -- why each is alive

    def find_roots(self):
        heap, root, n_places = self.heap, self.root, len(self.places)
        self.lists()
        self.reached = bytearray(self.count)
        for n, i in enumerate(self.places):
            if i in heap.names:
                self.start(n, "interpreter" if heap.names[i] in ("sys", "builtins") else "module")
            elif heap.info[i].kind == _CLASS:
                self.start(n, "class")
        for k in range(len(self.running)):
            self.start(n_places + k, "frame")
        for key in heap.handled:
            n = self.number.get(heap.index.get(key))
            if n is not None:
                self.start(n, "interpreter")
        # What has more references than we can see is held from where we cannot see. That C++ owns what has an edge of
        # the autograd graph explains one.
        owned = []
        spare = [0] * n_places
        for n, i in enumerate(self.places):
            if self.reached[n]:
                continue
            graph, python = self.sources(n)
            kind = heap.info[i].kind
            cpp = kind == _TENSOR or kind == _NODE
            spare[n] = self.unexplained(i)
            if spare[n] > (1 if cpp and graph else 0):
                if cpp and spare[n] == 1 and not python:
                    owned.append(n)
                    self.spread(n)
                else:  # a context is the current one of a thread
                    self.start(n, "interpreter" if type(heap.objs[i]) is contextvars.Context else "unknown")
        for n, i in enumerate(self.places):
            if self.reached[n]:
                continue
            graph, python = self.sources(n)
            if heap.dropped.get("nodes") and self.has_hidden_source(i):
                self.start(n, "unknown")
            elif not graph and not python:
                if heap.info[i].kind in (_TENSOR, _NODE):
                    owned.append(n)
                    self.spread(n)
                else:
                    self.start(n, "unknown")
        if owned:
            cpp = self.count
            self.count += 1
            self.root.append("cpp")
            self.cycle.append(0)
            for n in owned:
                self.src.append(cpp)
                self.dst.append(n)
                self.kind.append("owner")
                self.text.append("")
        self.collected = self.places and sum(1 for n in range(n_places) if not self.reached[n]) or 0
        if self.collected:
            self.find_cycles()

    def lists(self):
        """Linked lists of the edges from and to each node."""
        self.first_out, self.first_in = array("q", [-1]) * self.count, array("q", [-1]) * self.count
        self.next_out, self.next_in = array("q"), array("q")
        for e in range(len(self.src)):
            a, b = self.src[e], self.dst[e]
            self.next_out.append(self.first_out[a])
            self.first_out[a] = e
            self.next_in.append(self.first_in[b])
            self.first_in[b] = e

    def start(self, n, root):
        self.root[n] = root
        self.spread(n)

    def spread(self, n):
        if self.reached[n]:
            return
        self.reached[n] = 1
        todo = [n]
        while todo:
            e = self.first_out[todo.pop()]
            while e >= 0:
                b = self.dst[e]
                if not self.reached[b]:
                    self.reached[b] = 1
                    todo.append(b)
                e = self.next_out[e]

    def sources(self, n):
        """Numbers of edges to a node: of the autograd graph, and of Python objects."""
        graph = python = 0
        e = self.first_in[n]
        while e >= 0:
            if self.kind[e] in _GRAPH_EDGES:
                graph += self.src[e] != n
            else:
                python += 1
            e = self.next_in[e]
        return graph, python

    def unexplained(self, i):
        """How many references to an object come from where gc does not see."""
        heap = self.heap
        known, e = 0, heap.head[i]
        while e >= 0:
            if e >= heap.special_edges:
                known += 1
            e = heap.next[e]
        return sys.getrefcount(heap.objs[i]) - self.base - known

    def has_hidden_source(self, i):
        heap = self.heap
        e = heap.head[i]
        while e >= 0:
            if heap.src[e] not in heap.inside:
                return True
            e = heap.next[e]
        return False

    def find_cycles(self):
        """Numbers the strongly connected parts that nothing outside of them keeps."""
        count, reached = len(self.places), self.reached
        order, low, on = [0] * count, [0] * count, bytearray(count)
        part = [-1] * count
        clock, parts, stack = 1, 0, []
        for begin in range(count):
            if reached[begin] or order[begin]:
                continue
            path = [begin]
            cursor = [self.first_out[begin]]
            order[begin] = low[begin] = clock
            clock += 1
            stack.append(begin)
            on[begin] = 1
            while path:
                n, e = path[-1], cursor[-1]
                if e >= 0:
                    cursor[-1] = self.next_out[e]
                    b = self.dst[e]
                    if b >= count or reached[b]:
                        continue
                    if not order[b]:
                        order[b] = low[b] = clock
                        clock += 1
                        stack.append(b)
                        on[b] = 1
                        path.append(b)
                        cursor.append(self.first_out[b])
                    elif on[b]:
                        low[n] = min(low[n], order[b])
                    continue
                path.pop()
                cursor.pop()
                if path:
                    low[path[-1]] = min(low[path[-1]], low[n])
                if low[n] == order[n]:
                    while True:
                        b = stack.pop()
                        on[b] = 0
                        part[b] = parts
                        if b == n:
                            break
                    parts += 1
        outside = bytearray(parts)
        for e in range(len(self.src)):
            a, b = self.src[e], self.dst[e]
            if b < count and a < count and part[b] >= 0 and part[a] != part[b]:
                outside[part[b]] = 1
        ids = {}
        for n in range(count):
            if part[n] >= 0 and not outside[part[n]]:
                self.root[n] = "cycle"
                self.cycle[n] = ids.setdefault(part[n], len(ids) + 1)

    def graph_only(self):
        """Tensors that nothing but saved values of the autograd graph refers to."""
        found = set()
        for i in self.heap.tensors:
            n = self.number[i]
            e, saved, other = self.first_in[n], False, False
            while e >= 0 and not other:
                if self.kind[e] == "saved":
                    saved = True
                else:
                    other = True
                e = self.next_in[e]
            if saved and not other:
                found.add(n)
        return found


# ---------------------------------------------------------------- how the program uses what it keeps

_GROWS = frozenset(("append", "appendleft", "extend", "extendleft", "add", "insert", "update", "put", "put_nowait"))
_DROPS = frozenset(("pop", "popleft", "popitem", "clear", "remove", "discard", "get_nowait"))
_GETS = frozenset(("getattr", "attrgetter", "__getattribute__"))
_INSIDE = {"add": "add", "set": "add", "drop": "drop"}  # what is done to a container in a container, by how it is used
_MAKERS = frozenset(("__init__", "__new__", "__post_init__", "__enter__", "<module>"))
_OF_TORCH = frozenset(("_parameters", "_buffers", "_modules", "state", "param_groups", "params", "__dict__"))


class _Uses:
    """How the text of a program uses some names of containers: what adds to them, what reads them again, what takes
    something away, and what a size is compared with. Nothing is run. A name stands for all that have it, so that more
    may seem to be read than is."""

    def __init__(self, names):
        self.names, self.rows, self.whole, self.read_bytes = names, set(), True, 0
        self.until = time.thread_time() + _SOURCE_SECONDS
        self.words = re.compile(r"\b(?:%s)\b" % "|".join(map(re.escape, sorted(names))))

    def record(self):
        rows = sorted(self.rows)[:2000]
        columns = list(zip(*rows)) if rows else [()] * 8
        keys = ("name", "attribute", "how", "function", "file", "line", "left", "right")
        return dict(zip(keys, map(list, columns)), whole=self.whole and len(rows) == len(self.rows))

    def look(self, files):
        for path in files:
            text = _source(path)
            if text is None:
                self.whole = False
            elif "def __len__" in text or self.words.search(text):
                self.read_bytes += len(text)
                if self.read_bytes > _SOURCE_BYTES or time.thread_time() > self.until:
                    self.whole = False
                    return
                try:
                    self.file(ast.parse(text), path)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    self.whole = False

    def file(self, tree, path):
        self.parent, self.path = {}, path
        found, lengths, alls, self.constants = [], [], [], {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
            kind = type(node)
            if kind is ast.Attribute and node.attr in self.names or kind is ast.Name and node.id in self.names:
                found.append(node)
            elif kind is ast.Name and node.id == "self" and self.by_any_name(node):
                alls.append(node)
            elif isinstance(node, ast.FunctionDef) and node.name == "__len__":
                lengths.append(node)
            elif kind is ast.Constant and type(node.value) is str and node.value in self.names and self.by_text(node):
                where = ".".join(self.function(node))
                self.rows.update((node.value, i, "read", where, path, node.lineno, "", "") for i in (0, 1))
            elif kind is ast.Assign and type(node.targets[0]) is ast.Name and _integer(node.value) is not None:
                name = node.targets[0].id
                self.constants[name] = None if name in self.constants else _integer(node.value)
        for node in found:
            how = self.how(node)
            self.note(node, how)
            if how in ("add", "set"):
                self.guards(node)
        for node in alls:
            of, where = self.around(node), ".".join(self.function(node))
            self.rows.update((n.attr, 1, "read", where, path, node.lineno, "", "") for n in found
                             if of is not None and type(n) is ast.Attribute and self.around(n) is of)
        for node in lengths:
            of = self.parent[node]
            if type(of) is ast.ClassDef and type(node.body[-1]) is ast.Return:
                self.rows.add((of.name, 0, "length", of.name, path, node.lineno, "", self.side(node.body[-1].value)))
        self.parent = None

    def by_text(self, node):
        """Whether a string names what is got: getattr(x, "name"), vars(x)["name"], x.__dict__.get("name")."""
        up = self.parent.get(node)
        if type(up) is not ast.Call:
            while up is not None and type(up) is not ast.Subscript and not isinstance(up, ast.stmt):
                up = self.parent.get(up)  # 3.8 wraps it
            of = up.value if type(up) is ast.Subscript else None
        elif (up.func.id if type(up.func) is ast.Name else getattr(up.func, "attr", "")) in _GETS:
            return True
        else:
            of = getattr(up.func, "value", None)
        if type(of) is ast.Call and type(of.func) is ast.Name:
            return of.func.id in ("vars", "globals", "locals")
        return type(of) is ast.Attribute and of.attr == "__dict__"

    def by_any_name(self, node):
        """Whether all attributes of an object are got: vars(self), self.__dict__.items(), asdict(self)."""
        up = self.parent.get(node)
        then = self.parent.get(up)
        if type(then) is ast.Subscript and type(_index(then)) is ast.Constant:
            return False
        if type(up) is ast.Attribute and up.attr == "__dict__":
            return getattr(then, "attr", "") not in ("update", "get")
        if type(up) is not ast.Call or up.args[:1] != [node]:
            return False
        name = up.func.id if type(up.func) is ast.Name else getattr(up.func, "attr", "")
        return name in ("vars", "asdict", "astuple") or name == "getattr" and type(up.args[-1]) is not ast.Constant

    def around(self, node):
        """The class that a node is in, None for none."""
        while node in self.parent and type(node) is not ast.ClassDef:
            node = self.parent[node]
        return node if type(node) is ast.ClassDef else None

    def note(self, node, how, left="", right=""):
        name, attribute = (node.attr, 1) if type(node) is ast.Attribute else (node.id, 0)
        self.rows.add((name, attribute, how, ".".join(self.function(node)), self.path, node.lineno, left, right))

    def function(self, node):
        """The classes and functions around a node, from the outside."""
        names = []
        while node in self.parent:
            node = self.parent[node]
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.append(node.name)
            elif type(node) is ast.Lambda:
                names.append("<lambda>")
        return names[::-1] or ["<module>"]

    def looped(self, node):
        """Whether a loop of its own function is around a node."""
        while node in self.parent:
            node = self.parent[node]
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                return True
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                return False
        return False

    def same(self, a, b):
        return type(a) is type(b) and (a.attr == b.attr if type(a) is ast.Attribute else
                                       type(a) is ast.Name and a.id == b.id)

    def statement(self, node):
        while not isinstance(node, ast.stmt) and node in self.parent:
            node = self.parent[node]
        return node

    def how(self, node):
        """add, set (an entry in place of another, or of a new key), drop, make, read, recent (only what was added last,
        or first) or size."""
        whole = self.statement(node)
        value = getattr(whole, "value", None)
        if isinstance(whole, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and value is not None:
            targets = whole.targets if type(whole) is ast.Assign else [whole.target]
            targets = [t for target in targets for t in getattr(target, "elts", None) or [target]]
            if any(self.same(t, node) for t in targets):
                if type(whole) is ast.AugAssign:
                    return "add"
                if any(self.same(n, node) for n in ast.walk(value)):  # made of itself
                    cut = type(value) is ast.Subscript and type(_index(value)) is ast.Slice
                    if cut:
                        to, last = _index(value).upper, _index(value).lower
                        self.note(node, "bound", "len", self.side(last.operand if type(last) is ast.UnaryOp else to))
                    return "drop" if cut or isinstance(value, (ast.ListComp, ast.DictComp, ast.SetComp)) else "add"
                if any(t is node for t in targets):
                    if type(node) is ast.Attribute:
                        return "make" if self.function(node)[-1] in _MAKERS else "drop"
                    return "drop" if self.looped(node) else "make"
        if type(node.ctx) is ast.Store:
            return "make"
        return "drop" if type(node.ctx) is ast.Del else self.used(node)

    def used(self, node):
        up = self.parent.get(node)
        kind = type(up)
        if kind is ast.Attribute:
            call = self.parent.get(up)
            if type(call) is not ast.Call or call.func is not up:
                return "read"
            if up.attr in _GROWS:
                return "add"
            if up.attr in _DROPS:
                return "drop"
            if up.attr in ("sort", "reverse", "__len__", "keys"):
                return "size"
            if up.attr == "setdefault":
                return "add" if self.used(call) in ("add", "set", "size") else "read"
            return _INSIDE.get(self.used(call), "read") if up.attr == "get" else "read"
        if kind is ast.Subscript and up.value is node:
            if type(up.ctx) is ast.Store:
                return "set"
            if type(up.ctx) is ast.Del:
                return "drop"
            index = _index(up)
            if type(index) is ast.Slice and index.upper is None and type(index.lower) is ast.UnaryOp and \
                    type(index.lower.op) is ast.USub:
                last = self.side(index.lower.operand)
                if last:
                    self.note(node, "recent", "", last)
                return "recent" if last else "read"
            if _integer(index) is not None:
                return "recent"
            return _INSIDE.get(self.used(up), "read")
        if kind is ast.Call and type(up.func) is ast.Name and up.func.id in ("len", "bool", "id", "type"):
            if up.func.id == "len":
                self.compared(up, node)
            return "size"
        if kind is ast.Compare and (type(up.ops[0]) in (ast.Is, ast.IsNot) or node is not up.left and
                                    type(up.ops[0]) in (ast.In, ast.NotIn)):
            return "size"
        tested = isinstance(up, (ast.If, ast.While, ast.IfExp, ast.Assert)) and up.test is node
        if tested or kind is ast.Expr or kind is ast.UnaryOp and type(up.op) is ast.Not:
            return "size"
        return "read"

    def compared(self, size, node):
        """Notes what the length of a container is compared with."""
        test = self.parent.get(size)
        if type(test) is ast.Compare and isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq)):
            other = test.comparators[0] if test.left is size else test.left
            self.note(node, "bound", "len", self.side(other))

    def guards(self, node):
        """Notes the comparisons that something is added under, and the modulus of an index."""
        up = self.parent.get(node)
        if type(up) is ast.Subscript:
            index = _index(up)
            if type(index) is ast.BinOp and type(index.op) is ast.Mod:
                self.note(node, "bound", "index", self.side(index.right))
        at = node
        while at in self.parent and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
            above = self.parent[at]
            if isinstance(above, (ast.If, ast.ExceptHandler)) and self.missing(above, at, node):
                self.note(node, "fill")
            if isinstance(above, (ast.If, ast.While)) and at is not above.test:
                for test in ast.walk(above.test):
                    if type(test) is ast.Compare and isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                        sides = [test.left, test.comparators[0]]
                        if isinstance(test.ops[0], (ast.Gt, ast.GtE)):
                            sides.reverse()
                        left, right = map(self.side, sides)
                        if at in above.body and left and right:
                            self.note(node, "bound", left, right)
            at = above

    def missing(self, branch, at, node):
        """Whether a branch of the program, in which an entry is put into a container, is taken where its key is missing."""
        if type(branch) is ast.ExceptHandler:
            return getattr(branch.type, "id", "") == "KeyError" and any(
                self.same(n, node) for tried in self.parent[branch].body for n in ast.walk(tried))
        test = branch.test
        if type(test) is ast.UnaryOp and type(test.op) is ast.Not:
            return at in branch.body and self.got(test.operand, node)
        if type(test) is not ast.Compare or at is test:
            return False
        op, other = type(test.ops[0]), test.comparators[0]
        if op is ast.NotIn or op is ast.In:
            return self.same(other, node) and at in (branch.body if op is ast.NotIn else branch.orelse)
        return op is ast.Is and at in branch.body and type(other) is ast.Constant and other.value is None and \
            self.got(test.left, node)

    def got(self, value, node):
        """Whether a value is what .get() of a container gave."""
        if type(value) is ast.Name:
            whole = node
            while whole in self.parent and not isinstance(whole, (ast.FunctionDef, ast.AsyncFunctionDef)):
                whole = self.parent[whole]
            return any(type(n) is ast.Assign and self.same(n.targets[0], value) and self.got(n.value, node)
                       for n in ast.walk(whole))
        if type(value) is ast.NamedExpr:
            value = value.value
        return type(value) is ast.Call and type(value.func) is ast.Attribute and value.func.attr == "get" and \
            self.same(value.func.value, node)

    def side(self, node):
        """A side of a comparison: a number, the name of a variable or attribute, "len" of what has a name, or ""."""
        number = _integer(node)
        if number is not None:
            return str(number)
        if type(node) is ast.Attribute:
            return node.attr
        if type(node) is ast.Name:
            number = self.constants.get(node.id)
            return node.id if number is None else str(number)
        if type(node) is ast.Call and type(node.func) is ast.Name and node.func.id == "len" and len(node.args) == 1:
            of = self.side(node.args[0])
            return "len " + of if of else ""
        return ""


def _integer(node):
    """The value of a literal integer, None for anything else."""
    sign = 1
    if type(node) is ast.UnaryOp and type(node.op) is ast.USub:
        node, sign = node.operand, -1
    value = node.value if type(node) is ast.Constant else None
    return sign * value if type(value) is int else None


def _index(node):
    return node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # 3.8 wraps it


def _source(path):
    """The text of a file of the program, or of a cell of a notebook; None where it cannot be had."""
    import linecache
    known = dict.get(linecache.cache, path)
    if type(known) is tuple and len(known) > 2 and type(known[2]) is list and not os.path.exists(path):
        return "".join(line for line in known[2] if type(line) is str)
    try:
        with open(path, "rb") as f:
            return f.read(_SOURCE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _cells():
    """What a notebook has run, as files."""
    import linecache
    return [path for path in list(linecache.cache) if type(path) is str and ("ipykernel" in path or "<ipython" in path)]


def _program_files(more, classes):
    """The files of the modules that are neither torch's nor the standard library's nor installed; more; and those of
    classes, installed or not, whose methods can read what an object of the program keeps."""
    own = os.path.dirname(os.__file__) + os.sep
    found = []
    for module in list(sys.modules.values()):
        path = dict.get(_space_of(module), "__file__") if issubclass(type(module), types.ModuleType) else None
        if type(path) is str and path.endswith(".py") and not path.startswith(own) and "-packages" + os.sep not in path:
            found.append(path)
    more = [path for path in more if "importlib" not in path and
            ("-packages" + os.sep in path or not path.startswith(own))] + classes
    found += [path for path in more if os.sep + "torch" + os.sep not in path]
    return list(dict.fromkeys(os.path.abspath(path) if os.path.exists(path) else path for path in found
                              if path != _FILE and "<frozen" not in path))


_GRAPH_EDGES = frozenset(("grad", "base", "grad_fn", "next", "saved", "variable"))


def _list_references():
    """What sys.getrefcount says of an object that only a list refers to."""
    probe = [object()]
    return sys.getrefcount(probe[0])


def _handled():
    """Exceptions that the threads are handling right now; up to Python 3.9, that this one does."""
    current = getattr(sys, "_current_exceptions", None)
    errors = list(current().values()) if current is not None else [sys.exc_info()]
    return [e[1] if type(e) is tuple else e for e in errors]


def _code_name(code):
    return getattr(code, "co_qualname", None) or code.co_name


def _module_name(space):
    name = dict.get(space, "__name__")
    return name if type(name) is str else ""


def _text(err):
    """The message of an exception of torch's or the interpreter's, without calling its __str__."""
    args = BaseException.__dict__["args"].__get__(err)
    first = args[0] if args and type(args[0]) is str else ""
    return first.split("\n", 1)[0][:200]


# ---------------------------------------------------------------- the machine and the process

def _read(path, size=1 << 16):
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return ""
    try:
        return os.read(fd, size).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def _read_all(path):
    """_read for files of /proc that give a page with each call."""
    parts = []
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return ""
    try:
        while sum(map(len, parts)) < 1 << 26:
            part = os.read(fd, 1 << 16)
            if not part:
                break
            parts.append(part)
    except OSError:
        pass
    finally:
        os.close(fd)
    return b"".join(parts).decode("utf-8", "replace")


def _table(path, wanted):
    """Numbers of a /proc file of lines "Name: number kB", in bytes where they are in kB."""
    found = {}
    for line in _read(path).splitlines():
        name, _, rest = line.partition(":")
        key = wanted.get(name)
        words = rest.split()
        if key and words and words[0].isdigit():
            found[key] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return found


def _stat(pid):
    """Fields of /proc/PID/stat from the third on (the state), and the name."""
    text = _read("/proc/%s/stat" % pid)
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()


def _namespace_pid():
    for line in _read("/proc/self/status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[1])
    return None


def _cgroup_file(name, old):
    for line in _read("/proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            candidates = ("/sys/fs/cgroup" + path + "/" + name, "/sys/fs/cgroup/" + name)
        elif "memory" in controllers.split(","):
            candidates = ("/sys/fs/cgroup/memory" + path + "/" + old, "/sys/fs/cgroup/memory/" + old)
        else:
            continue
        for path in candidates:
            if os.path.exists(path):
                return path
    return ""


def _children(pid, depth=0):
    """Yields the processes below one, which takes some milliseconds for each large one."""
    try:
        tasks = os.listdir("/proc/%s/task" % pid)
    except OSError:
        return
    for task in tasks:
        for child in _read("/proc/%s/task/%s/children" % (pid, task)).split():
            name, fields = _stat(child)
            if not fields:
                continue
            row = {"pid": int(child), "ppid": int(pid), "name": name, "state": fields[0],
                   "rss": int(fields[21]) * os.sysconf("SC_PAGE_SIZE")}
            pss = _table("/proc/%s/smaps_rollup" % child, {"Pss": "pss"})
            row.update(pss)
            yield row
            if depth < 8:
                yield from _children(child, depth + 1)


_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS",
              "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONMALLOC")
_PREFIXES = ("NCCL_", "MALLOC_", "TORCH_")
_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
             "PYTORCH_NO_CUDA_MEMORY_CACHING")
_LIBRARIES = ("numpy", "transformers", "accelerate", "deepspeed", "lightning", "xformers", "flash_attn", "triton",
              "bitsandbytes", "vllm")


def _environment(torch):
    env = {}
    _find_secrets()

    def put(name, get):
        value = _quiet(get)
        if type(value) in (str, int, bool):
            env[name] = value

    for name in _SETTINGS:
        put("alloc." + name, lambda: os.environ.get(name))
    for name in sorted(os.environ):
        if name in _VARIABLES or name.startswith(_PREFIXES):
            put("env." + name, lambda: REDACTED if _SECRET_NAME.search(name) or _opaque(name)
                else os.environ[name])
    preload = os.environ.get("LD_PRELOAD")
    if preload:
        env["env.LD_PRELOAD"] = ":".join(os.path.basename(p) for p in preload.replace(" ", ":").split(":"))
    put("python.version", platform.python_version)
    put("python.implementation", platform.python_implementation)
    put("python.gc_thresholds", lambda: ",".join(str(n) for n in gc.get_threshold()))
    put("python.gc_enabled", gc.isenabled)
    put("python.start_method", lambda: sys.modules["multiprocessing"].get_start_method(allow_none=True))
    put("python.malloc", lambda: os.environ.get("PYTHONMALLOC") or "default")
    put("os.system", platform.system)
    put("os.kernel", platform.release)
    for line in _read("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            env["os.distribution"] = line[12:].strip("\"'")
    put("os.libc", lambda: " ".join(platform.libc_ver()).strip() or None)
    put("os.container", _container)
    put("os.overcommit", lambda: int(_read("/proc/sys/vm/overcommit_memory")))
    put("os.thp", lambda: _read("/sys/kernel/mm/transparent_hugepage/enabled").partition("[")[2].partition("]")[0]
        or None)
    for name, old in (("memory.max", "memory.limit_in_bytes"), ("memory.high", "memory.soft_limit_in_bytes")):
        put("os.cgroup_" + name.replace(".", "_"), lambda: int(_read(_cgroup_file(name, old))))
    memory = _table("/proc/meminfo", {"MemTotal": "ram", "SwapTotal": "swap"})
    for name in memory:
        env["host." + name] = memory[name]
    put("host.cpus", lambda: len(os.sched_getaffinity(0)))
    put("host.swappiness", lambda: int(_read("/proc/sys/vm/swappiness")))

    def shm():
        s = os.statvfs("/dev/shm")
        return s.f_blocks * s.f_frsize
    put("host.shm", shm)

    def limits():
        import resource
        for name in ("as", "data", "rss", "memlock", "nofile", "nproc"):
            soft = resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))[0]
            if soft != resource.RLIM_INFINITY:
                env["limit." + name] = soft
    _quiet(limits)

    def libraries():
        from importlib.metadata import DistributionFinder, MetadataPathFinder
        for name in _LIBRARIES:
            for found in MetadataPathFinder.find_distributions(DistributionFinder.Context(name=name)):
                put("library." + name, lambda: found.version)
                break
    _quiet(libraries)
    if torch is None:
        return env
    put("torch.version", lambda: str(torch.__version__))
    put("torch.git", lambda: torch.version.git_version)
    put("torch.debug", lambda: torch.version.debug)
    put("torch.cuda", lambda: torch.version.cuda)
    put("torch.hip", lambda: torch.version.hip)
    put("torch.threads", lambda: torch.get_num_threads())
    put("torch.interop_threads", lambda: torch.get_num_interop_threads())
    put("torch.deterministic", lambda: torch.are_deterministic_algorithms_enabled())
    put("torch.tf32", lambda: torch.backends.cuda.matmul.allow_tf32)
    put("torch.mkl", lambda: torch.backends.mkl.is_available())
    put("torch.openmp", lambda: torch.backends.openmp.is_available())
    put("torch.backend", lambda: torch.cuda.memory.get_allocator_backend())
    return env


def _container():
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    text = _read("/proc/1/cgroup")
    for word in ("kubepods", "docker", "lxc"):
        if word in text:
            return word
    return None


def _device_environment(torch):
    """What only shows once CUDA is initialized. Asks about nothing that would make a context on a device."""
    env = {}

    def put(name, get):
        value = _quiet(get)
        if value is not None:
            env[name] = value
    put("torch.cudnn", lambda: torch.backends.cudnn.version() or 0)
    put("torch.nccl", lambda: ".".join(str(n) for n in torch.cuda.nccl.version()))
    put("driver.cuda", lambda: torch._C._cuda_getDriverVersion())
    driver = _read("/proc/driver/nvidia/version").partition("Kernel Module")[2].split()
    if driver:
        env["driver.version"] = driver[0]
    for d in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(d)
        env["device.%d.name" % d] = str(p.name)
        env["device.%d.capability" % d] = "%d.%d" % (p.major, p.minor)
        env["device.%d.total" % d] = int(p.total_memory)
        env["device.%d.multiprocessors" % d] = int(p.multi_processor_count)
        if hasattr(p, "uuid"):
            env["device.%d.uuid" % d] = str(p.uuid)
        put("alloc.memory_fraction.%d" % d, lambda: str(torch.cuda.get_per_process_memory_fraction(d)))
    return env


# ---------------------------------------------------------------- the recorder

def _flatten(stats, prefix, names, values):
    for key, value in stats.items():
        key = prefix + ("_".join(str(k) for k in key) if type(key) is tuple else str(key))
        if isinstance(value, dict):
            _flatten(value, key + ".", names, values)
        elif type(value) is int:
            names.append(key)
            values.append(value)


def _is_number(text):
    """Whether int() takes a text of digits: of others than these, such as superscripts, it does not."""
    return text.isascii() and text.isdigit()


class _Recorder:
    def __init__(self, run, history, max_entries, stacks, devices):
        rank = os.environ.get("RANK", "")
        self.file = _File(run + (".rank" + rank if _is_number(rank) else ""))
        self.name = os.path.basename(run)
        self.all_devices = devices == "all"
        self.lock = threading.RLock()
        self.faults = {}
        self.steps = self.dumps = self.snapshots = self.ooms = 0
        self.kept = 0  # bytes that were allocated in the moment of the snapshot
        self.failed = -1  # the step in which the snapshot was written because memory ran out
        self.reason = "exit"  # of the end, where nobody calls stop()
        self.terminated = False  # by SIGTERM, in the middle of a dump
        self.manual = self.observing = self.device_env = False
        self.busy = threading.local()
        self.started = time.monotonic()
        self.every, self.thin_at = 1, _SAMPLE_BYTES
        self.samples = 0  # bytes
        self.spent, self.costs = 0.0, {}
        self.walk = None  # where children() is
        self.counted, self.last_count = None, 0  # tensors, by the last dump
        self.looked_up = set()  # names of containers
        self.names, self.plans = {}, {}
        self.phases, self.laps = {}, itertools.count()
        self.cgroup = _cgroup_file("memory.current", "memory.usage_in_bytes")
        self.header(run)
        self.torch = self.safely("torch", self.find_torch)
        self.safely("env", lambda: self.write("env", env=_environment(self.torch)))
        self.history = history and self.torch is not None  # so that a snapshot is wanted
        if self.history:
            self.safely("history", lambda: self.torch.cuda._lazy_call(lambda: self.start_history(max_entries, stacks)))

    def find_torch(self):
        import torch
        return torch

    def write(self, kind, **fields):
        record = {"type": kind, "time": time.time_ns()}
        record.update(fields)
        return self.file.write(record)

    def safely(self, where, do):
        """Runs a part of the recorder. What fails there becomes a fault record, at the 1st, 2nd, 4th, ... time."""
        try:
            return do()
        except Exception as err:
            if _of_handler(err):
                raise
            what = (type(err).__name__ + ": " + _text(err)).rstrip(": ")
            count = self.faults[where, what] = self.faults.get((where, what), 0) + 1
            if count & (count - 1) == 0:
                _quiet(lambda: self.write("fault", where=where, what=what, count=count))

    def header(self, run):
        fields = {"format": "snapana", "version": 1, "producer": "recorder", "producer_version": __version__,
                  "run": os.path.basename(run), "pid": os.getpid()}
        host = _namespace_pid()
        if host is not None and host != os.getpid():
            fields["host_pid"] = host
        stat = _stat("self")[1]
        if len(stat) > 19:
            fields["started"] = int(stat[19])
        boot = _read("/proc/sys/kernel/random/boot_id").strip()
        if boot:
            fields["boot"] = boot
        for key, name in (("rank", "RANK"), ("world_size", "WORLD_SIZE"), ("local_rank", "LOCAL_RANK")):
            if _is_number(os.environ.get(name, "")):
                fields[key] = int(os.environ[name])
        fields["program"] = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
        self.write("header", **fields)

    def start_history(self, max_entries, stacks):
        self.safely("history", lambda: self.record_history(max_entries, stacks))

    def record_history(self, max_entries, stacks):
        if os.getpid() != self.file.pid or self.file.fd is None:
            return
        if _start_history(self.torch, max_entries, stacks):
            _blocks.began = True

    # -- samples

    def allowed(self, part):
        """Whether something that a sample may do without fits into the share of the time that the recorder may take."""
        return self.spent + self.costs.get(part, 0.002) <= _SHARE * (time.monotonic() - self.started)

    def optional(self, part, do):
        if not self.allowed(part):
            return None
        begin = time.monotonic()
        try:
            return self.safely(part, do)
        finally:
            cost = self.costs[part] = time.monotonic() - begin
            self.spent += cost

    def step(self, epoch, label):
        step = self.steps
        self.steps += 1
        if step % self.every:
            return
        fields = {"step": step}
        if type(epoch) is int:
            fields["epoch"] = epoch
        if type(label) is str:
            fields["label"] = label[:200]
        if self.every > 1:
            fields["every"] = self.every
        if self.torch is not None and self.torch.cuda.is_initialized():
            fields["devices"] = self.safely("devices", self.devices)
            if not self.device_env:
                self.device_env = True
                self.safely("env", lambda: self.write("env", env=_device_environment(self.torch)))
        host = self.safely("host", self.host)
        fields["host"] = host
        children = self.safely("children", self.children)
        if children is not None:
            fields["children"] = children
        if self.torch is not None:
            tensors, self.counted = self.counted, None
            if tensors is None and self.may_count():
                tensors = self.optional("tensors", self.count_tensors)
            if tensors is not None:
                fields["tensors"] = tensors
        self.samples += self.write("sample", **fields)
        if self.samples > self.thin_at:
            self.every *= 2
            self.thin_at += _SAMPLE_BYTES

    def devices(self):
        found = []
        cuda = self.torch._C._cuda_memoryStats
        capturing = self.torch._C._cuda_isCurrentStreamCapturing()  # a captured graph allows few calls
        for d in range(self.torch.cuda.device_count()):
            stats = cuda(d)
            reserved = stats["reserved_bytes"]["all"]
            if not reserved["peak"] and not reserved["allocated"]:
                continue  # there may be no context on it, and asking its free memory would make one
            names, values = [], []
            _flatten(stats, "", names, values)
            names = tuple(names)
            at = self.names.get(names)
            if at is None:
                at = self.names[names] = len(self.names)
                self.write("names", id=at, names=names)
            row = {"device": d, "names": at, "stats": values}
            if not capturing:
                self.device_memory(row)
            found.append(row)
        return found

    def device_memory(self, row):
        """Adds what is free and there in all on a device: the only figures from outside the allocator, wanted in each
        sample."""
        def ask():
            row["free"], row["total"] = self.torch.cuda.mem_get_info(row["device"])
        known = self.costs.get("mem_get_info", _CHEAP / 3)
        if known > _CHEAP:
            self.optional("mem_get_info", ask)
            return
        begin = time.monotonic()
        try:
            self.safely("mem_get_info", ask)
        finally:
            self.costs["mem_get_info"] = min(time.monotonic() - begin, 2 * known)  # once slow is no evidence

    def host(self):
        row = _table("/proc/self/status", {"VmRSS": "rss", "VmHWM": "hwm", "VmSwap": "swap", "Threads": "threads"})
        row.update(_table("/proc/meminfo", {"MemTotal": "ram", "MemAvailable": "available", "SwapFree": "swap_free",
                                            "SwapTotal": "swap_total", "Shmem": "shm"}))
        if self.cgroup:
            text = _read(self.cgroup).strip()
            if text.isdigit():
                row["cgroup"] = int(text)
        fds = self.optional("fds", lambda: len(os.listdir("/proc/self/fd")))
        if fds is not None:
            row["fds"] = fds
        pinned = None
        if self.torch is not None and self.torch.cuda.is_initialized():
            pinned = getattr(self.torch._C, "_cuda_hostMemoryStats", None)
        if pinned is not None:
            stats = self.optional("pinned", pinned)
            if stats is not None:
                # Up to 2.9 allocated_bytes is what is handed out, and reserved_bytes all that is pinned.
                now = (stats.get("reserved_bytes") or stats.get("allocated_bytes") or {}).get("current")
                if now is not None:
                    row["pinned"] = now
        return row

    def children(self):
        """The processes below this one, gathered over several steps where that takes long. None until then."""
        walk, self.walk = self.walk, None  # a signal handler may step in the middle of it
        if walk is None:
            if not self.allowed("children"):
                return None
            walk, self.costs["children"] = (_children(os.getpid()), []), 0.0
        begin = time.monotonic()
        cost = 0.0
        for row in walk[0]:
            walk[1].append(row)
            cost = time.monotonic() - begin
            if cost > _SLICE:
                self.walk = walk
                break
        self.costs["children"] += cost
        self.spent += cost
        return walk[1] if self.walk is None else None

    def may_count(self):
        """Whether to count tensors in this step: where it takes no time, else rarely. Each dump counts them anyway."""
        if self.steps % _COUNT_ASKS:
            return False
        cost = getattr(sys, "getallocatedblocks", lambda: 0)() * _COUNT_SECONDS
        if cost > _COUNT_MOST or cost > _SLICE and self.steps - self.last_count < _COUNT_STEPS:
            return False
        self.last_count = self.steps
        return True

    def count_tensors(self):
        heap = _Heap(self.torch, True)
        try:
            return _look(heap, heap.count)
        finally:
            heap.clear()

    # -- phases

    def begin(self, name, inside):
        """Notes that a part of the program begins. Returns the number of this lap, None where it is left out."""
        of = self.phases.get(name)
        if of is None:
            if len(self.phases) >= _PHASES:
                return None
            of = self.phases.setdefault(name, _Laps())
        lap = next(of.count)
        begin = time.monotonic()
        if lap % of.every or of.spent > _FREE_PHASES + _SHARE * (begin - self.started):
            return None
        number = next(self.laps)
        fields = {"stage": "begin", "id": number, "name": name, "lap": lap, "step": self.steps,
                  "thread": threading.get_ident()}
        if inside is not None:
            fields["inside"] = inside
        self.edge(of, fields, begin)
        return number

    def end(self, name, number, error):
        of = self.phases.get(name)
        if of is None or number is None:
            return
        fields = {"stage": "end", "id": number, "step": self.steps}
        if error is not None:
            fields["error"] = _type_name(error)
        self.edge(of, fields, time.monotonic())

    def edge(self, of, fields, begin):
        devices = self.safely("phase", self.levels)
        if devices is not None:
            fields["devices"] = devices
        of.bytes += self.write("phase", **fields)
        if of.bytes > of.thin_at:
            of.every *= 2
            of.thin_at += _PHASE_BYTES
        of.spent += time.monotonic() - begin

    def levels(self):
        """What torch has of each device, and how often it has allocated and freed, by which a moment is found in the
        trace. Its peaks are read as they are: setting them back would take them from the program."""
        found = []
        if self.torch is None or not self.torch.cuda.is_initialized():
            return found
        for d in range(self.torch.cuda.device_count()):
            stats = self.torch._C._cuda_memoryStats(d)
            reserved = stats["reserved_bytes"]["all"]
            if (reserved["peak"] or reserved["allocated"]) and "allocated_bytes" in stats:
                allocated, calls = stats["allocated_bytes"]["all"], stats["allocation"]["all"]
                found.append({"device": d, "allocated": allocated["current"], "peak": allocated["peak"],
                              "reserved": reserved["current"], "reserved_peak": reserved["peak"],
                              "allocs": calls["allocated"], "frees": calls["freed"]})
        return found

    # -- dumps

    def dump(self, reason, snapshot, asked=False):
        """asked: the program wants this very moment. Other dumps leave the snapshot of a moment with more memory."""
        if getattr(self.busy, "now", False):
            return
        self.busy.now = True
        try:
            with self.lock:
                self.safely("dump", lambda: self.write_dump(reason, snapshot, asked))
        finally:
            self.busy.now = False
            if self.terminated and threading.current_thread() is threading.main_thread():
                _end(self)

    def write_dump(self, reason, snapshot, asked):
        if os.getpid() != self.file.pid or self.file.fd is None:
            return
        number = self.dumps
        self.dumps += 1
        begin = time.monotonic()
        fields = {"id": number, "step": self.steps, "reason": reason}
        live = self.safely("live", self.live)
        if live is not None:
            fields["live"], fields["peak"] = live
        heap = _Heap(self.torch, self.all_devices, reason == "oom")
        try:
            table = _look(heap, heap.look)
        finally:
            heap.clear()
            heap = None
        fields["duration"] = int((time.monotonic() - begin) * 1e9)
        lost, self.counted, uses = table.pop("lost"), table.pop("counted"), table.pop("uses")
        if self.snapshots and not asked:
            empty = reason == "exit" and max(table["storages"]["device"], default=-1) < 0
            if empty or reason == "exception" and self.failed == self.steps:
                snapshot = False  # what was there is gone: the snapshot of before says more
            elif live is not None and live[0] - (lost if reason == "exit" else 0) < _RICH * self.kept:
                snapshot = False  # nor is what a function has left in cycles at its end held by anybody
        fields.update(table)
        self.write("holders", **fields)
        fields = table = None
        if snapshot and self.torch is not None and self.torch.cuda.is_initialized():
            before = self.snapshots
            self.safely("snapshot", lambda: self.write_snapshot(number))
            if self.snapshots > before:
                self.kept = live[0] if live is not None else 0
                if reason == "oom":
                    self.failed = self.steps
        if reason != "oom":
            self.safely("uses", lambda: self.write_uses(*uses))

    def write_uses(self, names, files, classes):
        """How the program's text uses what was seen to keep memory; again only where that is more than before."""
        names = sorted(names - self.looked_up)[:_USED_NAMES - len(self.looked_up)]
        if not names:
            return
        self.looked_up.update(names)
        uses = _Uses(self.looked_up)
        uses.look(_program_files(files + _cells(), classes))
        self.write("uses", **uses.record())

    def live(self):
        """Bytes that torch has allocated on all devices: now, and at most."""
        if self.torch is None or not self.torch.cuda.is_initialized():
            return None
        now = peak = 0
        for d in range(self.torch.cuda.device_count()):
            sizes = self.torch._C._cuda_memoryStats(d)["allocated_bytes"]["all"]
            now, peak = now + sizes["current"], peak + sizes["peak"]
        return now, peak

    def write_snapshot(self, number):
        import pickle
        path = self.file.base + ".pickle"
        temp = "%s.%d.tmp" % (path, os.getpid())
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
            with open(temp, "wb", opener=lambda name, _: os.open(name, flags, 0o600)) as f:
                before = self.safely("phase", self.levels)
                state = self.torch.cuda.memory._snapshot()
                counters = self.safely("phase", self.levels)
                if counters != before:
                    counters = None  # of another moment: a thread went on
                devices = self.safely("mem_get_info", self.snapshot_devices)
                pickle.dump(state, f, protocol=4)
                state = None
                size = f.tell()
            os.replace(temp, path)
        except BaseException:
            try:
                os.unlink(temp)
            except OSError:
                pass
            raise
        self.snapshots += 1
        self.write("snapshot", file=os.path.basename(path), bytes=size, holders=number, devices=devices,
                   counters=counters)

    def snapshot_devices(self):
        """What is free on each device that PyTorch has memory of, for the account of the snapshot's moment."""
        found = []
        if self.torch._C._cuda_isCurrentStreamCapturing():
            return found
        for d in range(self.torch.cuda.device_count()):
            if self.torch._C._cuda_memoryStats(d)["reserved_bytes"]["all"]["current"]:
                free, total = self.torch.cuda.mem_get_info(d)
                found.append({"device": d, "free": free, "total": total})
        return found

    # -- running out of memory

    def observe(self):
        if not self.observing and self.torch is not None:
            self.observing = True
            _observe(self.torch)

    def out_of_memory(self, device, requested, total, free):
        self.ooms += 1
        self.safely("oom", lambda: self.write("oom", device=device, requested=requested, total=total, free=free,
                                              step=self.steps))
        if self.ooms <= _OOM_DUMPS:
            self.dump("oom", True)

    def stop(self, reason):
        self.safely("end", lambda: self.write("end", steps=self.steps, reason=reason or self.reason))
        self.file.close()


class _Watch:
    """What on_oom() was told: dumps of the first failures of a process, each into files of its own in a folder. They
    need no recording, and disturb none."""

    def __init__(self, folder, limit):
        self.folder, self.limit = os.path.abspath(folder), limit
        self.pid, self.count, self.busy = os.getpid(), 0, False
        os.makedirs(self.folder, exist_ok=True)

    def out_of_memory(self, device, requested, total, free):
        if self.busy or self.count >= self.limit:
            return
        self.busy = True
        try:
            self.count += 1
            name = "oom%d" % self.count
            if os.getpid() != self.pid:
                name += ".pid%d" % os.getpid()
            os.makedirs(self.folder, exist_ok=True)
            recorder = _Recorder(os.path.join(self.folder, name), False, 0, "python", "all")
            try:
                recorder.out_of_memory(device, requested, total, free)
            finally:
                recorder.stop("stop")
            if recorder.snapshots:
                _tell("out of memory on device %d: see %s.pickle and %s.snapana"
                      % (device, recorder.file.base, os.path.basename(recorder.file.base)))
        except OSError as err:
            if _of_handler(err):
                raise
            _tell("out of memory on device %d, and no dump of it: %s" % (device, err))
        finally:
            self.busy = False


_watch = [None]
_observed = [False]  # an observer cannot be taken away again, so one asks for all who want to know


def _observe(torch):
    if _observed[0]:
        return
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if attach is None:
        raise RuntimeError("this torch has no out-of-memory observer")
    torch.cuda._lazy_call(lambda: _quiet(lambda: attach(_observer)))
    _observed[0] = True


def _observer(device, requested, total, free, over=sys.is_finalizing):
    for who in () if over() else (_active[0], _watch[0]):
        if who is not None and (who is _watch[0] or who.observing):
            _quiet(lambda: who.out_of_memory(device, requested, total, free))


def _history_is_on(torch):
    if not torch.cuda.is_initialized():  # asking then ends the process
        return False
    on = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if on is not None:
        return on()
    return any(torch.cuda.memory._snapshot().get("device_traces") or ())


def _start_history(torch, max_entries, stacks):
    """Has torch record the history. False where it does so already: starting again would drop what it has recorded."""
    if getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)():
        return False
    record = torch.cuda.memory._record_memory_history
    for args, kwargs in (((), {"enabled": "all", "context": "all", "stacks": stacks, "max_entries": max_entries}),
                         ((True,), {"trace_alloc_max_entries": max_entries, "trace_alloc_record_context": True}),
                         ((True,), {})):
        try:
            record(*args, **kwargs)
            return True
        except TypeError:  # 2.0, then 1.13
            continue
    return False


def _stop_history(torch):
    if _history_is_on(torch):
        try:
            torch.cuda.memory._record_memory_history(None)
        except TypeError:  # 1.13
            torch.cuda.memory._record_memory_history(False)


def _quiet(do):
    try:
        return do()
    except Exception as err:
        if _of_handler(err):
            raise
        return None


_active = [None]


def _current():
    recorder = _active[0]
    return recorder if recorder is not None and recorder.file.pid == os.getpid() else None


@_public
def start(run="run", history=True, max_entries=1_000_000, stacks="python", devices="all"):
    """Starts recording to RUN.snapana (RUN.rankN.snapana where RANK is set), and the allocator's history once CUDA is
    up.

    run may hold a folder. history=False leaves _record_memory_history to the program; max_entries and stacks are its
    arguments. devices="cuda" leaves storages in host memory out of dumps."""
    _close("stop")
    try:
        run = os.fspath(run)
        if run.endswith(".snapana"):
            run = run[:-len(".snapana")]
        _active[0] = _Recorder(run, history, max_entries, stacks, devices)
        _take_sigterm()
    except Exception as err:
        _active[0] = None
        if _of_handler(err):
            raise
        _tell("not recording: %s: %s" % (type(err).__name__, err))


@_public
def step(epoch=None, label=None):
    """Writes a sample of the memory counters. epoch is an int, label a string."""
    recorder = _current()
    if recorder is not None:
        recorder.manual = True
        recorder.safely("step", lambda: recorder.step(epoch, label))
    _answer()


@_public
def dump(snapshot=True):
    """Writes who holds which tensors right now, and beside it RUN.pickle, the allocator's snapshot."""
    recorder = _current()
    if recorder is not None:
        _quiet(lambda: recorder.dump("dump", snapshot, True))


@_public
def on_oom(folder=None, limit=_OOM_DUMPS, history=True, max_entries=1_000_000, stacks="python"):
    """From now on, dumps when an allocation fails on the device, before the error unwinds anything (torch 2.0 and
    later).

    With a folder it needs no recording: each of the first failures, up to limit, makes oom1.pickle and oom1.snapana
    there (oom1.rank3.pickle where RANK is 3), then oom2, which replace those of an earlier process. The allocator's
    history is started, unless history=False."""
    if folder is None:
        recorder = _current()
        if recorder is not None:
            recorder.safely("oom", recorder.observe)
        return
    try:
        watch = _Watch(os.fspath(folder), limit)
        import torch
        _observe(torch)
        if history:
            _blocks.watched = True  # no block that ends stops it
            torch.cuda._lazy_call(lambda: _quiet(lambda: _start_history(torch, max_entries, stacks)))
        _watch[0] = watch
    except Exception as err:
        if _of_handler(err):
            raise
        _tell("no dump when memory runs out: %s: %s" % (type(err).__name__, err))


@_public
def stop(reason="stop"):
    """Ends the recording. It makes no dump, and says so where there was none."""
    recorder = _current()
    if recorder is not None and recorder.history and recorder.dumps == 0 and reason == "stop":
        _tell("stopped without a dump: call dump() before stop(), for the snapshot and for who holds what")
    _close(reason)


def _close(reason):
    recorder = _current()
    _active[0] = None
    _leave_sigterm()
    if recorder is not None:
        _quiet(lambda: recorder.stop(reason))


class _Laps:
    """What was recorded of one phase."""

    def __init__(self):
        self.count = itertools.count()
        self.every, self.bytes, self.thin_at, self.spent = 1, 0, _PHASE_BYTES, 0.0


_open = threading.local()  # the phases that a thread is in


class phase:
    """A part of the program, by name: `with phase("rollout"):` or `@phase("rollout")` before a function, a coroutine or
    a generator. Phases may lie in others and in several threads, one object may be used again and within itself. Each
    lap takes some 0.1 ms; of a phase that runs so often that this adds up, only some laps are recorded. Without a
    recorder it does nothing."""

    def __init__(self, name):
        self.name = str.__str__(name)[:200] if isinstance(name, str) else _type_name(type(name))
        self.paths = {}  # by their ids, of the threads that are in it

    @_public
    def __enter__(self):
        path = _open.__dict__.setdefault("path", [])
        recorder, number = _current(), None
        entry = [self, recorder, None]
        path.append(entry)
        self.paths[id(path)] = path
        if recorder is not None:
            inside = next((e[2] for e in reversed(path) if e[1] is recorder and e[2] is not None), None)
            number = recorder.safely("phase", lambda: recorder.begin(self.name, inside))
        entry[2] = number
        return self

    @_public
    def __exit__(self, kind, value, trace):
        own = _open.__dict__.get("path", ())
        for path in [own] + list(self.paths.values()):  # another thread's, where that has left a generator to this one
            for at in range(len(path) - 1, -1, -1):  # of coroutines not always the last
                if path[at][0] is self:
                    _, recorder, number = path.pop(at)
                    if not any(entry[0] is self for entry in path):
                        self.paths.pop(id(path), None)
                    if recorder is not None and recorder is _current():
                        recorder.safely("phase", lambda: recorder.end(self.name, number, kind))
                    return False
        return False

    def __call__(self, function):
        kind = type(function)
        if kind is staticmethod or kind is classmethod:
            return kind(self(function.__func__))
        code = getattr(function, "__code__", None)
        flags = code.co_flags if type(code) is types.CodeType else 0
        if isinstance(function, type) or not callable(function) or flags & _ASYNC_GENERATOR:
            return function
        return functools.wraps(function)(_in_phase(self.name, function, flags))


_GENERATOR_FLAG, _COROUTINE_FLAGS, _ASYNC_GENERATOR = 0x20, 0x180, 0x200  # of code objects


def _in_phase(name, function, flags, phase=phase, _without_us=_without_us):
    """A function that runs another as a phase, even while the interpreter clears our module. From Python 3.11 on its
    frame is in no traceback."""
    if flags & _COROUTINE_FLAGS:
        async def call(*args, **kwargs):
            try:
                with phase(name):
                    return await function(*args, **kwargs)
            except BaseException as err:
                err.__traceback__ = _without_us(err.__traceback__)
                raise
    elif flags & _GENERATOR_FLAG:
        def call(*args, **kwargs):
            try:
                with phase(name):
                    return (yield from function(*args, **kwargs))
            except BaseException as err:
                err.__traceback__ = _without_us(err.__traceback__)
                raise
    else:
        def call(*args, **kwargs):
            try:
                with phase(name):
                    return function(*args, **kwargs)
            except BaseException as err:
                err.__traceback__ = _without_us(err.__traceback__)
                raise
    return call


class _Blocks:
    """The blocks that are being recorded, so that the last to end stops the history that the first began."""

    def __init__(self):
        self.lock = threading.RLock()
        self.open = 0
        self.began = self.watched = False
        self.apart = []  # recorders beside the active one


_blocks = _Blocks()


class record:
    """Records a block: `with record("run"):`. Dumps when it raises, and at its end. The history, if it was off before,
    is off again behind it. A block inside another one, or in another thread, has files of its own, with dumps and
    without the samples and phases, which are in those of the first."""

    def __init__(self, run="run", **options):
        self.run, self.options = run, options
        self.recorder = None

    def __enter__(self):
        with _blocks.lock:
            if not _blocks.open:
                _blocks.began = False
            _blocks.open += 1
            if _current() is None:
                start(self.run, **self.options)
                self.recorder = _current()
            else:
                self.begin(self.run, **self.options)
        return sys.modules[__name__]

    def begin(self, run, history=True, max_entries=1_000_000, stacks="python", devices="all"):
        try:
            self.recorder = _Recorder(os.fspath(run), history, max_entries, stacks, devices)
            _blocks.apart.append(self.recorder)
        except Exception as err:
            if _of_handler(err):
                raise
            _tell("not recording: %s: %s" % (type(err).__name__, err))

    @property
    def files(self):
        """Paths of the snapshot and of the recorder's file, None for what has not been written."""
        recorder = self.recorder
        if recorder is None or recorder.file.pid != os.getpid():
            return None, None
        return recorder.file.base + ".pickle" if recorder.snapshots else None, recorder.file.base + ".snapana"

    def dump(self):
        """Who holds what now, and the snapshot, in the files of this block."""
        if self.recorder is not None:
            _quiet(lambda: self.recorder.dump("dump", True, True))

    @_public
    def __exit__(self, kind, value, trace):
        recorder = self.recorder
        if recorder is not None and recorder.file.pid != os.getpid():
            return False  # a forked child has left the block
        if recorder is not None:
            _quiet(lambda: recorder.dump("exit" if kind is None else "exception", True))
        with _blocks.lock:
            if recorder in _blocks.apart:
                _blocks.apart.remove(recorder)
                _quiet(lambda: recorder.stop("stop" if kind is None else "exception"))
            elif recorder is not None and recorder is _current():
                stop("stop" if kind is None else "exception")
            _blocks.open -= 1
            if not _blocks.open and _blocks.began and not _blocks.watched and _current() is None:
                _quiet(lambda: _stop_history(sys.modules["torch"]))
        return False


def _take_sigterm():
    """Has SIGTERM, where it would end the process at once, wait for a last dump. Where the program has a handler, or
    takes one later, that is all that runs."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL \
            and __name__ != _ATTACHED:
        signal.signal(signal.SIGTERM, _sigterm)


def _leave_sigterm():
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


_held = threading.local()


def _hold_sigterm(over=sys.is_finalizing):
    """Before a fork: one that comes for the child before it has put the signal back is not to be lost."""
    if not over() and signal.getsignal(signal.SIGTERM) is _sigterm:
        _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))


def _let_sigterm(over=sys.is_finalizing):
    mask = None if over() else _held.__dict__.pop("mask", None)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _sigterm(number, frame):
    if signal.getsignal(signal.SIGTERM) is not _sigterm:
        return  # called by a handler that the program has taken since: without us there would have been none
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends it at once
    recorder = _current()
    if recorder is not None and getattr(recorder.busy, "now", False):
        recorder.terminated = True
    else:
        _end(recorder)


def _end(recorder):
    """Ends the process as SIGTERM does."""
    try:
        if recorder is not None:
            if not recorder.terminated:
                recorder.dump("exit", True)
            recorder.stop("SIGTERM")
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _forked(over=sys.is_finalizing):
    """In a forked child: lets go of the parent's file without a word."""
    if over():
        return
    recorders = [_active[0]] + _blocks.apart
    _active[0] = _listening[0] = None
    _blocks.__init__()
    _main_thread[0] = threading.get_ident()
    _leave_sigterm()
    _let_sigterm()
    for recorder in recorders:
        if recorder is not None:
            fd, recorder.file.fd = recorder.file.fd, None
            if fd is not None and _identity(fd) == recorder.file.key:
                _quiet(lambda: os.close(fd))


if __name__ != _ATTACHED:  # what is brought in leaves nothing behind
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold_sigterm, after_in_parent=_let_sigterm, after_in_child=_forked)
    atexit.register(lambda: stop(None))


# ---------------------------------------------------------------- snapana attach

def _serve(folder):
    """Does what `snapana attach` asks for in a folder of its own: NAME.json there is a request, as long as it has that
    name, and NAME.reply is the answer. Raises only what a signal handler of the program raised."""
    import json
    for do in ("dump", "begin", "end"):
        taken = os.path.join(folder, do + ".taken")
        try:
            os.rename(os.path.join(folder, do + ".json"), taken)
        except OSError:
            continue  # not asked for, or withdrawn
        reply = {"error": "fault", "what": "a signal handler of the program ended the recording"}
        try:
            with open(taken, "rb") as f:
                reply = _visit(do, folder, json.loads(f.read().decode("utf-8")))
        except Exception as err:
            if _of_handler(err):
                raise
            reply = {"error": "fault", "what": "%s: %s" % (type(err).__name__, _text(err))}
        finally:
            _quiet(lambda: _reply(folder, do, reply))


def _reply(folder, do, reply):
    import json
    temp = os.path.join(folder, do + ".part")
    with open(temp, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as f:
        f.write(json.dumps(reply))
    os.replace(temp, os.path.join(folder, do + ".reply"))


_visits = OrderedDict()  # recordings for `snapana attach`, by the folders that they are made in


def _visit(do, folder, request):
    """Answers one request."""
    if do == "end":
        visit = _visits.pop(folder, None)
        return {"error": "over"} if visit is None else visit.end("dump")
    torch = sys.modules.get("torch")
    if torch is None or getattr(getattr(torch, "__spec__", None), "_initializing", False):
        _leave()
        return {"error": "torch"}
    if do == "begin" and _visits:
        return {"error": "busy"}
    visit = _Visit(folder, request, torch)
    if do == "dump":
        return visit.end("dump")
    _visits[folder] = visit
    return visit.begin(request)


def _leave():
    """Forgets the module where it was brought in."""
    if __name__ == _ATTACHED and not _visits:
        sys.modules.pop(_ATTACHED, None)


class _Watcher:
    """A thread that looks at something now and then, and is over before the interpreter is: one that then sleeps, or
    has yet to begin (python/cpython#104690), may crash the process."""

    def __init__(self):
        self.pid, self.ident = os.getpid(), None
        self.begun, self.over, self.done = threading.Event(), threading.Event(), threading.Event()

    def start(self, watch, *args):
        if not self.over.is_set():
            self.ident = _thread.start_new_thread(self.run, (watch, args))
            self.begun.wait(_EXIT_SECONDS)

    def run(self, watch, args):
        self.begun.set()
        try:
            _quiet(lambda: watch(*args))
        finally:
            self.done.set()

    def sleep(self):
        """Whether to look once more, after a while."""
        return not self.over.wait(_POLL) and os.getpid() == self.pid

    def end(self):
        self.over.set()
        if self.ident is not None and os.getpid() == self.pid and threading.get_ident() != self.ident:
            self.done.wait(_EXIT_SECONDS)


class _Visit:
    """A recording for `snapana attach`, apart from one that the program makes itself. What it turns on it turns off."""

    def __init__(self, folder, request, torch):
        self.folder, self.torch = folder, torch
        self.cuda = torch.cuda.is_initialized()
        self.history = self.recorded = self.was_on = self.ended = False
        self.watcher = _Watcher()
        self.recorder = _Recorder(os.path.join(folder, request["run"]), False, 0, "python",
                                  "cuda" if self.cuda else "all")
        self.recorder.steps = None  # nobody counts them
        self.was_on = bool(self.recorder.safely("history", lambda: _history_is_on(torch)))

    def begin(self, request):
        if self.cuda and not self.was_on:
            self.recorder.safely("history", lambda: self.start_history(request["max_entries"]))
        # No hook counts steps: a program that runs its hooks at this moment would find the dictionary of them changed.
        self.recorder.dump("dump", False, True)
        atexit.register(self.at_exit)
        self.watcher.start(self.watch, request["seconds"])
        return self.tell()

    def start_history(self, max_entries):
        self.history = self.recorded = True
        self.recorder.record_history(max_entries, "python")

    def stop_history(self):
        if self.history:
            _stop_history(self.torch)
        self.history = False

    def watch(self, seconds):
        """Ends the recording where the thread that should do so cannot, or nobody asks for it any more."""
        until = time.monotonic() + seconds + 600
        while not self.ended and self.watcher.sleep():
            try:
                os.rename(os.path.join(self.folder, "end.any"), os.path.join(self.folder, "end.taken"))
            except OSError:
                if time.monotonic() > until or self.alone():
                    if _visits.pop(self.folder, None) is not None:
                        self.end(None)
                        self.clean()
                    return
                continue
            if _visits.pop(self.folder, None) is not None:
                reply = _quiet(lambda: self.end("dump"))
                _quiet(lambda: _reply(self.folder, "end", reply or {"error": "fault", "what": "the dump failed"}))

    def alone(self):
        """Whether the process that asked for the recording has ended: it holds a lock as long as it lives."""
        try:
            import fcntl
            fd = os.open(os.path.join(self.folder, "lease"), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except (ImportError, OSError):
            return not os.path.isdir(self.folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        except OSError:
            return False
        finally:
            os.close(fd)

    def clean(self):
        """Removes the folder, where nobody will."""
        def remove():
            for name in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, name))
            os.rmdir(self.folder)
        _quiet(remove)

    def at_exit(self):
        if os.getpid() == self.recorder.file.pid and _visits.pop(self.folder, None) is not None:
            reply = _quiet(lambda: self.end("exit"))
            _quiet(lambda: _reply(self.folder, "end", reply or {"error": "fault", "what": "the dump failed"}))

    def end(self, reason):
        """Dumps, unless reason is None, and leaves everything as it was before."""
        self.ended = True
        try:
            if reason is not None:
                self.recorder.dump(reason, True, True)
        finally:
            self.recorder.safely("history", self.stop_history)
            atexit.unregister(self.at_exit)
            self.watcher.end()
            faults = ["%s: %s" % what for what in self.recorder.faults
                      if what[0] in ("history", "dump", "snapshot")] + _told  # others are noted in the file
            _quiet(lambda: self.recorder.stop("stop"))
            _leave()
        return self.tell(faults, reason)

    def tell(self, faults=(), reason=None):
        base = os.path.basename(self.recorder.file.base)
        names = [base + ".snapana"] + ([base + ".pickle"] if self.recorder.snapshots else [])
        return {"files": names, "cuda": self.cuda, "was_on": self.was_on, "recorded": self.recorded,
                "reason": reason, "faults": list(faults), "python": platform.python_version()}


class _Listener:
    """Looks now and then whether `snapana attach` asks for a recording. Files say so, in a folder that nobody else can
    enter: a signal or a socket could be the program's."""

    def __init__(self):
        self.pid, self.folder = os.getpid(), "/tmp/snapana-%d" % os.getuid()
        self.path = "%s/%d-%s" % (self.folder, self.pid, _stat("self")[1][19])
        self.asked = []
        self.mark()
        self.watcher = _Watcher()
        atexit.register(self.close)

    def mark(self):
        try:
            os.mkdir(self.folder, 0o700)
        except FileExistsError:
            pass
        found = os.lstat(self.folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise OSError("%s belongs to another user, or others can enter it" % self.folder)
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))

    def watch(self):
        rounds = 0
        while self.watcher.sleep():
            rounds += 1
            if rounds % 240 == 0:  # what lies in /tmp for days may be swept away
                _quiet(self.mark)
            try:
                with open(self.path + ".request", "rb") as f:
                    folder = os.fsdecode(f.read())
                os.unlink(self.path + ".request")
            except OSError:
                continue
            self.asked.append(folder)
            until = time.monotonic() + _UNTIL_STEP
            while self.asked and time.monotonic() < until:
                time.sleep(_POLL / 10)
            _quiet(self.answer)

    def answer(self):
        while self.asked:
            try:
                folder = self.asked.pop()
            except IndexError:  # another thread was faster
                return
            _serve(folder)

    def close(self):
        if os.getpid() == self.pid:
            _listening[0] = None
            self.watcher.end()
            _quiet(lambda: os.unlink(self.path))


_listening = [None]


def _answer():
    listener = _listening[0]
    if listener is not None and listener.asked and listener.pid == os.getpid():
        listener.answer()


@_public
def listen():
    """From now on `snapana attach` of the same user (or root) is answered: in step(), else by a thread. Linux only."""
    if _listening[0] is None and sys.platform.startswith("linux"):
        try:
            _listening[0] = _Listener()
            _listening[0].watcher.start(_listening[0].watch)
        except Exception as err:
            if _of_handler(err):
                raise
            _tell("not listening: %s" % err)


# ---------------------------------------------------------------- python -m snapana_recorder

class _OnTorch:
    """Starts the recorder as soon as the program has imported torch, so that what the program sets up before it does so
    (environment variables) still counts."""

    def __init__(self, ready):
        self.ready, self.asking = ready, False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.asking:
            return None
        from importlib.util import find_spec
        self.asking = True
        try:
            spec = find_spec(name)  # for a program that only asks whether there is torch, too
        finally:
            self.asking = False
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                del spec.loader.exec_module
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self.ready()
            if hasattr(types.CodeType, "replace"):  # what imports are made of is left out of tracebacks
                exec_module.__code__ = exec_module.__code__.replace(
                    co_filename="<frozen importlib._bootstrap>", co_name="_call_with_frames_removed")
            spec.loader.exec_module = exec_module
        return spec


def _auto(run):
    start(run)
    on_oom()
    listen()
    recorder = _current()
    if recorder is not None:
        recorder.safely("steps", lambda: _count_steps(recorder))
        _dump_before_exit()


class _Pace:
    """When to dump in a program that asks for no dumps itself: at some steps, when memory has grown, and within a share
    of the time."""

    def __init__(self, recorder):
        self.recorder, self.spent, self.cost, self.next = recorder, 0.0, 0.1, 8

    def is_over(self):
        return _active[0] is not self.recorder or self.recorder.manual or self.recorder.file.pid != os.getpid()

    def step(self, label):
        recorder = self.recorder
        recorder.safely("step", lambda: recorder.step(None, label))
        if label is None:
            _answer()
        begin = time.monotonic()
        allowed = _FREE_DUMPS + _DUMP_SHARE * (begin - recorder.started)
        if recorder.steps < 8 or self.spent + self.cost > allowed:
            return
        live = recorder.safely("live", recorder.live)
        steep = live is not None and live[0] > _STEEP * max(recorder.kept, 1)
        if recorder.steps >= self.next or steep:
            self.next = 2 * recorder.steps
            _quiet(lambda: recorder.dump("dump", True))
            self.cost = time.monotonic() - begin
            self.spent += self.cost


def _count_steps(recorder):
    from torch.optim.optimizer import register_optimizer_step_post_hook  # 2.0
    pace, watcher = _Pace(recorder), _Watcher()

    def after(optimizer, args, kwargs):
        if not pace.is_over():
            watcher.over.set()
            pace.step(None)

    def watch():
        """Until an optimizer steps: what programs without one do shows in time only."""
        while not watcher.over.wait(_TICK) and not pace.is_over():
            pace.step("timer")
    register_optimizer_step_post_hook(_public(after))
    atexit.register(watcher.end)
    recorder.torch.cuda._lazy_call(lambda: recorder.safely("steps", lambda: watcher.start(watch)))


class _Returns:
    """Dumps as the function returns that ran most of the program's steps, or most of its time until then, or that filled
    the device, from Python 3.12 on: what its variables have is gone after that. Only the first start and the first return
    of each function of the program's own are looked at; the interpreter runs all others as they are."""

    def __init__(self):
        self.began, self.left, self.last = {}, _RETURN_DUMPS, 0.0
        self.events = getattr(sys, "monitoring", None)
        if self.events is None or self.events.get_tool(_TOOL) is not None:
            return
        of = self.events.events
        self.events.use_tool_id(_TOOL, _TOOL_NAME)
        self.events.register_callback(_TOOL, of.PY_START, self.start)
        self.events.register_callback(_TOOL, of.PY_RETURN, self.end)
        self.events.set_events(_TOOL, of.PY_START)
        atexit.register(self.close)

    def close(self):
        """Before the interpreter is over: functions run in it even when the modules, and ours, are empty."""
        if self.events.get_tool(_TOOL) == _TOOL_NAME:
            self.events.set_events(_TOOL, 0)
            for event in (self.events.events.PY_START, self.events.events.PY_RETURN):
                self.events.register_callback(_TOOL, event, None)
            self.events.free_tool_id(_TOOL)
        self.began.clear()

    def start(self, code, offset, over=sys.is_finalizing):
        if over():
            return
        recorder = _current()
        if _is_own(code.co_filename) and code.co_name != "<module>" and len(self.began) < _OWN_FUNCTIONS:
            self.began[code] = 0 if recorder is None else recorder.steps, time.monotonic()
            _quiet(lambda: self.events.set_local_events(_TOOL, code, self.events.events.PY_RETURN))
        return self.events.DISABLE

    def end(self, code, offset, value, over=sys.is_finalizing):
        if over():
            return
        recorder, (begin, since) = _current(), self.began.pop(code, (None, 0))
        if recorder is not None and begin is not None and not recorder.manual:
            now = time.monotonic()
            took, all_time = now - max(since, recorder.started), now - recorder.started
            by_steps = self.left and recorder.steps - begin >= max(_RETURN_STEPS, recorder.steps / 2)
            by_time = took >= _RETURN_SECONDS
            live = recorder.safely("live", recorder.live) if by_steps or by_time else None
            if live is not None and live[0] >= _RICH * recorder.kept and (by_steps or live[0] >= 2 * recorder.kept or
                    took >= all_time / 2 and all_time >= 2 * self.last):  # imports may take longer
                self.left -= by_steps
                self.last = all_time
                _quiet(lambda: recorder.dump("dump", True))
        return self.events.DISABLE


def _is_own(path):
    """Whether a file of code is the program's: not ours, of the standard library or installed."""
    return path != _FILE and "-packages" + os.sep not in path and not path.startswith(_LIBRARY) and path[:1] != "<"


_LIBRARY = os.path.dirname(os.__file__) + os.sep


def _dump_before_exit():
    """Has os._exit, which runs nothing of Python's, wait for a dump. That is made in another thread, and not waited for
    forever: such an exit may be the way out of a driver that hangs."""
    leave = os._exit

    @functools.wraps(leave)
    def _exit(*args, **kwargs):
        try:
            recorder = _current()
            if recorder is not None and not getattr(recorder.busy, "now", False):
                done = threading.Event()

                def last():
                    recorder.dump("exit", True)
                    recorder.stop(None)
                    done.set()
                threading.Thread(target=last, daemon=True).start()
                done.wait(_EXIT_SECONDS)
        except BaseException:
            pass
        leave(*args, **kwargs)
    os._exit = _exit


_USAGE = """usage: python -m snapana_recorder [-o RUN] (FILE | -m MODULE) [ARGUMENTS]

Runs a program and writes RUN.snapana and RUN.pickle for snapana (RUN is "run" by default): memory counters at each
optimizer step, and the objects that hold device memory at some steps, when an allocation fails, when the program
raises, and at its end.
"""


def _usage(text):
    sys.stderr.write(text)
    sys.exit(2)


def _load(args):
    """The code of a program and the module that it is to run in, with sys.argv and sys.path as Python sets them."""
    from importlib.machinery import PathFinder, SourceFileLoader
    from importlib.util import find_spec
    main = types.ModuleType("__main__")
    space = main.__dict__
    safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
    spec = None
    if args[0] == "-m":
        sys.argv = ["-m"] + args[2:]
        if not safe:
            sys.path[0] = os.getcwd()
        try:
            spec = find_spec(args[1])
            if spec is not None and spec.submodule_search_locations is not None:
                spec = find_spec(args[1] + ".__main__")
        except (ImportError, AttributeError, TypeError, ValueError) as err:
            if not isinstance(err, ModuleNotFoundError):
                raise
        if spec is None or spec.loader is None:
            _usage("snapana_recorder: no module named %s\n" % args[1])
        code = spec.loader.get_code(spec.name)
        sys.argv[0] = spec.origin
    else:
        path = args[0]
        sys.argv = args
        if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
            if sys.version_info >= (3, 9):
                path = os.path.join(os.getcwd(), path)
            sys.path.insert(0, path) if safe else sys.path.__setitem__(0, path)
            spec = PathFinder.find_spec("__main__", [path])
            if spec is None or spec.loader is None:
                _usage("snapana_recorder: can't find '__main__' module in %r\n" % path)
            code = spec.loader.get_code("__main__")
        else:
            if not safe:  # as Python does: links are followed
                sys.path[0] = os.path.dirname(os.path.realpath(path))
            if sys.version_info >= (3, 9):
                path = os.path.join(os.getcwd(), path)
            try:
                with open(path, "rb") as f:
                    text = f.read()
            except OSError as err:
                _usage("snapana_recorder: %s\n" % err)
            code = compile(text, path, "exec", dont_inherit=True)
            space.update(__file__=path, __loader__=SourceFileLoader("__main__", path))
    if spec is not None:
        space.update(__spec__=spec, __file__=spec.origin, __loader__=spec.loader, __package__=spec.parent)
    if sys.version_info < (3, 15):
        space["__cached__"] = spec.cached if spec is not None else None
    if sys.version_info < (3, 14):
        space["__annotations__"] = {}
    import builtins
    space["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return code, space


def _show(trace):
    """Makes the interpreter show an exception of the program, as it does without us, from the program's first frame on.
    It is the one to show it: its exit code, or the signal that ends it, depend on it."""
    hook = sys.excepthook

    def without_us(kind, value, _):
        sys.excepthook = hook
        value.__traceback__ = trace
        hook(kind, value, trace)
    sys.excepthook = without_us


def _main():
    args = sys.argv[1:]
    run = "run"
    if args[:1] == ["-o"] and len(args) > 1:
        run, args = args[1], args[2:]
    if not args or (len(args) < 2 if args[0] == "-m" else args[0].startswith("-")):
        sys.stderr.write(_USAGE)
        return sys.exit(0 if args and args[0] in ("-h", "--help") else 2)
    run = os.path.abspath(run)
    try:
        code, space = _load(args)
        if "torch" in sys.modules:
            _auto(run)
        else:
            sys.meta_path.insert(0, _OnTorch(lambda: _auto(run)))
        _Returns()
        exec(code, space)
    except BaseException as err:
        if isinstance(err, SystemExit):
            _dump_at_end("exit")
            raise
        recorder = _current()
        if recorder is not None:
            recorder.reason = "exception"
        _dump_at_end("exception")
        trace = err.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == _FILE:
            trace = trace.tb_next
        _show(trace)
        raise
    _dump_at_end("exit")


def _dump_at_end(reason):
    """The last dump of a program. Threads that it leaves running are recorded until they end: stop() is at exit."""
    recorder = _current()
    if recorder is not None:
        _quiet(lambda: recorder.dump(reason, True))


# The plugin for pytest: `pytest -p snapana_recorder`. pytest finds the two functions by their names.

def pytest_addoption(parser):
    group = parser.getgroup("snapana", "GPU memory (snapana)")
    group.addoption("--snapana", metavar="DIR", help="record the GPU memory of each test; of those that fail, keep the "
                    "snapshot in DIR and print the verdict of snapana, if it is installed (SNAPANA names it)")
    parser.addini("snapana", "the default of --snapana", default=None)


def pytest_configure(config):
    import pytest
    config.addinivalue_line("markers", "limit_gpu_memory(size): fail a test that has more GPU memory allocated at its "
                            'peak than before it, by more than a size such as "2 GiB"')
    config.addinivalue_line("markers", "limit_gpu_growth(size=0): fail a test that leaves more GPU memory allocated "
                            "behind than there was before it, by more than a size")
    config.pluginmanager.register(_Tests(pytest, config), "snapana-tests")


_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(?:i?b)?\s*$", re.I)


def _size(value):
    """A number of bytes, of a number or a text like "2 GiB"; units are powers of 1024. None where it is none."""
    if type(value) in (int, float):
        return int(value) if value >= 0 else None
    found = _SIZE.match(value) if isinstance(value, str) else None
    return found and int(float(found.group(1)) * 1024 ** " kmgt".index(found.group(2).lower() or " "))


def _bytes(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return "%d B" % n if unit == "B" else "%.2f %s" % (n, unit)
        n /= 1024


class _Allocated:
    """Allocated bytes of each device since a moment. Peaks are torch's own, set back here and wherever memory is left out
    that is not the test's: what is known of the time before is kept."""

    def __init__(self, cuda):
        self.cuda, self.base, self.top = cuda, {}, {}
        self.resets = False  # the peaks are set back here
        for device, now in self.now().items():
            self.base[device] = self.top[device] = now
            self._reset(device)
        self.level = self.now()  # when fixtures were last looked at

    def _reset(self, device):
        self.resets = True
        try:
            self.cuda.reset_peak_memory_stats(device)
        finally:
            self.resets = False

    def now(self):
        if not self.cuda.is_initialized():
            return {}
        return {d: self.cuda.memory_allocated(d) for d in range(self.cuda.device_count())}

    def peaks(self):
        """The highest number of bytes above the beginning, by device."""
        for device in self.now():
            self.top[device] = max(self.top.get(device, 0), self.cuda.max_memory_allocated(device))
        return {d: top - self.base.get(d, 0) for d, top in self.top.items()}

    def growth(self):
        return {d: now - self.base.get(d, 0) for d, now in self.now().items()}

    def leave_out(self, more):
        """Takes that many bytes by device, which came since the last call of peaks, for memory of others."""
        for device, now in self.now().items():
            n = more.get(device, 0)
            self.base[device] = self.base.get(device, 0) + n
            self.top[device] = max(self.top.get(device, 0) + n, now)
            self._reset(device)


class _GPUMemory:
    """What the fixture gpu_memory gives: bytes on the device with most, above what there was before the test."""

    def __init__(self, allocated):
        self._allocated = allocated

    @property
    def peak(self):
        return max(self._allocated.peaks().values(), default=0)

    @property
    def growth(self):
        return max(self._allocated.growth().values(), default=0)

    def dump(self, path):
        """Writes a snapshot; with --snapana it has the history of the test."""
        self._allocated.cuda.memory._dump_snapshot(os.fspath(path))


def _most(by_device):
    device = max(by_device, key=by_device.get, default=0)
    return device, by_device.get(device, 0)


def _cuda():
    """torch.cuda where torch was imported and has a device, else None."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_available() else None


class _Tests:
    """Measures tests. What a fixture of a larger scope than the test allocates is not the test's."""

    def __init__(self, pytest, config):
        self.folder = config.getoption("snapana") or config.getini("snapana")
        self.current = None  # of the test that runs
        self.failed = False  # it, so far
        self.recording = False
        self.left = None  # by device, what it left behind when its own fixtures had ended
        self.shared = set()  # fixtures of a larger scope that live
        self.resets = []  # where functions of torch are replaced, with the originals

        # Hooks are marked here: only now there is pytest.
        pytest.hookimpl(tryfirst=True)(_Tests.pytest_runtest_setup)
        pytest.hookimpl(hookwrapper=True)(_Tests.pytest_fixture_setup)
        pytest.hookimpl(hookwrapper=True)(_Tests.pytest_runtest_makereport)
        self.skip, self.fail = pytest.skip, pytest.fail
        if not hasattr(_Tests, "gpu_memory"):
            _Tests.gpu_memory = pytest.fixture(name="gpu_memory")(_Tests._memory)

    def _memory(self):
        """GPU memory that the test allocates: .peak and .growth in bytes, .dump(path)."""
        if self.current is None:  # asked for by request.getfixturevalue
            cuda = _cuda()
            if cuda is None:
                self.skip("no GPU: memory cannot be measured")
            self.current = _Allocated(cuda)
            self._watch_resets(self.current)
        return _GPUMemory(self.current)

    def _limits(self, item):
        for name in ("limit_gpu_memory", "limit_gpu_growth"):
            mark = item.get_closest_marker(name)
            if mark is not None:
                given = mark.args + tuple(mark.kwargs.values())
                size = _size(given[0]) if given else 0 if name == "limit_gpu_growth" else None
                if size is None or len(given) > 1:
                    self.fail('%s takes a size such as "2 GiB", not %s' % (name, ", ".join(map(repr, given)) or "nothing"),
                              pytrace=False)
                yield name, size

    def pytest_runtest_setup(self, item):
        self.current, self.failed, self.left, limits = None, False, None, []
        self._put_back()
        if any(True for _ in item.iter_markers()) or "gpu_memory" in getattr(item, "fixturenames", ()):
            limits = list(self._limits(item))
        measured = limits or "gpu_memory" in getattr(item, "fixturenames", ())
        if measured:
            try:
                import torch  # noqa: F401
            except ImportError:
                self.skip("no GPU: torch is not installed")
            if _cuda() is None:
                self.skip("no GPU: torch.cuda.is_available() is False, so GPU memory cannot be measured")
        # pytest loads the plugin by itself where it is installed: tests that ask for nothing are left alone.
        cuda = _cuda() if measured or self.folder else None
        if cuda is not None:
            if cuda.is_initialized():
                for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # of the last test that failed
                    vars(sys).pop(name, None)
                gc.collect()
            self.current = _Allocated(cuda)
            self._watch_resets(self.current)
            self._watch_end(item, limits)
            if self.folder:
                self._record(cuda)

    def _watch_resets(self, current):
        """Keeps the peak so far where the test sets torch's back, by whichever name it calls: all of torch's functions end
        in these of C++ (torch/cuda/memory.py 1.13 to 2.15, torch/accelerator/memory.py since 2.9)."""
        def watched(original):
            def reset(*args):
                if not current.resets:
                    current.peaks()
                return original(*args)
            return reset
        native = sys.modules["torch"]._C
        for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
            original = getattr(native, name, None)
            if original is not None:
                self.resets.append((native, name, original))
                setattr(native, name, watched(original))

    def _put_back(self):
        while self.resets:
            setattr(*self.resets.pop())

    def _watch_end(self, item, limits):
        """Measures what a test leaves behind when its own fixtures have ended and those of a larger scope have not: an item
        is torn down between the two."""
        original = item.teardown

        def teardown():
            original()
            if self.current is not None and not self.failed and any(name == "limit_gpu_growth" for name, _ in limits):
                getattr(item, "funcargs", {}).clear()  # pytest lets go of fixtures a moment later
                gc.collect()
                self.left = self.current.growth()
        item.teardown = teardown

    def _record(self, cuda):
        """Begins a history that has this test alone."""
        try:
            cuda.init()
            cuda.memory._record_memory_history(enabled=None)
            cuda.memory._record_memory_history(max_entries=1000000, stacks="python")
            self.recording = True
        except Exception as err:
            sys.stderr.write("snapana: tests are not recorded: %s\n" % err)
            self.folder = None

    def pytest_fixture_setup(self, fixturedef, request):
        current = self.current
        if current is None:
            yield
            if fixturedef.scope != "function":
                self.shared.add(fixturedef)
            return
        self._forget_ended(current)
        if fixturedef.scope == "function":
            yield
        else:
            current.peaks()
            before = current.growth()  # without fixtures that this one asks for
            yield
            current.leave_out({d: n - before.get(d, 0) for d, n in current.growth().items()})
            self.shared.add(fixturedef)
        current.level = current.now()

    def _forget_ended(self, current):
        """Memory of fixtures that ended, as others of their parameters begin, is no longer there before the test: a leak could
        hide in its place. What of it lives on stays there."""
        ended = {f for f in self.shared if f.cached_result is None}
        self.shared -= ended
        if ended:
            current.peaks()
            gc.collect()
            current.leave_out({d: min(n - current.level.get(d, 0), 0) for d, n in current.now().items()})

    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report, current = outcome.get_result(), self.current
        if current is None:
            return
        if report.passed and not self.failed:  # the traceback of a test that failed holds what it left
            self._hold(item, call.when, report, current)
        self.failed = self.failed or report.failed or call.excinfo is not None
        if report.failed and self.folder and self.recording:
            self._keep(item, call.when, report, current)
        if call.when == "teardown":
            self.current = None
            self._put_back()
            if self.recording:
                self.recording = False
                current.cuda.memory._record_memory_history(enabled=None)

    def _hold(self, item, when, report, current):
        for name, limit in self._limits(item):
            if (name, when) == ("limit_gpu_memory", "call"):
                device, most = _most(current.peaks())
                words = "The test allocated %s of GPU memory at its peak"
            elif (name, when) == ("limit_gpu_growth", "teardown") and self.left is not None:
                device, most = _most(self.left)
                words = "The test left %s of GPU memory behind"
            else:
                continue
            if most > limit:
                report.outcome = "failed"
                report.longrepr = (words + " on device %d, more than its limit of %s (%d and %d bytes).") % (
                    _bytes(most), device, _bytes(limit), most, limit)

    def _keep(self, item, when, report, current):
        """Writes the snapshot of a test that failed, and says what snapana makes of it."""
        from hashlib import sha256
        import shutil
        import subprocess
        name = re.sub(r"[^\w.=-]+", "_", item.nodeid).strip("_")
        if name != item.nodeid.replace("::", "_", 1) or len(name) > 120:  # others may have it; file systems allow 255 bytes
            name = name[:100] + "_" + sha256(item.nodeid.encode()).hexdigest()[:12]
        path = os.path.join(self.folder, name + (".pickle" if when == "call" else "." + when + ".pickle"))
        try:
            os.makedirs(self.folder, exist_ok=True)
            current.cuda.memory._dump_snapshot(path)
        except Exception as err:
            report.sections.append(("snapana", "The snapshot could not be kept in %s: %s" % (path, err)))
            return
        text = "Snapshot: " + path
        program = os.environ.get("SNAPANA") or shutil.which("snapana") or _quiet(lambda: __import__("snapana").binary())
        if program is None:
            text += "\nsnapana is not on PATH; SNAPANA may name it."
        else:
            try:
                done = subprocess.run([program, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                                      universal_newlines=True)
                text += "\n" + done.stdout.rstrip()
            except (OSError, subprocess.SubprocessError) as err:
                text += "\n%s could not be run: %s" % (program, err)
        report.sections.append(("snapana", text))


if sys.modules["__main__"].__dict__ is globals():
    _main()
