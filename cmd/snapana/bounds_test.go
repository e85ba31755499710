//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snapana/snapana/fixtures/bounds"
	"github.com/snapana/snapana/snapshot/budget"
)

// judged are the commands that are held against the promise, with FILE and OUT in the place of paths.
var judged = []string{
	"report -q -o OUT FILE", "summary FILE", "whatif FILE", "state FILE", "peak --tree FILE", "ghosts FILE",
	"summary --json FILE", "at FILE 0x10000000000", "ranks FILE FILE", "plot FILE -o OUT.png", "stats FILE", "oom FILE",
	"plot --kind segments FILE -o OUT.svg", "plot --kind fragmentation FILE -o OUT.png", "compare-env FILE FILE",
	"export --to parquet -o OUT FILE", "export --to pprof -o OUT FILE", "export --to folded --at allocated -o OUT FILE",
	"export --to perfetto -o OUT FILE",
	"digest FILE -o OUT", "redact FILE -o OUT",
}

// cost is what a run of a command took, as parts of what is promised for its input.
type cost struct {
	memory, time float64
	code         int
	says         string
}

func (c cost) worst() float64 { return max(c.memory, c.time) }

func (c cost) String() string {
	return fmt.Sprintf("%3.0f%% of the memory, %3.0f%% of the time, exit %d %s", 100*c.memory, 100*c.time, c.code, c.says)
}

// measured runs a command on one core with an input of n bytes.
func measured(t *testing.T, program, command, file string, n int64) cost {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	args := strings.Fields(command)
	for i := range args {
		args[i] = strings.NewReplacer("FILE", file, "OUT", out).Replace(args[i])
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stuck := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	state := cmd.ProcessState
	resident := state.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS != "darwin" { // there it is in bytes
		resident <<= 10
	}
	if strings.HasPrefix(command, "ranks") || strings.HasPrefix(command, "compare") {
		n *= 2
	}
	return cost{float64(resident) / float64(budget.Memory(n)),
		float64(state.UserTime()+state.SystemTime()) / float64(budget.Time(n)), state.ExitCode(),
		strings.TrimSpace(stderr.String())}
}

// adverse writes the snapshot of a shape.
func adverse(t *testing.T, shape bounds.Shape) (program, file string, n int64) {
	t.Helper()
	dir := t.TempDir()
	program, file = filepath.Join(dir, "snapana"), filepath.Join(dir, "x.pickle")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(shape.Write(w), w.Flush(), f.Close(), os.Symlink(os.Args[0], program)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory() // what is in memory when a process is made counts for that one
	return program, file, info.Size()
}

// TestPromise runs the commands on one core with inputs that ask for much: each is answered or refused within the
// memory and the time that package budget promises, and report and summary answer all of them. A busy machine counts
// more processor time for the same work: what comes near to the promise has two more tries. By default that is report
// with some shapes; with SNAPANA_BOUNDS=all, all commands with all shapes.
func TestPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of a processor")
	}
	commands, shapes := judged[:1], []string{"devices", "falling", "names", "streams"}
	if os.Getenv("SNAPANA_BOUNDS") != "" {
		commands, shapes = judged, slices.Sorted(maps.Keys(bounds.Worst))
	}
	for _, name := range shapes {
		program, file, n := adverse(t, bounds.Worst[name])
		for i, command := range commands {
			c := measured(t, program, command, file, n)
			for range 2 {
				if c.time <= 0.9 { // what is refused for its time took more
					break
				}
				c = measured(t, program, command, file, n)
			}
			t.Logf("%s, %d KB, %s: %v", name, n>>10, command, c)
			switch {
			case c.worst() > 1:
				t.Errorf("%s: %s: %v", name, command, c)
			case c.code != exitOK && c.code != exitInput:
				t.Errorf("%s: %s: %v", name, command, c)
			case i < 2 && c.code != exitOK:
				t.Errorf("%s: %s is not answered: %v", name, command, c)
			}
		}
	}
}

// TestSearch looks for a worse shape for as long as SNAPANA_SEARCH says, a duration: it changes the worst ones and
// prints those that take a larger part of what is promised. They go to bounds.Worst.
func TestSearch(t *testing.T) {
	spent, err := time.ParseDuration(os.Getenv("SNAPANA_SEARCH"))
	if err != nil {
		t.Skip("no time given")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	names := slices.Sorted(maps.Keys(bounds.Worst))
	worst := map[string]float64{}
	shapes := maps.Clone(bounds.Worst)
	for round, end := 0, time.Now().Add(spent); time.Now().Before(end); round++ {
		name := names[round%len(names)]
		shape := shapes[name]
		fields := shape.Fields()
		if round >= len(names) {
			for range 1 + rng.IntN(3) {
				keys := slices.Sorted(maps.Keys(fields))
				f := fields[keys[rng.IntN(len(keys))]]
				switch rng.IntN(4) {
				case 0:
					*f.Value = rng.IntN(f.Most + 1)
				case 1:
					*f.Value /= 2
				default:
					*f.Value = min(2**f.Value+1, f.Most)
				}
			}
		}
		program, file, n := adverse(t, shape)
		if n > 8<<20 {
			continue
		}
		command := judged[rng.IntN(3)]
		c := measured(t, program, command, file, n)
		if score := c.worst(); score > worst[name] {
			worst[name], shapes[name] = score, shape
			t.Logf("%s: %s: %v\n\t%+v, %d KB", name, command, c, shape, n>>10)
		}
		if c.worst() > 1 || c.code != exitOK && c.code != exitInput {
			t.Errorf("%s: %s: %v\n\t%+v", name, command, c, shape)
		}
	}
}
