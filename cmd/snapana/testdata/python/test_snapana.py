"""Tests of the Python package, cmd/release/python: standard library only. With PYTHONPATH and SNAPANA_BINARY set,
python3 -m unittest test_snapana runs them.

What snapana_recorder does is tested beside it, and with torch's own allocator by fixtures/lab/recordings.py.
"""
import html
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import snapana
from snapana import _run

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.abspath(os.path.join(HERE, *[".."] * 4, "fixtures"))
GHOST, HEALTHY = os.path.join(FIXTURES, "ghost.pickle"), os.path.join(FIXTURES, "healthy.pickle")
BINARY = os.environ.get("SNAPANA_BINARY") or shutil.which("snapana")


def loaded(path):
    with open(path, "rb") as f:
        return pickle.load(f)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def program(self, body, *at):
        """A program that stands in for snapana."""
        path = self.path(*(at or ("fake",)))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + body + "\n")
        os.chmod(path, 0o755)
        return path

    def fails(self, code, do, *args, **options):
        with self.assertRaises(snapana.Error) as caught:
            do(*args, **options)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception


class Reports(Case):
    def test_figures(self):
        got = snapana.report(GHOST)
        raw = got.json
        self.assertEqual((got.verdict, got.verdict.headline), ("ghost", raw["verdict"]["headline"]))
        self.assertEqual(got.name, "ghost.pickle")
        first, f = got.findings[0], raw["verdict"]["findings"][0]
        for key in ("id", "status", "severity", "confidence", "device", "bytes", "title", "heuristic", "cause"):
            self.assertEqual(getattr(first, key), f[key], key)
        for key in ("why", "next", "fix", "stack", "events"):
            self.assertEqual(getattr(first, key), tuple(f[key]), key)
        self.assertEqual(first.evidence["growth"]["per_unit"], f["evidence"]["growth"]["per_unit"])
        device, d = got.figures[0], raw["devices"][0]
        self.assertEqual((device.reserved, device.active), (d["final"]["reserved"], d["final"]["active"]))
        self.assertEqual(device.peak_active, d["peaks"]["active"]["bytes"])
        self.assertEqual((device.ooms, device.bounds["active"]), (0, "exact"))
        with self.assertRaises(AttributeError):
            first.bytes = 1
        self.assertEqual(pickle.loads(pickle.dumps(got.verdict)), got.verdict)
        self.assertIn("GHOST", repr(got))
        self.assertIn("Next: Keep numbers", str(got))

    def test_unknown_is_none(self):
        got = snapana.report(loaded(GHOST)["segments"])
        device = got.figures[0]
        self.assertEqual((device.peak_active, device.peak_reserved, device.ooms, device.retries), (None,) * 4)
        self.assertGreater(device.active, 0)
        self.assertEqual(got.verdict, "no-history")

    def test_live(self):
        got = snapana.report(loaded(GHOST))
        path = got.path
        self.assertEqual((got.verdict, snapana.report(got.path).verdict), ("ghost", "ghost"))
        self.assertIn("GHOST", got.markdown)
        self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o077, 0)
        del got
        self.assertFalse(os.path.exists(os.path.dirname(path)))
        for bad in ({}, [], {"a": 1}):
            self.fails("not_a_snapshot", snapana.report, bad)

    def test_page(self):
        got = snapana.report(GHOST)
        frame = got._repr_html_()
        page = html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
        self.assertTrue(page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>"), page[:50])
        self.assertIn("</html>", page)
        self.assertIn('sandbox="allow-scripts', frame)
        self.assertNotIn("allow-same-origin", frame)
        self.assertEqual(re.sub(r'srcdoc="[^"]*"', "", frame).count("<"), 2)
        self.assertEqual(got.html.count("</html>"), 1)
        self.assertIn("GHOST", got._repr_markdown_())

    def test_save(self):
        got = snapana.report(GHOST)
        self.assertEqual(got.save(self.path("a.html")), self.path("a.html"))
        got.save(pathlib.Path(self.dir) / "a.md")
        got.save(self.path("a.json"))
        got.save(self.path("folder"))
        with open(self.path("a.json")) as a, open(self.path("folder", "report.json")) as b:
            self.assertEqual(json.load(a), got.json)
            self.assertEqual(json.load(b), got.json)
        with open(self.path("a.html")) as a, open(self.path("folder", "report.html")) as b:
            self.assertEqual(a.read(), b.read())
        with open(self.path("a.md")) as a:
            self.assertEqual(a.read(), got.markdown)
        self.assertEqual(sorted(os.listdir(self.dir)), ["a.html", "a.json", "a.md", "folder"])
        with self.assertRaises(OSError):
            got.save(self.path("none", "a.html"))

    def test_changed(self):
        path = self.path("x.pickle")
        shutil.copy(GHOST, path)
        got = snapana.report(path)
        shutil.copy(HEALTHY, path)
        self.fails("changed", got._repr_html_)
        self.fails("changed", got.save, self.path("a.json"))
        self.assertEqual(os.listdir(self.dir), ["x.pickle"])

    def test_names(self):
        os.chdir(self.dir)
        self.addCleanup(os.chdir, HERE)
        for name in ("-x.pickle", "--json", "ä ö.pickle", "-", "a=b"):
            shutil.copy(GHOST, os.path.join(".", name))
            for form in (name, pathlib.Path(name), os.fsencode(name)):
                self.assertEqual(snapana.report(form).verdict, "ghost", form)
        with mock.patch.dict(os.environ, HOME=self.dir):
            self.assertEqual(snapana.report("~/a=b").verdict, "ghost")
        self.assertEqual(_run.name_of(pathlib.PurePosixPath("s3://bucket/a/b.pickle")), "s3://bucket/a/b.pickle")
        self.assertEqual(_run.name_of("s3://bucket/a"), "s3://bucket/a")

    def test_options(self):
        got = snapana.report(GHOST, capacity=80 << 30, to="end", from_=None)
        self.assertEqual(got.verdict, "ghost")
        self.assertEqual(_run.flags(dict(from_="step:3", top=0, all=True, x=False, conf=["a", "b"], max_bytes=None)),
                         ["--from=step:3", "--top=0", "--all", "--x=false", "--conf=a", "--conf=b"])
        for bad in ("json", "format", "output", "fail_on", "open", "quiet", "width"):
            with self.assertRaises(TypeError):
                snapana.report(GHOST, **{bad: "x"})

    def test_variables(self):
        """Defaults of flags for people change nothing here."""
        with mock.patch.dict(os.environ, SNAPANA_FORMAT="md", SNAPANA_OUTPUT=self.path("out"), SNAPANA_FAIL_ON="ghost",
                             SNAPANA_COLOR="always", SNAPANA_WIDTH="60", SNAPANA_QUIET="true"):
            self.assertEqual(snapana.report(GHOST).verdict, "ghost")
        self.assertEqual(os.listdir(self.dir), [])


class Results(Case):
    def test_diff(self):
        got = snapana.diff(HEALTHY, snapana.report(loaded(GHOST)))
        self.assertEqual(sum(c.bytes for c in got.causes), got.delta)
        self.assertIn("leak", [c.kind for c in got.causes])
        self.assertTrue(got._repr_html_().startswith("<iframe"))
        self.assertIn(got.headline, str(got))
        self.assertGreater(len(got.markdown), 100)
        got.save(self.path("d.html"))
        got.save(self.path("d.md"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["d.html", "d.md"])
        self.assertEqual(snapana.diff((GHOST, GHOST), (GHOST, HEALTHY)).json["spread_b"]["runs"], 2)
        self.assertNotEqual(snapana.diff(GHOST, at="start,peak").delta, 0)

    def test_fit(self):
        files = [os.path.join(FIXTURES, "lab", "fit", f"moe_batch{n}_seq128.pickle.xz") for n in (2, 4)]
        got = snapana.fit(*files, at={"batch": [2, 4]}, to={"batch": 8}, capacity="8GiB")
        self.assertEqual([p.values for p in got.predictions], [(8,)])
        self.assertTrue(got.predictions[0].fits)
        self.assertLessEqual(got.predictions[0].reserved_low, got.predictions[0].reserved_peak)
        self.assertGreater(got.largest, 8)
        self.assertIn("x batch", got.law)
        self.assertIsNone(snapana.fit(*files, at=[2, 4], to=[8]).largest)
        self.assertTrue(got._repr_html_().startswith("<iframe"))

    def test_values(self):
        from snapana._results import _values
        for given, want in (([2, 4], ["2,4"]), (8, ["8"]), ("batch=2,4", ["batch=2,4"]), (None, []),
                            ({"batch": [2, 4]}, ["batch=2,4"]), ({"b": [2, 4], "s": [8, 9]}, ["b=2,s=8", "b=4,s=9"]),
                            ([{"b": 2, "s": 8}, {"b": 4, "s": 9}], ["b=2,s=8", "b=4,s=9"])):
            self.assertEqual(_values(given), want)
        with self.assertRaises(ValueError):
            _values({"b": [2, 4], "s": [8]})

    def test_whatif(self):
        got = snapana.whatif(GHOST, conf=["expandable_segments:True"])
        self.assertEqual([s.recorded for s in got.settings].count(True), 1)
        self.assertIn("expandable_segments:True", [s.text for s in got.settings])
        self.assertTrue(snapana.whatif(GHOST, search=True, capacity="1GiB").fits)
        self.assertTrue(repr(got).startswith("<snapana.WhatIf"))


class Errors(Case):
    def test_bad_input(self):
        with open(self.path("x.pickle"), "w") as f:
            f.write("hello")
        for name in ("none.pickle", "x.pickle"):
            err = self.fails(mock.ANY, snapana.report, self.path(name))
            self.assertEqual((err.exit_code, name in str(err)), (2, True), err)
            self.assertNotIn("snapana: ", err.message)
        self.fails("usage", snapana.report, "a\0b")
        with open(GHOST, "rb") as f, open(self.path("cut.pickle"), "wb") as g:
            g.write(f.read(1000))
        err = self.fails("truncated", snapana.report, self.path("cut.pickle"))
        self.assertEqual((err.file, err.offset), (self.path("cut.pickle"), 1000))
        copy = pickle.loads(pickle.dumps(err))
        self.assertEqual((copy.code, copy.message, copy.offset), (err.code, err.message, err.offset))
        self.assertEqual(str(snapana.Error("no; try it", hint="try it")), "no; try it")
        self.assertEqual(str(snapana.Error("no", hint="try it")), "no; try it")

    def test_what_programs_say(self):
        told = json.dumps({"error": {"code": "no_such_file", "message": "m", "hint": "h", "new": 1}})
        for body, code, message in (
            (f"echo '{told}'; exit 2", "no_such_file", "m"),
            (f"echo '{told}' >&2; exit 2", "no_such_file", "m"),
            ("echo 'snapana: no' >&2; exit 3", "failed", "no"),
            ("exit 4", "failed", "snapana ended with exit code 4"),
            ("exit 130", "stopped", "snapana ended with exit code 130"),
            ("kill -9 $$", "killed", "snapana was ended by signal 9"),
            ("echo '[1]'; exit 2", "failed", "snapana ended with exit code 2"),
            ("echo hello", "schema", None), ("echo '[]'", "schema", None),
            ("""echo '{"schema": "snapana.report/2"}'""", "schema", None),
            ("""echo '{"schema": "snapana.report/1"}'""", "schema", None),
        ):
            with mock.patch.dict(os.environ, SNAPANA_BINARY=self.program(body)):
                err = self.fails(code, snapana.report, GHOST)
                if message:
                    self.assertEqual(err.message, message)

    def test_what_is_new(self):
        """Fields, statuses and findings of later releases."""
        raw = snapana.report(GHOST).json
        raw["novel"] = 1
        raw["verdict"].update(status="novel", novel=2)
        raw["verdict"]["findings"][0].update(status="novel", severity="grave", novel=[3], device=-1)
        del raw["verdict"]["findings"][0]["cause"]
        with open(self.path("new.json"), "w") as f:
            json.dump(raw, f)
        with mock.patch.dict(os.environ, SNAPANA_BINARY=self.program(f"cat '{self.path('new.json')}'")):
            got = snapana.report(GHOST)
        self.assertEqual((got.verdict, got.json["novel"], got.verdict.raw["novel"]), ("novel", 1, 2))
        self.assertEqual((got.findings[0].severity, got.findings[0].raw["novel"]), ("grave", [3]))
        self.assertEqual((got.findings[0].device, got.findings[0].cause), (None, None))


class Binary(Case):
    """Where the program is found."""

    def place(self, *at):
        """Copies the package, and gives what it finds from there."""
        shutil.copytree(os.path.dirname(snapana.__file__), self.path(*at, "snapana"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        env = {k: v for k, v in os.environ.items() if not k.startswith("SNAPANA")}
        env.update(PATH=self.path("path") + ":/usr/bin:/bin", PYTHONPATH=self.path(*at), PYTHONDONTWRITEBYTECODE="1")

        def find(**more):
            done = subprocess.run([sys.executable, "-c", "import snapana; print(snapana.binary())"], cwd=self.dir,
                                  env=dict(env, **more), capture_output=True, text=True)
            return done.stdout.strip() or done.stderr
        return find

    def test_order(self):
        site = ("lib", "python3.x", "site-packages")
        find = self.place(*site)
        self.assertIn("is not beside this package, nor on PATH", find())
        for at in (("path", "snapana"), ("bin", "snapana"), (*site, "bin", "snapana"), (*site, "snapana", "snapana")):
            path = self.program("", *at)
            self.assertEqual(find(), path)
        named = self.program("", "named")
        self.assertEqual(find(SNAPANA_BINARY=named), named)
        self.assertIn("SNAPANA_BINARY names", find(SNAPANA_BINARY=self.path("nothing")))
        os.chmod(self.path(*site, "snapana", "snapana"), 0o644)
        self.assertEqual(find(), self.path(*site, "bin", "snapana"))

    def test_scripts_of_the_environment(self):
        program = self.program("")
        with mock.patch.dict(os.environ), mock.patch("sysconfig.get_path", lambda *_: self.path("scripts")):
            os.environ.pop("SNAPANA_BINARY", None)
            wanted = shutil.copy(program, os.path.join(self.dir, "snapana"))
            os.makedirs(self.path("scripts"))
            wanted = shutil.move(wanted, self.path("scripts", "snapana"))
            self.assertEqual(snapana.binary(), wanted)

    def test_module(self):
        def python(*args, **more):
            return subprocess.run([sys.executable, "-m", "snapana", *args], capture_output=True, text=True,
                                  env=dict(os.environ, **more))
        done = python("summary", GHOST)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("ghost.pickle", done.stdout)
        self.assertEqual(python("summary", self.path("none")).returncode, 2)
        self.assertEqual(python("--", "a b", SNAPANA_BINARY=self.program('echo "$#,$1,$2"')).stdout, "2,--,a b\n")
        done = python("version", SNAPANA_BINARY=self.path("none"))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1))
        self.assertTrue(done.stderr.startswith("snapana: SNAPANA_BINARY names"))
        done = python(SNAPANA_BINARY=self.program("kill -15 $$"))
        self.assertEqual(done.returncode, -15)


class Module(Case):
    def test_import_costs_nothing(self):
        code = "import sys; a = set(sys.modules); import snapana; print(sorted(set(sys.modules) - a))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.stdout, "['snapana']\n")

    def test_names(self):
        for name in snapana.__all__:
            self.assertIn(getattr(snapana, name).__module__.split(".")[0], ("snapana",), name)
            self.assertTrue(getattr(snapana, name).__doc__, name)
            self.assertIn(name, dir(snapana))
        self.assertIsInstance(snapana.__version__, str)
        with self.assertRaises(AttributeError):
            snapana.nothing
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(snapana.__file__), "py.typed")))


FAKE_RECORDER = """
import shutil
calls = []
class record:
    files = None, None
    def __init__(self, run, **options): self.run = run; calls.append((run, sorted(options)))
    def __enter__(self): calls.append("enter")
    def __exit__(self, kind, value, trace):
        shutil.copy(SNAPSHOT, self.run + ".pickle")
        self.files = self.run + ".pickle", self.run + ".snapana"
        calls.append(kind)
    def dump(self): calls.append("dump")
def step(epoch, label): calls.append((epoch, label))
def on_oom(*args): calls.append(args)
"""


class Recordings(Case):
    def setUp(self):
        super().setUp()
        self.recorder = types.ModuleType("snapana_recorder")
        exec(FAKE_RECORDER, self.recorder.__dict__)
        self.recorder.SNAPSHOT = GHOST
        patch = mock.patch.dict(sys.modules, snapana_recorder=self.recorder)
        patch.start()
        self.addCleanup(patch.stop)

    def test_record(self):
        with snapana.record(self.path("a", "run")) as run:
            self.assertIsNone(run.path)
            self.fails("no_snapshot", lambda: run.report)
            run.step(1, "x")
            run.dump()
        self.assertEqual((run.report.verdict, run.path), ("ghost", self.path("a", "run.pickle")))
        self.assertIs(run.report, run.report)
        self.assertTrue(run._repr_html_().startswith("<iframe"))
        self.assertEqual(self.recorder.calls, [(self.path("a", "run"), ["devices", "history", "max_entries", "stacks"]),
                                               "enter", (1, "x"), "dump", None])

    def test_raises(self):
        with self.assertRaises(KeyError):
            with snapana.record(self.path("run")) as run:
                raise KeyError
        self.assertEqual((self.recorder.calls[-1], run.report.verdict), (KeyError, "ghost"))

    def test_replaced(self):
        for _ in range(2):
            with snapana.record(self.path("run")) as run:
                pass
            first = run if _ == 0 else first
        self.fails("changed", lambda: first.report)
        self.assertEqual(run.report.verdict, "ghost")

    def test_on_oom(self):
        snapana.on_oom(pathlib.Path(self.path("a", "b")), limit=1)
        self.assertTrue(os.path.isdir(self.path("a", "b")))
        self.assertEqual(self.recorder.calls[-1][1:], (1, True, 1_000_000, "python"))
        open(self.path("file"), "w").close()
        with self.assertRaises(OSError):
            snapana.on_oom(self.path("file"))

    def test_recorder_of_the_program(self):
        """Where the module is not installed, the one that the program prints."""
        with mock.patch.dict(sys.modules):
            del sys.modules["snapana_recorder"]
            with mock.patch.object(sys, "path", [p for p in sys.path if not os.path.exists(
                    os.path.join(p or ".", "snapana_recorder.py"))]):
                with self.assertRaises(ModuleNotFoundError):
                    import snapana_recorder
                program = self.program("echo 'def step(*args): global x; x = args'")
                with mock.patch.dict(os.environ, SNAPANA_BINARY=program):
                    snapana.Recording("x").step(3)
                self.assertEqual(sys.modules["snapana_recorder"].x, (3, None))


if __name__ == "__main__":
    unittest.main()
