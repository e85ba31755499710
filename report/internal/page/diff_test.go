package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/fixtures/analyzetest"
	reportjson "github.com/snapana/snapana/report/json"
)

// rows are those of a table, as JSON has them.
type rows []struct {
	Name  string     `json:"name"`
	A     int64      `json:"a"`
	B     int64      `json:"b"`
	State diff.State `json:"state"`
}

// TestDifferenceIsThatOfJSON holds that the page has the figures of the JSON, and that its pairs sum up to the rows of each
// of its tables and to the sides, to the byte.
func TestDifferenceIsThatOfJSON(t *testing.T) {
	side := func(name, at string) *footprint.Footprint { return analyzetest.Footprint(t, name, at) }
	moments := analyzetest.Footprints(t, "leak", "step:1", "step:5")
	for name, r := range map[string]*diff.Result{
		"sequence": diff.Compare(side("base", "peak"), side("sequence", "peak")),
		"flash":    diff.Compare(side("base", "peak"), side("flash", "peak")),
		"moved":    diff.Compare(side("base", "peak"), side("moved", "peak")),
		"moments":  diff.Compare(moments[0], moments[1]),
		"runs": diff.CompareRuns([]*footprint.Footprint{side("base", "peak"), side("moved", "peak")},
			[]*footprint.Footprint{side("ema", "peak")}),
	} {
		var b bytes.Buffer
		if err := reportjson.WriteDiff(&b, r); err != nil {
			t.Fatal(err)
		}
		var want struct {
			Delta  int64           `json:"delta"`
			Tables map[string]rows `json:"tables"`
		}
		if err := json.Unmarshal(b.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		text, _, err := PackDifference(r, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var d Difference
		u := &unpacked{body: inflate(t, text, &d)}
		if d.Same != (name == "moments") {
			t.Errorf("%s: one trace: %v", name, d.Same)
		}
		a, c := u.column(t, d.Pairs.A), u.column(t, d.Pairs.B)
		if got := sum(c) - sum(a); got != want.Delta || sum(a) != r.A.Totals.Active {
			t.Errorf("%s: the pairs differ by %d bytes, want %d", name, got, want.Delta)
		}
		for _, table := range d.Tables {
			inJSON := map[string]string{"category,site": "category_site"}[table.Kind]
			if inJSON == "" {
				inJSON = table.Kind
			}
			var got rows
			names, rowA, rowB := u.column(t, table.Name), u.column(t, table.A), u.column(t, table.B)
			sumA, sumB := make([]int64, len(names)+1), make([]int64, len(names)+1)
			for i, row := range u.column(t, table.OfA) {
				sumA[row] += a[i]
			}
			for i, row := range u.column(t, table.OfB) {
				sumB[row] += c[i]
			}
			got = append(got, make(rows, len(names))...)
			for i := range names {
				got[i].Name, got[i].A, got[i].B, got[i].State = d.Strings[names[i]], rowA[i], rowB[i], table.State[i]
			}
			if !slices.Equal(got, want.Tables[inJSON]) || len(got) == 0 {
				t.Errorf("%s, by %s: the page has\n%v, the JSON\n%v", name, table.Kind, got, want.Tables[inJSON])
			}
			if !slices.Equal(sumA[1:], rowA) || !slices.Equal(sumB[1:], rowB) {
				t.Errorf("%s, by %s: pairs sum up to %v and %v, rows are %v and %v", name, table.Kind, sumA, sumB, rowA, rowB)
			}
		}
	}
}

func sum(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}

// TestCoursesAreOfPairs holds that the course of a pair has the pair's bytes at the moment that is compared.
func TestCoursesAreOfPairs(t *testing.T) {
	r := diff.Compare(analyzetest.Footprint(t, "base", "peak"), analyzetest.Footprint(t, "ema", "end"))
	text, _, err := PackDifference(r, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var d Difference
	u := &unpacked{body: inflate(t, text, &d)}
	for k, c := range []struct{ bytes, course Column }{{d.Pairs.A, d.Pairs.CourseA}, {d.Pairs.B, d.Pairs.CourseB}} {
		side, bytes := d.Sides[k], u.column(t, c.bytes)
		event, active, courses := u.column(t, side.Event), u.column(t, side.Active), u.column(t, side.Courses)
		at := slices.Index(event, int64(side.At))
		if at < 0 || active[at] != sum(bytes) {
			t.Fatalf("side %d: no sample of event %d with %d bytes", k, side.At, sum(bytes))
		}
		for i, row := range u.column(t, c.course) {
			if bytes[i] == 0 && row == 0 {
				continue
			}
			if row == 0 || courses[(int(row)-1)*len(event)+at] != bytes[i] {
				t.Errorf("side %d: pair %d has %d bytes, its course %d", k, i, bytes[i], row)
			}
		}
	}
}

// TestDifferenceIsBounded holds that a difference of very many stacks keeps its sums in a page of bounded size.
func TestDifferenceIsBounded(t *testing.T) {
	a, b := many(0), many(1)
	r := diff.Compare(a, b)
	for _, size := range []int{1 << 20, 200 << 10} {
		text, d, err := PackDifference(r, size)
		if err != nil || text == nil || len(text) > size {
			t.Fatalf("%d bytes of %d: %v", len(text), size, err)
		}
		u := &unpacked{body: inflate(t, text, &Difference{})}
		if x, y := sum(u.column(t, d.Pairs.A)), sum(u.column(t, d.Pairs.B)); x != a.Totals.Active || y != b.Totals.Active {
			t.Errorf("pairs sum up to %d and %d bytes, want %d and %d", x, y, a.Totals.Active, b.Totals.Active)
		}
		for _, table := range d.Tables {
			if x, y := sum(u.column(t, table.A)), sum(u.column(t, table.B)); x != a.Totals.Active || y != b.Totals.Active {
				t.Errorf("by %s: rows sum up to %d and %d bytes", table.Kind, x, y)
			}
		}
	}
	if text, _, err := PackDifference(r, 1000); text != nil || err != nil {
		t.Errorf("%d bytes fit into 1000: %v", len(text), err)
	}
}

// many is a footprint of more stacks than a page shows.
func many(more int64) *footprint.Footprint {
	f := &footprint.Footprint{Name: "many.pickle", At: "peak", HasHistory: true, Top: -1,
		Course: &footprint.Course{Events: 300}}
	for i := range 300 {
		f.Course.Samples = append(f.Course.Samples, footprint.Sample{Span: footprint.Span{First: i, Last: i}, Event: i})
	}
	for i := range 2*maxPairs + 10 {
		g := footprint.Group{Stack: int32(i), Site: fmt.Sprintf("model.py:%d forward", i), Known: true}
		g.Rounded = 512 * (int64(i%7)*more + int64(i) + 1)
		g.Requested, g.Count = g.Rounded, 1
		g.Sizes = []footprint.Size{{Requested: g.Rounded, Rounded: g.Rounded, Count: 1}}
		f.Frames = append(f.Frames, attribution.Frame{File: "model.py", Name: "forward", Line: int32(i), Origin: frames.User})
		f.Stacks = append(f.Stacks, []int32{int32(i)})
		f.Groups = append(f.Groups, g)
		f.Totals.Active += g.Rounded
		if i < 2000 {
			course := make([]int64, 300)
			for k := range course {
				course[k] = int64((i*k*7919)%1000) << 9
			}
			f.Course.Groups = append(f.Course.Groups, course)
		}
	}
	return f
}
