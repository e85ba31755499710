package oom_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/oomlog"
)

var update = flag.Bool("update", false, "write golden files")

func readLog(t testing.TB, text string) *oom.Log {
	t.Helper()
	l, err := oom.ReadLog("train.log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func first(t testing.TB, text string) *oom.Group {
	t.Helper()
	return &readLog(t, text).Groups[0]
}

// messages are the cases of package oomlog by name, and the messages that people reported by row
// where they are at hand.
func messages(t testing.TB) (names, texts []string, all bool) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "snapshot", "oomlog", "testdata", "oom_cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		names, texts = append(names, name), append(texts, text)
	}
	if data, err = os.ReadFile(filepath.Join("..", "..", "..", "shared", "real", "oom_messages.jsonl")); err != nil {
		return names, texts, false
	}
	row := 0
	for line := range bytes.Lines(data) {
		var v struct{ Text string }
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		row++
		names, texts = append(names, fmt.Sprint(row)), append(texts, v.Text)
	}
	return names, texts, true
}

// TestMessages holds the cause of every message. The golden file has no texts.
func TestMessages(t *testing.T) {
	var b strings.Builder
	names, texts, all := messages(t)
	for i, text := range texts {
		g := first(t, text)
		checkLedger(t, g)
		fmt.Fprintf(&b, "%s: %s\n", names[i], g.Cause)
	}
	path := filepath.Join("testdata", "causes.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) && (all || !strings.HasPrefix(string(want), got)) {
		os.WriteFile(path+".got", []byte(got), 0o644)
		t.Errorf("%s differs from %s.got", path, path)
	}
}

// checkLedger holds that the rows add up.
func checkLedger(t *testing.T, m *oom.Group) {
	t.Helper()
	l := m.Ledger
	if l == nil {
		return
	}
	sum := int64(0)
	for _, r := range l.Rows {
		sum += r.Bytes
	}
	if sum != m.Total.Bytes || l.Total != m.Total.Bytes {
		t.Errorf("rows sum to %d of %d: %+v", sum, m.Total.Bytes, l)
	}
}

// FuzzReadLog: whatever a message says, it is judged, and its ledger adds up.
func FuzzReadLog(f *testing.F) {
	_, texts, _ := messages(f)
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, g := range readLog(t, text).Groups {
			checkLedger(t, &g)
		}
	})
}

func TestLedger(t *testing.T) {
	head := "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 2.00 " +
		"GiB is free. "
	tail := "Of the allocated memory 3.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but " +
		"unallocated."
	const gib = 1 << 30
	for _, c := range []struct {
		text    string
		want    []oom.LedgerRow
		guessed int64
	}{
		{head + "Including non-PyTorch memory, this process has 5.00 GiB memory in use. Process 7 has 8.00 GiB " +
			"memory in use. " + tail, []oom.LedgerRow{
			{oom.RowFree, 2 * gib, false}, {oom.RowOthers, 8 * gib, false}, {oom.RowNonPyTorch, gib, true},
			{oom.RowAllocated, 3 * gib, false},
			{oom.RowUnallocated, gib, false}, {oom.RowResidual, gib, true}}, 0},
		{head + "Process 7 has 14.00 GiB memory in use. " + tail, []oom.LedgerRow{ // a container
			{oom.RowFree, 2 * gib, false}, {oom.RowNonPyTorch, 10 * gib, true}, {oom.RowAllocated, 3 * gib, false},
			{oom.RowUnallocated, gib, false}, {oom.RowResidual, 0, true}}, 7},
		{head + "Process 7 has 5.00 GiB memory in use. Process 8 has 9.00 GiB memory in use. Process 9 has 2.00 GiB " +
			"memory in use. " + tail, []oom.LedgerRow{
			{oom.RowFree, 2 * gib, false}, {oom.RowForeign, 10 * gib, true}, {oom.RowAllocated, 3 * gib, false},
			{oom.RowUnallocated, gib, false}}, 0},
		{head + "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. " + tail,
			[]oom.LedgerRow{
				{oom.RowFree, 2 * gib, false}, {oom.RowForeign, 10 * gib, true}, {oom.RowAllocated, 3 * gib, false},
				{oom.RowUnallocated, gib, false}}, 0},
		{head, []oom.LedgerRow{{oom.RowFree, 2 * gib, false}, {oom.RowUsed, 14 * gib, true}}, 0},
		{"CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 16.00 GiB total capacity; 3.00 GiB already " +
			"allocated; 2.00 GiB free; 4.00 GiB reserved in total by PyTorch)", []oom.LedgerRow{
			{oom.RowFree, 2 * gib, false}, {oom.RowForeign, 10 * gib, true}, {oom.RowAllocated, 3 * gib, false},
			{oom.RowUnallocated, gib, true}}, 0},
		{"CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 16.00 GiB total capacity; 3.00 GiB already " +
			"allocated; 2.00 GiB free; 1.00 GiB cached)", []oom.LedgerRow{
			{oom.RowFree, 2 * gib, false}, {oom.RowForeign, 10 * gib, true}, {oom.RowAllocated, 3 * gib, false},
			{oom.RowUnallocated, gib, false}}, 0},
	} {
		m := first(t, c.text)
		checkLedger(t, m)
		l := m.Ledger
		if l == nil || !slices.Equal(l.Rows, c.want) || l.Guessed != c.guessed {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, l, c.want)
		}
	}
	if m := first(t, "CUDA out of memory. Tried to allocate 1.00 GiB"); m.Ledger != nil {
		t.Error("a ledger without a total")
	}
}

// TestAbsurd holds that messages have the limit of snapshots.
func TestAbsurd(t *testing.T) {
	for tried, want := range map[string]oom.Cause{"1023.00": oom.TooLarge, "1024.00": oom.Absurd,
		"3072.00": oom.Absurd} {
		g := first(t, "CUDA out of memory. Tried to allocate "+tried+" GiB (GPU 0; 8.00 GiB total capacity; 3.00 GiB "+
			"already allocated; 0 bytes free; 4.00 GiB reserved in total by PyTorch)")
		if g.Cause != want {
			t.Errorf("%s GiB: %s, want %s", tried, g.Cause, want)
		}
	}
}

func TestSpilled(t *testing.T) {
	for reserved, want := range map[string]bool{"8.00": false, "8.01": false, "9.00": true} {
		m := first(t, "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity; 3.00 GiB "+
			"already allocated; 0 bytes free; "+reserved+" GiB reserved in total by PyTorch)")
		if m.Spilled() != want {
			t.Errorf("%s GiB reserved: %v", reserved, m.Spilled())
		}
	}
}

func TestJoin(t *testing.T) {
	l := readLog(t, "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB already "+
		"allocated; 0 bytes free; 7.00 GiB reserved in total by PyTorch)\n"+
		"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 1024.00 MiB of which 8.00 "+
		"MiB is free. Of the allocated memory 700.00 MiB is allocated by PyTorch, and 100.00 MiB is reserved by "+
		"PyTorch but unallocated.")
	events := []oom.Event{
		{Device: 0, Index: 1, Segment: 20 * mib, Free: 8 * mib, Reserved: 800 * mib, Allocated: 700 * mib},
		{Device: 1, Index: 2, Segment: 20 * mib, Free: 8 * mib, Reserved: 900 * mib, Allocated: 700*mib + 4000},
		{Device: 1, Index: 3, Segment: 20 * mib, Free: -1, Reserved: 900 * mib, Allocated: 600 * mib},
		{Device: 1, Index: 4, Segment: 12 * mib, Free: 8 * mib, Reserved: 800 * mib, Allocated: 700 * mib},
	}
	if l.Join("", nil); l.Main != 0 || l.Match != nil {
		t.Errorf("no events: %+v", l)
	}
	if l.Join("s.pickle", events[3:]); l.Match == nil || l.Match.Same {
		t.Errorf("another size: %+v", l.Match)
	}
	l.Join("s.pickle", events)
	if l.Main != 1 || !l.Match.Same || l.Match.Index != 2 {
		t.Fatalf("message %d matched %+v", l.Main, l.Match)
	}
	want := map[string]bool{"requested": true, "free": true, "reserved": false, "allocated": true, "unallocated": false}
	for _, f := range l.Match.Figures {
		if agree, ok := want[f.Name]; !ok || agree != f.Agree {
			t.Errorf("%+v", f)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not compared: %v", want)
	}
}

func TestLog(t *testing.T) {
	const line = "CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 3.79 GiB total capacity; 654.97 MiB already " +
		"allocated; 6.00 MiB free; 666.00 MiB reserved in total by PyTorch)\n"
	wrapped := "[rank1]: " + strings.Replace(line, "total capacity; ", "total capacity;\n[rank1]: ", 1)
	log := readLog(t, "RuntimeError: CUDA error: out of memory\n[rank5]: RuntimeError: "+line+wrapped+"rank 1: "+line)
	if len(log.Groups) != 2 || log.Messages != 4 {
		t.Fatalf("%d groups, %d messages", len(log.Groups), log.Messages)
	}
	g := log.Groups[log.Main]
	if log.Main != 1 || g.Count != 3 || !slices.Equal(g.Ranks, []int{1, 5}) || g.Line != 2 || g.LastLine != 5 {
		t.Errorf("%+v", g)
	}
	const kept = 1000
	for i := range kept + 10 {
		log.Add(oomlog.Message{Rank: -1, Body: oomlog.Body{Text: strings.Repeat("x", i)}})
	}
	if len(log.Groups) != kept || log.Dropped != 12 {
		t.Errorf("%d groups, %d dropped", len(log.Groups), log.Dropped)
	}
}

// TestJoinSegment joins a failure of a run with segments of another size than usual.
func TestJoinSegment(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{Capacity: 100 * mib}, func(d *build.Device) {
		d.Alloc(90 * mib)
		d.Alloc(5 * mib)
	}))
	s.Writer, s.Settings.Present, s.Settings.Conf = snapshot.Writer{}, true, "large_segment_size_mb:40"
	l := readLog(t, "CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 100.00 MiB of "+
		"which 10.00 MiB is free. Of the allocated memory 90.00 MiB is allocated by PyTorch, and 0 bytes is reserved "+
		"by PyTorch but unallocated.")
	if l.Join("s.pickle", oom.Events(s)); l.Match == nil || !l.Match.Same {
		t.Errorf("%+v", l.Match)
	}
}
