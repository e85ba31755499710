"""A program to attach to: python program.py WORD... It says ready, runs until a line comes on stdin, and says what is
left of a visitor."""
import atexit
import gc
import json
import os
import select
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
words = sys.argv[1:]
state = lambda: {  # noqa: E731
    "attached": sorted(name for name in sys.modules if name == "_snapana_attach"), "threads": threading.active_count(),
    "exits": atexit._ncallbacks(), "files": sorted(os.listdir("/proc/self/fd")), "trace": repr(sys.gettrace()),
    "profile": repr(sys.getprofile()), "collector": gc.isenabled(), "callbacks": len(gc.callbacks),
    "handlers": [repr(signal.getsignal(n)) for n in range(1, 65)], "finders": len(sys.meta_path),
    "history": bool(torch and torch.cuda.memory.enabled), "folder": os.getcwd(),
    "systhreads": len(os.listdir("/proc/self/task"))}
torch = None
if "plain" not in words:
    import torch
if "listen" in words:
    import snapana_recorder
    snapana_recorder.listen()
if "history" in words:
    torch.cuda.memory._record_memory_history()
if "slow" in words:
    torch.cuda.memory.slow[0] = 2
if "secret" in words:  # a process that its user may not look into
    import ctypes
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
if "launcher" in words:
    import subprocess
    child = subprocess.Popen([sys.executable, __file__, "plain", "asleep"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
    atexit.register(child.wait)
    atexit.register(child.stdin.close)
if "bad" in words:  # a module that the recorder needs
    del sys.modules["json"]
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
if "broken" in words:
    def broken():
        raise OSError(28, "No space left on device")
    torch.cuda.memory._snapshot = broken
if "audit" in words:
    def refuse(event, args):
        if event == "cpython.remote_debugger_script":
            raise RuntimeError("no scripts here")
    sys.addaudithook(refuse)
if "handler" in words:
    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop("checkpoint")
    signal.signal(signal.SIGTERM, stop)


class Trainer:
    def __init__(self):
        self.outputs = []

    def step(self):
        if torch and "cpu" not in words:
            self.outputs.append(torch.Tensor(1 << 20))
        if "steps" in words:
            snapana_recorder.step()


def main():
    trainer = Trainer()
    for _ in range(5):
        trainer.step()
    before = state()
    if "asleep" in words or "threaded" in words:  # in a moment
        threading.Timer(0.2, print, ("ready",), {"flush": True}).start()
    else:
        print("ready", flush=True)
    if "asleep" in words:  # in C, with the interpreter's lock released
        os.read(0, 1)
    if "threaded" in words:  # the main thread waits, another one works
        thread = threading.Thread(target=work, args=(trainer,))
        thread.start()
        thread.join()
    else:
        work(trainer)
    time.sleep(0.3)  # threads of a visitor end
    after = state()
    print(json.dumps({"changed": {k: [v, after[k]] for k, v in before.items() if after[k] != v}}))


def work(trainer):
    lines = select.poll()
    lines.register(0, select.POLLIN)
    while not lines.poll(10) or os.read(0, 1) == b"z" and os.read(0, 1):  # after a z it waits in C for more
        if len(trainer.outputs) < 200:
            trainer.step()


try:
    main()
except BaseException as err:
    print(json.dumps({"raised": repr(err)}))
