package diff_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// take gives the footprint of the device with the first events, and fails without one.
func take(t *testing.T, s *snapshot.Snapshot, at string) *footprint.Footprint {
	t.Helper()
	f := takeOf(t, s, s.UsedDevices()[0], at)
	if f == nil && at != "end" {
		f = takeOf(t, s, s.UsedDevices()[0], "end") // it has no trace
	}
	if f == nil {
		t.Fatal("no moment ", at)
	}
	return f
}

// takeOf gives the footprint of a device, nil where it has no such moment.
func takeOf(t *testing.T, s *snapshot.Snapshot, device int, at string) *footprint.Footprint {
	t.Helper()
	tl := timeline.Build(s, device)
	found := steps.Find(s, tl)
	f, err := footprint.Take(&footprint.Subject{
		Name: s.Name, Snapshot: s, Timeline: tl, Uses: category.Find(s, tl, &found, nil), Steps: &found,
	}, at)
	if err != nil {
		return nil
	}
	return f
}

func recorded(t *testing.T, name string) *footprint.Footprint {
	t.Helper()
	s, err := load.Open(t.Context(), "../../fixtures/lab/pairs/recordings/"+name+".pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return take(t, s, "peak")
}

// TestChanges compares recordings of a program before and after a change that is known: the first cause is that change,
// and nothing else is of its size.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		kind   diff.Kind // of the first cause, "" for none at all
		ratio  float64
		sites  string // one of those of the first cause
		alone  int64  // percent of the bytes that may be without a partner
		others bool   // other causes are as large
	}{
		{a: "base", b: "base"},
		{a: "base", b: "batch", kind: diff.Batch, ratio: 2, sites: "model.py:34 forward"},
		{a: "base", b: "batch_half", kind: diff.Batch, ratio: 0.5, sites: "model.py:34 forward"},
		{a: "base", b: "sequence", kind: diff.Length, ratio: 2, sites: "model.py:20 forward"},
		{a: "base", b: "width", kind: diff.Width, ratio: 2, sites: "train.py:9 train"},
		{a: "base", b: "layers", kind: diff.Layers, ratio: 1.5, sites: "model.py:34 forward"},
		{a: "base", b: "words", kind: diff.Scale, ratio: 4, sites: "train.py:5 loss_of"},
		{a: "base", b: "half", kind: diff.Precision, ratio: 0.5, sites: "train.py:9 train"},
		{a: "base", b: "checkpoint", kind: diff.Checkpointing, sites: "model.py:34 forward", alone: 40},
		{a: "base", b: "sgd", kind: diff.Optimizer, sites: "train.py:16 train", alone: 25},
		{a: "base", b: "leak", kind: diff.Leak, sites: "model.py:34 forward", alone: 5},
		{a: "base", b: "outputs", kind: diff.Leak, sites: "train.py:8 loss_of", alone: 40},
		{a: "base", b: "dropout", kind: diff.Changed, sites: "model.py:35 forward"},
		{a: "base", b: "flash", kind: diff.Gone, sites: "model.py:21 forward", alone: 10, others: true},
		{a: "base", b: "ema", kind: diff.New, sites: "train.py:11 train", alone: 15},
		{a: "evaluated", b: "without_graph", kind: diff.Graph, sites: "model.py:34 forward", alone: 70},
		{a: "validated", b: "with_graph", kind: diff.Part, sites: "model.py:34 forward", alone: 100},
		{a: "with_graph", b: "summed", kind: diff.Count, sites: "model.py:34 forward", alone: 10},
		{a: "width", b: "wide_checkpoint", kind: diff.Checkpointing, sites: "model.py:34 forward", alone: 50},
		{a: "width", b: "wide_batch_half", kind: diff.Between, sites: "model.py:34 forward", alone: 50},
		// Code that moved and memory that did not.
		{a: "base", b: "moved"},
		{a: "base", b: "generated"},
	} {
		t.Run(c.a+" "+c.b, func(t *testing.T) {
			a, b := recorded(t, c.a), recorded(t, c.b)
			for _, turned := range []bool{false, true} {
				if turned {
					a, b = b, a
					c.ratio = 1 / max(c.ratio, 1e-9)
					if c.kind == diff.Gone {
						c.kind = diff.New
					} else if c.kind == diff.New {
						c.kind = diff.Gone
					}
				}
				r := diff.Compare(a, b)
				check(t, r)
				var first diff.Cause
				if len(r.Causes) > 0 {
					first = r.Causes[0]
				}
				if first.Kind != c.kind || first.Ratio != 0 && (first.Ratio < c.ratio*0.99 || first.Ratio > c.ratio*1.01) {
					t.Errorf("first is %q by %g, want %q by %g", first.Kind, first.Ratio, c.kind, c.ratio)
				}
				if c.sites != "" && !turned && !slices.ContainsFunc(first.Sites, func(s diff.Site) bool { return s.Site == c.sites }) {
					t.Errorf("sites %v lack %s", first.Sites, c.sites)
				}
				for _, x := range r.Causes[min(1, len(r.Causes)):] {
					if 2*abs(x.Bytes) > abs(first.Bytes) && !c.others {
						t.Errorf("%s explains %d bytes, %s no more than %d", x.Kind, x.Bytes, first.Kind, first.Bytes)
					}
				}
				left, all := r.Matched[diff.Alone], a.Totals.Active+b.Totals.Active
				if (left.A+left.B)*100 > c.alone*all {
					t.Errorf("%d and %d bytes have no partner, of %d", left.A, left.B, all)
				}
			}
		})
	}
}

// check holds for whatever is compared: nothing is left over.
func check(t *testing.T, r *diff.Result) {
	t.Helper()
	for _, by := range diff.Kinds() {
		var a, b, delta int64
		for _, row := range r.Table(by) {
			a, b, delta = a+row.A, b+row.B, delta+row.Delta
		}
		if a != r.A.Totals.Active || b != r.B.Totals.Active || delta != r.Delta() {
			t.Errorf("by %s: %d and %d bytes, want %d and %d", by, a, b, r.A.Totals.Active, r.B.Totals.Active)
		}
	}
	var causes, fromA, fromB int64
	for _, c := range r.Causes {
		causes += c.Bytes
		var uses, sites int64
		for _, u := range c.Uses {
			uses += u.Bytes
		}
		for _, s := range c.Sites {
			sites += s.Bytes
		}
		if uses != c.Bytes || sites != c.Bytes {
			t.Errorf("%s of %d bytes: %d by use, %d by site", c.Kind, c.Bytes, uses, sites)
		}
	}
	for _, m := range r.Matched {
		fromA, fromB = fromA+m.A, fromB+m.B
	}
	if causes != r.Delta() || fromA != r.A.Totals.Active || fromB != r.B.Totals.Active {
		t.Errorf("causes of %d bytes, want %d; matched %d and %d", causes, r.Delta(), fromA, fromB)
	}
}

// TestNothingLeft compares programs that have nothing in common but their stacks, and each with itself.
func TestNothingLeft(t *testing.T) {
	var all []*footprint.Footprint
	shapes := build.Shapes()
	for seed := range uint64(30) {
		shape := shapes[int(seed)%len(shapes)]
		shape.Options.Events = max(shape.Options.Events, 400)
		var b bytes.Buffer
		if err := build.Random(seed, shape.Options).Write(&b, pickler.Options{Protocol: 4}); err != nil {
			t.Fatal(err)
		}
		s, err := load.Read(t.Context(), &b, "random.pickle", load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.UsedDevices()) > 0 {
			all = append(all, take(t, s, []string{"end", "peak", "start"}[seed/uint64(len(shapes))%3]))
		}
	}
	if pairs := comparePairs(t, all); pairs < 200 {
		t.Errorf("only %d pairs", pairs)
	}
}

// comparePairs compares all pairs of footprints, each with itself too.
func comparePairs(t *testing.T, all []*footprint.Footprint) (n int) {
	t.Helper()
	for i, a := range all {
		for _, b := range all[i:] {
			r := diff.Compare(a, b)
			check(t, r)
			if a == b && (len(r.Causes) > 0 || r.Matched[diff.Exact].A != a.Totals.Active) {
				t.Errorf("%s differs from itself: %+v", a.Name, r.Matched)
			}
			if t.Failed() {
				t.Fatalf("%s and %s", a.Name, b.Name)
			}
			n++
		}
	}
	return n
}

// TestFilesOfOneOrigin compares real recordings, each with all others of its folder, each GPU at its peak and its end.
func TestFilesOfOneOrigin(t *testing.T) {
	const shared = "../../../shared/"
	origins := map[string][]string{
		"fixtures": {"../../fixtures/*.pickle", "../../fixtures/lab/pairs/recordings/*.pickle.xz"},
		"corpus":   {shared + "corpus/*/*.pickle", shared + "corpus/whatif/*/*.pickle"},
		"lab":      {shared + "lab/torch-2.14/dev26/*/*.pickle*"},
		"real":     {shared + "real/*.pickle"},
	}
	for origin, patterns := range origins {
		t.Run(origin, func(t *testing.T) {
			var all []*footprint.Footprint
			for _, pattern := range patterns {
				files, _ := filepath.Glob(pattern)
				for _, file := range files {
					s, err := load.Open(t.Context(), file, load.Options{})
					if err != nil {
						continue // one of those that are damaged on purpose
					}
					for _, device := range s.UsedDevices() {
						for _, at := range []string{"peak", "end"} {
							if f := takeOf(t, s, device, at); f != nil {
								all = append(all, f)
							}
						}
					}
				}
			}
			n := comparePairs(t, all)
			if t.Logf("%d pairs", n); n == 0 {
				t.Skip("needs the files of " + origin)
			}
		})
	}
}

// TestMoved changes the code of a recording as commits do that leave memory alone: every byte finds its partner.
func TestMoved(t *testing.T) {
	for name, move := range map[string]func(f *attribution.Frame){
		"lines below": func(f *attribution.Frame) {
			if f.File == "model.py" && f.Line > 20 {
				f.Line += 7
			}
		},
		"all lines": func(f *attribution.Frame) { f.Line += 3 },
		"file":      func(f *attribution.Frame) { f.File = strings.Replace(f.File, "model.py", "src/nets/gpt.py", 1) },
		"folder":    func(f *attribution.Frame) { f.File = "/builds/7/" + f.File },
		"function": func(f *attribution.Frame) {
			if f.Name == "loss_of" {
				f.Name = "compute_loss"
			}
		},
		"file and lines": func(f *attribution.Frame) {
			if f.File == "train.py" {
				f.File, f.Line = "main.py", f.Line*2
			}
		},
		"line removed": func(f *attribution.Frame) {
			if f.File == "model.py" && f.Line > 33 {
				f.Line--
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := recorded(t, "base"), recorded(t, "base")
			for i := range b.Frames {
				if name == "folder" && !strings.HasPrefix(b.Frames[i].File, "model") && !strings.HasPrefix(b.Frames[i].File, "train") {
					continue
				}
				move(&b.Frames[i])
			}
			r := diff.Compare(a, b)
			check(t, r)
			if m := r.Matched[diff.Alone]; m.A != 0 || m.B != 0 || len(r.Causes) > 0 {
				t.Errorf("unmatched %d and %d bytes, causes %+v", m.A, m.B, r.Causes)
			}
		})
	}
}

// TestMovedAndGrown splits a file in three and doubles the batch: the headline is the batch, although the allocator took
// other blocks for some of the same requests.
func TestMovedAndGrown(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "batch")
	for i := range b.Frames {
		switch f := &b.Frames[i]; {
		case f.File != "model.py":
		case f.Line < 30:
			f.File = "net/attention.py"
		case f.Line < 40:
			f.File, f.Line = "net/layers.py", f.Line-25
		default:
			f.File, f.Line = "net/gpt.py", f.Line-35
		}
	}
	for i := range b.Groups {
		g := &b.Groups[i]
		if n := len(g.Sizes) - 1; g.Known && g.Use == category.AutogradSaved && g.Sizes[n].Count > 1 {
			last := g.Sizes[n]
			g.Sizes[n].Count--
			g.Sizes = append(g.Sizes, footprint.Size{Requested: last.Requested, Rounded: last.Rounded + 512, Count: 1})
			g.Rounded, b.Totals.Active = g.Rounded+512, b.Totals.Active+512
		}
	}
	r := diff.Compare(a, b)
	check(t, r)
	if first := r.Causes[0]; first.Kind != diff.Batch || 10*abs(first.Bytes) < 9*r.Delta() || r.Matched[diff.Alone].B > 0 {
		t.Errorf("first is %s with %d bytes of %d; matched %v", first.Kind, first.Bytes, r.Delta(), r.Matched)
	}
}

// TestOtherTensor replaces what one line of a function allocates by what another does: tensors of other sizes.
func TestOtherTensor(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "base")
	at := slices.IndexFunc(b.Groups, func(g footprint.Group) bool { return g.Site == "model.py:20 forward" })
	g := &b.Groups[at]
	g.Site = "model.py:18 forward"
	for i := range b.Frames {
		if f := &b.Frames[i]; f.File == "model.py" && f.Line == 20 {
			f.Line = 18
		}
	}
	linear := int32(slices.IndexFunc(b.Frames, func(f attribution.Frame) bool { return strings.HasSuffix(f.File, "linear.py") }))
	b.Stacks[g.Stack] = append([]int32{linear}, b.Stacks[g.Stack]...)
	b.Totals.Active -= g.Rounded
	g.Sizes = []footprint.Size{{Requested: 3 << 18, Rounded: 3 << 18, Count: 4}}
	g.Requested, g.Rounded, g.Count = 3<<20, 3<<20, 4
	b.Totals.Active += g.Rounded
	r := diff.Compare(a, b)
	check(t, r)
	if m := r.Matched[diff.Alone]; m.A != a.Groups[at].Rounded || m.B != g.Rounded || r.Causes[0].Kind != diff.Gone {
		t.Errorf("%d and %d bytes without a partner, want %d and %d; first %s", m.A, m.B, a.Groups[at].Rounded, g.Rounded,
			r.Causes[0].Kind)
	}
}

// resize puts blocks of one size in the place of a group's.
func resize(f *footprint.Footprint, g *footprint.Group, count, requested, rounded int64) {
	before := g.Rounded
	g.Sizes = []footprint.Size{{Requested: requested, Rounded: rounded, Count: count}}
	g.Count, g.Requested, g.Rounded = count, count*requested, count*rounded
	f.Totals.Active += g.Rounded - before
}

// TestSmallModel halves the precision of a model whose parameters are next to nothing beside its activations.
func TestSmallModel(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "half")
	for f, n := range map[*footprint.Footprint]int64{a: 1 << 16, b: 1 << 15} {
		for i := range f.Groups {
			switch g := &f.Groups[i]; g.Use {
			case category.Parameter, category.OptimizerState, category.Gradient:
				resize(f, g, 1, n, n)
			}
		}
	}
	r := diff.Compare(a, b)
	check(t, r)
	if first := r.Causes[0]; first.Kind != diff.Precision || first.Ratio != 0.5 {
		t.Errorf("first is %s by %g", first.Kind, first.Ratio)
	}
}

// TestGraphWithout keeps of the tensors of each line one that no backward pass needs.
func TestGraphWithout(t *testing.T) {
	a, b := recorded(t, "evaluated"), recorded(t, "evaluated")
	for i := range b.Groups {
		if g := &b.Groups[i]; g.Use == category.AutogradSaved || g.Use == category.Activation {
			resize(b, g, 1, 1000, 1024)
		}
	}
	r := diff.Compare(a, b)
	check(t, r)
	if first := r.Causes[0]; first.Kind != diff.Graph || 100*first.Bytes > 99*r.Delta() {
		t.Errorf("first is %s with %d bytes of %d", first.Kind, first.Bytes, r.Delta())
	}
}

// TestProgress has side A later in the backward pass, with more gradients and fewer activations: that is no layer more, and
// the headline is of what is new.
func TestProgress(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "base")
	for i := range a.Groups {
		switch g := &a.Groups[i]; g.Use {
		case category.AutogradSaved:
			if len(g.Sizes) == 1 && g.Count == 4 {
				resize(a, g, 3, g.Sizes[0].Requested, g.Sizes[0].Rounded)
			}
		case category.Gradient:
			resize(a, g, g.Count+1, g.Sizes[0].Requested, g.Sizes[0].Rounded)
		}
	}
	row := int32(len(b.Frames))
	b.Frames = append(b.Frames, attribution.Frame{File: "model.py", Line: 70, Name: "head", Origin: frames.User})
	b.Stacks = append(b.Stacks, append([]int32{row}, b.Stacks[b.Groups[1].Stack]...))
	g := footprint.Group{Stack: int32(len(b.Stacks) - 1), Site: "model.py:70 head", Known: true, Use: category.AutogradSaved}
	resize(b, &g, 1, 30<<20, 30<<20)
	b.Groups = append(b.Groups, g)
	r := diff.Compare(a, b)
	check(t, r)
	if r.Causes[0].Kind != diff.New || r.Causes[0].Bytes != 30<<20 || len(r.Causes) != 2 || r.Causes[1].Kind != diff.Progress {
		t.Errorf("causes %+v", r.Causes)
	}
}

// TestOtherwiseProgress has activations more since side A is later in the backward pass, and a little that is new: that, and
// not the moment of the peak, is the change.
func TestOtherwiseProgress(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "base")
	for i := range a.Groups {
		switch g := &a.Groups[i]; g.Use {
		case category.AutogradSaved:
			if len(g.Sizes) == 1 && g.Count == 4 {
				resize(a, g, 2, g.Sizes[0].Requested, g.Sizes[0].Rounded)
			}
		case category.Gradient:
			resize(a, g, g.Count+1, g.Sizes[0].Requested, g.Sizes[0].Rounded)
		case category.Input:
			resize(b, &b.Groups[i], 1, 4<<20, 4<<20)
		}
	}
	r := diff.Compare(a, b)
	check(t, r)
	if r.Causes[0].Kind == diff.Progress || r.Delta() <= 0 || r.Causes[0].Bytes <= 0 || r.Causes[1].Kind != diff.Progress {
		t.Errorf("causes %+v", r.Causes)
	}
}

// TestLayersAndMore has a layer half as many again, and one tensor half as large again.
func TestLayersAndMore(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "layers")
	for i := range b.Groups {
		if g := &b.Groups[i]; g.Site == "train.py:5 loss_of" {
			at := slices.IndexFunc(a.Groups, func(o footprint.Group) bool { return o.Site == g.Site })
			resize(a, &a.Groups[at], 1, 16<<20, 16<<20)
			resize(b, g, 1, 24<<20, 24<<20)
		}
	}
	r := diff.Compare(a, b)
	check(t, r)
	if r.Causes[0].Kind != diff.Layers || 2*r.Causes[0].Bytes < r.Delta() {
		t.Errorf("causes %+v", r.Causes)
	}
}

// TestSameRequests has blocks of other sizes for the same requests, from lines that moved: the allocator's doing alone.
func TestSameRequests(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "moved")
	for i := range b.Groups {
		if g := &b.Groups[i]; len(g.Sizes) == 1 && g.Use == category.AutogradSaved {
			resize(b, g, g.Count, g.Sizes[0].Requested, g.Sizes[0].Rounded+512*int64(i))
		}
	}
	r := diff.Compare(a, b)
	check(t, r)
	if len(r.Causes) != 1 || r.Causes[0].Kind != diff.Rounding {
		t.Errorf("causes %+v", r.Causes)
	}
}

// TestReport compares a run of many groups with what a report keeps of it: nothing is new or gone, whichever side it is,
// and where one group grew, that is all.
func TestReport(t *testing.T) {
	whole, report := recorded(t, "base"), recorded(t, "base")
	for _, f := range []*footprint.Footprint{whole, report} {
		f.Course = &footprint.Course{}
		for i := range 700 {
			f.Frames = append(f.Frames, attribution.Frame{File: "many.py", Line: int32(i + 1), Name: "f", Origin: frames.User})
			f.Stacks = append(f.Stacks, []int32{int32(len(f.Frames) - 1)})
			f.Groups = append(f.Groups, footprint.Group{Stack: int32(len(f.Stacks) - 1), Site: fmt.Sprintf("many.py:%d f", i+1),
				Known: true, Use: category.Activation})
			resize(f, &f.Groups[len(f.Groups)-1], 1, 512, 512)
		}
		f.Course.Groups = make([][]int64, len(f.Groups))
	}
	report = report.Compact()
	for _, sides := range [][2]*footprint.Footprint{{report, whole}, {whole, report}} {
		r := diff.Compare(sides[0], sides[1])
		check(t, r)
		if len(r.Causes) > 0 || r.Matched[diff.Exact].A != whole.Totals.Active {
			t.Errorf("differs from its report: %+v, %v", r.Causes, r.Matched)
		}
		if want := []diff.Guard{{Kind: diff.Cut, A: "yes", B: "yes"}}; !slices.Equal(r.Guards, want) {
			t.Errorf("guards %+v, want %+v", r.Guards, want)
		}
		if len(r.A.Course.Groups) > len(r.A.Groups) || len(r.B.Course.Groups) > len(r.B.Groups) {
			t.Error("courses of groups that were cut off")
		}
	}
	g := &whole.Groups[0]
	resize(whole, g, g.Count+1, g.Sizes[0].Requested, g.Sizes[0].Rounded)
	r := diff.CompareRuns([]*footprint.Footprint{report}, []*footprint.Footprint{whole, whole})
	check(t, r)
	rows := slices.DeleteFunc(r.Table(attribution.BySite), func(v diff.Row) bool { return v.Noise })
	if len(r.Causes) != 1 || len(rows) != 1 || rows[0].Name != g.Site {
		t.Errorf("causes %+v, rows %+v, want %s alone", r.Causes, rows, g.Site)
	}
}

// TestGuards changes what a footprint says of its run, and wants to be told of that, settings first.
func TestGuards(t *testing.T) {
	top := func(f *footprint.Footprint, site string) *footprint.Group {
		f.Top = slices.IndexFunc(f.Groups, func(g footprint.Group) bool { return g.Site == site })
		return &f.Groups[f.Top]
	}
	for name, c := range map[string]struct {
		change func(a, b *footprint.Footprint)
		want   []diff.Guard
	}{
		"none": {func(a, b *footprint.Footprint) { a.Name = "rank_x.pickle" }, nil},
		"rank": {func(a, b *footprint.Footprint) { a.Name, b.Name = "rank0.pickle", "RANK_12.pickle" },
			[]diff.Guard{{Kind: diff.Rank, A: "0", B: "12"}}},
		"all at once": {func(a, b *footprint.Footprint) {
			b.Device, b.Late, b.HasHistory = 1, true, false
			b.Writer.Backend, b.Writer.Text = "xpu", "2.99"
			a.Settings.Values = append(a.Settings.Values, snapshot.Setting{Key: "max_split_size", Value: "1"})
		}, []diff.Guard{{Kind: diff.Settings, A: "max_split_size:1"}, {Kind: diff.Backend, A: "cuda", B: "xpu"},
			{Kind: diff.Writer, A: "2.14 or later", B: "2.99"}, {Kind: diff.Device, A: "0", B: "1"}, {Kind: diff.NoTrace, B: "yes"},
			{Kind: diff.Late, B: "yes"}}},
		"bound":        {func(a, b *footprint.Footprint) { a.Bounds.AtLeast() }, []diff.Guard{{Kind: diff.Bound, A: "yes"}}},
		"another line": {func(a, b *footprint.Footprint) { top(a, "model.py:34 forward"); top(b, "model.py:35 forward") }, nil},
		"another function": {func(a, b *footprint.Footprint) { top(a, "model.py:34 forward"); top(b, "train.py:5 loss_of") },
			[]diff.Guard{{Kind: diff.Place, A: "model.py:34 forward", B: "train.py:5 loss_of"}}},
		"another function of that name": {func(a, b *footprint.Footprint) {
			top(a, "model.py:20 forward")
			top(b, "model.py:50 forward")
		},
			[]diff.Guard{{Kind: diff.Place, A: "model.py:20 forward", B: "model.py:50 forward"}}},
		"another caller": {func(a, b *footprint.Footprint) {
			top(a, "model.py:20 forward")
			g := top(b, "model.py:20 forward")
			calls := slices.Clone(b.Stacks[g.Stack])
			is := func(line int32) func(row int32) bool {
				return func(row int32) bool { return b.Frames[row].File == "model.py" && b.Frames[row].Line == line }
			}
			other := b.Stacks[top(b, "model.py:50 forward").Stack]
			calls[slices.IndexFunc(calls, is(33))] = other[slices.IndexFunc(other, is(50))]
			top(b, "model.py:20 forward")
			g.Stack = int32(len(b.Stacks))
			b.Stacks = append(b.Stacks, calls)
		}, []diff.Guard{{Kind: diff.Place, A: "model.py:33 forward", B: "model.py:50 forward"}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := recorded(t, "base"), recorded(t, "base")
			c.change(a, b)
			if got := diff.Compare(a, b).Guards; !slices.Equal(got, c.want) {
				t.Errorf("guards %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestRunsUnlike names the run of a side that is not like the one in the middle, which alone is compared.
func TestRunsUnlike(t *testing.T) {
	for name, change := range map[string]func(f *footprint.Footprint){
		"no history": func(f *footprint.Footprint) { f.HasHistory = false },
		"moment":     func(f *footprint.Footprint) { f.At = "step:3" },
		"settings": func(f *footprint.Footprint) {
			f.Settings.Values = append(f.Settings.Values, snapshot.Setting{Key: "max_split_size", Value: "1"})
		},
		"rank": func(f *footprint.Footprint) { f.Name = "rank7.pickle" },
	} {
		runs := func() []*footprint.Footprint {
			out := []*footprint.Footprint{recorded(t, "base"), recorded(t, "base"), recorded(t, "base")}
			for i, f := range out {
				f.Name = fmt.Sprintf("rank1-try%d.pickle", i)
				f.Totals.Active += int64(i) // the second is in the middle
			}
			return out
		}
		a, b := runs(), runs()
		if got := diff.CompareRuns(a, b).Guards; len(got) > 0 {
			t.Fatalf("guards %+v of runs alike", got)
		}
		change(b[2])
		if got, want := diff.CompareRuns(a, b).Guards, []diff.Guard{{Kind: diff.Runs, B: "3"}}; !slices.Equal(got, want) {
			t.Errorf("%s: guards %+v, want %+v", name, got, want)
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// TestRows holds that the sides of pairs are in the rows that they make up.
func TestRows(t *testing.T) {
	r := diff.Compare(recorded(t, "base"), recorded(t, "ema"))
	for _, by := range diff.Kinds() {
		rows, of := r.Rows(by)
		sums := make([][2]int64, len(rows))
		for i, p := range r.Pairs {
			for side, g := range []*footprint.Group{p.A, p.B} {
				if (g == nil) != (of[i][side] < 0) {
					t.Fatalf("by %s: pair %d is in rows %v", by, i, of[i])
				}
				if g != nil {
					sums[of[i][side]][side] += g.Rounded
				}
			}
		}
		for i := range rows {
			if got := [2]int64{rows[i].A, rows[i].B}; got != sums[i] {
				t.Errorf("by %s: %s has %v, its pairs %v", by, rows[i].Name, got, sums[i])
			}
		}
	}
}

// TestStacksGoByNamesOfB holds that code which lost its memory goes by the names and lines that side B runs it by, and that
// lines which only side A runs are told apart from those.
func TestStacksGoByNamesOfB(t *testing.T) {
	a, b := recorded(t, "base"), recorded(t, "moved")
	moved, only := 0, 0
	for _, p := range diff.Compare(a, b).Pairs {
		if p.How != diff.Shifted && p.How != diff.Renamed {
			continue
		}
		without := *b
		without.Groups = slices.DeleteFunc(slices.Clone(b.Groups), func(g footprint.Group) bool { return g.Stack == p.B.Stack })
		without.Stacks = slices.Delete(slices.Clone(b.Stacks), int(p.B.Stack), int(p.B.Stack)+1)
		for i := range without.Groups {
			if without.Groups[i].Stack > p.B.Stack {
				without.Groups[i].Stack--
			}
		}
		without.Totals.Active -= p.B.Rounded
		r := diff.Compare(a, &without)
		runs := map[attribution.Frame]bool{}
		for _, stack := range without.Stacks {
			for _, row := range stack {
				runs[b.Frames[row]] = true
			}
		}
		for _, q := range r.Pairs {
			if q.A != p.A || q.B != nil {
				continue
			}
			for depth, call := range r.Stack(&q) {
				own := a.Frames[a.Stacks[q.A.Stack][depth]]
				switch {
				case call.OnlyA && call.Frame != own:
					t.Errorf("%v goes by %v, which side B does not run", own, call)
				case call.OnlyA:
					only++
				case !runs[call.Frame]:
					t.Errorf("%v goes by %v, which side B does not run", own, call)
				case call.Frame != own:
					moved++
				}
			}
		}
	}
	if moved == 0 || only == 0 {
		t.Errorf("%d calls moved, %d are of side A alone", moved, only)
	}
}
