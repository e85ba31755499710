package pickle_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/internal/pickle"
)

var snapshotFile = flag.String("snapshot", "", "plain pickle to benchmark with, instead of a bundled one")

// dump prints a snapshot as testdata/dump.py does.
func dump(s *snapshot.Snapshot) string {
	var b strings.Builder
	text := func(id snapshot.StringID) string { return hex.EncodeToString([]byte(s.Strings.Get(id))) }
	printed := map[snapshot.StackID]string{0: "-"}
	frames := func(id snapshot.StackID) string {
		if have, ok := printed[id]; ok {
			return have
		}
		var out []string
		for _, fid := range s.Stacks.Get(id) {
			f := s.Frames.Get(fid)
			out = append(out, fmt.Sprintf("%s:%d:%s", text(f.File), f.Line, text(f.Name)))
		}
		printed[id] = strconv.Itoa(len(printed))
		fmt.Fprintf(&b, "stack %s [%s]\n", printed[id], strings.Join(out, " "))
		return printed[id]
	}
	kind := map[snapshot.SegmentKind]string{snapshot.KindSmall: "small", snapshot.KindLarge: "large"}
	for _, g := range s.Segments {
		expandable := 0
		if g.Expandable {
			expandable = 1
		}
		fmt.Fprintf(&b, "segment %d %d %d %d %d %d %d %s %d,%d %d %s\n", g.Device, g.Address, g.TotalSize,
			g.AllocatedSize,
			g.ActiveSize,
			g.RequestedSize, s.Streams.Handle(g.Stream), kind[g.Kind], g.Pool.A, g.Pool.B, expandable, frames(g.Stack))
		for _, bl := range s.Blocks[g.Blocks.Start:g.Blocks.End()] {
			fmt.Fprintf(&b, "block %d %d %d %s %s\n", bl.Address, bl.Size, bl.Requested, bl.State, frames(bl.Stack))
			for _, h := range s.History[bl.History.Start:bl.History.End()] {
				fmt.Fprintf(&b, "history %d %d %s\n", h.Address, h.RealSize, frames(h.Stack))
			}
		}
	}
	for d, t := range s.Traces {
		fmt.Fprintf(&b, "trace %d %d\n", d, t.Len())
		for i := range t.Len() {
			e := t.At(i)
			l := s.Labels.Get(e.Label)
			action := e.Action.String()
			if e.Action == snapshot.ActionUnknown {
				action = s.Strings.Get(l.Action)
			}
			fmt.Fprintf(&b, "event %s %d %d %d %d %s %s %s\n", action, e.Addr, e.Size, s.Streams.Handle(e.Stream),
				e.Time,
				text(l.CompileContext), text(l.UserMetadata), frames(e.Stack))
		}
	}
	for _, a := range s.Annotations {
		stage := "START"
		if a.End {
			stage = "END"
		}
		fmt.Fprintf(&b, "annotation %s %s %d %d\n", stage, text(a.Name), a.Device, a.Time)
	}
	return b.String()
}

// pickles lists the bundled snapshots and, where they are, the shared ones.
func pickles(t testing.TB) []string {
	var files []string
	for _, glob := range []string{
		"../../../fixtures/*.pickle", "../../../../shared/corpus/*/*.pickle",
		"../../../../shared/corpus/whatif/*/*.pickle",
		"../../../../shared/real/*.pickle",
	} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func TestDecodeEqualsCPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to compare with")
	}
	var names, read []string
	seen := map[[sha256.Size]byte]bool{} // some of the shared ones are there twice
	for _, name := range pickles(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if again := seen[sum]; again || os.Getenv("SNAPANA_FULL") == "" && len(data) > 1<<20 {
			continue // seconds for each
		}
		seen[sum] = true
		s, _, err := pickle.Decode(bytes.NewReader(data), pickle.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		names, read = append(names, name), append(read, dump(s))
	}
	cmd := exec.Command(python, append([]string{"testdata/dump.py"}, names...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	wants := strings.SplitAfter(string(out), "end of file\n")
	if len(wants) != len(names)+1 {
		t.Fatalf("Python read %d of %d files", len(wants)-1, len(names))
	}
	for i, name := range names {
		if line, got, want := firstDifference(read[i]+"end of file\n", wants[i]); line > 0 {
			t.Errorf("%s: line %d:\n got %.300s\nwant %.300s", name, line, got, want)
		}
	}
}

func firstDifference(a, b string) (int, string, string) {
	x, y := bufio.NewScanner(strings.NewReader(a)), bufio.NewScanner(strings.NewReader(b))
	x.Buffer(nil, 1<<24)
	y.Buffer(nil, 1<<24)
	for line := 1; ; line++ {
		ok, ok2 := x.Scan(), y.Scan()
		if !ok && !ok2 {
			return 0, "", ""
		}
		if x.Text() != y.Text() || ok != ok2 {
			return line, x.Text(), y.Text()
		}
	}
}

// TestSmallReads gives the same snapshot whatever the sizes of the reads are.
func TestSmallReads(t *testing.T) {
	files := pickles(t)
	if len(files) == 0 {
		t.Skip("no snapshots")
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := pickle.Decode(bytes.NewReader(data), pickle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := dump(whole)
	for _, n := range []int{1, 7, 4096} {
		s, _, err := pickle.Decode(&slowReader{data, n}, pickle.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if dump(s) != want {
			t.Errorf("reads of %d bytes give another snapshot", n)
		}
	}
}

type slowReader struct {
	data []byte
	n    int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, fmt.Errorf("EOF expected at STOP")
	}
	n := copy(p[:min(len(p), r.n)], r.data)
	r.data = r.data[n:]
	return n, nil
}

func BenchmarkDecode(b *testing.B) {
	name := *snapshotFile
	if name == "" {
		name = "../../../fixtures/healthy.pickle"
	}
	data, err := os.ReadFile(name)
	if err != nil {
		b.Skip(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	events := 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		s, _, err := pickle.Decode(bytes.NewReader(data), pickle.Options{Size: int64(len(data))})
		if err != nil {
			b.Fatal(err)
		}
		events = 0
		for _, t := range s.Traces {
			events += t.Len()
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(max(events*b.N, 1)), "B/event")
}
