package pickle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/internal/pickle"
)

// dialects are the ways to write a snapshot.
var dialects = map[string]func(io.Writer, any) error{
	"protocol 0": func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{Protocol: 0}) },
	"protocol 1": func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{Protocol: 1}) },
	"protocol 2": func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{Protocol: 2}) },
	"protocol 3": func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{Protocol: 3}) },
	"protocol 4": func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{Protocol: 4}) },
	"protocol 5": func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{Protocol: 5}) },
	"C++":        func(w io.Writer, v any) error { return pickler.Write(w, v, pickler.Options{CPP: true}) },
	"JSON":       pickler.WriteJSON,
}

func written(t *testing.T, dialect string, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := dialects[dialect](&b, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(dialect string, data []byte, opt pickle.Options) (*snapshot.Snapshot, error) {
	decode := pickle.Decode
	if dialect == "JSON" {
		decode = pickle.DecodeJSON
	}
	s, _, err := decode(bytes.NewReader(data), opt)
	return s, err
}

// TestCut cuts small snapshots after every byte, or in a run that is not full after every seventh and
// after each of the last 50. Each piece is refused as cut off, not past its end; with Partial it gives
// what came before, and never less than a shorter piece gave.
func TestCut(t *testing.T) {
	step := 7
	if os.Getenv("SNAPANA_FULL") != "" {
		step = 1
	}
	// Nearly nothing stays alive, so that the collector would run for every few decoders.
	before := debug.SetGCPercent(1600)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for dialect := range dialects {
		for _, torch := range []int{206, 113} {
			if testing.Short() &&
				(torch != 206 || dialect != "protocol 0" && dialect != "protocol 4" && dialect != "C++") {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", dialect, torch), func(t *testing.T) {
				t.Parallel()
				data := written(t, dialect, build.Run(build.Options{Torch: torch, Devices: 2,
					NoSettings: dialect != "protocol 4"}, smallProgram).Tree())
				whole, err := decode(dialect, data, pickle.Options{})
				if err != nil {
					t.Fatal(err)
				}
				want := count(whole)
				var last content
				pieces, kept := 0, 0
				for n := range len(data) {
					if n%step != 0 && n < len(data)-50 {
						continue
					}
					pieces++
					_, err := decode(dialect, data[:n], pickle.Options{})
					var fe *snapshot.FormatError
					if !errors.As(err, &fe) || !errors.Is(err, snapshot.ErrTruncated) {
						t.Fatalf("cut after %d of %d bytes: %v", n, len(data), err)
					}
					if fe.Offset < 0 || fe.Offset > int64(n) {
						t.Fatalf("cut after %d bytes: the error is at %d", n, fe.Offset)
					}
					part, err := decode(dialect, data[:n], pickle.Options{Partial: true})
					if !errors.Is(err, snapshot.ErrTruncated) {
						t.Fatalf("cut after %d bytes, with Partial: %v", n, err)
					}
					if part == nil {
						if kept > 0 {
							t.Fatalf("cut after %d bytes: nothing is kept, of less there was", n)
						}
						continue
					}
					kept++
					verify(t, part)
					got := count(part)
					if got.less(last) || want.less(got) {
						t.Fatalf("cut after %d bytes: %+v kept, before that %+v, of %+v", n, got, last, want)
					}
					last = got
				}
				if kept < pieces/2 {
					t.Errorf("only %d of %d pieces gave anything", kept, pieces)
				}
				if !last.full(want) {
					t.Errorf("all but the last byte gave %+v of %+v", last, want)
				}
			})
		}
	}
}

// smallProgram leaves little to cut, of every kind.
func smallProgram(d *build.Device) {
	d.Stack = build.NewStack("a.py:1:f", "a.py:9:<module>")
	a := d.Alloc(1000)
	d.Annotate("step", func() {
		d.Stack = build.NewStack("a.py:2:g", "a.py:9:<module>")
		d.Alloc(3 << 20)
	})
	d.Stack = nil
	d.Free(a)
	d.Mark()
}

// content counts what is in a snapshot.
type content struct{ segments, blocks, events, annotations int }

func count(s *snapshot.Snapshot) content {
	c := content{segments: len(s.Segments), annotations: len(s.Annotations)}
	for i := range s.Segments {
		c.blocks += int(s.Segments[i].Blocks.Len)
	}
	for _, t := range s.Traces {
		c.events += t.Len()
	}
	return c
}

// less reports whether any part of c is below o's.
func (c content) less(o content) bool {
	return c.segments < o.segments || c.blocks < o.blocks || c.events < o.events || c.annotations < o.annotations
}

// full reports whether c is all of o.
func (c content) full(o content) bool { return c == o }

// TestDialectsAgree writes random snapshots in every dialect: all must read as the same.
func TestDialectsAgree(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	for seed := range uint64(rounds) {
		tree := randomSnapshot(rand.New(rand.NewPCG(seed, 5)))
		want := ""
		for _, dialect := range []string{"JSON", "protocol 0", "protocol 1", "protocol 2", "protocol 3", "protocol 4",
			"protocol 5", "C++"} {
			data := written(t, dialect, tree)
			s, err := decode(dialect, data, pickle.Options{})
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, dialect, err)
			}
			verify(t, s)
			got := dump(s) + extra(s)
			if want == "" {
				want = got
			}
			if line, a, b := firstDifference(got, want); line > 0 {
				t.Fatalf("seed %d: %s differs from JSON in line %d:\n got %.400s\nwant %.400s", seed, dialect, line,
					a, b)
			}
		}
	}
}

// extra prints what dump leaves out.
func extra(s *snapshot.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "shape %d\nsettings %+v\n", s.Shape, s.Settings)
	for _, u := range s.Unknown { // without the counts: JSON repeats what pickles share
		fmt.Fprintf(&b, "unknown %s %s\n", u.Where, u.Key)
	}
	for _, tr := range s.Traces {
		for i := range tr.Len() {
			e := tr.At(i)
			l := s.Labels.Get(e.Label)
			fmt.Fprintf(&b, "event %d %d %v %v %q %q\n", i, e.Has, l.Pool, l.HasPool, s.Strings.Get(l.ForwardFrames),
				s.Strings.Get(l.Category))
		}
	}
	for i := range s.Segments {
		fmt.Fprintf(&b, "segment %d %d\n", i, s.Segments[i].Has)
	}
	for i := range s.Blocks {
		fmt.Fprintf(&b, "block %d %d\n", i, s.Blocks[i].Has)
	}
	return b.String()
}

// randomSnapshot is a tree with the keys of a snapshot and values of any kind, some of them
// strange. Its numbers fit what all dialects can hold, and its dict keys are strings.
func randomSnapshot(rng *rand.Rand) any {
	g := &generator{rng: rng}
	for range 8 {
		g.frames = append(g.frames, g.dict(1, "name", "filename", "line", "fx_node_op"))
	}
	for range 5 {
		l := pickler.NewList()
		for range rng.IntN(5) {
			l.Append(g.frames[rng.IntN(len(g.frames))])
		}
		g.stacks = append(g.stacks, l)
	}
	list := func(most int, item func() any) *pickler.List {
		l := pickler.NewList()
		for range rng.IntN(most) {
			l.Append(item())
		}
		return l
	}
	event := func() any {
		return g.dict(2, "action", "addr", "size", "stream", "time_us", "frames", "compile_context", "user_metadata",
			"pool_id",
			"device_free", "forward_frames", "category")
	}
	top := pickler.NewDict("segments", list(6, func() any {
		d := g.dict(3, "total_size", "device", "address", "allocated_size", "active_size", "requested_size", "stream",
			"segment_type",
			"segment_pool_id", "is_expandable", "frames")
		d.Set("blocks", list(5, func() any {
			return g.dict(2, "state", "size", "address", "requested_size", "frames")
		}))
		return d
	}))
	traces := pickler.NewList()
	for range rng.IntN(4) {
		if rng.IntN(2) == 0 {
			traces.Append(list(30, event))
			continue
		}
		all := list(30, event).Items
		traces.Append(&pickler.Seq{Len: len(all), Items: func(yield func(any) bool) {
			for _, e := range all {
				if !yield(e) {
					return
				}
			}
		}})
	}
	top.Set("device_traces", traces)
	if rng.IntN(2) == 0 {
		top.Set("allocator_settings", pickler.NewDict("max_split_size", g.value(""),
			"expandable_segments", rng.IntN(2) == 0,
			"garbage_collection_threshold", 0.5, "roundup_power2_divisions", pickler.NewDict("1", 2, "2",
				rng.IntN(9)), "new", g.value("")))
	}
	if rng.IntN(2) == 0 {
		top.Set("external_annotations", list(6, func() any { return g.dict(1, "stage", "name", "device", "time_us") }))
	}
	if rng.IntN(5) == 0 {
		return pickler.NewDict("mine", g.value(""), "snapshot", top)
	}
	return top
}

type generator struct {
	rng    *rand.Rand
	frames []any
	stacks []any
}

// dict has the first must keys in any case and the others by chance, in random order behind
// them, and sometimes a key of its own.
func (g *generator) dict(must int, keys ...string) *pickler.Dict {
	d := pickler.NewDict()
	for _, k := range keys[:must] {
		d.Set(k, g.value(k))
	}
	rest := keys[must:]
	for _, i := range g.rng.Perm(len(rest)) {
		if g.rng.IntN(8) > 0 {
			d.Set(rest[i], g.value(rest[i]))
		}
	}
	if g.rng.IntN(20) == 0 {
		d.Set("strange", g.value(""))
	}
	return d
}

// value is what a key holds, or anything.
func (g *generator) value(key string) any {
	pick := func(words ...string) any { return words[g.rng.IntN(len(words))] }
	if g.rng.IntN(25) == 0 && key != "" {
		key = "" // something that does not belong there
	}
	switch key {
	case "action":
		return pick("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "snapshot",
			"brand_new")
	case "state":
		return pick("active_allocated", "active_pending_free", "inactive", "brand_new")
	case "stage":
		return pick("START", "END")
	case "segment_type":
		return pick("small", "large")
	case "frames":
		return g.stacks[g.rng.IntN(len(g.stacks))]
	case "pool_id", "segment_pool_id":
		return pickler.Tuple{g.rng.IntN(3), g.rng.IntN(3)}
	case "is_expandable":
		return g.rng.IntN(2) == 0
	case "compile_context":
		return pickler.Str{S: "N/A"}
	case "forward_frames":
		return pickler.NewList(pickler.Str{S: "one\n"}, &pickler.Str{S: "two"})
	case "name", "filename", "user_metadata", "category":
		return g.text()
	case "":
		switch g.rng.IntN(9) {
		case 0:
			return nil
		case 1:
			return g.text()
		case 2:
			return 0.25
		case 3:
			return pickler.NewList(1, "two", pickler.NewList())
		case 4:
			return pickler.Tuple{1, 2, 3}
		case 5:
			return pickler.NewDict()
		case 6:
			return pickler.NewDict("k", "v")
		case 7:
			return g.rng.IntN(2) == 0
		}
	}
	switch g.rng.IntN(6) {
	case 0:
		return g.rng.IntN(256)
	case 1:
		return -g.rng.IntN(1 << 20)
	case 2:
		return g.rng.Int64()
	case 3:
		return int64(math.MinInt64) + g.rng.Int64()
	default:
		return g.rng.IntN(1 << 31)
	}
}

func (g *generator) text() any {
	s := []string{"", "forward", "ünï\tcode 𝄞", `quote " and \ back`, "line\nbreak",
		strings.Repeat("long ", 60)}[g.rng.IntN(6)]
	if g.rng.IntN(2) == 0 {
		return s
	}
	return &pickler.Str{S: s}
}

// TestBigNumbers reads numbers beyond 63 and 64 bits, which the C++ writer and JSON have not.
func TestBigNumbers(t *testing.T) {
	huge := new(big.Int).Lsh(big.NewInt(1), 70)
	tree := func() any {
		event := pickler.NewDict("action", "alloc", "addr", uint64(1)<<63+512, "size", huge, "stream",
			uint64(math.MaxUint64), "time_us", 5)
		return pickler.NewDict("segments", pickler.NewList(),
			"device_traces", pickler.NewList(pickler.NewList(event, event)))
	}
	for dialect := range dialects {
		if dialect == "C++" {
			continue
		}
		s, err := decode(dialect, written(t, dialect, tree()), pickle.Options{})
		if err != nil {
			t.Fatal(dialect, err)
		}
		if len(s.Traces) != 1 || s.Traces[0].Len() != 2 {
			t.Fatalf("%s: traces %v", dialect, s.Traces)
		}
		e := s.Traces[0].At(1)
		if e.Addr != 1<<63+512 || s.Streams.Handle(e.Stream) != math.MaxUint64 || e.Size != 0 || e.Time != 5 {
			t.Errorf("%s: %+v on stream %x", dialect, e, s.Streams.Handle(e.Stream))
		}
	}
}

// A run of blanks is read once, however little of it comes at a time: reading it again after each
// byte would not end.
func TestJSONBlanks(t *testing.T) {
	text := `{"segments": [],` + strings.Repeat(" ", 1<<20) + `"device_traces": [[]]}`
	_, info, err := pickle.DecodeJSON(iotest.OneByteReader(strings.NewReader(text)), pickle.Options{})
	if err != nil || info.Bytes != int64(len(text)) {
		t.Errorf("%+v, error %v", info, err)
	}
}

// A frame's texts are cut where they are long: a path keeps its end, a name its beginning, whole characters, and all
// frames together have hardly more text than the file.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	frames := pickler.NewList(pickler.NewDict("name", long, "filename", "/a/"+long+"/train.py", "line", 1))
	for line := range 20_000 { // share two names
		frames.Append(pickler.NewDict("name", long[:4000], "filename", long[:1000], "line", line+2))
	}
	data := written(t, "protocol 4", pickler.NewDict("segments", pickler.NewList(), "device_traces", pickler.NewList(
		pickler.NewList(pickler.NewDict("action", "alloc", "addr", 1, "size", 1, "stream", 0, "frames", frames,
			"user_metadata", long)))))
	s, _, err := pickle.Decode(bytes.NewReader(data), pickle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for id := range s.Frames.Len() {
		f := s.Frames.Get(snapshot.FrameID(id + 1))
		file, name := s.Strings.Get(f.File), s.Strings.Get(f.Name)
		total += len(file) + len(name)
		if !utf8.ValidString(file) || !utf8.ValidString(name) {
			t.Fatalf("frame %d is cut within a character", id)
		}
		if id == 0 && (!strings.HasSuffix(file, "/train.py") || !strings.HasPrefix(file, "…") ||
			!strings.HasPrefix(name, "éé") || !strings.HasSuffix(name, "…") || len(file) > snapshot.MaxName ||
			len(name) > snapshot.MaxSymbol) {
			t.Errorf("file of %d bytes %.20q, name of %d bytes %.20q", len(file), file, len(name), name)
		}
	}
	if total > len(data)+8<<20 {
		t.Errorf("%d frames have %d bytes of text, in a file of %d", s.Frames.Len(), total, len(data))
	}
	if n := len(s.Strings.Get(s.Labels.Get(s.Traces[0].At(0).Label).UserMetadata)); n > snapshot.MaxName {
		t.Errorf("metadata of %d bytes", n)
	}
	if s.Clipped != 5 { // of two texts twice
		t.Errorf("%d texts were cut", s.Clipped)
	}
}
