package report_test

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/mutate"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// FuzzPipeline runs all of snapana on valid snapshots that were edited, see package mutate: from the pickle to
// report.json, text and page. Nothing fails, what is written is what the schema says, and every sum adds up.
func FuzzPipeline(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		f.Add(program(rng, byte(i), i%12))
	}
	f.Fuzz(func(t *testing.T, data []byte) { pipeline(t, data) })
}

// program is a list of edits of a snapshot of a shape.
func program(rng *rand.Rand, shape byte, edits int) []byte {
	data := []byte{shape, byte(rng.Uint32()), byte(rng.Uint32())}
	for range 10 * edits {
		data = append(data, byte(rng.Uint32()))
	}
	return data
}

// TestSurvive holds how many of the edited snapshots get past the parser: most, or fuzzing would try the parser only.
func TestSurvive(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	survived, n := 0, 200
	for i := range n {
		if pipeline(t, program(rng, byte(i), 1+i%10)) {
			survived++
		}
	}
	if survived < n*80/100 {
		t.Errorf("%d of %d get past the parser", survived, n)
	}
	t.Logf("%d of %d get past the parser", survived, n)
}

var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	const name = "snapana.report/1"
	var b bytes.Buffer
	if _, err := json.WriteSchema(&b, name); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// pipeline analyzes what data says, and reports whether it is a snapshot.
func pipeline(t *testing.T, data []byte) bool {
	var file bytes.Buffer
	if err := pickler.Write(&file, mutate.Snapshot(data), pickler.Options{Protocol: 4}); err != nil {
		return false // what no pickle can say
	}
	s, err := load.Read(context.Background(), &file, "edited.pickle", load.Options{})
	if err != nil {
		var format *snapshot.FormatError
		if !errors.As(err, &format) {
			t.Fatalf("an error of no class: %v", err)
		}
		return false
	}
	some := byte(len(data)) // what is dear is done for some
	for _, b := range data {
		some += b
	}
	r, err := analyze.Run(context.Background(), s, analyze.Options{NoReplay: some%16 != 0})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case some%8 < 2:
		sums(t, r, some%16 == 1)
	case some%8 == 2:
		words(t, r, some%32 == 2)
	}
	return true
}

// sums writes report.json, and holds it against its schema, if formal, and what it says against itself.
func sums(t *testing.T, r *analyze.Result, formal bool) {
	t.Helper()
	var out bytes.Buffer
	if err := json.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	if formal {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		form, err := schema()
		if err != nil {
			t.Fatal(err)
		}
		if err := form.Validate(doc); err != nil {
			t.Errorf("not by the schema: %.500v", err)
		}
	}
	var rep document
	if err := stdjson.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	for i := range rep.Devices {
		rep.Devices[i].check(t)
	}
}

// words prints what people read, and the page too: nothing in it drives a terminal or is markup.
func words(t *testing.T, r *analyze.Result, page bool) {
	t.Helper()
	var out bytes.Buffer
	for name, print := range map[string]func() error{
		"verdict":  func() error { return text.Verdict(&out, r, text.Options{}) },
		"summary":  func() error { return text.Summary(&out, r, text.Options{}) },
		"ghosts":   func() error { return text.Ghosts(&out, r, text.Options{}) },
		"markdown": func() error { return text.Markdown(&out, r) },
	} {
		out.Reset()
		if err := print(); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(out.Bytes()) {
			t.Errorf("%s is not UTF-8", name)
		}
		for _, r := range out.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%s has %U", name, r)
			}
		}
	}
	if !page {
		return
	}
	out.Reset()
	if err := html.Write(&out, r, html.DefaultBytes); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<script>alert") {
		t.Error("a name is markup")
	}
}

// document is what of report.json has sums.
type document struct{ Devices []device }

type totals struct{ Reserved, Active, Allocated, Requested int64 }

type free struct{ Releasable, Hard, Soft, Stream, Pending int64 }

type device struct {
	Device, Events int
	Initial, Final totals
	Peaks          *struct{ Reserved, Active struct{ Bytes int64 } }
	Curve          []struct {
		First, Last  int
		At, Min, Max totals
	}
	Moments []struct {
		Name   string
		Event  int
		Totals totals
		Stacks []struct{ Count, Bytes int64 }
		Uses   []struct {
			Category          string
			Count, Bytes      int64
			High, Medium, Low int64
		}
		Fragmentation struct {
			Reserved, Active, Releasable, Split int64
			Segments                            int
			Classes                             free
			Groups                              []struct {
				Reserved, Active, Pending, Releasable, Split int64
				Segments                                     int
			}
			Holes []struct{ From, Count, Bytes int64 }
		}
	}
	Checks struct{ Inconsistent int64 }
}

// check holds what has to be equal, whatever the file says.
func (d *device) check(t *testing.T) {
	t.Helper()
	equal := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("GPU %d: %s: %d, want %d", d.Device, what, got, want)
		}
	}
	least := func(what string, got, least int64) {
		t.Helper()
		if got < least {
			t.Errorf("GPU %d: %s: %d, want at least %d", d.Device, what, got, least)
		}
	}
	for name, sum := range map[string]totals{"initial": d.Initial, "final": d.Final} {
		least(name+" reserved", sum.Reserved, 0)
		least(name+" active", sum.Active, 0)
		least(name+" allocated", sum.Allocated, 0)
		least(name+" active beside allocated", sum.Active, sum.Allocated)
		if d.Checks.Inconsistent == 0 {
			least(name+" reserved beside active", sum.Reserved, sum.Active)
		}
	}
	next := 0
	peak := d.Initial
	for _, c := range d.Curve {
		equal("first event of a point of the curve", int64(c.First), int64(next))
		next = c.Last + 1
		for _, v := range [][3]int64{{c.Min.Reserved, c.At.Reserved, c.Max.Reserved},
			{c.Min.Active, c.At.Active, c.Max.Active}, {c.Min.Allocated, c.At.Allocated, c.Max.Allocated}} {
			least("least of a point", v[0], 0)
			least("a point", v[1], v[0])
			least("most of a point", v[2], v[1])
		}
		peak.Reserved, peak.Active = max(peak.Reserved, c.Max.Reserved), max(peak.Active, c.Max.Active)
	}
	if d.Peaks != nil {
		equal("events in the curve", int64(next), int64(d.Events))
		least("peak of reserved", d.Peaks.Reserved.Bytes, peak.Reserved)
		least("peak of active", d.Peaks.Active.Bytes, peak.Active)
		if d.Checks.Inconsistent == 0 { // else it may lie within an event
			equal("peak of reserved", d.Peaks.Reserved.Bytes, peak.Reserved)
			equal("peak of active", d.Peaks.Active.Bytes, peak.Active)
		}
	}
	for i := range d.Moments {
		m := &d.Moments[i]
		f := &m.Fragmentation
		var bytes, count, uses, sure int64
		for _, s := range m.Stacks {
			bytes, count = bytes+s.Bytes, count+s.Count
		}
		equal(m.Name+": stacks", bytes, m.Totals.Active)
		for _, u := range m.Uses {
			uses, sure, count = uses+u.Bytes, sure+u.High+u.Medium+u.Low, count-u.Count
			if u.Category != "unknown" {
				equal(m.Name+": confidences of "+u.Category, u.High+u.Medium+u.Low, u.Bytes)
			}
		}
		equal(m.Name+": uses", uses, m.Totals.Active)
		equal(m.Name+": blocks of stacks beyond those of uses", count, 0)
		equal(m.Name+": reserved", f.Reserved, m.Totals.Reserved)
		equal(m.Name+": segments", f.Reserved, f.Active+f.Releasable+f.Split)
		equal(m.Name+": classes", f.Classes.Releasable+f.Classes.Hard+f.Classes.Soft+f.Classes.Stream,
			f.Releasable+f.Split)
		least(m.Name+": active, of which some may be outside of segments", m.Totals.Active, f.Active)
		var holes, reserved, active, pending, released, split int64
		segments := 0
		for _, h := range f.Holes {
			least(m.Name+": a hole", h.Bytes, h.Count*h.From)
			holes += h.Bytes
		}
		equal(m.Name+": holes", holes, f.Releasable+f.Split)
		for _, g := range f.Groups {
			reserved, active, pending = reserved+g.Reserved, active+g.Active, pending+g.Pending
			released, split, segments = released+g.Releasable, split+g.Split, segments+g.Segments
		}
		equal(m.Name+": reserved of groups", reserved, f.Reserved)
		equal(m.Name+": active of groups", active, f.Active)
		equal(m.Name+": pending of groups", pending, f.Classes.Pending)
		equal(m.Name+": releasable of groups", released, f.Releasable)
		equal(m.Name+": split of groups", split, f.Split)
		equal(m.Name+": segments of groups", int64(segments), int64(f.Segments))
		for _, n := range []int64{f.Releasable, f.Split, f.Active, f.Classes.Pending} {
			least(m.Name+": a sum", n, 0)
		}
	}
}
