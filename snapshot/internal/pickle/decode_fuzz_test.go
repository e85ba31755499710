package pickle_test

import (
	"bytes"
	"errors"
	"io"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/hostile"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/internal/pickle"
)

// classes are those of which every rejection must be one.
var classes = []error{snapshot.ErrTruncated, snapshot.ErrRefused, snapshot.ErrLimit, snapshot.ErrCorrupt,
	snapshot.ErrNotSnapshot}

func isClassed(err error) bool {
	for _, c := range classes {
		if errors.Is(err, c) {
			return true
		}
	}
	return false
}

// allocated is how many bytes the process has ever asked for.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// maxAlloc is how much decoding n bytes may allocate.
func maxAlloc(n int) uint64 { return 16<<20 + 400*uint64(n) }

// small is a writer that fails when too much comes.
type small struct {
	data []byte
	max  int
}

func (s *small) Write(p []byte) (int, error) {
	if len(s.data)+len(p) > s.max {
		return 0, io.ErrShortWrite
	}
	s.data = append(s.data, p...)
	return len(p), nil
}

// seeds gives small snapshots of all shapes and the hostile files that are small, those whose
// name ends as asked.
func seeds(f *testing.F, suffix string) {
	for i, shape := range build.Shapes() {
		o := shape.Options
		o.Events, o.Live, o.Stacks = 12, 4, 3
		o.Ring = min(o.Ring, 10)
		snap := build.Random(uint64(i), o)
		for _, opt := range []pickler.Options{{Protocol: i % 6}, {CPP: true}} {
			var b bytes.Buffer
			var err error
			if suffix == ".json" {
				err = snap.WriteJSON(&b)
			} else {
				err = snap.Write(&b, opt)
			}
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b.Bytes())
		}
	}
	for _, c := range hostile.All() {
		b := small{max: 4 << 10}
		if strings.HasSuffix(c.Name, suffix) && c.Write(&b) == nil {
			f.Add(b.data)
		}
	}
}

func FuzzDecode(f *testing.F) {
	seeds(f, ".pickle")
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, pickle.Decode) })
}

func FuzzJSON(f *testing.F) {
	seeds(f, ".json")
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, pickle.DecodeJSON) })
}

type decoder func(io.Reader, pickle.Options) (*snapshot.Snapshot, pickle.Info, error)

// fuzz decodes data whole, in small reads, with its size known, and partially: the results must
// agree, rejections be classed, memory bounded, and nothing in a snapshot refer to what is not
// there.
func fuzz(t *testing.T, data []byte, decode decoder) {
	before := allocated()
	s, info, err := decode(bytes.NewReader(data), pickle.Options{})
	if used := allocated() - before; used > maxAlloc(len(data)) {
		t.Errorf("%d bytes allocated for %d", used, len(data))
	}
	want := outcome(t, data, s, info, err)

	s, info, err = decode(iotest.HalfReader(bytes.NewReader(data)), pickle.Options{})
	if got := outcome(t, data, s, info, err); got != want {
		t.Errorf("small reads give another result:\n%.500s\nwant\n%.500s", got, want)
	}
	// With the size known a length that is too large shows earlier, as another class perhaps.
	s, info, err = decode(bytes.NewReader(data), pickle.Options{Size: int64(len(data))})
	if got := outcome(t, data, s, info, err); got != want && (err == nil || s != nil || !isClassed(err)) {
		t.Errorf("the known size gives another result:\n%.500s\nwant\n%.500s", got, want)
	}

	before = allocated()
	part, _, perr := decode(bytes.NewReader(data), pickle.Options{Partial: true})
	if used := allocated() - before; used > maxAlloc(len(data)) {
		t.Errorf("%d bytes allocated for %d, with Partial", used, len(data))
	}
	if (perr == nil) != !strings.HasPrefix(want, "error ") {
		t.Errorf("with Partial the error is %v, without it %.300s", perr, want)
	}
	if perr != nil && !isClassed(perr) {
		t.Errorf("with Partial the error %v has no class", perr)
	}
	if part != nil {
		verify(t, part)
	} else if perr == nil {
		t.Error("with Partial neither a snapshot nor an error")
	}
}

// outcome is the result of decoding as text.
func outcome(t *testing.T, data []byte, s *snapshot.Snapshot, info pickle.Info, err error) string {
	t.Helper()
	if err == nil {
		if s == nil {
			t.Fatal("neither a snapshot nor an error")
		}
		if info.Bytes <= 0 || info.Bytes > int64(len(data)) {
			t.Errorf("%d bytes read of %d", info.Bytes, len(data))
		}
		verify(t, s)
		return dump(s)
	}
	var fe *snapshot.FormatError
	if !errors.As(err, &fe) || !isClassed(err) {
		t.Fatalf("the error %v (%T) is not a classed FormatError", err, err)
	}
	if s != nil {
		t.Error("a snapshot and an error without Partial")
	}
	if fe.Offset < -1 || fe.Offset > int64(len(data)) {
		t.Errorf("an error at byte %d of %d: %v", fe.Offset, len(data), err)
	}
	if msg := err.Error(); strings.ContainsAny(msg, "\n\r") {
		t.Errorf("an error of several lines: %q", msg)
	}
	return "error " + err.Error()
}

// verify checks that every reference in a snapshot leads somewhere.
func verify(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	stack := func(id snapshot.StackID, where string) {
		if id < 0 || int(id) > s.Stacks.Len() {
			t.Fatalf("%s has stack %d of %d", where, id, s.Stacks.Len())
		}
	}
	text := func(id snapshot.StringID, where string) {
		if id < 0 || int(id) > s.Strings.Len() {
			t.Fatalf("%s has string %d of %d", where, id, s.Strings.Len())
		}
	}
	within := func(r snapshot.Range, n int, where string) {
		if r.Start < 0 || r.Len < 0 || int(r.Start)+int(r.Len) > n {
			t.Fatalf("%s has the range %v of %d rows", where, r, n)
		}
	}
	for id := range s.Stacks.Len() {
		for _, frame := range s.Stacks.Get(snapshot.StackID(id + 1)) {
			if frame <= 0 || int(frame) > s.Frames.Len() {
				t.Fatalf("stack %d has frame %d of %d", id+1, frame, s.Frames.Len())
			}
		}
	}
	for id := range s.Frames.Len() {
		fr := s.Frames.Get(snapshot.FrameID(id + 1))
		text(fr.File, "frame")
		text(fr.Name, "frame")
		if fr.FX < 0 || int(fr.FX) > s.Frames.FX.Len() {
			t.Fatalf("frame %d has extras %d of %d", id+1, fr.FX, s.Frames.FX.Len())
		}
	}
	for i := range s.Segments {
		g := &s.Segments[i]
		within(g.Blocks, len(s.Blocks), "segment")
		stack(g.Stack, "segment")
		if g.Kind > snapshot.KindLarge || int(g.Stream) >= s.Streams.Len() {
			t.Fatalf("segment %d is of kind %d, on stream %d of %d", i, g.Kind, g.Stream, s.Streams.Len())
		}
	}
	for i := range s.Blocks {
		within(s.Blocks[i].History, len(s.History), "block")
		stack(s.Blocks[i].Stack, "block")
	}
	for i := range s.History {
		stack(s.History[i].Stack, "history")
	}
	for _, traces := range [][]snapshot.Trace{s.Traces, s.HostTraces} {
		for _, tr := range traces {
			for i := range tr.Len() {
				e := tr.At(i)
				stack(e.Stack, "event")
				if e.Action >= snapshot.NumActions || int(e.Stream) >= s.Streams.Len() ||
					int(e.Label) > s.Labels.Len() {
					t.Fatalf("event %d is %+v", i, e)
				}
				l := s.Labels.Get(e.Label)
				for _, id := range []snapshot.StringID{l.CompileContext, l.UserMetadata, l.InternalMetadata, l.Category,
					l.ForwardFrames, l.CppFrames, l.Action} {
					text(id, "label")
				}
			}
		}
	}
	for i := range s.Annotations {
		text(s.Annotations[i].Name, "annotation")
	}
	for i := range s.HostSegments {
		stack(s.HostSegments[i].Stack, "host segment")
	}
}
