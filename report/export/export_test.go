package export_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/report/export"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// files are snapshots with a leak, a failure, several devices, and no history.
var files = []string{"ghost.pickle", "fragmentation.pickle", "healthy.pickle", "ranks/rank0.pickle.xz", "pinned.pickle"}

func analyzed(t *testing.T, file string) *analyze.Result {
	t.Helper()
	if !filepath.IsAbs(file) {
		file = filepath.Join("../../fixtures", file)
	}
	s, err := load.Open(t.Context(), file, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := analyze.Run(t.Context(), s, analyze.Options{NoReplay: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, name string, r *analyze.Result, at export.Moment) []byte {
	t.Helper()
	all := export.Formats()
	f := all[slices.IndexFunc(all, func(f export.Format) bool { return f.Name == name })]
	var b bytes.Buffer
	if err := f.Write(t.Context(), &b, r, at); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sums are what each moment must add up to, over all devices.
func sums(r *analyze.Result) map[export.Moment]int64 {
	out := map[export.Moment]int64{}
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Timeline.HasHistory() {
			out[export.Peak] += d.Timeline.PeakActive.Bytes
		}
		if n := len(d.Timeline.OOMs); n > 0 {
			out[export.OOM] += d.Timeline.OOMs[n-1].After.Active
		}
		out[export.End] += d.Timeline.Final.Active
		for k := range d.Timeline.Lives {
			if l := &d.Timeline.Lives[k]; l.Born >= 0 {
				out[export.Allocated] += l.Rounded
			}
		}
		for k := range d.Growth {
			out[export.Leaked] += d.Growth[k].Bytes
		}
	}
	return out
}

// TestProfile has pprof's own library read what is written.
func TestProfile(t *testing.T) {
	for _, file := range files {
		r := analyzed(t, file)
		p, err := profile.ParseData(written(t, "pprof", r, export.Peak))
		if err == nil {
			err = p.CheckValid()
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want := sums(r)
		for i, m := range export.Moments() {
			var got int64
			for _, s := range p.Sample {
				got += s.Value[2*i]
			}
			if got != want[m] {
				t.Errorf("%s: %s has %d bytes, want %d", file, p.SampleType[2*i].Type, got, want[m])
			}
		}
		for _, s := range p.Sample {
			if len(s.Location) == 0 || len(s.Label["category"]) != 1 || len(s.Label["pool"]) != 1 || len(s.Label["device"]) != 1 {
				t.Fatalf("%s: sample %v", file, s)
			}
		}
	}
}

// TestFolded adds lines up, and holds that names part neither calls nor lines.
func TestFolded(t *testing.T) {
	line := regexp.MustCompile(`^[^;]+(;[^;]+)* [1-9][0-9]*$`)
	for _, file := range files {
		r := analyzed(t, file)
		want := sums(r)
		for _, m := range export.Moments() {
			if want[m] == 0 && m != export.Leaked {
				continue // what a snapshot does not have is an error
			}
			var got int64
			for _, l := range strings.Split(strings.TrimSpace(string(written(t, "folded", r, m))), "\n") {
				if l == "" {
					continue
				}
				if !line.MatchString(l) {
					t.Errorf("%s: %q", file, l)
				}
				n, _ := strconv.ParseInt(l[strings.LastIndexByte(l, ' ')+1:], 10, 64)
				got += n
			}
			if got != want[m] {
				t.Errorf("%s: %s has %d bytes, want %d", file, m, got, want[m])
			}
		}
	}
}

// TestNames holds that odd names of code, which a snapshot may have, leave folded stacks lines of text.
func TestNames(t *testing.T) {
	frames := pickler.NewList()
	for _, name := range []string{"a;b", "red\x1b[31m", "nul\x00", "lines\r\n", "half\xed\xb2\x80", "日本"} {
		frames.Append(pickler.NewDict("name", name, "filename", "train.py", "line", 1))
	}
	block := pickler.NewDict("size", 512, "requested_size", 512, "state", "active_allocated", "frames", frames)
	segment := pickler.NewDict("address", 1<<40, "total_size", 512, "stream", 0, "segment_type", "small", "device", 0,
		"blocks", pickler.NewList(block))
	file := filepath.Join(t.TempDir(), "x.pickle")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	tree := pickler.NewDict("segments", pickler.NewList(segment), "device_traces", pickler.NewList())
	if err := errors.Join(pickler.Write(f, tree, pickler.Options{Protocol: 4}), f.Close()); err != nil {
		t.Fatal(err)
	}
	got := string(written(t, "folded", analyzed(t, file), export.End))
	want := "日本;half\ufffd;lines  ;nul ;red [31m;a:b 512\n"
	if got = strings.ReplaceAll(got, "train.py:1 ", ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLacking holds that what a snapshot does not have is an error, and no empty file that looks like an answer.
func TestLacking(t *testing.T) {
	all := export.Formats()
	r := analyzed(t, "healthy.pickle")
	r.Devices[0].Timeline.Trace = snapshot.Trace{}
	for _, c := range []struct {
		format string
		at     export.Moment
	}{{"folded", export.OOM}, {"folded", export.Allocated}, {"folded", export.Peak}, {"perfetto", ""}} {
		f := all[slices.IndexFunc(all, func(f export.Format) bool { return f.Name == c.format })]
		var b bytes.Buffer
		if err := f.Write(t.Context(), &b, r, c.at); err == nil || b.Len() > 0 {
			t.Errorf("%s at %q: %d bytes, error %v", c.format, c.at, b.Len(), err)
		}
	}
}

// field is one of a message.
type field struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

func fields(t *testing.T, b []byte) (out []field) {
	t.Helper()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		f := field{number: number}
		m := -1
		switch kind {
		case protowire.VarintType:
			f.value, m = protowire.ConsumeVarint(b[n:])
		case protowire.BytesType:
			f.bytes, m = protowire.ConsumeBytes(b[n:])
		}
		if m < 0 {
			t.Fatalf("field %d: %v", number, protowire.ParseError(m))
		}
		out, b = append(out, f), b[n+m:]
	}
	return out
}

func get(list []field, number protowire.Number) (f field) {
	for _, v := range list {
		if v.number == number {
			return v
		}
	}
	return f
}

// TestTrace reads a trace as Perfetto would: slices of a track do not overlap, and each ends; counters end as the memory does.
func TestTrace(t *testing.T) {
	for _, file := range files {
		r := analyzed(t, file)
		names, parents := map[uint64]string{}, map[uint64]uint64{}
		last, most := map[uint64]int64{}, map[uint64]int64{}
		open, ended := map[uint64]bool{}, map[uint64]uint64{}
		slicesOf := 0
		for _, packet := range fields(t, written(t, "perfetto", r, "")) {
			p := fields(t, packet.bytes)
			at := get(p, 8).value
			if d := get(p, 60); d.bytes != nil {
				track := fields(t, d.bytes)
				names[get(track, 1).value], parents[get(track, 1).value] = string(get(track, 2).bytes), get(track, 5).value
				continue
			}
			e := fields(t, get(p, 11).bytes)
			track := get(e, 11).value
			if names[track] == "" {
				t.Fatalf("%s: an event of track %d, which is not declared", file, track)
			}
			switch get(e, 9).value {
			case 1:
				if open[track] || at < ended[track] {
					t.Fatalf("%s: slices of %q overlap", file, names[track])
				}
				open[track] = true
				slicesOf++
			case 2:
				if !open[track] {
					t.Fatalf("%s: a slice of %q ends that did not begin", file, names[track])
				}
				open[track], ended[track] = false, at
			case 4:
				last[track] = int64(get(e, 30).value)
				most[track] = max(most[track], last[track])
			}
		}
		for track, is := range open {
			if is {
				t.Errorf("%s: a slice of %q does not end", file, names[track])
			}
		}
		for i := range r.Devices {
			tl := r.Devices[i].Timeline
			if tl.Trace.Len() > 0 && slicesOf == 0 {
				t.Errorf("%s: no slices", file)
			}
			for track, name := range names {
				want, peak := int64(-1), int64(0)
				switch name {
				case "reserved":
					want, peak = tl.Final.Reserved, tl.PeakReserved.Bytes
				case "active":
					want, peak = tl.Final.Active, tl.PeakActive.Bytes
				case "allocated":
					want, peak = tl.Final.Allocated, tl.PeakAllocated.Bytes
				}
				if want >= 0 && len(r.Devices) == 1 && (last[track] != want || most[track] != peak) {
					t.Errorf("%s: %s ends at %d, at most %d; want %d and %d", file, name, last[track], most[track], want, peak)
				}
			}
		}
	}
}

// TestTables holds that the manual tells of each column with its type, in order, and that rows are whole.
func TestTables(t *testing.T) {
	manual, err := os.ReadFile("../../cmd/snapana/manual/export.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][][2]string{}
	table := ""
	for line := range strings.Lines(string(manual)) {
		if m := regexp.MustCompile(`^\*\*(\w+)\*\*: `).FindStringSubmatch(line); m != nil {
			table = m[1]
		} else if m := regexp.MustCompile("^\\| `(\\w+)` \\| (\\w+) \\|").FindStringSubmatch(line); m != nil {
			told[table] = append(told[table], [2]string{m[1], m[2]})
		}
	}
	r := analyzed(t, "fragmentation.pickle")
	all := export.Formats()
	f := &all[0]
	dir := filepath.Join(t.TempDir(), export.Partition("a run/1", 3))
	if err := export.WriteTables(t.Context(), dir, r, f); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("run=a%20run%2F1", "rank=3"); !strings.HasSuffix(dir, want) {
		t.Errorf("tables in %s, want %s", dir, want)
	}
	d := r.Devices[0].Timeline
	rows := map[string]int64{
		"allocations": int64(len(d.Lives)), "devices": 1, "events": int64(d.Trace.Len()), "findings": int64(len(r.Verdict.Findings)),
		"samples": int64(len(d.Curve)), "segments": -1, "stacks": -1, "steps": int64(len(r.Devices[0].Steps.Steps)),
	}
	for name, want := range rows {
		data, err := os.ReadFile(filepath.Join(dir, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if want >= 0 && file.NumRows() != want {
			t.Errorf("%s: %d rows, want %d", name, file.NumRows(), want)
		}
		var got [][2]string
		for _, column := range file.Root().Columns() {
			kind := map[string]string{"INT32": "int32", "INT64": "int64", "INT(32,true)": "int32", "INT(64,true)": "int64",
				"INT(64,false)": "uint64", "STRING": "string", "BOOLEAN": "bool"}[column.Type().String()]
			got = append(got, [2]string{column.Name(), kind})
		}
		if !slices.Equal(got, told[name]) {
			t.Errorf("%s has %v, the manual tells of %v", name, got, told[name])
		}
	}
	if len(told) != len(rows) {
		t.Errorf("the manual tells of %d tables, there are %d", len(told), len(rows))
	}
}

// TestSame holds that equal input gives equal bytes.
func TestSame(t *testing.T) {
	for _, name := range []string{"pprof", "folded", "perfetto"} {
		a, b := analyzed(t, "ghost.pickle"), analyzed(t, "ghost.pickle")
		if !bytes.Equal(written(t, name, a, export.Peak), written(t, name, b, export.Peak)) {
			t.Errorf("%s differs from run to run", name)
		}
	}
}

// TestStacks holds that the stacks of allocations and events are all in their table.
func TestStacks(t *testing.T) {
	type row struct {
		Stack *int32 `parquet:"stack_id,optional"`
	}
	type frame struct {
		Stack int32 `parquet:"stack_id"`
	}
	r := analyzed(t, "fragmentation.pickle")
	dir := filepath.Join(t.TempDir(), "of")
	f := export.Formats()[0]
	if err := export.WriteTables(t.Context(), dir, r, &f); err != nil {
		t.Fatal(err)
	}
	frames, err := parquet.ReadFile[frame](filepath.Join(dir, "stacks.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[int32]bool{}
	for _, v := range frames {
		known[v.Stack] = true
	}
	for _, name := range []string{"allocations", "events", "segments"} {
		rows, err := parquet.ReadFile[row](filepath.Join(dir, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range rows {
			if v.Stack != nil && !known[*v.Stack] {
				t.Fatalf("%s: row %d has stack %d, which is not in the table", name, i, *v.Stack)
			}
		}
	}
}

// TestNulls holds that what is not known is null: times of events that there are not, and phases outside of any.
func TestNulls(t *testing.T) {
	r := analyzed(t, "fragmentation.pickle")
	dir := t.TempDir()
	f := export.Formats()[0]
	if err := export.WriteTables(t.Context(), filepath.Join(dir, "of"), r, &f); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Born      *int64  `parquet:"born_event,optional"`
		BornTime  *int64  `parquet:"born_us,optional"`
		Freed     *int64  `parquet:"freed_event,optional"`
		FreedTime *int64  `parquet:"freed_us,optional"`
		Phase     *string `parquet:"phase,optional"`
		Module    *string `parquet:"module,optional"`
	}
	rows, err := parquet.ReadFile[row](filepath.Join(dir, "of", "allocations.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	alive := 0
	for i, v := range rows {
		if (v.Born == nil) != (v.BornTime == nil) || (v.Freed == nil) != (v.FreedTime == nil) || v.Phase != nil ||
			v.Module != nil && *v.Module == "" {
			t.Fatalf("row %d: %+v", i, v)
		}
		if v.Freed == nil {
			alive++
		}
	}
	if alive == 0 || alive == len(rows) {
		t.Errorf("%d of %d allocations live at the end", alive, len(rows))
	}
}
