package attach_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snapana/snapana/snapshot/attach"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sidecar/recorder"
)

// TestMain is also the program that is killed in the middle of a recording, and the one of another user.
func TestMain(m *testing.M) {
	if pid, err := strconv.Atoi(os.Getenv("ATTACH_TO")); err == nil {
		record, _ := time.ParseDuration(os.Getenv("ATTACH_FOR"))
		_, err := attach.Run(context.Background(), options(pid, os.Getenv("ATTACH_OUT"), record))
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func options(pid int, out string, record time.Duration) attach.Options {
	return attach.Options{PID: pid, Record: record, Output: out, Patience: 30 * time.Second, MaxEntries: 100000}
}

// program is testdata/program.py as it runs.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	stderr strings.Builder
	pid    int
}

// python is an interpreter of this version. Where CI is set it must be there.
func python(t *testing.T, version string) string {
	t.Helper()
	if found, err := exec.LookPath("python" + version); err == nil && exec.Command(found, "-c", "").Run() == nil {
		return found
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no Python %s, which .ci/run installs", version)
	}
	t.Skipf("there is no Python %s; .ci/pythons unpacks it into a folder for your PATH", version)
	return ""
}

// start runs the program with these words until it is ready.
func start(t *testing.T, python string, change func(*exec.Cmd), words ...string) *program {
	t.Helper()
	source, err := filepath.Abs("../sidecar/recorder")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.Command(python, append([]string{"testdata/program.py"}, words...)...)}
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+source)
	p.cmd.Stderr = &p.stderr
	if change != nil {
		change(p.cmd)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	p.lines = bufio.NewScanner(out)
	if !p.lines.Scan() || p.lines.Text() != "ready" {
		t.Fatalf("the program did not get ready: %q", p.lines.Text())
	}
	p.pid = p.cmd.Process.Pid
	return p
}

// finish lets the program come to its end, and holds that nothing is left of the visit but what is expected to be.
func (p *program) finish(expected ...string) {
	p.t.Helper()
	io.WriteString(p.stdin, "\n")
	var said struct {
		Changed map[string]any
		Raised  string
	}
	if p.lines.Scan() {
		if err := json.Unmarshal(p.lines.Bytes(), &said); err != nil {
			p.t.Error(err)
		}
	}
	if err := p.cmd.Wait(); err != nil || said.Raised != "" || said.Changed == nil {
		p.t.Errorf("the program ended with %v, %+v", err, said)
	}
	for what, values := range said.Changed {
		if !slices.Contains(expected, what) {
			p.t.Errorf("it left %s changed: %v", what, values)
		}
	}
	if p.stderr.Len() > 0 {
		p.t.Errorf("the program's output has: %s", &p.stderr)
	}
}

// recorded reads the files of a recording, and returns how many dumps there are and how many events.
func recorded(t *testing.T, res attach.Result) (dumps, events int) {
	t.Helper()
	f, err := sidecar.Open(t.Context(), res.Recording, sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Runs {
		dumps += len(r.Holders)
		for _, d := range r.Holders {
			if d.Step != nil {
				t.Errorf("a dump is of step %d, and nobody counts", *d.Step)
			}
			if len(d.Storages.Address) == 0 && !res.Exited {
				t.Error("a dump has no storages")
			}
		}
	}
	if res.Snapshot != "" {
		s, err := load.Open(t.Context(), res.Snapshot, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Traces {
			events += d.Len()
		}
	}
	for _, name := range []string{res.Recording, res.Snapshot} {
		if info, err := os.Stat(name); name != "" && (err != nil || info.Mode().Perm() != 0o600) {
			t.Errorf("others can read %s", name)
		}
	}
	return dumps, events
}

// left holds that no folder of a recording is left behind.
func left(t *testing.T, dir string) {
	t.Helper()
	for range 100 {
		some, err := filepath.Glob(filepath.Join(dir, ".snapana-*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("a folder is left in %s", dir)
}

func kind(err error) attach.Kind {
	var e *attach.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return -1
}

// ways are the interpreters and how their programs are attached to.
var ways = []struct {
	version, word string
	kept          []string // what a visit may leave changed
}{
	{"3.14", "plainly", nil},
	{"3.13", "listen", []string{"exits"}}, // before 3.14, atexit keeps an empty place
}

func TestDump(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.version, func(t *testing.T) {
			p := start(t, python(t, w.version), nil, w.word)
			dir := t.TempDir()
			res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(dir, "now"), 0))
			if err != nil {
				t.Fatal(err)
			}
			p.finish(w.kept...)
			if dumps, events := recorded(t, res); dumps != 1 || events != 0 || res.WasOn || res.Recorded {
				t.Errorf("%d dumps, %d events: %+v", dumps, events, res)
			}
			if !strings.HasPrefix(res.Python, w.version) || res.Listened != (w.version == "3.13") {
				t.Errorf("%+v", res)
			}
			left(t, dir)
		})
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.version, func(t *testing.T) {
			p := start(t, python(t, w.version), nil, w.word)
			dir := t.TempDir()
			out := filepath.Join(dir, "slow")
			if err := os.WriteFile(out+".pickle", []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			shown := 0
			o := options(p.pid, out, time.Second)
			o.Progress = func(time.Duration) { shown++ }
			res, err := attach.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			p.finish(w.kept...)
			if dumps, events := recorded(t, res); dumps != 2 || events == 0 || !res.Recorded || res.WasOn || shown == 0 {
				t.Errorf("%d dumps, %d events: %+v", dumps, events, res)
			}
			if old, err := os.ReadFile(out + ".pickle.old"); string(old) != "before" {
				t.Errorf("the earlier file is gone: %v", err)
			}
			left(t, dir)
		})
	}
}

// A history that the program records is left alone.
func TestHistoryOfTheProgram(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.version, func(t *testing.T) {
			p := start(t, python(t, w.version), nil, w.word, "history")
			res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(t.TempDir(), "x"), time.Second))
			if err != nil {
				t.Fatal(err)
			}
			p.finish(w.kept...)
			if _, events := recorded(t, res); events < 10 || res.Recorded || !res.WasOn {
				t.Errorf("%d events: %+v", events, res)
			}
		})
	}
}

// Steps answer, and threads of the recorder where none come.
func TestListenInSteps(t *testing.T) {
	t.Parallel()
	p := start(t, python(t, "3.13"), nil, "listen", "steps")
	res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(t.TempDir(), "x"), time.Second))
	if err != nil {
		t.Fatal(err)
	}
	p.finish("exits")
	recorded(t, res)
}

func TestEndedEarly(t *testing.T) {
	t.Parallel()
	p := start(t, python(t, "3.14"), nil, "")
	ctx, cancel := context.WithCancel(t.Context())
	o := options(p.pid, filepath.Join(t.TempDir(), "x"), time.Hour)
	o.Progress = func(elapsed time.Duration) {
		if elapsed > 300*time.Millisecond {
			cancel()
		}
	}
	res, err := attach.Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	p.finish()
	if dumps, _ := recorded(t, res); dumps != 2 || !res.Recorded {
		t.Errorf("%d dumps: %+v", dumps, res)
	}
}

// A program that ends during a recording is dumped before.
func TestProgramEnds(t *testing.T) {
	t.Parallel()
	p := start(t, python(t, "3.14"), nil, "")
	o := options(p.pid, filepath.Join(t.TempDir(), "x"), time.Hour)
	once := false
	o.Progress = func(time.Duration) {
		if !once {
			once = true
			io.WriteString(p.stdin, "\n")
		}
	}
	res, err := attach.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if dumps, _ := recorded(t, res); dumps != 2 || !res.Exited {
		t.Errorf("%d dumps: %+v", dumps, res)
	}
}

// While the main thread is in C nothing can be asked, and what was asked does nothing later.
func TestMainThreadInC(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"asleep", "threaded"} {
		p := start(t, python(t, "3.14"), nil, word)
		dir := t.TempDir()
		o := options(p.pid, filepath.Join(dir, "x"), 0)
		o.Patience = time.Second
		if _, err := attach.Run(t.Context(), o); kind(err) != attach.Unanswered {
			t.Fatalf("%s: %v", word, err)
		}
		left(t, dir)
		if word == "asleep" {
			io.WriteString(p.stdin, "\n") // it goes on, past where the script would have run
		}
		p.finish("threads", "systhreads")
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("%s: %v %v", word, files, err)
		}
	}
}

// A recorder that listens answers also where the main thread does not.
func TestMainThreadInCListens(t *testing.T) {
	t.Parallel()
	p := start(t, python(t, "3.14"), nil, "threaded", "listen")
	o := options(p.pid, filepath.Join(t.TempDir(), "x"), 0)
	o.Patience = 3 * time.Second
	res, err := attach.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.finish("threads", "systhreads")
	if dumps, _ := recorded(t, res); dumps != 1 || !res.Listened {
		t.Errorf("%d dumps: %+v", dumps, res)
	}
}

// The end of a recording does not need the main thread.
func TestMainThreadInCAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		p := start(t, python(t, w.version), nil, w.word)
		ctx, cancel := context.WithCancel(t.Context())
		o := options(p.pid, filepath.Join(t.TempDir(), "x"), time.Hour)
		o.Progress = func(elapsed time.Duration) {
			switch {
			case elapsed > 500*time.Millisecond:
				cancel()
			case o.Patience > time.Second:
				o.Patience = time.Second
				io.WriteString(p.stdin, "z")
			}
		}
		o.Patience = 2 * time.Second
		res, err := attach.Run(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(p.stdin, "z")
		p.finish(w.kept...)
		if dumps, _ := recorded(t, res); dumps != 2 || !res.Recorded {
			t.Errorf("%d dumps: %+v", dumps, res)
		}
	}
}

// What fails in the recorder is told, and what it has got is kept.
func TestFault(t *testing.T) {
	t.Parallel()
	p := start(t, python(t, "3.14"), nil, "broken")
	res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(t.TempDir(), "x"), 0))
	if err != nil {
		t.Fatal(err)
	}
	p.finish()
	if dumps, _ := recorded(t, res); dumps != 1 || res.Snapshot != "" || !res.CUDA {
		t.Errorf("%d dumps: %+v", dumps, res)
	}
	if len(res.Faults) != 1 || res.Faults[0] != "snapshot: OSError" {
		t.Errorf("faults %q", res.Faults)
	}
}

// TestHandler raises from a signal handler in the middle of a visit: the program sees it as it does without.
func TestHandler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version string
		words   []string
		signal  os.Signal
		want    string
	}{
		{"3.14", nil, syscall.SIGTERM, "Stop('checkpoint')"},
		{"3.14", nil, syscall.SIGINT, "KeyboardInterrupt()"},
		{"3.13", []string{"listen", "steps"}, syscall.SIGTERM, "Stop('checkpoint')"},
	} {
		p := start(t, python(t, c.version), nil, append(c.words, "handler", "slow")...)
		dir := t.TempDir()
		go func() { // a snapshot takes two seconds
			for range 1000 {
				if some, _ := filepath.Glob(dir + "/.snapana-*/x.pickle*"); len(some) > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			p.cmd.Process.Signal(c.signal)
		}()
		_, err := attach.Run(t.Context(), options(p.pid, filepath.Join(dir, "x"), 0))
		if kind(err) != attach.Failed || !strings.Contains(err.Error(), "signal handler") {
			t.Error(err)
		}
		if !p.lines.Scan() || !strings.Contains(p.lines.Text(), c.want) {
			t.Errorf("%v: the program did not see what its handler raised: %q %s", c.signal, p.lines.Text(), &p.stderr)
		}
		if p.cmd.Wait(); p.stderr.Len() > 0 {
			t.Errorf("the program's output has: %s", &p.stderr)
		}
		left(t, dir)
	}
}

// A recording ends by itself when nobody is there any more to end it.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		p := start(t, python(t, w.version), nil, w.word)
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("ATTACH_TO=%d", p.pid), "ATTACH_FOR=1h", "ATTACH_OUT="+dir+"/x")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if some, _ := filepath.Glob(dir + "/.snapana-*/begin.reply"); len(some) > 0 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		left(t, dir)
		p.finish(w.kept...)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	py := python(t, "3.14")
	env := func(line string) func(*exec.Cmd) { return func(c *exec.Cmd) { c.Env = append(c.Env, line) } }
	for _, c := range []struct {
		what   string
		python string
		change func(*exec.Cmd)
		words  []string
		want   attach.Kind
		stderr string
	}{
		{what: "no torch", python: py, words: []string{"plain"}, want: attach.NoTorch},
		{what: "turned off", python: py, change: env("PYTHON_DISABLE_REMOTE_DEBUG=1"), want: attach.Disabled},
		{what: "an old version", python: python(t, "3.13"), want: attach.Version},
		{what: "a recorder that fails", python: py, words: []string{"bad"}, want: attach.Refused},
		{what: "an audit hook", python: py, words: []string{"audit"}, want: attach.Refused, stderr: "no scripts here"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := start(t, c.python, c.change, c.words...)
			dir := t.TempDir()
			_, err := attach.Run(t.Context(), options(p.pid, filepath.Join(dir, "x"), 0))
			if kind(err) != c.want {
				t.Errorf("%v", err)
			}
			if c.stderr == "" {
				p.finish()
			}
			left(t, dir)
		})
	}
	t.Run("turned off, but it listens", func(t *testing.T) {
		p := start(t, py, env("PYTHON_DISABLE_REMOTE_DEBUG=1"), "listen")
		res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(t.TempDir(), "x"), 0))
		if err != nil || !res.Listened {
			t.Fatalf("%+v %v", res, err)
		}
		p.finish()
	})
}

func TestNoPython(t *testing.T) {
	t.Parallel()
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "x")
	if _, err := attach.Run(t.Context(), options(sleep.Process.Pid, out, 0)); kind(err) != attach.NotPython {
		t.Errorf("sleep: %v", err)
	}
	sleep.Process.Kill()
	time.Sleep(50 * time.Millisecond)
	if _, err := attach.Run(t.Context(), options(sleep.Process.Pid, out, 0)); kind(err) != attach.Ended {
		t.Errorf("a process that has ended: %v", err)
	}
	sleep.Wait()
	if _, err := attach.Run(t.Context(), options(sleep.Process.Pid, out, 0)); kind(err) != attach.NoProcess {
		t.Errorf("no process: %v", err)
	}
	if _, err := attach.Run(t.Context(), options(2, out, 0)); err == nil {
		t.Error("a thread of the kernel")
	}
}

// A launcher has no PyTorch, but children that may.
func TestLauncher(t *testing.T) {
	t.Parallel()
	p := start(t, python(t, "3.14"), nil, "plain", "launcher")
	_, err := attach.Run(t.Context(), options(p.pid, filepath.Join(t.TempDir(), "x"), 0))
	var e *attach.Error
	if !errors.As(err, &e) || e.Kind != attach.NoTorch || len(e.Children) != 1 {
		t.Errorf("%v, %+v", err, e)
	}
	p.finish()
}

// TestOtherUser goes both ways: root may attach to a user's program, a user not to root's.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	folder, err := os.MkdirTemp("/tmp", "snapana-test")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := errors.Join(os.CopyFS(folder, os.DirFS("testdata")), os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	py := python(t, "3.14")
	if cmd := exec.Command(py, "-c", ""); cmd != nil {
		if cmd.SysProcAttr = nobody; cmd.Run() != nil {
			t.Skip("others cannot run this Python")
		}
	}
	p := start(t, py, func(c *exec.Cmd) {
		c.SysProcAttr = nobody
		c.Args[1] = filepath.Join(folder, "program.py")
	}, "")
	dir := t.TempDir()
	res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(dir, "x"), 0))
	if err != nil {
		t.Fatal(err)
	}
	p.finish()
	recorded(t, res)
	left(t, "/tmp")
	if info, err := os.Stat(res.Snapshot); err != nil || info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("the snapshot does not belong to the owner of the process: %v", err)
	}

	exe := filepath.Join(folder, "attach.test")
	data, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.WriteFile(exe, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	asNobody := func(pid int, want string) {
		t.Helper()
		cmd := exec.Command(exe)
		cmd.Dir, cmd.SysProcAttr = folder, nobody
		cmd.Env = append(os.Environ(), fmt.Sprintf("ATTACH_TO=%d", pid), "ATTACH_OUT="+folder+"/x")
		if said, err := cmd.Output(); err != nil || !strings.Contains(string(said), want) {
			t.Errorf("%s %v, want %s", said, err, want)
		}
	}
	asNobody(os.Getpid(), "it belongs to the user with the number 0")
	if err := os.Chown(folder, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"": "<nil>", "secret": "the system does not let this user look into it"} {
		p := start(t, py, func(c *exec.Cmd) {
			c.SysProcAttr = nobody
			c.Args[1] = filepath.Join(folder, "program.py")
		}, word)
		asNobody(p.pid, want)
		p.finish()
	}
	if err := os.WriteFile(filepath.Join(folder, "snapana_recorder.py"), recorder.Source(), 0o644); err != nil {
		t.Fatal(err)
	}
	p = start(t, py, func(c *exec.Cmd) {
		c.SysProcAttr = nobody
		c.Args[1] = filepath.Join(folder, "program.py")
		c.Env = append(c.Env, "PYTHONPATH=")
	}, "secret", "listen")
	asNobody(p.pid, "<nil>")
	p.finish()
}

// TestContainer attaches to a program that has a /tmp of its own, and does not see the folder of the results.
func TestContainer(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, "-m", "true").Run() != nil {
		t.Skip("no mount namespace can be made")
	}
	for _, w := range ways {
		py := python(t, w.version)
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(py, "/tmp/") || strings.HasPrefix(here, "/tmp/") || strings.HasPrefix(t.TempDir(), "/var/tmp") {
			t.Skip("Python or its program would be hidden")
		}
		p := start(t, unshare, func(c *exec.Cmd) {
			script := `mount -t tmpfs none /tmp && exec "$@"`
			c.Args = append([]string{unshare, "-m", "sh", "-c", script, "sh", py}, c.Args[1:]...)
		}, w.word)
		dir := t.TempDir()
		res, err := attach.Run(t.Context(), options(p.pid, filepath.Join(dir, "x"), 0))
		if err != nil {
			t.Fatal(err)
		}
		p.finish(w.kept...)
		recorded(t, res)
		left(t, fmt.Sprintf("/proc/%d/root/tmp", p.pid))
	}
}
