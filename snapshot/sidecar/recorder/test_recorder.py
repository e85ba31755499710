"""Tests of snapana_recorder.py on CPU tensors: python3 -m unittest test_recorder. Needs torch.

Each looks through the whole heap. Where there is no SNAPANA_FULL in the environment, recorder_test.go hides
from them what torch's import makes (gc.freeze, not seen through), and what only repeats itself does so less often.
"""
import ast
import collections
import contextlib
import contextvars
import functools
import gc
import glob
import itertools
import os
import queue
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
import unittest
import unittest.mock
import weakref

import torch
from torch.utils.checkpoint import checkpoint

import snapana_recorder as r

SOURCE = r.__file__
FULL = bool(os.environ.get("SNAPANA_FULL"))
SIZE = 1000  # elements of a tensor that a test looks for


def unpack(data, at=0):
    """One MessagePack value, strictly: (value, where it ends). IndexError or struct.error where the data ends."""
    head = data[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head < 0x90:
        return unpack_map(data, at, head & 15)
    if head < 0xA0:
        return unpack_list(data, at, head & 15)
    if head < 0xC0:
        return unpack_text(data, at, head & 31)
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    for code, form in ((0xCB, ">d"), (0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"), (0xD3, ">q")):
        if head == code:
            return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    for codes, read in (((0xD9, 0xDA, 0xDB), unpack_text), ((None, 0xDC, 0xDD), unpack_list),
                        ((None, 0xDE, 0xDF), unpack_map)):
        if head in codes:
            form = (">B", ">H", ">I")[codes.index(head)]
            return read(data, at + struct.calcsize(form), struct.unpack_from(form, data, at)[0])
    raise ValueError("byte 0x%02x at %d" % (head, at - 1))


def unpack_text(data, at, size):
    if at + size > len(data):
        raise IndexError
    return data[at:at + size].decode("utf-8"), at + size


def unpack_list(data, at, size):
    items = []
    for _ in range(size):
        item, at = unpack(data, at)
        items.append(item)
    return items, at


def unpack_map(data, at, size):
    items = {}
    for _ in range(size):
        key, at = unpack(data, at)
        items[key], at = unpack(data, at)
    return items, at


def records(path):
    """The complete records of a file, and how many bytes follow them."""
    with open(path, "rb") as f:
        data = f.read()
    found, at = [], 0
    while at < len(data):
        try:
            record, at = unpack(data, at)
        except (IndexError, struct.error):
            break
        found.append(record)
    return found, len(data) - at


class Graph:
    """A holders record, for questions."""

    def __init__(self, record):
        self.record = record
        words = record["strings"]
        n = record["nodes"]
        self.nodes = [dict(kind=words[k], type=words[t], name=words[m], file=words[f], line=line, root=words[r_],
                           cycle=c)
                      for k, t, m, f, line, r_, c in zip(n["kind"], n["type"], n["name"], n["file"], n["line"],
                                                         n["root"], n["cycle"])]
        e = record["edges"]
        self.sources = collections.defaultdict(list)
        for a, b, kind, label in zip(e["from"], e["to"], e["kind"], e["label"]):
            self.sources[b].append((a, words[kind], words[label]))
        b = record["bounds"]
        self.bounds = {node: (length, limit, words[hint])
                       for node, length, limit, hint in zip(b["node"], b["length"], b["limit"], b["hint"])}
        self.notes = " ".join(note for note in record["notes"] if FULL or "(gc.freeze)" not in note)
        t, s = record["tensors"], record["storages"]
        self.tensors = [dict(node=t["node"][i], address=s["address"][t["storage"][i]],
                             bytes=s["bytes"][t["storage"][i]], shape=words[t["shape"][i]],
                             dtype=words[t["dtype"][i]], flags=t["flags"][i], offset=t["offset"][i])
                        for i in range(len(t["node"]))]

    def of(self, address):
        return [t for t in self.tensors if t["address"] == address]

    def starts(self, address, *steps):
        """The nodes from which edges ("kind label" or "kind") lead, in this order, to a tensor at an address."""
        at = {t["node"] for t in self.of(address)}
        for step in reversed(steps):
            kind, _, label = step.partition(" ")
            at = {a for b in at for a, k, text in self.sources[b] if k == kind and (not label or text == label)}
        return [self.nodes[a] for a in at]

    def reached(self, address):
        """The roots from which a tensor at an address is reached."""
        todo = [t["node"] for t in self.of(address)]
        seen = set(todo)
        while todo:
            for a, _, _ in self.sources[todo.pop()]:
                if a not in seen:
                    seen.add(a)
                    todo.append(a)
        return {self.nodes[n]["root"] for n in seen} - {""}


def make(**options):
    t = torch.zeros(SIZE, **options)
    return t, t.data_ptr()


@contextlib.contextmanager
def full_disk():
    """A disk that has room for five bytes more, whoever writes them."""
    write, state = os.write, [0]

    def short(fd, data):
        state[0] += 1
        if state[0] == 1:
            return write(fd, data[:5])
        raise OSError(28, "No space left on device")
    os.write = short
    try:
        yield
    finally:
        os.write = write


class Recorded(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.run_path = os.path.join(self.dir.name, "run")
        self.keep = []

    def tearDown(self):
        r.stop()
        self.dir.cleanup()
        self.keep = None  # the runner keeps the tests

    def graph(self):
        r.start(self.run_path, devices="all")
        r.dump()
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x for x in found if x["type"] == "fault"], [])
        return Graph([x for x in found if x["type"] == "holders"][-1])

    def holder(self, address, *steps):
        """The one node at the start of a chain of references to a tensor."""
        graph = self.graph()
        found = graph.starts(address, *steps)
        self.assertEqual(len(found), 1, "%s: %s" % (steps, self.explain(graph, address)))
        return found[0]

    def explain(self, graph, address):
        lines, at = [], [t["node"] for t in graph.of(address)]
        for _ in range(4):
            lines.append(str([(graph.nodes[b]["kind"], k, label, graph.nodes[a]["kind"], graph.nodes[a]["name"])
                              for b in at for a, k, label in graph.sources[b]]))
            at = [a for b in at for a, _, _ in graph.sources[b]]
        return "\n".join(lines)


MODULE_GLOBAL = {}


class Holders(Recorded):
    def test_tensor(self):
        t = torch.zeros(30, 40, requires_grad=True)[10:]
        found = [x for x in self.graph().of(t.untyped_storage().data_ptr()
                                            if hasattr(t, "untyped_storage") else t.storage().data_ptr())
                 if x["shape"] == "20x40"]
        self.assertEqual([(x["bytes"], x["dtype"], x["flags"], x["offset"]) for x in found],
                         [(4800, "float32", 1 | 4, 1600)])

    def test_views_share_a_storage(self):
        t, address = make()
        view = t[5:]
        self.assertEqual(len(self.graph().of(address)), 2)
        del view

    def test_local(self):
        def work():
            mine, address = make()
            return self.holder(address, "local mine")
        node = work()
        self.assertEqual((node["kind"], node["root"], node["name"].split(".")[-1]), ("frame", "frame", "work"))
        self.assertEqual(node["file"], __file__)

    def test_local_of_another_thread(self):
        ready, done, address = threading.Event(), threading.Event(), []

        def work():
            mine, at = make()
            address.append(at)
            ready.set()
            done.wait()
            del mine
        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()
        try:
            self.assertEqual(self.holder(address[0], "local mine")["root"], "frame")
        finally:
            done.set()
            thread.join()

    def test_closure(self):
        def maker():
            history = []

            def validate():
                t, address = make()
                history.append(t)
                return address
            return validate
        validate = maker()
        address = validate()
        node = self.holder(address, "closure history", "contents", "index 0")
        self.assertEqual((node["kind"], node["name"].split(".")[-1]), ("function", "validate"))
        self.assertEqual(node["line"], validate.__code__.co_firstlineno)

    def test_global(self):
        t, address = make()
        MODULE_GLOBAL["k"] = t
        del t
        try:
            node = self.holder(address, "global MODULE_GLOBAL", "key 'k'")
            self.assertEqual((node["kind"], node["root"], node["name"]), ("module", "module", __name__))
        finally:
            MODULE_GLOBAL.clear()

    def test_global_of_a_module_that_must_not_be_asked(self):
        """As of _asyncio, by Python 3.12: gc is not asked what it refers to, and its namespace shows the same."""
        module = sys.modules["broken_module"] = types.ModuleType("broken_module")
        self.addCleanup(sys.modules.pop, "broken_module")
        module.cache, address = make()
        asked, ask = [], gc.get_referents

        def get_referents(*objs):
            asked.extend(id(o) for o in objs if o is module)
            return ask(*objs)
        with unittest.mock.patch.object(gc, "get_referents", get_referents):
            self.graph()
            self.assertIn(id(module), asked)
            del asked[:]
            with unittest.mock.patch.object(r, "_BROKEN_MODULES", ("broken_module",)):
                node = self.holder(address, "global cache")
        self.assertEqual(asked, [])
        self.assertEqual((node["kind"], node["root"], node["name"]), ("module", "module", "broken_module"))

    def test_namespace_of_no_module(self):
        space = {"torch": torch, "__name__": "cell"}
        exec("t = torch.zeros(1000)\ndef f(): pass", space)
        f, address = space["f"], space["t"].data_ptr()
        del space
        node = self.holder(address, "global t")
        self.assertEqual((node["kind"], node["name"]), ("module", "cell"))
        del f

    def test_attributes(self):
        class Plain:
            pass

        class Slotted:
            __slots__ = ("tensor",)

        for cls in (Plain, Slotted):
            with self.subTest(cls.__name__):
                o = cls()
                o.tensor, address = make()
                node = self.holder(address, "attr tensor")
                self.assertEqual(node["kind"], "object")
                self.assertTrue(node["type"].endswith(cls.__name__), node["type"])
                self.keep.append(o)

    def test_attribute_of_a_module(self):
        m = torch.nn.Linear(SIZE, 1)
        node = self.holder(m.weight.data_ptr(), "attr _parameters", "key 'weight'")
        self.assertEqual(node["type"], "torch.nn.modules.linear.Linear")

    def test_class(self):
        class Config:
            cache, address = make()
        node = self.holder(Config.address, "attr cache")
        self.assertEqual((node["kind"], node["root"]), ("class", "class"))

    def test_containers(self):
        for kind, step, build in (
                ("list", "index 1", lambda t: [0, t]),
                ("tuple", "index 0", lambda t: (t,)),
                ("deque", "index 2", lambda t: collections.deque([0, 0, t])),
                ("set", "element", lambda t: {t}),
                ("dict", "key ('a', 7)", lambda t: {("a", 7): t}),
                ("dict", "dictkey", lambda t: {t: 1}),
                ("dict", "key None", lambda t: collections.OrderedDict({None: t})),
                ("dict", "key 'x'", lambda t: collections.defaultdict(list, x=t)),
                ("list", "index 0", lambda t: type("Stack", (list,), {})([t]))):
            with self.subTest(kind + " " + step):
                t, address = make()
                self.keep = build(t)
                del t
                self.assertEqual(self.holder(address, step)["kind"], kind)
                self.assertEqual(self.holder(address, "attr keep", step)["kind"], "object")

    def test_long_keys(self):
        t, address = make()
        self.keep = {"k" * 1000: t}
        graph = self.graph()
        found = [label for tensor in graph.of(address)
                 for _, kind, label in graph.sources[tensor["node"]] if kind == "key"]
        self.assertEqual([len(x) for x in found], [80])

    def test_functions(self):
        t, address = make()

        def f(a, given=t, *, named=t):
            pass
        del t
        self.assertEqual(self.holder(address, "default given")["kind"], "function")
        self.assertEqual(self.holder(address, "default named")["kind"], "function")

    def test_partial(self):
        t, address = make()
        self.keep = functools.partial(len, t)
        del t
        self.assertEqual(self.holder(address, "args 0")["kind"], "partial")

    def test_bound_method(self):
        class Model:
            def forward(self):
                pass
        m = Model()
        m.w, address = make()
        self.keep = m.forward
        del m
        node = self.holder(address, "self", "attr w")
        self.assertEqual((node["kind"], node["name"].split(".")[-1]), ("method", "forward"))

    def test_lru_cache(self):
        for size in (None, 8):
            with self.subTest(maxsize=size):
                @functools.lru_cache(maxsize=size)
                def table(n):
                    return make()[0]
                address = table(1).data_ptr()
                node = self.holder(address, *(("cache", "key") if size is None else ("cache",)))
                self.assertEqual((node["kind"], node["name"].split(".")[-1]), ("lru_cache", "table"))
                self.keep.append(table)

    def test_bounds(self):
        class Replay:
            def __init__(self, items, capacity):
                self.items, self._capacity, self.flag = items, capacity, True

        class Recent(collections.OrderedDict):
            def __init__(self, **limits):
                self.__dict__.update(limits)

        @functools.lru_cache(maxsize=8)
        def table(n):
            return make()[0]

        @functools.lru_cache(maxsize=None)
        def tables(n):
            return make()[0]
        q = queue.Queue(maxsize=4)
        recent, unlimited = Recent(maxsize=16), Recent(maxsize=None)
        for at, (expected, holder, fill) in enumerate((
                ((1, 500, ""), collections.deque(maxlen=500), lambda h: h.append),
                ((2, 2, ""), collections.deque([0, 0, 0], maxlen=2), lambda h: h.append),
                (None, collections.deque(), lambda h: h.append),
                ((2, 8, ""), table, lambda h: None),
                (None, tables, lambda h: None),
                ((1, 4, ""), q, lambda h: h.put),
                ((1, 100, "_capacity"), Replay([], 100), lambda h: h.items.append),
                (None, Replay([0] * 5, 3), lambda h: h.items.append),  # it has more already
                (None, Replay([], True), lambda h: h.items.append),
                ((1, 16, "maxsize"), recent, lambda h: functools.partial(h.__setitem__, "x")),
                (None, unlimited, lambda h: functools.partial(h.__setitem__, "x")))):
            with self.subTest(at):
                if fill(holder) is None:
                    holder(0)
                    address = holder(1).data_ptr()
                else:
                    t, address = make()
                    fill(holder)(t)
                    del t
                self.keep = holder
                graph = self.graph()
                todo = {x["node"] for x in graph.of(address)}
                above = set(todo)
                for _ in range(3):
                    todo = {a for b in todo for a, _, _ in graph.sources[b]}
                    above |= todo
                found = [b for n, b in graph.bounds.items() if n in above]
                self.assertEqual(found, [expected] if expected else [], self.explain(graph, address))

    def test_context_variable(self):
        t, address = make()
        variable = contextvars.ContextVar("trace")
        context = contextvars.copy_context()
        context.run(variable.set, [t])
        del t
        self.assertEqual(self.holder(address, "context trace", "index 0")["type"].split(".")[-1], "Context")
        t, address = make()
        for n in range(40):  # as many as make a tree of them
            contextvars.ContextVar("other%d" % n).set(n)
        variable.set(t)
        del t
        try:
            node = self.holder(address, "context trace")
            self.assertEqual((node["type"].split(".")[-1], node["root"]), ("Context", "interpreter"))
        finally:
            variable.set(None)

    def test_generator(self):
        def batches():
            current, address = make()
            yield address
            del current
        self.keep = batches()
        address = next(self.keep)
        node = self.holder(address, "local current")
        self.assertEqual((node["kind"], node["name"].split(".")[-1]), ("generator", "batches"))
        self.assertEqual(node["line"], batches.__code__.co_firstlineno + 2)

    def test_coroutine(self):
        class Wait:
            def __await__(self):
                yield

        async def serve(out):
            request, address = make()
            out.append(address)
            await Wait()
            del request

        out = []
        self.keep = serve(out)
        self.keep.send(None)
        self.assertEqual(self.holder(out[0], "local request")["kind"], "generator")
        self.keep.close()

    def test_exception(self):
        def fail(out):
            scratch, address = make()
            out.append(address)
            raise ValueError("bad batch")
        out = []
        try:
            fail(out)
        except ValueError as err:
            self.keep = err
        node = self.holder(out[0], "frame", "frame next", "frame", "local scratch")
        self.assertEqual(node["kind"], "exception")
        self.assertEqual(self.holder(out[0], "attr keep", "frame", "frame next", "frame", "local scratch")["kind"],
                         "object")
        entry = self.holder(out[0], "frame", "local scratch")
        self.assertEqual((entry["kind"], entry["name"].split(".")[-1], entry["line"]),
                         ("traceback", "fail", fail.__code__.co_firstlineno + 3))

    def test_exception_being_handled(self):
        def fail(out):
            scratch, address = make()
            out.append(address)
            raise ValueError
        out = []
        try:
            fail(out)
        except ValueError:
            node = self.holder(out[0], "frame", "frame next", "frame", "local scratch")
        self.assertEqual(node["root"], "interpreter")

    def test_cause(self):
        def fail(out):
            scratch, address = make()
            out.append(address)
            raise ValueError
        out = []
        try:
            try:
                fail(out)
            except ValueError as err:
                raise KeyError from err
        except KeyError as err:
            self.keep = err
        self.assertEqual(self.holder(out[0], "cause __cause__", "frame", "frame next", "frame",
                                     "local scratch")["type"], "KeyError")

    def test_hooks(self):
        def capture(features):
            def hook(module, inputs, output):
                features.append(output)
            return hook
        m = torch.nn.Linear(SIZE, SIZE)
        features = []
        m.register_forward_hook(capture(features))
        features = None
        address = m(torch.zeros(2, SIZE)).data_ptr()
        node = self.holder(address, "hook _forward_hooks", "key", "closure features", "contents", "index 0")
        self.assertEqual(node["type"], "torch.nn.modules.linear.Linear")

    def test_hook_of_a_tensor(self):
        w = torch.zeros(3, requires_grad=True)
        held, address = make()

        def hook(grad, held=held):
            pass
        w.register_hook(hook)
        del held, hook
        self.assertEqual(self.holder(address, "hook _backward_hooks", "key", "default held")["kind"], "tensor")

    def test_thread_local(self):
        self.keep = threading.local()
        self.keep.tensor, address = make()
        self.assertIn("frame", self.graph().reached(address))

    def test_cycle(self):
        class Node:
            pass
        gc.collect()
        enabled = gc.isenabled()
        gc.disable()
        try:
            a, b = Node(), Node()
            a.tensor, address = make()
            a.other, b.other = b, a
            del a, b
            graph = self.graph()
            self.assertEqual(graph.reached(address), {"cycle"})
            self.assertEqual(len({n["cycle"] for n in graph.nodes if n["root"] == "cycle"}), 1)
            self.assertEqual(graph.record["collected"], 3)
        finally:
            if enabled:
                gc.enable()
            gc.collect()

    def test_list_that_only_holds_itself(self):
        gc.collect()
        enabled = gc.isenabled()
        gc.disable()
        try:
            t, address = make()
            own = [t]
            own.append(own)
            del t, own
            self.assertEqual(self.graph().reached(address), {"cycle"})
        finally:
            if enabled:
                gc.enable()
            gc.collect()

    def test_array_of_objects(self):
        numpy = sys.modules["numpy"]
        t, address = make()
        a = numpy.empty((2, 3), dtype=object)
        a[1, 2] = t
        del t
        self.keep = a
        self.assertEqual(self.holder(address, "attr keep", "index 1, 2")["type"].split(".")[-1], "Holders")
        self.assertEqual(self.holder(address, "index 1, 2")["kind"], "array")
        self.keep = {"late": a[1:]}  # a view of it, in a dictionary that gc does not list
        del a
        self.holder(address, "key 'late'", "base", "index 1, 2")
        inner, address = make()
        outer = numpy.empty(1, dtype=object)
        outer[0] = {"box": numpy.empty(1, dtype=object)}
        outer[0]["box"][0] = inner
        del inner
        self.keep = outer
        self.holder(address, "attr keep", "index 0", "key 'box'", "index 0")

    def test_array_of_numbers_that_is_a_tensor(self):
        t, address = make()
        self.keep = [t.numpy()]
        del t
        self.assertEqual(self.holder(address, "base")["kind"], "array")

    def test_tuple_made_in_c(self):
        found = torch.zeros(SIZE, 2).max(1)
        address = found.values.data_ptr()
        self.keep = [found]
        del found
        self.assertEqual(self.holder(address, "attr keep", "index 0", "index 0")["kind"], "object")

    def test_tee(self):
        def batches():
            while True:
                yield make()[0]
        first, second = itertools.tee(batches())
        address = next(first).data_ptr()
        del first
        self.keep = second
        self.assertIn("frame", self.graph().reached(address))

    def test_long_chains(self):
        """As many objects in a row as no search by sweeps would get through, older first, younger first and mixed."""
        for name in ("older", "younger", "mixed"):
            with self.subTest(name):
                t, address = make()
                links = [[None] for _ in range(3000)]
                if name == "younger":
                    links.reverse()
                if name == "mixed":
                    links = links[::2] + links[1::2][::-1]
                    links = [links[(n * 1103) % 3000] for n in range(3000)]
                for a, b in zip(links, links[1:]):
                    a[0] = b
                links[-1][0] = t
                self.keep = links[0]
                del t, links, a, b
                self.assertIn("frame", self.graph().reached(address))
                while self.keep is not None and type(self.keep) is list:
                    self.keep = self.keep[0]

    def test_small_containers_beside_large_ones(self):
        """What looks like a data set of plain values is left out at once, but for the one that holds a tensor."""
        class Row:
            def __init__(self, n, extra):
                self.n, self.box = n, [n, extra]
        t, address = make()
        self.keep = [Row(n, t if n == 3210 else 0.5) for n in range(5000)]
        self.keep += [(n, [n]) for n in range(5000)] + [{"text": str(n), "meta": {}} for n in range(5000)]
        del t
        self.assertEqual(self.holder(address, "attr keep", "index 3210", "attr box", "index 1")["kind"], "object")

    def test_frozen(self):
        """gc.freeze hides objects from gc, and not from what else refers to them."""
        program = """if True:
            import gc, types, sys, torch
            import snapana_recorder as r
            module = sys.modules["frozen_module"] = types.ModuleType("frozen_module")
            module.cache = {"a": [torch.zeros(%d)]}
            print(module.cache["a"][0].data_ptr())
            gc.freeze()
            r.start(sys.argv[1], devices="all")
            r.dump()
            r.stop()
            """ % SIZE
        done = subprocess.run([sys.executable, "-c", program, self.run_path], stdout=subprocess.PIPE, check=True,
                              env=dict(os.environ, PYTHONPATH=os.path.dirname(SOURCE)))
        found, _ = records(self.run_path + ".snapana")
        self.assertEqual([x for x in found if x["type"] == "fault"], [])
        graph = Graph([x for x in found if x["type"] == "holders"][-1])
        self.assertEqual([n["name"] for n in graph.starts(int(done.stdout), "global cache", "key 'a'", "index 0")],
                         ["frozen_module"])

    def test_view_and_its_base(self):
        t, address = make()
        self.keep = t[3:]
        del t
        graph = self.graph()
        self.assertEqual(len(graph.starts(address, "attr keep", "base")), 1)


LIBRARY = """
class Callback:
    def summary(self):
        return [x.mean() for x in self.outputs]
"""

STORE = """
import collections, io, torch, library_of_test
LIMIT = 70
kept = []
class Trainer:
    def __init__(self, size):
        self.history, self.pool, self.window, self.slots, self.size, self.count = [], [], [], [None] * 9, size, 0
        self.table, self.named, self.listed, self.spoken = {}, [], [], []
    def step(self, x):
        self.named.append(x)
        self.listed.append(x)
        self.spoken.append(x)
        print(getattr(self, "named")[0].shape, len(vars(self)["listed"]), "spoken", file=io.StringIO())
        self.history.append(x)
        assert len(self.history) and self.history[-1] is x and self.history[-8:] and self.history[-self.size:]
        if self.count < self.size:
            self.count += 1
            self.pool.append(x)
        else:
            self.pool[0] = x
        self.window.append(x)
        if len(self.window) > LIMIT:
            del self.window[0]
        self.slots[self.count % len(self.slots)] = x
        self.table.setdefault(self.count, []).append(x)
        kept.append(x)
    def reset(self):
        self.window = []
    def mean(self):
        return sum(self.pool)
    def __len__(self):
        return len(self.table)
class Outputs(library_of_test.Callback):
    def __init__(self):
        self.outputs = []
    def add(self, x):
        self.outputs.append(x)
class Meter:
    def __init__(self):
        self.seen = []
    def add(self, x):
        self.seen.append(x)
    def state(self):
        return {k: sum(v) for k, v in vars(self).items()}
class Caches:
    def __init__(self):
        self.absent, self.other, self.gotten, self.tried, self.always = {}, {}, {}, {}, {}
    def get(self, k, x):
        if k not in self.absent:
            self.absent[k] = x
        if k in self.other:
            pass
        else:
            self.other[k] = x
        found = self.gotten.get(k)
        if found is None:
            self.gotten[k] = x
        try:
            self.tried[k]
        except KeyError:
            self.tried[k] = x
        if k not in self.absent:
            self.always[k] = x
"""


class Uses(Recorded):
    """What the text of a program does with the containers that keep tensors."""

    def test_uses(self):
        path = os.path.join(self.dir.name, "store_of_test.py")
        installed = os.path.join(self.dir.name, "site-packages", "library_of_test.py")
        os.mkdir(os.path.dirname(installed))
        for file, text in ((path, STORE), (installed, LIBRARY)):
            with open(file, "w") as f:
                f.write(text)
        sys.path[:0] = [self.dir.name, os.path.dirname(installed)]
        try:
            import store_of_test
        finally:
            del sys.path[:2]
        self.addCleanup(sys.modules.pop, "store_of_test")
        self.addCleanup(sys.modules.pop, "library_of_test")
        for name, value in (("_SOURCE_SECONDS", 60), ("_SOURCE_BYTES", 1 << 30), ("_USED_NAMES", 1 << 30)):
            self.addCleanup(setattr, r, name, getattr(r, name))
            setattr(r, name, value)
        trainer = store_of_test.Trainer(50)
        meter, outputs, caches = store_of_test.Meter(), store_of_test.Outputs(), store_of_test.Caches()
        for _ in range(3):
            trainer.step(torch.zeros(SIZE))
            outputs.add(torch.zeros(SIZE))
            meter.add(torch.zeros(SIZE))
        caches.get(1, torch.zeros(SIZE))
        caches.always[2] = torch.zeros(SIZE)
        r.start(self.run_path, devices="all")
        r.dump()
        r.dump()
        r.stop()
        found, _ = records(self.run_path + ".snapana")
        uses = [x for x in found if x["type"] == "uses"]
        self.assertEqual(len(uses), 1, "the second dump has no new names")
        uses = uses[0]
        rows = collections.defaultdict(set)
        for name, attribute, how, file, function, left, right in zip(*(uses[k] for k in (
                "name", "attribute", "how", "file", "function", "left", "right"))):
            if file in (path, installed):
                rows[name, attribute].add((how, function) if not left + right else (how, left, right))
        step, init = "Trainer.step", "Trainer.__init__"
        self.assertEqual(rows["history", 1], {("make", init), ("add", step), ("size", step), ("recent", step),
                                              ("recent", "", "8"), ("recent", "", "size")})
        self.assertEqual(rows["pool", 1], {("make", init), ("add", step), ("set", step), ("read", "Trainer.mean"),
                                           ("bound", "count", "size")})
        self.assertEqual(rows["window", 1], {("make", init), ("add", step), ("size", step), ("drop", step),
                                             ("bound", "len", "70"), ("drop", "Trainer.reset")})
        self.assertEqual(rows["slots", 1], {("make", init), ("set", step), ("size", step),
                                            ("bound", "index", "len slots")})
        self.assertEqual(rows["table", 1], {("make", init), ("add", step), ("size", "Trainer.__len__")})
        self.assertEqual(rows["kept", 0], {("make", "<module>"), ("add", step)})
        for name, read in (("named", {("read", step)}), ("listed", {("read", step)}), ("spoken", set())):
            self.assertEqual(rows[name, 1], {("make", init), ("add", step)} | read, name)
        self.assertEqual(rows["seen", 1], {("make", "Meter.__init__"), ("add", "Meter.add"), ("read", "Meter.state")})
        self.assertEqual(rows["outputs", 1], {("make", "Outputs.__init__"), ("add", "Outputs.add"),
                                              ("read", "Callback.summary")}, "by the class of a library that it is of")
        self.assertEqual(rows["Trainer", 0], {("length", "", "len table")})
        for name in ("absent", "other", "gotten", "tried", "always"):
            self.assertEqual(("fill", "Caches.get") in rows[name, 1], name != "always", name)

        record = [x for x in found if x["type"] == "holders"][-1]
        graph, words, n = Graph(record), record["strings"], record["numbers"]
        numbers = collections.defaultdict(dict)
        for node, name, value in zip(n["node"], n["name"], n["value"]):
            numbers[node][words[name]] = value
        of = [numbers[i] for i, node in enumerate(graph.nodes) if node["type"] == "store_of_test.Trainer"]
        self.assertEqual([(x["size"], x["count"], x["len history"]) for x in of], [(50, 3, 3)])
        self.assertIn({"len()": 9, "None": 6}, list(numbers.values()))


class Watchers(unittest.TestCase):
    def test_thread_has_begun_or_is_not_started(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)  # it runs only where others wait
        watcher, saw = r._Watcher(), []
        watcher.start(saw.append, 1)
        self.assertTrue(watcher.begun.is_set())
        watcher.end()
        self.assertEqual(saw, [1])
        watcher, saw = r._Watcher(), []
        watcher.end()
        watcher.start(saw.append, 1)
        self.assertIsNone(watcher.ident, "the interpreter may end now")


class Autograd(Recorded):
    def test_saved_tensors_without_python_objects(self):
        def forward():
            x, address = make(requires_grad=True)
            middle = (x * 2).exp()  # saves its result, which no Python object refers to after this function
            return middle.sum(), middle.data_ptr()
        loss, address = forward()
        self.keep = [loss]
        del loss
        graph = self.graph()
        found = graph.of(address)
        self.assertEqual([(t["bytes"], t["flags"] & 16) for t in found], [(4 * SIZE, 16)])
        self.assertEqual([n["type"] for n in graph.starts(address, "saved _saved_result")], ["ExpBackward0"])
        self.assertEqual([n["kind"] for n in graph.starts(address, "index 0", "grad_fn", "next 0", "saved")], ["list"])

    def test_leaf(self):
        def forward():
            x, address = make(requires_grad=True)
            return (x * 2).sum(), address
        self.keep, address = forward()
        self.assertEqual(self.holder(address, "grad_fn", "next", "next", "variable")["kind"], "tensor")

    def test_gradient_that_python_never_saw(self):
        m = torch.nn.Linear(SIZE, 1)
        m(torch.ones(1, SIZE)).sum().backward()
        graph = self.graph()
        grads = [t for t in graph.tensors if any(k == "grad" for _, k, _ in graph.sources[t["node"]])]
        self.assertIn("1x%d" % SIZE, [t["shape"] for t in grads])

    def test_context_of_a_function(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, out):
                ctx.extra = torch.zeros(SIZE)
                out.append(ctx.extra.data_ptr())
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g, None
        out = []
        x, address = make(requires_grad=True)
        self.keep = Double.apply(x, out)
        node = self.holder(out[0], "grad_fn", "attr extra")
        self.assertEqual(node["kind"], "tensor")
        self.assertIn("node", [n["kind"] for n in self.graph().starts(address, "saved saved_tensors[0]")])

    def test_cycle_through_the_graph(self):
        """A function that keeps its own output in ctx: reference counting can never free it, nor the collector, which
        is off."""
        class Keep(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.out = []
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g
        x, _ = make(requires_grad=True)
        self.addCleanup(gc.enable)
        gc.disable()
        y = Keep.apply(x)
        y.grad_fn.out.append(y)
        address = y.data_ptr()
        del y
        self.assertEqual(self.graph().reached(address), {"cycle"})

    def test_owned_by_cpp(self):
        plain = torch.nn.Linear(SIZE, 1, bias=False)
        address = plain.weight.data_ptr()
        self.keep = torch.jit.script(plain)._c
        del plain
        graph = self.graph()
        self.assertEqual(graph.reached(address), {"cpp"})
        self.assertEqual([n["kind"] for n in graph.starts(address, "owner")], ["cpp"])

    def test_held_by_the_evaluation_stack(self):
        address = []

        def pairs():
            t, at = make()
            address.append(at)
            return [t, None]
        for item in pairs():
            if item is not None:
                continue
            graph = self.graph()
        self.assertEqual(graph.reached(address[0]), {"unknown"})

    def test_freed_graph(self):
        x, _ = make(requires_grad=True)
        loss = x.exp().sum()
        loss.backward()
        self.assertEqual(self.graph().notes, "")


class Hooked(Recorded):
    """Hooks of saved tensors, tensor subclasses and function modes are the program's code, which must not run."""

    def test_saved_tensor_hooks(self):
        calls = []

        def pack(t):
            return [t]

        def give(packed):
            calls.append(1)
            return packed[0]
        x, _ = make(requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, give):
            y = x.exp()
        graph = self.graph()
        self.assertEqual(calls, [])
        self.assertIn("1 saved tensors are behind unpack hooks", graph.notes)
        y.sum().backward()
        self.assertEqual(calls, [1])

    def test_checkpoint(self):
        for reentrant in (False, True):
            with self.subTest(use_reentrant=reentrant):
                calls = []

                def block(x):
                    calls.append(1)
                    return x.exp().sin()
                x, _ = make(requires_grad=True)
                y = checkpoint(block, x * 1, use_reentrant=reentrant).sum()
                self.assertEqual(len(calls), 1)
                self.graph()
                self.assertEqual(len(calls), 1)
                y.backward()
                self.assertEqual(len(calls), 2)

    def test_save_on_cpu(self):
        x, _ = make(requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = x.exp().sum()
        self.graph()
        y.backward()

    def test_subclass(self):
        calls = []

        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, kinds, args=(), kwargs=None):
                calls.append(func)
                return super().__torch_function__(func, kinds, args, kwargs or {})
        t, address = make()
        self.keep = t.as_subclass(Loud)
        del t
        calls.clear()
        graph = self.graph()
        self.assertEqual(calls, [])
        self.assertEqual([graph.nodes[t["node"]]["type"].split(".")[-1] for t in graph.of(address)].count("Loud"), 1)

    def test_dispatch_subclass(self):
        calls = []

        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                t = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
                t.inner = inner
                return t

            @classmethod
            def __torch_dispatch__(cls, func, kinds, args=(), kwargs=None):
                calls.append(func)
                raise NotImplementedError
        t, address = make()
        self.keep = Wrapper(t)
        del t
        calls.clear()
        self.assertEqual(self.holder(address, "attr keep", "attr inner")["kind"], "object")
        self.assertEqual(calls, [])

    def test_function_mode(self):
        from torch.overrides import TorchFunctionMode
        calls = []

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, kinds, args=(), kwargs=None):
                calls.append(func)
                return func(*args, **(kwargs or {}))
        t, _ = make()
        r.start(self.run_path, devices="all")
        with Mode():
            calls.clear()
            r.step()
            r.dump()
            self.assertEqual(calls, [])

    def test_meta_tensors_are_left_out(self):
        t = torch.zeros(SIZE, device="meta")
        self.assertNotIn(0, [x["address"] for x in self.graph().tensors])
        del t


class Hostile(Recorded):
    def test_runs_no_code_of_the_program(self):
        calls = []

        def loud(name):
            def method(self, *args):
                calls.append(name)
                raise RuntimeError(name)
            return method

        class Meta(type):
            __instancecheck__ = loud("__instancecheck__")
            __subclasscheck__ = loud("__subclasscheck__")
            __getattribute__ = loud("meta __getattribute__")
            __eq__ = loud("meta __eq__")
            __hash__ = loud("meta __hash__")
            __repr__ = loud("meta __repr__")
        watching = []

        def delete(self):
            if watching:
                calls.append("__del__")
        names = ("__getattribute__", "__getattr__", "__repr__", "__str__", "__eq__", "__len__", "__bool__", "__iter__",
                 "__getitem__", "__dir__", "__sizeof__", "__index__", "__contains__", "__format__", "__call__",
                 "__get__")
        space = {name: loud(name) for name in names}
        space["__hash__"] = lambda self: 1
        space["__del__"] = delete
        space["__class__"] = property(loud("__class__"))
        space["hidden"] = property(loud("property"))
        for base in (object, list, dict):
            cls = Meta("Hostile", (base,), dict(space))
            o = object.__new__(cls) if base is object else base.__new__(cls)
            t, address = make()
            object.__setattr__(o, "tensor", t)
            self.keep.append(o)
            t = {o: make()[0]}
            self.keep.append(t)
            t = None
            calls.clear()
            watching.append(1)
            r.start(self.run_path, devices="all")
            r.step()
            r.dump()
            r.stop()
            watching.clear()
            self.assertEqual(calls, [])
            found, _ = records(self.run_path + ".snapana")
            self.assertEqual([x for x in found if x["type"] == "fault"], [])
            graph = Graph([x for x in found if x["type"] == "holders"][-1])
            self.assertEqual([n["type"].split(".")[-1] for n in graph.starts(address, "attr tensor")], ["Hostile"])
        self.assertIn("key <", " ".join(k + " " + text for s in graph.sources.values() for _, k, text in s))

    def test_str_subclass_as_name(self):
        calls = []

        class Name(str):
            def __eq__(self, other):
                calls.append(1)
                return str.__eq__(self, other)
            __hash__ = str.__hash__
        t, _ = make()
        self.keep = {Name("a"): t}
        calls.clear()
        self.graph()
        self.assertEqual(calls, [])

    def test_keeps_nothing_alive(self):
        class Holder:
            pass
        for _ in range(2):  # the second dump finds wrappers that the first one made
            o = Holder()
            o.t, _ = make(requires_grad=True)
            o.loss = (o.t * 2).exp().sum()
            ends = [weakref.ref(o), weakref.ref(o.t), weakref.ref(o.loss)]
            self.graph()
            gc_was = gc.isenabled()
            gc.disable()
            try:
                del o
                self.assertEqual([e() for e in ends], [None] * 3)
            finally:
                if gc_was:
                    gc.enable()

    def test_keeps_no_local_alive(self):
        """Reading f_locals must not leave a copy of a running function's variables behind."""
        ends = []

        def work():
            mine = make()[0]
            ends.append(weakref.ref(mine))
            self.graph()
            mine = None
            self.assertIsNone(ends[0]())

        def batches():
            mine = make()[0]
            ends.append(weakref.ref(mine))
            yield
            mine = None
            yield
        work()
        it = batches()
        next(it)
        self.graph()
        next(it)
        self.assertIsNone(ends[1]())

    def test_locals_of_the_program_stay(self):
        def work():
            first = 1
            space = locals()
            t, _ = make()
            self.graph()
            return space["first"]
        self.assertEqual(work(), 1)

    def test_collector_stays_as_it_is(self):
        class Node:
            pass
        before = gc.isenabled(), gc.get_threshold(), gc.get_debug(), list(gc.callbacks), len(gc.garbage)
        gone = []
        gc.disable()
        try:
            n = Node()
            n.self = n
            n.t, _ = make()
            weakref.finalize(n, gone.append, 1)
            del n
            self.graph()
            self.assertEqual(gone, [], "the recorder has collected")
        finally:
            gc.enable()
        gc.collect()
        self.assertEqual(gone, [1])
        self.assertEqual((gc.isenabled(), gc.get_threshold(), gc.get_debug(), list(gc.callbacks), len(gc.garbage)),
                         before)

    def test_trace_and_profile_functions_come_back(self):
        def trace(frame, event, arg):
            return None
        for get, put in ((sys.gettrace, sys.settrace), (sys.getprofile, sys.setprofile)):
            old = get()
            put(trace)
            try:
                self.graph()
                self.assertIs(get(), trace)
            finally:
                put(old)
        self.assertIsNone(sys.getprofile())

    def test_under_a_debugger_and_a_profiler_hooks_stay_unread(self):
        calls = []
        x, _ = make(requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append(1) or t):
            y = x.exp()
        graphs = []

        def work():
            sys.settrace(lambda *a: None)
            sys.setprofile(lambda *a: None)
            graphs.append(self.graph())
        thread = threading.Thread(target=work)  # where the main thread dumps, another one looks
        thread.start()
        thread.join()
        self.assertEqual(calls, [])
        self.assertIn("were not read", graphs[0].notes)
        del y


class Files(Recorded):
    def read(self, suffix=""):
        found, rest = records(self.run_path + suffix + ".snapana")
        self.assertEqual(rest, 0)
        return found

    def test_records(self):
        gc.collect()  # of what other tests left there would be a record of uses
        with r.record(self.run_path) as rec:
            rec.step(epoch=2, label="train")
            rec.step()
        found = self.read()
        self.assertEqual([x["type"] for x in found], ["header", "env", "sample", "sample", "holders", "end"])
        for x in found:
            self.assertEqual(list(x)[:2], ["type", "time"])
        header, env, first, second, holders, end = found
        self.assertEqual((header["format"], header["version"], header["producer"], header["pid"]),
                         ("snapana", 1, "recorder", os.getpid()))
        self.assertEqual(env["env"]["torch.version"], str(torch.__version__))
        self.assertEqual((first["step"], first["epoch"], first["label"], second["step"]), (0, 2, "train", 1))
        self.assertGreater(first["host"]["rss"], 0)
        self.assertEqual((holders["id"], holders["step"], holders["reason"]), (0, 2, "exit"))
        self.assertEqual((end["steps"], end["reason"]), (2, "stop"))

    def test_block_that_raises(self):
        with self.assertRaises(ValueError):
            with r.record(self.run_path, devices="all"):
                t, address = make()
                raise ValueError
        holders = [x for x in self.read() if x["type"] == "holders"]
        self.assertEqual([x["reason"] for x in holders], ["exception"])
        self.assertIn("frame", Graph(holders[0]).reached(address))
        self.assertEqual(self.read()[-1]["reason"], "exception")

    def test_columns_fit_together(self):
        self.keep = [torch.zeros(5), {"a": torch.zeros(6)}, lambda t=torch.zeros(7): t]
        record = self.graph().record
        nodes, words = len(record["nodes"]["kind"]), len(record["strings"])
        self.assertEqual(record["strings"][0], "")
        for table in ("storages", "tensors", "nodes", "edges"):
            self.assertEqual(len({len(c) for c in record[table].values()}), 1, table)
        for table, column in (("tensors", "shape"), ("tensors", "dtype"), ("nodes", "kind"), ("nodes", "type"),
                              ("nodes", "name"), ("nodes", "file"),
                              ("nodes", "root"), ("edges", "kind"), ("edges", "label")):
            self.assertTrue(all(0 <= s < words for s in record[table][column]), table + column)
        for table, column in (("tensors", "node"), ("edges", "from"), ("edges", "to")):
            self.assertTrue(all(0 <= n < nodes for n in record[table][column]), table + column)
        self.assertTrue(all(0 <= s < len(record["storages"]["bytes"]) for s in record["tensors"]["storage"]))

    def test_every_tensor_has_a_root(self):
        self.keep = [torch.nn.Linear(3, 3), torch.zeros(5)]
        graph = self.graph()
        for t in graph.tensors:
            self.assertTrue(graph.reached(t["address"]), graph.nodes[t["node"]])

    def test_ranks(self):
        os.environ["RANK"] = "3"
        try:
            r.start(self.run_path)
            r.stop()
        finally:
            del os.environ["RANK"]
        self.assertEqual(self.read(".rank3")[0]["rank"], 3)

    def test_an_earlier_run_is_kept(self):
        for _ in range(2):
            r.start(self.run_path)
            r.step()
            r.stop()
        self.assertEqual(len([x for x in self.read() if x["type"] == "header"]), 1)
        self.assertTrue(os.path.exists(self.run_path + ".snapana.old"))

    def test_forked_child_stays_silent(self):
        r.start(self.run_path)
        r.step()
        pid = os.fork()
        if pid == 0:
            r.step()
            r.dump()
            r.stop()
            os._exit(0)
        os.waitpid(pid, 0)
        r.step()
        r.stop()
        self.assertEqual([x["step"] for x in self.read() if x["type"] == "sample"], [0, 1])

    def test_forked_child_may_record_for_itself(self):
        r.start(self.run_path)
        pid = os.fork()
        if pid == 0:
            r.start(self.run_path)
            r.step()
            r.stop()
            os._exit(0)
        os.waitpid(pid, 0)
        r.stop()
        self.assertEqual([x["type"] for x in self.read()], ["header", "env", "end"])
        self.assertEqual([x["type"] for x in self.read(".pid%d" % pid)], ["header", "env", "sample", "end"])

    def test_thinning(self):
        old, r._SAMPLE_BYTES = r._SAMPLE_BYTES, 2000
        try:
            r.start(self.run_path)
            for _ in range(400):
                r.step()
            r.stop()
        finally:
            r._SAMPLE_BYTES = old
        samples = [x for x in self.read() if x["type"] == "sample"]
        self.assertLess(len(samples), 200)
        self.assertEqual(samples[0].get("every"), None)
        self.assertGreater(samples[-1]["every"], 1)
        self.assertEqual(samples[-1]["step"] % samples[-1]["every"], 0)
        self.assertEqual(self.read()[-1]["steps"], 400)

    def test_nowhere_to_write(self):
        code = "import snapana_recorder as r; r.start('missing/run'); r.step(); r.dump(); r.on_oom(); r.stop()"
        done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(os.path.abspath(SOURCE)),
                              stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("snapana_recorder: not recording: FileNotFoundError", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_stop_alone_says_that_nothing_was_dumped(self):
        for calls, lines in (("r.start('run'); r.stop()", 1), ("r.start('run', history=False); r.stop()", 0),
                             ("r.start('run'); r.start('run'); r.dump(); r.stop(); r.stop()", 0),
                             ("exec('with r.record(\\'run\\'): pass')", 0), ("r.start('run')", 0)):
            code = "import sys; sys.path.insert(0, %r); import snapana_recorder as r; %s" % (
                os.path.dirname(os.path.abspath(SOURCE)), calls)
            done = subprocess.run([sys.executable, "-c", code], cwd=self.dir.name, stderr=subprocess.PIPE,
                                  universal_newlines=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("\n"), lines, done.stderr)
            self.assertEqual("call dump() before stop()" in done.stderr, lines == 1)

    def test_a_full_disk_leaves_whole_records(self):
        r.start(self.run_path)
        r.step()
        file = r._active[0].file
        with full_disk():
            r.step()
        r.step()
        r.stop()
        self.assertEqual([x["step"] for x in self.read() if x["type"] == "sample"], [0, 2])
        self.assertIsNone(file.fd)

    def test_messagepack(self):
        for value in (0, 127, 128, 255, 256, 65535, 65536, 2 ** 32, 2 ** 64 - 1, -1, -32, -33, -2 ** 63, 1.5, True,
                      False, None, "", "a" * 31, "a" * 32, "é" * 200, "x" * 70000, [], list(range(15)), list(range(16)),
                      list(range(70000)), {"a": {"b": [1]}}, {str(i): i for i in range(20)}):
            out = bytearray()
            r._pack(value, out)
            self.assertEqual(unpack(bytes(out)), (value, len(out)))
        out = bytearray()
        r._pack("\ud800", out)
        self.assertIn("\ufffd", unpack(bytes(out))[0])


class Device:
    """The little of torch that the recorder asks about one device."""

    def __init__(self, seconds):
        self.seconds, self.asked, self.capturing = seconds, 0, False
        self._C = self.cuda = self.memory = self

    def is_initialized(self):
        return True

    def device_count(self):
        return 2

    def _cuda_memoryStats(self, d):
        sizes = {"current": 5 - 5 * d, "peak": 5 - 5 * d, "allocated": 5 - 5 * d, "freed": 0}
        return {"allocated_bytes": {"all": sizes}, "reserved_bytes": {"all": sizes}, "allocation": {"all": sizes},
                "num_ooms": 0}

    def _cuda_isCurrentStreamCapturing(self):
        return self.capturing

    def mem_get_info(self, d):
        assert d == 0, "asking an unused device would make a context on it"
        self.asked += 1
        time.sleep(self.seconds)
        return 1000 - self.asked, 4000

    def _snapshot(self):
        return {"segments": [], "device_traces": []}


class Devices(Recorded):
    def samples(self, device, steps):
        r.start(self.run_path)
        recorder = r._current()
        recorder.torch, recorder.device_env = device, True
        recorder.count_tensors = lambda: None
        for _ in range(steps):
            r.step()
        recorder.write_snapshot(0)
        device.capturing = True
        r.step()
        r.stop()
        found, _ = records(self.run_path + ".snapana")
        self.assertEqual([x for x in found if x["type"] == "fault"], [])
        last = [x for x in found if x["type"] == "snapshot"][-1]["devices"]
        self.assertEqual(last, [{"device": 0, "free": 1000 - device.asked, "total": 4000}])
        return [x["devices"] for x in found if x["type"] == "sample"]

    def test_free_memory_in_each_sample(self):
        cheap, r._CHEAP = r._CHEAP, 60  # seconds, for a busy machine
        self.addCleanup(setattr, r, "_CHEAP", cheap)
        found = self.samples(Device(0), 20)
        self.assertEqual([[x["device"] for x in row] for row in found], [[0]] * 21)
        self.assertEqual(["free" in row[0] for row in found],
                         [True] * 20 + [False])  # the last while a graph is captured

    def test_dear_free_memory(self):
        found = self.samples(Device(0.02), 20)
        self.assertLess(sum("free" in row[0] for row in found), 10)


class Signals(Recorded):
    """Signal handlers of the program run in the middle of a dump as they do without the recorder."""

    def handle(self, number, handler):
        old = signal.signal(number, handler)
        self.addCleanup(signal.signal, number, old)

    def during_dumps(self, do, dumps=3, faults=()):
        """Runs do(stop) in a thread while this one dumps."""
        r.start(self.run_path, devices="all")
        stop = threading.Event()
        thread = threading.Thread(target=do, args=(stop,))
        thread.start()
        try:
            while thread.is_alive() or dumps > 0:
                dumps -= 1
                r.dump()
                r.step()
        finally:
            stop.set()
            thread.join()
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x for x in found if x["type"] == "fault" and x["what"] not in faults], [])
        return [x for x in found if x["type"] == "holders"]

    def test_none_is_lost(self):
        gc.collect()  # the hooks of other tests
        x, _ = make(requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda p: p[0]):
            hooked = [x.sin() for _ in range(100)]
        keep = [(x * 2).exp().sin() for _ in range(400)]
        handled, states = [], []

        def handler(number, frame):
            states.append(torch._C._is_torch_function_enabled())
            handled.append(deeper(number))

        def deeper(number):
            return number
        self.handle(signal.SIGUSR1, handler)
        count, lost = 1000 if FULL else 300, []

        def send(stop):
            for i in range(count):
                os.kill(os.getpid(), signal.SIGUSR1)
                end = time.monotonic() + 20
                while len(handled) <= i:
                    if time.monotonic() > end:
                        lost.append(i)
                        return
                    time.sleep(0.0002)
        found = self.during_dumps(send)
        self.assertEqual((lost, len(handled)), ([], count))
        self.assertEqual((set(states), gc.isenabled()), ({True}, True))
        for record in found:
            notes = Graph(record).notes
            self.assertGreaterEqual(int(re.search(r"(\d+) saved tensors are behind unpack hooks", notes).group(1)), 100)
            # but for what other tests may have left: a subclass without storage
            self.assertNotRegex(notes, "could not be read(?!: python bindings to nullptr storage)")
        self.assertEqual(sys.gettrace(), None)
        del keep, hooked
        gc.collect()

    def test_what_a_handler_raises_reaches_the_program(self):
        keep = [(make(requires_grad=True)[0] * 2).exp() for _ in range(200)]

        class Timeout(Exception):
            pass

        def handler(number, frame):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            raise Timeout("now")
        old = signal.signal(signal.SIGALRM, handler)
        try:
            r.start(self.run_path, devices="all")
            for i in range(30 if FULL else 20):
                raised = None
                signal.signal(signal.SIGALRM, handler)
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.003 * i)
                try:
                    end = time.monotonic() + 20
                    while time.monotonic() < end:
                        r.step()
                        r.dump()
                except Timeout as err:
                    raised = err
                self.assertEqual(str(raised), "now")
                names = [f.name for f in traceback.extract_tb(raised.__traceback__)]
                self.assertEqual((names[0], names[-1]), (self._testMethodName, "handler"))
                self.assertLessEqual(len(names), 2 if sys.version_info >= (3, 11) else 3)
                self.assertEqual((sys.gettrace(), torch._C._is_torch_function_enabled(), gc.isenabled()),
                                 (None, True, True))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        r.dump()
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x for x in found if x["type"] == "fault"], [])
        self.assertEqual([x for x in found if x["type"] != "uses"][-2]["type"], "holders")
        del keep

    def test_raised_beside_hooks_that_are_refused(self):
        """While torch makes the text of what a hook raised, the interpreter may run a signal handler, whose own
        exception is lost there."""
        gc.collect()
        x, _ = make(requires_grad=True)
        calls = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda p: calls.append(1) or p[0]):
            hooked = [x.sin() for _ in range(1000)]

        class Timeout(Exception):
            pass

        def handler(number, frame):
            raise Timeout("now")
        self.handle(signal.SIGALRM, handler)
        r.start(self.run_path, devices="all")
        r.dump()
        begin = time.monotonic()
        r.dump()
        cost = time.monotonic() - begin
        reached, count = 0, 100 if FULL else 60
        for i in range(count):
            try:
                signal.setitimer(signal.ITIMER_REAL, cost * (i + 1) / count)
                begin = time.monotonic()
                while time.monotonic() < begin + 20 and signal.getitimer(signal.ITIMER_REAL)[0]:
                    r.dump()
                time.sleep(0.01)
            except Timeout:
                reached += 1
            self.assertEqual((sys.gettrace(), torch._C._is_torch_function_enabled(), gc.isenabled()),
                             (None, True, True))
        r.stop()
        self.assertEqual((reached, calls), (count, []))
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(([x for x in found if x["type"] == "fault"], rest), ([], 0))
        del hooked

    def test_child_of_a_handler(self):
        """A handler that runs while another thread looks may fork: in the child that thread is missing."""
        parent, status = os.getpid(), []

        def handler(number, frame):
            pid = os.fork()
            if pid:
                status.append(os.waitpid(pid, 0)[1])
            else:
                signal.alarm(60)
        self.handle(signal.SIGALRM, handler)
        r.start(self.run_path, devices="all")
        r.dump()
        for i in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.02 + 0.05 * i)
            while len(status) <= i:
                r.dump()
                if os.getpid() != parent:
                    os._exit(7 if gc.isenabled() else 8)
        r.stop()
        self.assertEqual(status, [7 << 8] * 3)
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(([x for x in found if x["type"] == "fault"], rest), ([], 0))

    def test_a_finalizer_that_waits_for_the_waiting_thread(self):
        """What a handler lets go of while another thread looks dies there. The dump is lost then, and no more."""
        lock, gone, done = threading.RLock(), [], threading.Event()

        class Late:
            def __del__(self):
                with lock:
                    gone.append(threading.get_ident())
                    done.set()
        box = []
        self.handle(signal.SIGALRM, lambda number, frame: box.clear())
        r.start(self.run_path, devices="all")
        with unittest.mock.patch.object(r, "_PATIENCE", 0.5):
            for i in range(100):
                box.append(Late())
                done.clear()
                with lock:
                    signal.setitimer(signal.ITIMER_REAL, 0.005 * (1 + i % 20))
                    r.dump()
                while box:
                    time.sleep(0.001)
                self.assertTrue(done.wait(20))
                if gone[-1] != threading.get_ident():
                    break
        self.assertNotEqual(gone[-1], threading.get_ident())
        self.assertTrue(gc.isenabled())
        r.dump()
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual([x["what"] for x in found if x["type"] == "fault"],
                         ["_Stopped: a finalizer of the program does not end"])
        self.assertEqual(([x["type"] for x in found if x["type"] != "uses"][-2], rest), ("holders", 0))

    def test_where_no_thread_can_be_started(self):
        calls = []
        x, _ = make(requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda p: calls.append(1) or p[0]):
            hooked = x.sin()

        def none(*args):
            raise RuntimeError("can't start new thread")
        for start in (none, {}.__getitem__):  # as gevent has it, and a function of C that fails
            with self.subTest(start), unittest.mock.patch.object(r, "_start_thread", start):
                self.assertRegex(self.graph().notes, "saved tensors are behind unpack hooks")
        self.assertEqual((calls, sys.gettrace(), gc.isenabled()), ([], None, True))
        del hooked

    def test_checkpoint_at_sigterm(self):
        """A handler that saves a checkpoint and exits does so once, and its exit code is the program's."""
        code = """
import os, signal, sys, threading, time
import torch, snapana_recorder as r
class Loud(torch.Tensor):
    pass
model = {"w": torch.zeros(1000).as_subclass(Loud) + 1}
x = torch.zeros(10, requires_grad=True)
keep = [(x * 2).exp() for _ in range(500)]
def save(number, frame):
    print("saved", float(torch.sum(model["w"])), type(model["w"] * 2).__name__, flush=True)
    sys.exit(42)
signal.signal(signal.SIGTERM, save)
r.start(sys.argv[1], devices="all")
r.dump()
begin = time.monotonic()
r.dump()
cost = time.monotonic() - begin
threading.Timer(cost * float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGTERM)).start()
while True:
    r.dump()
"""
        for share in (0.2, 0.5, 0.8) if FULL else (0.5,):
            done = subprocess.run([sys.executable, "-c", code, self.run_path, str(share)],
                                  cwd=os.path.dirname(os.path.abspath(SOURCE)), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, universal_newlines=True)
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("saved 1000.0 Loud\n", "", 42))

    def test_collector_callbacks_run(self):
        seen, failed = [], []

        def callback(phase, info):
            seen.append(phase)
        hook, sys.unraisablehook = sys.unraisablehook, failed.append
        threshold = gc.get_threshold()
        gc.callbacks.append(callback)
        x, _ = make(requires_grad=True)
        keep = [(x * 2).exp() for _ in range(500)]
        gc.set_threshold(20, 5, 5)
        try:
            self.graph()
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(callback)
            sys.unraisablehook = hook
        self.assertEqual(failed, [])
        self.assertGreater(len(seen), 0)
        self.assertEqual(seen.count("start"), seen.count("stop"))
        del keep

    def test_handler_that_records(self):
        """A handler may call step() in the middle of another record, and of a hook that is refused: none is lost."""
        gc.collect()  # the hooks of other tests
        x, _ = make(requires_grad=True)
        calls = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda p: calls.append(p)):
            hooked = [x.sin() for _ in range(100)]
        handled = []

        def handler(number, frame):
            r.step(label="handler")
            handled.append(number)
        self.handle(signal.SIGUSR1, handler)

        def send(stop):
            for i in range(200):
                os.kill(os.getpid(), signal.SIGUSR1)
                while len(handled) <= i and not stop.is_set():
                    time.sleep(0.0002)
        found = self.during_dumps(send)
        self.assertEqual(calls, [])
        samples = [x for x in records(self.run_path + ".snapana")[0] if x["type"] == "sample"]
        self.assertEqual((len(handled), [x.get("label") for x in samples].count("handler")), (200, 200))
        self.assertGreater(len(found), 0)
        del hooked

    def test_sigterm_without_a_handler(self):
        """Dumps, and ends as by SIGTERM; a program that takes or asks for the signal finds what it would without."""
        code = """
import os, signal, subprocess, sys, time
import torch, snapana_recorder as r
keep = [torch.zeros(1000)]
r.start(sys.argv[1], history=False, devices="all")
how = sys.argv[2]
if how == "child":
    pid = os.fork()
    if not pid:
        time.sleep(60)
        os._exit(1)
    os.kill(pid, signal.SIGTERM)
    print(os.waitpid(pid, 0)[1])
if how == "later":
    def save(number, frame):
        if callable(old):
            old(number, frame)
        print("saved", flush=True)
        sys.exit(3)
    old = signal.signal(signal.SIGTERM, save)
if how == "stopped":
    r.stop()
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
if how == "dumping":
    import threading
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while True:
        r.dump()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
        for how, code_, out in (("alone", -15, ""), ("child", -15, "15\n"), ("later", 3, "saved\n"),
                                ("stopped", -15, "True\n"), ("dumping", -15, "")):
            with self.subTest(how):
                path = os.path.join(self.dir.name, how)
                done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, path, how],
                                      cwd=os.path.dirname(os.path.abspath(SOURCE)), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, universal_newlines=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (code_, out, ""))
                found, rest = records(path + ".snapana")
                dumps = [x for x in found if x["type"] == "holders"]
                self.assertEqual((rest, [x for x in found if x["type"] == "fault"]), (0, []))
                if how in ("alone", "child", "dumping"):
                    self.assertGreater(len(dumps), 0)
                    self.assertEqual((found[-1]["type"], found[-1]["reason"]), ("end", "SIGTERM"))


class Descriptors(Recorded):
    """The recorder writes to its file, and to no other."""

    def test_closerange(self):
        r.start(self.run_path)
        r.step()
        fd = r._active[0].file.fd
        os.close(fd)
        weights = os.path.join(self.dir.name, "weights")
        mine = os.open(weights, os.O_RDWR | os.O_CREAT)
        os.dup2(mine, fd)
        os.write(fd, b"weights")
        r.step()
        r.dump()
        r.stop()
        with open(weights, "rb") as f:
            self.assertEqual(f.read(), b"weights")
        os.fstat(fd)  # it is the program's: not closed
        os.close(fd)
        if mine != fd:
            os.close(mine)
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x["step"] for x in found if x["type"] == "sample"], [0, 1])
        self.assertEqual(found[-1]["type"], "end")

    def test_closed_and_put_away(self):
        """What cannot be opened again ends the recording, with one line."""
        code = """
import os, sys, snapana_recorder as r
r.start("run", history=False)
r.step()
os.close(r._active[0].file.fd)
os.rename("run.snapana", "elsewhere")
r.step(); r.step(); r.dump(); r.stop()
print("on")
"""
        done = self.python(code)
        self.assertEqual((done.stdout, done.returncode), ("on\n", 0), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("was closed by the program", done.stderr)
        found, rest = records(os.path.join(self.dir.name, "elsewhere"))
        self.assertEqual((len([x for x in found if x["type"] == "sample"]), rest), (1, 0))

    def python(self, code, *args, **options):
        env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(SOURCE)), **options)
        return subprocess.run([sys.executable, "-c", code] + list(args), cwd=self.dir.name, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def test_no_files(self):
        """A pipe that nobody reads is not waited for, a link to nothing not followed, and a rank is a number."""
        code = "import snapana_recorder as r; r.start('run', history=False); r.stop(); print('on')"
        run = os.path.join(self.dir.name, "run.snapana")
        for how, said in (("pipe", "not recording"), ("link", "is a link to nothing"), ("rank", "")):
            with self.subTest(how):
                if how == "pipe":
                    os.mkfifo(run)
                elif how == "link":
                    os.symlink("nowhere", run)
                done = self.python(code, **({"RANK": "\u00b2"} if how == "rank" else {}))
                self.assertEqual((done.stdout, done.returncode), ("on\n", 0), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1 if said else 0, done.stderr)
                self.assertNotIn("nowhere", os.listdir(self.dir.name))
                self.assertEqual(os.stat(run).st_mode & 0o777 if how == "rank" else 0o600, 0o600)
                os.unlink(run)

    def test_daemon(self):
        """A daemon forks twice and closes all descriptors, also that of stderr: no line goes into its files."""
        code = """
import os, sys, time, snapana_recorder as r
r.start("run", history=False)
r.step()
sys.stdout.flush()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 256)
    names = ["a", "b", "c", "d", "e", "f"]
    fds = [os.open(n, os.O_RDWR | os.O_CREAT) for n in names]
    r.step(); r.dump(); r.stop()
    r.start("daemon", history=False)
    os.closerange(6, 256)
    fds = [os.open(n + "2", os.O_RDWR | os.O_CREAT) for n in names]
    os.unlink("daemon.snapana")
    r.step()
    r.stop()
    open("done", "w").close()
    os._exit(0)
os.wait()
while not os.path.exists("done"):
    time.sleep(0.01)
r.step()
r.stop()
"""
        done = self.python(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in "abcdef":
            self.assertEqual(os.path.getsize(os.path.join(self.dir.name, name)), 0)
            self.assertEqual(os.path.getsize(os.path.join(self.dir.name, name + "2")), 0)
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual((len([x for x in found if x["type"] == "sample"]), found[-1]["type"], rest), (2, "end", 0))

    def test_another_folder(self):
        old = os.getcwd()
        os.chdir(self.dir.name)
        try:
            with tempfile.TemporaryDirectory() as other:
                r.start("run")
                recorder = r._current()
                recorder.torch = Device(0)
                os.chdir(other)
                recorder.write_snapshot(0)
                r.step()
                r.stop()
                self.assertEqual(os.listdir(other), [])
                os.chdir(old)
        finally:
            os.chdir(old)
        self.assertEqual(sorted(os.listdir(self.dir.name)), ["run.pickle", "run.snapana"])

    def test_only_the_owner_can_read(self):
        self.only_the_owner_can_read(made=2)
        for name in (".snapana", ".pickle"):
            with open(self.run_path + name, "w"):
                os.chmod(self.run_path + name, 0o644)  # it was there, and empty
        self.only_the_owner_can_read(made=1)  # the snapshot, which takes the place of the other

    def only_the_owner_can_read(self, made):
        modes, opened = [], os.open

        def look(path, flags, mode=0o777, **options):
            if flags & os.O_CREAT:
                modes.append((os.path.basename(path), mode))
            return opened(path, flags, mode, **options)
        old, os.open = os.umask(0), look
        try:
            r.start(self.run_path)
            r._current().torch = Device(0)
            r._current().write_snapshot(0)
            r.stop()
        finally:
            os.umask(old)
            os.open = opened
        self.assertEqual({mode for _, mode in modes}, {0o600})
        self.assertEqual(len(modes), made)
        for name in (".snapana", ".pickle"):
            self.assertEqual(os.stat(self.run_path + name).st_mode & 0o777, 0o600, name)

    def test_secrets(self):
        shapes = {
            "TORCH_HUB_TOKEN": "plain-but-named", "NCCL_X": "hf_" + "aB3" * 12,
            "TORCH_URL": "https://me:hunter22@host/x",
            "TORCH_BLOB": "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg", "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
            "MY_PASSWORD": "correct horse", "PIN_CODE_PASSWORD": "a1!", "SORT_KEY": "loss"}
        code = """
import os, sys, torch, snapana_recorder as r
keep = {os.environ["WANDB_API_KEY"]: torch.zeros(10), "x" + sys.argv[2]: torch.zeros(11), sys.argv[3][10:]:
        torch.zeros(12), ("sk-" + "q" * 30): torch.zeros(13), "encoder.layer.0.key": torch.zeros(14),
        "a1!": torch.zeros(15), "loss": torch.zeros(16)}
r.start("run", devices="all")
r.step(label="with " + os.environ["MY_PASSWORD"])
r.dump()
r.stop()
"""
        done = self.python(code, "--hub-token", "argument-one", "--api-key=argument-two",
                           TOKENIZERS_PARALLELISM="false", NCCL_DEBUG="INFO",
                           TORCH_LOGS_OUT="/home/someone1/a_very_long_folder_name_2024",
                           PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:128", **shapes)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.run_path + ".snapana", "rb") as f:
            data = f.read()
        for secret in list(shapes.values())[:-1] + ["argument-one", "argument-two", "q" * 30, "hunter22"]:
            self.assertNotIn(secret.encode(), data)
        found, _ = records(self.run_path + ".snapana")
        env = [x for x in found if x["type"] == "env"][0]["env"]
        for name in ("TORCH_HUB_TOKEN", "TORCH_BLOB", "NCCL_X"):
            self.assertEqual(env["env." + name], "<redacted>")
        self.assertEqual(env["env.TORCH_URL"], "https://<redacted>@host/x")
        self.assertEqual((env["env.NCCL_DEBUG"], env["alloc.PYTORCH_CUDA_ALLOC_CONF"]),
                         ("INFO", "max_split_size_mb:128"))
        self.assertIn("someone1/a_very_long_folder_name_2024", env["env.TORCH_LOGS_OUT"])
        words = [x for x in found if x["type"] == "holders"][0]["strings"]
        self.assertIn("'<redacted>'", words)
        self.assertIn("'encoder.layer.0.key'", words)
        self.assertIn("'loss'", words)
        if torch.version.git_version:
            self.assertEqual(env["torch.git"], torch.version.git_version)

    def test_a_full_disk(self):
        """Half a record is taken back, a line is said once, and the program goes on. RLIMIT_FSIZE is a disk that fills
        in the middle of a write."""
        code = """
import resource, signal, sys, snapana_recorder as r
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
r.start("run", history=False)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, -1))
for _ in range(500):
    r.step()
r.dump()
r.stop()
print("on")
"""
        done = self.python(code)
        self.assertEqual((done.stdout, done.returncode), ("on\n", 0), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("the program goes on", done.stderr)
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertGreater(len(found), 5)

    def test_a_reading_of_the_driver_in_between(self):
        """`snapana nvml -o` may append to the file: what is cut back is only our own half record."""
        r.start(self.run_path)
        out = bytearray()
        r._pack({"type": "nvml", "time": 1, "pad": "x" * 300}, out)
        with open(self.run_path + ".snapana", "ab") as f:
            f.write(out)
        with full_disk():
            r.step()
        r.step()
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(([x["type"] for x in found], rest), (["header", "env", "nvml", "sample", "end"], 0))

    def test_two_writers(self):
        code = """
import sys, time, snapana_recorder as r
r.start("run", history=False)
r.step()
print(r._active[0].file.base, flush=True)
sys.stdin.read()
r.step()
r.stop()
"""
        env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(SOURCE)))
        with open(self.run_path + ".snapana", "w") as f:
            f.write("of before")
        both = [subprocess.Popen([sys.executable, "-c", code], cwd=self.dir.name, env=env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, universal_newlines=True) for _ in range(2)]
        bases = [p.stdout.readline().strip() for p in both]
        for p in both:
            p.stdin.close()
            p.wait()
            p.stdout.close()
        self.assertEqual(len(set(bases)), 2)
        self.assertIn(self.run_path, bases)
        for base in bases:
            found, rest = records(base + ".snapana")
            self.assertEqual(([x["type"] for x in found], rest), (["header", "env", "sample", "sample", "end"], 0))
        with open(self.run_path + ".snapana.old") as f:
            self.assertEqual(f.read(), "of before")

    def test_loader_workers(self):
        r.start(self.run_path, devices="all")
        loader = torch.utils.data.DataLoader(Recording(), batch_size=2, num_workers=2,
                                             multiprocessing_context="fork")
        for _ in loader:
            r.step()
        r.dump()
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x["type"] for x in found if x["type"] != "uses"],
                         ["header", "env"] + ["sample"] * 4 + ["holders", "end"])
        self.assertEqual(os.listdir(self.dir.name), ["run.snapana"])


class Recording(torch.utils.data.Dataset):
    """A dataset whose workers, forked, inherit a recorder."""

    def __len__(self):
        return 8

    def __getitem__(self, at):
        r.step()
        r.dump()
        return at


class Programs(Recorded):
    def run_program(self, *args, **files):
        for name, text in files.items():
            with open(os.path.join(self.dir.name, name + ".py"), "w") as f:
                f.write(text)
        env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(SOURCE)))
        return subprocess.run([sys.executable, "-m", "snapana_recorder"] + list(args), cwd=self.dir.name, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    PROGRAM = """
import os, sys
assert "torch" not in sys.modules, "imported before the program could set up its environment"
import torch
model = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(3):
    model(torch.zeros(2, 4)).sum().backward()
    opt.step()
print(__name__, sys.argv[1:], sys.argv[0].endswith("train.py"), sys.modules["__main__"].model is model)
if "fail" in sys.argv: raise ValueError("bad")
if "exit" in sys.argv: sys.exit(5)
"""

    def check(self, done, code, reason):
        self.assertEqual(done.returncode, code, done.stderr)
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x["reason"] for x in found if x["type"] == "holders"], [reason])
        self.assertEqual(found[-1]["type"], "end")
        if hasattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook"):
            self.assertEqual(len([x for x in found if x["type"] == "sample"]), 3)
        else:
            self.assertEqual([x["where"] for x in found if x["type"] == "fault"], ["oom", "steps"])

    def test_script(self):
        done = self.run_program("train.py", "--lr", "3", train=self.PROGRAM)
        self.assertEqual(done.stdout, "__main__ ['--lr', '3'] True True\n", done.stderr)
        self.assertEqual(done.stderr, "")
        self.check(done, 0, "exit")

    def test_module_that_exits(self):
        done = self.run_program("-m", "train", "exit", train=self.PROGRAM)
        self.assertEqual(done.stdout, "__main__ ['exit'] True True\n", done.stderr)
        self.check(done, 5, "exit")

    def test_script_that_raises(self):
        done = self.run_program("train.py", "fail", train=self.PROGRAM)
        self.assertIn('train.py", line 11, in <module>', done.stderr)
        self.assertIn("ValueError: bad", done.stderr)
        self.assertNotIn("snapana_recorder.py", done.stderr)
        self.check(done, 1, "exception")

    def test_script_without_torch(self):
        done = self.run_program("plain.py", plain="print('hello')")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "hello\n", ""))

    def test_usage(self):
        self.assertEqual(self.run_program().returncode, 2)
        self.assertEqual(self.run_program("missing.py").returncode, 2)
        self.assertEqual(self.run_program("-m", "no_such_module").returncode, 2)

    def both(self, *args, **files):
        """What a program says and how it ends, by itself and under the recorder."""
        for name, text in files.items():
            path = os.path.join(self.dir.name, *name.split("__in__")) + ".py"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
        env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(SOURCE)), PYTHONDONTWRITEBYTECODE="1")
        ends = []
        for start in ([], ["-m", "snapana_recorder"]):
            done = subprocess.run([sys.executable] + start + list(args), cwd=self.dir.name, env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
            ends.append((done.returncode, done.stdout, done.stderr))
        self.assertEqual(ends[0], ends[1])
        return ends[0]

    def test_ends_as_without(self):
        for name, text, code in (
                ("raises", "def f():\n    try:\n        1 / 0\n    except Exception as e:\n"
                           "        raise ValueError('x') from e\nf()\n", 1),
                ("text", "import sys\nsys.exit('text')\n", 1),
                ("number", "import sys\nsys.exit(7)\n", 7),
                ("interrupt", "raise KeyboardInterrupt\n", -2),
                ("syntax", "x = 1\nif:\n", 1),
                ("hook", "import sys, traceback\n"
                         "def hook(t, v, tb):\n    print('mine', t, v, traceback.extract_tb(tb)[0].name)\n"
                         "sys.excepthook = hook\nraise ValueError('y')\n", 1),
                ("order", "import atexit, threading, time\natexit.register(print, 'atexit')\n"
                          "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
                          "raise ValueError('z')\n", 1),
                ("leaves", "import os, sys\nprint('x', flush=True)\nos._exit(9)\n", 9),
                ("torch", "import failing\n", 1)):
            with self.subTest(name):
                failing = {"failing": "import torch\n", "torch__in____init__": "import missing_library\n"}
                got = self.both("p.py", p=text, **(failing if name == "torch" else {}))
                self.assertEqual(got[0], code, got)

    def test_finds_itself_as_without(self):
        seen = """
import os, sys, pickle
print(__name__, __file__, __spec__ and __spec__.name, __package__, type(__loader__).__name__, sys.argv, sys.path[:3])
print(sorted(globals()), __builtins__, __doc__, sys.modules["__main__"].__dict__ is globals())
os.chdir("/")
print(len(open(__file__).read()))
class Own:
    pass
print(type(pickle.loads(pickle.dumps(Own()))) is Own)
"""
        self.both("p.py", "--lr", "1", p=seen)
        self.both("./p.py", p=seen)
        self.both("-m", "p", "a", p=seen)
        self.both("-m", "pkg.mod", "a", pkg__in____init__="import sys\nprint(sys.argv)\n", pkg__in__mod=seen)
        self.both("-m", "pkg", pkg__in____main__=seen)
        self.both("folder", folder__in____main__=seen)

    def test_spawns_as_without(self):
        text = """
import multiprocessing, os
os.environ["SEEN"] = "1"
def work(n):
    return n * n
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    os.chdir("/")
    with multiprocessing.Pool(1) as pool:
        print(pool.map(work, [3]))
"""
        self.assertEqual(self.both("p.py", p=text), (0, "[9]\n", ""))
        self.assertEqual(self.both("-m", "pkg.mod", pkg__in____init__="", pkg__in__mod=text), (0, "[9]\n", ""))

    def test_doctests_as_without(self):
        text = """
def f(x):
    '''
    >>> f(2)
    4
    >>> f(3)
    10
    >>> f(None)
    Traceback (most recent call last):
    TypeError: unsupported operand type(s) for ** or pow(): 'NoneType' and 'int'
    '''
    return x ** 2
import doctest
print(doctest.testmod())
"""
        for args in (("p.py",), ("-m", "pkg.mod"), ("-m", "doctest", "p.py")):
            got = self.both(*args, p=text, pkg__in____init__="", pkg__in__mod=text)
            self.assertIn("Expected:", got[1])

    def test_program_that_asks_for_torch_first(self):
        """As transformers does: whether torch is there, before it is imported."""
        done = self.run_program("p.py", p="import importlib.util, sys\nassert importlib.util.find_spec('torch')\n"
                                          "import torch\nprint(torch.__spec__.loader.__dict__.get('exec_module'))\n",
                                torch="class cuda:\n    pass\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "None\n", ""))
        self.assertEqual(records(self.run_path + ".snapana")[0][-1]["type"], "end")

    def test_program_that_imports_the_recorder(self):
        done = self.run_program("p.py", p="import torch, sys, snapana_recorder as r\n"
                                          "with r.record('own') as s:\n    print(s is r, s.__name__)\n", torch="")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True snapana_recorder\n", ""))
        self.assertEqual(records(os.path.join(self.dir.name, "own.snapana"))[0][-1]["reason"], "stop")

    def test_program_that_leaves_by_exit(self):
        done = self.run_program("p.py", p="import os, torch\nkeep = torch.zeros(9)\n"
                                          "print('x', flush=True)\nos._exit(9)\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (9, "x\n", ""))
        found, rest = records(self.run_path + ".snapana")
        hooks = hasattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook")
        faults = [] if hooks else ["fault", "fault"]
        self.assertEqual(([x["type"] for x in found], rest), (["header", "env"] + faults + ["holders", "uses", "end"], 0))

    def test_child_that_leaves_by_exit(self):
        done = self.run_program("p.py", p="import os, torch\nif os.fork() == 0:\n    os._exit(3)\n"
                                          "print(os.wait()[1] >> 8)\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "3\n", ""))
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(([x["type"] for x in found].count("holders"), rest), (1, 0))


class Kept(Recorded):
    """The snapshot of a run is that of a moment with much memory."""

    def run_with(self, *moments, **options):
        """Dumps at moments (reason, bytes allocated, whether the program asked). Returns the numbers of the dumps that
        wrote a snapshot, and the holders records."""
        r.start(self.run_path, devices=options.get("devices", "cuda"))
        recorder = r._current()
        written = []

        def write(number):
            written.append(number)
            recorder.snapshots += 1
        recorder.write_snapshot = write
        initialized, torch.cuda.is_initialized = torch.cuda.is_initialized, lambda: True
        try:
            for reason, live, asked in moments:
                recorder.live = lambda: (live, 1000)
                recorder.dump(reason, True, asked)
        finally:
            torch.cuda.is_initialized = initialized
        r.stop()
        return written, [x for x in records(self.run_path + ".snapana")[0] if x["type"] == "holders"]

    def test_a_poorer_one_replaces_nothing(self):
        keep = make()[0]
        written, holders = self.run_with(("dump", 500, False), ("dump", 800, False), ("dump", 700, False),
                                         ("dump", 750, False), ("exit", 100, False), devices="all")
        self.assertEqual(written, [0, 1, 3])
        self.assertEqual([(x["live"], x["peak"]) for x in holders],
                         [(500, 1000), (800, 1000), (700, 1000), (750, 1000), (100, 1000)])
        del keep

    def test_what_the_program_asks_for_is_kept(self):
        self.assertEqual(self.run_with(("dump", 800, True), ("dump", 100, True), ("exit", 50, False))[0], [0, 1])

    def test_the_moment_of_failure_is_kept(self):
        self.assertEqual(self.run_with(("dump", 800, False), ("oom", 900, False), ("exception", 900, False))[0], [0, 1])

    def test_cycles_of_the_end_are_held_by_nobody(self):
        class Box:
            pass
        gc.collect()
        gc.disable()
        try:
            describe, lost = r._Heap.describe, []

            def look(heap):
                heap.storage_rows[:] = [(0,) + row[1:] for row in heap.storage_rows]  # as if they were a device's
                table = describe(heap)
                lost.append(table["lost"])
                return table
            r._Heap.describe = look
            try:
                self.graph()
                a, b = Box(), Box()
                a.other, b.other, a.t = b, a, make()[0]
                del a, b
                self.assertNotIn("lost", self.graph().record)
            finally:
                r._Heap.describe = describe
            self.assertEqual(lost[1] - lost[0], 4 * SIZE)
        finally:
            gc.enable()


class Killed(Recorded):
    def test_kill(self):
        """A process killed at any moment leaves a file whose records are whole, but for the last one."""
        for i in range(50 if FULL else 10):
            path = os.path.join(self.dir.name, "k%d" % i)
            pid = os.fork()
            if pid == 0:
                try:
                    r.start(path, devices="all")
                    while True:
                        r.step()
                        if i % 2:
                            r._active[0].write("holders", columns=list(range(100000)))
                finally:
                    os._exit(1)
            while not os.path.exists(path + ".snapana") or os.path.getsize(path + ".snapana") < 3000:
                pass
            threading.Event().wait((i * 7919 % 50) / 5000)
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            found, rest = records(path + ".snapana")
            self.assertEqual(found[0]["type"], "header")
            self.assertGreater(len([x for x in found if x["type"] == "sample"]), 0)
            size = os.path.getsize(path + ".snapana")
            self.assertTrue(0 <= rest < size)
            self.assertNotIn("end", [x["type"] for x in found])


class Threads(Recorded):
    PROGRAM = """
import sys, threading
import torch, snapana_recorder as r
done = []

def train():
    model = torch.nn.Linear(20, 20)
    while not done:
        keep = [model(torch.zeros(3, 20)).relu() for _ in range(50)]
        model(torch.zeros(2, 20)).sum().backward()

threads = [threading.Thread(target=train) for _ in range(2)]
for t in threads:
    t.start()
r.start(sys.argv[1], devices="all")
for _ in range(int(sys.argv[2])):
    r.dump()
    r.step()
r.stop()
done.append(1)
for t in threads:
    t.join()
"""

    def test_while_other_threads_train(self):
        dumps = 5 if FULL else 2
        done = subprocess.run([sys.executable, "-c", self.PROGRAM, self.run_path, str(dumps)],
                              cwd=os.path.dirname(os.path.abspath(SOURCE)), stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        types = [x["type"] for x in found if x["type"] in ("holders", "fault", "end")]
        self.assertEqual(types, ["holders"] * dumps + ["end"])


class Source(unittest.TestCase):
    def test_old_python_can_read_it(self):
        with open(SOURCE, encoding="utf-8") as f:
            ast.parse(f.read(), feature_version=(3, 8))

    def test_old_and_new_pythons_run_it(self):
        """As far as they are here, and without torch."""
        program = "import sys, snapana_recorder as r; r.start(sys.argv[1]); r.step(); r.dump(); r.stop()"
        self.each("-W", "error", "-c", program, types=["sample", "holders", "end"])

    RETURNS = """
import sys
import time
import torch
from torch.optim.optimizer import step

def train():
    kept = []
    for _ in range(6):
        kept.append(torch.Tensor(1 << 20))
        %s
    print(sys.version_info >= (3, 12))
train()
"""

    def test_dumps_as_a_function_returns(self):
        """From Python 3.12 on, by sys.monitoring; without an optimizer, too, where it filled the device. torch is the one of
        attach's tests, made up, for all Pythons here."""
        made_up = os.path.join(os.path.dirname(os.path.abspath(SOURCE)), "..", "..", "attach", "testdata")
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                   PYTHONPATH=os.pathsep.join((os.path.dirname(os.path.abspath(SOURCE)), made_up)))
        for name, work in itertools.product(self.pythons(), ("step()", "time.sleep(0.03)")):
            with self.subTest(name, work=work), tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "train.py"), "w") as f:
                    f.write(self.RETURNS % work)
                done = subprocess.run([name, "-m", "snapana_recorder", "train.py"], cwd=folder, env=env,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                found, rest = records(os.path.join(folder, "run.snapana"))
                self.assertEqual(([x for x in found if x["type"] == "fault"], rest), ([], 0))
                dumps = [x for x in found if x["type"] == "holders"]
                if done.stdout == "False\n":
                    self.assertEqual([x["reason"] for x in dumps], ["exit"])
                    continue
                self.assertEqual([x["reason"] for x in dumps], ["dump", "exit"])
                graph = Graph(dumps[0])
                self.assertEqual(len(dumps[0]["tensors"]["node"]), 6)
                self.assertIn(("frame", "train"), [(n["kind"], n["name"]) for n in graph.nodes])
                self.assertIn("kept", dumps[0]["strings"])
                self.assertEqual(dumps[1]["tensors"]["node"], [])

    def each(self, *args, types, more=(), out=b""):
        """Runs each Python that is here, without torch, and checks the types of the records in the file that the
        argument after these names, and what was printed."""
        env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(SOURCE)), PYTHONDONTWRITEBYTECODE="1")
        for name in self.pythons():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "run")
                done = subprocess.run([name] + list(args) + [path] + list(more), env=env, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, out, b""))
                found, _ = records(path + ".snapana")
                self.assertEqual([x["what"] for x in found if x["type"] == "fault" and "'torch'" not in x["what"]], [])
                self.assertEqual([x["type"] for x in found if x["type"] in ("sample", "holders", "end")], types)

    def pythons(self):
        """The Pythons that are here: at least one."""
        names = ["python3.%d" % version for version in range(8, 16)]
        root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
        names += sorted(glob.glob(os.path.join(glob.escape(root), "versions", "3.1[2-9].*", "bin", "python")))
        found = []
        for name in names:
            try:
                subprocess.run([name, "-c", ""], stderr=subprocess.DEVNULL, check=True)
                found.append(name)
            except (OSError, subprocess.CalledProcessError):
                pass
        self.assertNotEqual(found, [])
        return found

    ASYNC = """
import asyncio, gc, resource, signal, sys
import snapana_recorder as r
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
signal.alarm(100)

async def main():
    loop = asyncio.get_running_loop()
    for _ in range(3):
        for _ in range(3):
            done = loop.create_future()
            loop.call_soon(done.set_result, None)
            await done
        r.dump()

if "freeze" in sys.argv:
    gc.freeze()
r.start(sys.argv[1])
asyncio.run(main())
r.stop()
"""

    def test_inside_a_coroutine(self):
        """Python 3.12.1 hangs, or takes all memory, where gc is asked twice what the module _asyncio refers to."""
        self.each("-c", self.ASYNC, types=["holders"] * 3 + ["end"])
        self.each("-c", self.ASYNC, types=["holders"] * 3 + ["end"], more=["freeze"])

    LATE = """
import os, sys
import snapana_recorder as r
sys.argv[0:2] = sys.argv[1:2]
r.start(sys.argv[0])

@r.phase("closing")
def close():
    return "closed"

@r.phase("reading")
def read():
    yield

class Late:
    def __init__(self):
        self.calls = [close, r.start, r.step, r.dump, r.on_oom, r.listen, r.stop]
        self.calls += [r.phase("late").__enter__, r.phase("late").__exit__, r.record("late").__exit__]
        self.reader = read()
        next(self.reader)
        self.calls.append(self.reader.close)
        self.monitoring, self.write = getattr(sys, "monitoring", None), os.write
        self.module, self.space = r, r.__dict__

    def __del__(self):
        said = [self.space["start"]]
        for call in self.calls + [self.new, self.tool]:
            try:
                said.append(call(*(None, None, None) if call.__name__ == "__exit__" else ()))
            except BaseException as err:
                said.append(repr(err))
        self.write(1, b"%a" % [what for what in said if what is not None])

    def new(self):
        pass

    def tool(self):
        return self.monitoring and self.monitoring.get_tool(4)
sys.late = Late()  # goes when all modules are empty
"""

    def test_while_the_interpreter_ends(self):
        """Finalizers run when the modules are empty: what they call of the recorder does nothing, and Python 3.12 tells
        it of no function any more."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "late.py")
            with open(path, "w") as f:
                f.write(self.LATE)
            self.each("-m", "snapana_recorder", path, types=["holders", "end"], out=b"['closed']")

    def test_a_program_takes_the_tool_away(self):
        """Of sys.monitoring, from Python 3.12 on."""
        text = "import sys\nif hasattr(sys, 'monitoring'): sys.monitoring.free_tool_id(4)\n" \
               "import snapana_recorder as r\nr.start(sys.argv[1])\ndef f(): return 1\nf()\nr.stop()\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "free.py")
            with open(path, "w") as f:
                f.write(text)
            self.each("-m", "snapana_recorder", path, types=["end"])


class Phases(Recorded):
    def phases(self):
        r.stop()
        found, rest = records(self.run_path + ".snapana")
        self.assertEqual(rest, 0)
        self.assertEqual([x for x in found if x["type"] == "fault"], [])
        return [x for x in found if x["type"] == "phase"]

    def test_laps_nest_and_repeat(self):
        r.start(self.run_path)
        again = r.phase("rollout")
        for _ in range(2):
            with again:
                with r.phase("inner"), again:
                    r.step()
        found = self.phases()
        begins = {x["id"]: x for x in found if x["stage"] == "begin"}
        self.assertEqual([x["id"] for x in found if x["stage"] == "end"], [2, 1, 0, 5, 4, 3])
        self.assertEqual([(b["name"], b["lap"], b.get("inside"), b["step"]) for b in begins.values()],
                         [("rollout", 0, None, 0), ("inner", 0, 0, 0), ("rollout", 1, 1, 0),
                          ("rollout", 2, None, 1), ("inner", 1, 3, 1), ("rollout", 3, 4, 1)])
        self.assertTrue(all(x["devices"] == [] for x in found))  # of no GPU
        self.assertTrue(all("error" not in x for x in found))

    def test_threads_have_paths_of_their_own(self):
        r.start(self.run_path)
        shared, inside = r.phase("shared"), threading.Barrier(3)

        def work():
            with shared:
                inside.wait()
        with r.phase("main"):
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        begins = [x for x in self.phases() if x["stage"] == "begin"]
        self.assertEqual(sorted(b["lap"] for b in begins[1:]), [0, 1, 2])
        self.assertTrue(all("inside" not in b for b in begins))
        self.assertEqual(len({b["thread"] for b in begins}), 4)

    def test_decorates(self):
        @r.phase("function")
        def function(n):
            "What it does."
            return n if n == 0 else function(n - 1)

        @r.phase("generator")
        def generator():
            got = yield 1
            return got

        @r.phase("coroutine")
        async def coroutine(x):
            return x

        @r.phase("no function")
        class Class:
            @r.phase("static")
            @staticmethod
            def static():
                return 5

        @r.phase("asynchronous generator")
        async def stays_as_it_is():
            yield 1
        r.start(self.run_path)
        self.assertEqual((function(1), function.__name__, function.__doc__), (0, "function", "What it does."))
        one = generator()
        self.assertEqual(next(one), 1)
        with self.assertRaises(StopIteration) as end:
            one.send(7)
        self.assertEqual(end.exception.value, 7)
        with self.assertRaises(StopIteration) as end:
            coroutine(3).send(None)
        self.assertEqual(end.exception.value, 3)
        self.assertIsInstance(Class, type)
        self.assertEqual(Class.static(), 5)
        self.assertTrue(stays_as_it_is.__code__.co_flags & 0x200)
        self.assertEqual([x["name"] for x in self.phases() if x["stage"] == "begin"],
                         ["function", "function", "generator", "coroutine", "static"])

    def test_exceptions_pass_and_are_noted(self):
        class Odd(Exception):
            def __str__(self):
                raise AssertionError("code of the program ran")

        @r.phase("decorated")
        def fails(wrong):
            raise Odd()
        r.start(self.run_path)
        for call in (lambda: fails(1), fails, lambda: r.phase("block").__enter__().__call__(fails)(2)):
            try:
                call()
            except (Odd, TypeError) as err:
                files = {os.path.basename(f.filename) for f in traceback.extract_tb(err.__traceback__)}
                if sys.version_info >= (3, 11):
                    self.assertEqual(files, {"test_recorder.py"})
        try:
            with r.phase("block"):
                raise KeyError(1)
        except KeyError as err:
            self.assertEqual(len(traceback.extract_tb(err.__traceback__)), 1)
        errors = [x["error"] for x in self.phases() if "error" in x]
        self.assertEqual([e.rpartition(".")[2] for e in errors], ["Odd", "TypeError", "Odd", "Odd", "KeyError"])

    def test_without_a_recorder_and_across_two(self):
        with r.phase("nobody records"):
            r.start(self.run_path + "1")
            with r.phase("one"):
                r.start(self.run_path)
        with r.phase(3):
            pass
        found = self.phases()
        self.assertEqual([(x["stage"], x.get("name")) for x in found], [("begin", "int"), ("end", None)])
        first = [x for x in records(self.run_path + "1.snapana")[0] if x["type"] == "phase"]
        self.assertEqual([x["stage"] for x in first], ["begin"])

    def test_left_in_another_thread(self):
        """As a generator is that the collector, or another thread, closes."""
        @r.phase("reading")
        def read():
            yield
        r.start(self.run_path)
        reader = read()
        next(reader)
        thread = threading.Thread(target=reader.close)
        thread.start()
        thread.join()
        with r.phase("next"):
            pass
        found = self.phases()
        self.assertEqual([x["stage"] for x in found], ["begin", "end"] * 2)
        self.assertEqual([x.get("inside") for x in found], [None] * 4)

    def test_what_runs_often_is_thinned_out(self):
        r.start(self.run_path)
        for name, free, most in (("by size", 0.1, 300), ("by time", -1e9, 0)):
            with unittest.mock.patch.multiple(r, _PHASE_BYTES=10_000, _FREE_PHASES=free, _SHARE=1e9):
                with unittest.mock.patch.object(r, "_SHARE", 1e9 if most else 0.0):
                    for _ in range(2000):
                        with r.phase(name):
                            pass
        laps = [x["lap"] for x in self.phases() if x["stage"] == "begin"]
        self.assertTrue(50 < len(laps) < 400, len(laps))
        self.assertEqual(laps, sorted(set(laps)))
        self.assertTrue(max(laps) > 1500, max(laps))

    def test_a_killed_process_leaves_the_open_lap(self):
        code = """
import os, sys
sys.path.insert(0, %r)
import snapana_recorder as r
r.start(%r)
with r.phase("rollout"), r.phase("sampling"):
    os.kill(os.getpid(), %d)
""" % (os.path.dirname(SOURCE), self.run_path, signal.SIGKILL)
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, -signal.SIGKILL)
        self.assertEqual([(x["stage"], x["name"]) for x in self.phases()], [("begin", "rollout"), ("begin", "sampling")])

    def test_a_forked_child_writes_nothing(self):
        r.start(self.run_path)
        with r.phase("parent"):
            pid = os.fork()
            if pid == 0:
                with r.phase("child"):
                    pass
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        self.assertEqual([x["stage"] for x in self.phases()], ["begin", "end"])


class HostTensors(Recorded):
    def host(self, **options):
        r.start(self.run_path, **options)
        r.dump()
        r.stop()
        record = [x for x in records(self.run_path + ".snapana")[0] if x["type"] == "holders"][-1]
        s, words = record["storages"], record["strings"]
        self.assertEqual(set(s["device"]), {-1} if s["device"] else set())
        return record, {a: (size, words[k]) for a, size, k in zip(s["address"], s["bytes"], s["kind"])}

    def test_kinds_of_memory_are_told_apart(self):
        path = os.path.join(self.dir.name, "weights")
        with open(path, "wb") as f:
            f.truncate(4 * SIZE)
        own, own_at = make()
        view = own[10:20]
        shared = torch.zeros(SIZE).share_memory_()
        mapped = torch.from_file(path, shared=False, size=SIZE)
        record, found = self.host()
        self.assertEqual(found[own_at], (4 * SIZE, ""))
        self.assertEqual(found[shared.data_ptr()], (4 * SIZE, "shared"))
        self.assertEqual(found[mapped.data_ptr()], (4 * SIZE, "mapped"))
        self.assertNotIn(view.data_ptr(), found)  # its storage is there already
        self.assertEqual(record["host_every"], 1)

    def test_only_devices_where_asked(self):
        kept, _ = make()
        self.assertEqual(self.host(devices="cuda")[1], {})
        del kept

    def test_of_very_many_every_nth_is_recorded(self):
        kept = [torch.zeros(2) for _ in range(600)]
        with unittest.mock.patch.object(r, "_MAX_HOST", 200):
            record, found = self.host()
        self.assertGreater(record["host_every"], 2)
        mine = sum(1 for t in kept if t.data_ptr() in found)
        self.assertTrue(600 // record["host_every"] - 2 <= mine <= 600 // record["host_every"] + 2, mine)


class FakeCuda:
    """Patches torch so that it seems to have one device, with the switches that recordings turn."""

    def __init__(self):
        self.history, self.observers, self.calls = False, [], []
        stats = {"allocated_bytes": {"all": {"current": 5, "peak": 5}}, "reserved_bytes": {"all": {"current": 5}}}
        patches = [(torch.cuda, {"is_initialized": lambda: True, "_lazy_call": lambda do: do(),
                                 "device_count": lambda: 1, "mem_get_info": lambda d: (1, 2)}),
                   (torch.cuda.memory, {"_snapshot": lambda: {"segments": [], "device_traces": []},
                                        "_record_memory_history": self.record}),
                   (torch._C, {"_cuda_isHistoryEnabled": lambda: self.history, "_cuda_memoryStats": lambda d: stats,
                               "_cuda_isCurrentStreamCapturing": lambda: False,
                               "_cuda_attach_out_of_memory_observer": self.observers.append})]
        self.stack = contextlib.ExitStack()
        for where, what in patches:
            for name, value in what.items():
                self.stack.enter_context(unittest.mock.patch.object(where, name, value, create=True))

    def record(self, enabled="all", **more):
        self.history = bool(enabled)
        self.calls.append(enabled)

    def fail(self):
        for observer in self.observers:
            observer(0, 1 << 40, 1 << 30, 1 << 20)


class Blocks(Recorded):
    def setUp(self):
        super().setUp()
        self.cuda = FakeCuda()
        self.addCleanup(self.cuda.stack.close)
        for name, value in (("_blocks", r._Blocks()), ("_watch", [None]), ("_observed", [False])):
            patch = unittest.mock.patch.object(r, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def kinds(self, name):
        return [x["type"] for x in records(self.path(name) + ".snapana")[0]]

    def test_the_history_is_off_behind_the_last(self):
        with r.record(self.path("outer")):
            with r.record(self.path("inner")):
                r.step()
            self.assertTrue(self.cuda.history)
            with r.record(self.path("outer")) as same:
                self.assertIs(same, r)
            r.step()
        self.assertEqual(self.cuda.calls, ["all", None])
        found = sorted(os.listdir(self.dir.name))
        third = "outer.pid%d" % os.getpid()
        self.assertEqual(found, sorted(n + e for n in ("outer", "inner", third) for e in (".pickle", ".snapana")))
        self.assertEqual(self.kinds("outer").count("sample"), 2)
        self.assertEqual((self.kinds("inner").count("holders"), self.kinds("inner")[-1]), (1, "end"))
        self.assertNotIn("sample", self.kinds("inner"))

    def test_a_history_of_the_program_stays_on(self):
        self.cuda.history = True
        with r.record(self.path("run")):
            pass
        self.assertEqual((self.cuda.history, self.cuda.calls), (True, []))
        self.cuda.history = False
        r.start(self.path("own"))
        with r.record(self.path("run")):
            pass
        self.assertTrue(self.cuda.history)  # start() began it
        r.dump()
        r.stop()
        self.assertTrue(self.cuda.history)

    def test_blocks_that_overlap(self):
        one, two = r.record(self.path("one")), r.record(self.path("two"))
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        self.assertTrue(self.cuda.history)
        two.dump()
        two.__exit__(KeyError, KeyError(), None)
        self.assertFalse(self.cuda.history)
        self.assertEqual((one.files[0], two.files[1]), (self.path("one.pickle"), self.path("two.snapana")))
        self.assertEqual(self.kinds("two").count("holders"), 2)
        self.assertIsNone(r._current())

    def test_cuda_comes_up_behind_the_block(self):
        later = []
        with unittest.mock.patch.object(torch.cuda, "_lazy_call", later.append):
            with r.record(self.path("run")):
                pass
        for do in later:
            do()
        self.assertFalse(self.cuda.history)

    def test_many_of_one_name(self):
        with contextlib.ExitStack() as stack:
            blocks = [r.record(self.path("run")) for _ in range(4)]
            for block in blocks:
                stack.enter_context(block)
        self.assertEqual(len({block.files for block in blocks}), 4)

    @contextlib.contextmanager
    def told(self):
        lines = []
        with unittest.mock.patch.object(r, "_tell", lines.append):
            yield lines

    def test_out_of_memory(self):
        with self.told() as lines, unittest.mock.patch.dict(os.environ, RANK="3"):
            r.on_oom(self.path("dumps"), 2)
            r.on_oom(self.path("dumps"), 2)
            for _ in range(4):
                self.cuda.fail()
        self.assertEqual((self.cuda.history, len(self.cuda.observers), len(lines)), (True, 1, 2))
        self.assertEqual(sorted(os.listdir(self.path("dumps"))),
                         ["oom%d.rank3.%s" % (n, e) for n in (1, 2) for e in ("pickle", "snapana")])
        found = [x["type"] for x in records(self.path("dumps/oom2.rank3.snapana"))[0]]
        self.assertEqual([found.count(k) for k in ("oom", "holders", "snapshot", "end")], [1, 1, 1, 1])
        self.assertIsNone(r._current())

    def test_out_of_memory_in_a_recording(self):
        """A recording that was not asked to dumps nothing; one that was makes one dump, also the second of a process."""
        with self.told():
            r.on_oom(self.path("dumps"))
            for name, asks, dumps in (("one", True, 2), ("two", False, 1), ("three", True, 2)):
                with r.record(self.path(name)):
                    if asks:
                        r.on_oom()
                    self.cuda.fail()
                self.assertEqual(self.kinds(name).count("holders"), dumps, name)
        self.assertEqual((len(self.cuda.observers), len(os.listdir(self.path("dumps")))), (1, 6))
        self.assertTrue(self.cuda.history)

    def test_out_of_memory_and_no_place(self):
        with self.told() as lines:
            r.on_oom(self.path("dumps"))
            os.rmdir(self.path("dumps"))
            open(self.path("dumps"), "w").close()
            self.cuda.fail()
            r.on_oom(self.path("dumps"))
        self.assertEqual(len(lines), 2)
        self.assertIn("no dump", lines[0] + lines[1])


if __name__ == "__main__":
    unittest.main()
