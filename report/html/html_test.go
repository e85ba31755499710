package html

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

func write(t *testing.T, r *analyze.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, DefaultBytes); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// visible is the text of a page without markup, entities and repeated spaces.
func visible(page string) string {
	page = regexp.MustCompile(`(?s)<style>.*?</style>|<script.*?</script>|<[^>]*>`).ReplaceAllString(page, " ")
	page = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&#34;", `"`, "&#39;", "'", "&#43;",
		"+").Replace(page)
	return strings.Join(strings.Fields(page), " ") // no-break spaces included
}

func contains(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, s := range want {
		if !strings.Contains(page, s) {
			t.Errorf("page lacks %q", s)
		}
	}
}

// TestGolden leaves out the script and the style sheet, which have their own tests and would touch
// every golden with each change of a color.
func TestGolden(t *testing.T) {
	leaveOut := strings.NewReplacer(styles(), "STYLE", hash(bundle()), "SCRIPT", hash(styles()), "STYLE")
	for name, r := range map[string]*analyze.Result{"result.html": analyzetest.Failed(t),
		"empty.html": analyzetest.Empty(t)} {
		page := strings.ReplaceAll(still(t, write(t, r)), "&#43;", "+")
		golden.Check(t, name, []byte(leaveOut.Replace(page)))
	}
}

// A small block in a large segment is seen in the map of all segments, unless there are too many for a page.
func TestRibbonShowsBlocks(t *testing.T) {
	const block = 32 << 10
	state := &timeline.SegmentState{Range: timeline.Range{Size: 100 << 20}, Live: []int32{0}}
	segments := []chart.Segment{{SegmentState: state,
		Pieces: []chart.Piece{{Bytes: block}, {At: block, Bytes: 100<<20 - block, Life: -1}}}}
	for budget, live := range map[int]bool{1: false, 64: true} {
		var m segmentMap
		m.addRibbon(segments, budget)
		if got := string(m.Ribbon); strings.Contains(got, "k-live") != live || !strings.Contains(got, "k-split") ||
			strings.Contains(m.RibbonNote, "Each cell") == live {
			t.Errorf("with %d pieces: %s, %s", budget, got, m.RibbonNote)
		}
	}
}

func TestContents(t *testing.T) {
	contains(t, visible(write(t, analyzetest.Failed(t))),
		"fragmentation", "a request for 768 MiB failed although 2.08 GiB", "job.pickle", "torch 2.5 to 2.7 (guessed)",
		"6.68 KiB", "80 events",
		"reserved memory was free, in pieces too small.",
		"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts",
		"low confidence, heuristic", "step() retains 16.0 MiB more per iteration",
		"Peak reserved 4.25 GiB", "time since the first event", "Out-of-memory events",
		"event 77, 475 ms 768 MiB 212 MiB",
		"released cached segments once (200 MiB in total)", "model.py:52 forward", "Active memory, total",
		"from before the trace",
		"Peak event 67, 400 ms", "Reserved 4.05 GiB = Active", "Largest free block",
		"No settings string: the defaults.",
		"verified: the replay matches the snapshot byte for byte (80 events)",
		"is from before the trace")
}

func TestDeterministic(t *testing.T) {
	a, b := write(t, analyzetest.Ranks(t, 5)), write(t, analyzetest.Ranks(t, 5))
	if a != b {
		t.Error("two pages of the same result differ")
	}
}

// still is a page without what it brings along for scripts, all of which must be ours.
func still(t *testing.T, page string) string {
	t.Helper()
	rest, found := strings.CutSuffix(page, script()+"</body>\n</html>\n")
	if !found {
		t.Fatal("the page does not end with the script")
	}
	plus := strings.ReplaceAll(page, "&#43;", "+")
	if !strings.Contains(plus, "script-src &#39;"+hash(bundle())) ||
		!strings.Contains(plus, "style-src-elem &#39;"+hash(styles())) ||
		!strings.Contains(rest, "<style>"+styles()+"</style>") {
		t.Error("the policy does not name the script and the style sheet")
	}
	const data = `<script type="application/octet-stream" id="snapana-data">`
	if strings.Count(rest, data) != 1 {
		t.Fatalf("%d blocks of data, want 1", strings.Count(rest, data))
	}
	i := strings.Index(rest, data)
	if more := regexp.MustCompile(`^[A-Za-z0-9+/]*=*</script>\n$`).FindString(rest[i+len(data):]); more == "" {
		t.Error("the data is not one block of base64")
	}
	return rest[:i] + "</body>\n</html>\n"
}

// references are what makes a browser fetch or run something.
var references = regexp.MustCompile(`(?i)https?:|//[a-z]|\bsrc\s*=|@import|url\(|<script|<link|<iframe|` +
	`<object|<embed|\bon[a-z]+\s*=|javascript:`)

// hashes are those of the policy, which may look like anything.
var hashes = regexp.MustCompile(`sha256-[\w+/=&#;]*`)

func TestSelfContained(t *testing.T) {
	for name, r := range map[string]*analyze.Result{"result": analyzetest.Failed(t), "many": analyzetest.Ranks(t, 9),
		"empty": analyzetest.Empty(t), "big": analyzetest.Big(t, 1)} {
		if name == "big" && testing.Short() {
			continue
		}
		page := hashes.ReplaceAllString(still(t, write(t, r)), "")
		if found := references.FindAllString(page, 3); found != nil {
			t.Errorf("%s: page refers to something outside: %q", name, found)
		}
	}
}

func TestLinksWithinPage(t *testing.T) {
	page := write(t, analyzetest.Ranks(t, 70))
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(links) < maxDevices {
		t.Errorf("%d links, want one for each of %d sections", len(links), maxDevices)
	}
	for _, m := range links {
		id, ok := strings.CutPrefix(m[1], "#")
		if !ok || strings.Count(page, `id="`+id+`"`) != 1 {
			t.Errorf("link to %q has no single target", m[1])
		}
	}
}

// The contents list parts in the order in which they come.
func TestContentsInOrder(t *testing.T) {
	for name, r := range map[string]*analyze.Result{"one device": analyzetest.Failed(t), "holders": analyzetest.Held(t),
		"several devices": analyzetest.Ranks(t, 3), "empty": analyzetest.Empty(t)} {
		page := still(t, write(t, r))
		last := -1
		nav := page[strings.Index(page, `<nav class="toc"`):strings.Index(page, "</nav>")]
		links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(nav, -1)
		for _, m := range links {
			at := strings.Index(page, ` id="`+m[1]+`"`)
			if at <= last {
				t.Errorf("%s: %q is at %d, after what is at %d", name, m[1], at, last)
			}
			last = at
		}
		if len(links) < 2 {
			t.Errorf("%s: contents of %d parts", name, len(links))
		}
	}
}

// The verdict says once how far it can be trusted, at its top, and what it is made of after all else.
func TestVerdictBeforeProvenance(t *testing.T) {
	page := still(t, write(t, analyzetest.Failed(t)))
	card := page[strings.Index(page, "<header"):strings.Index(page, "</header>")]
	last := -1
	for _, part := range []string{"high confidence", "<h1>", "<figure", "What to do next", `class="facts"`} {
		at := strings.Index(card, part)
		if at <= last {
			t.Errorf("%q is at %d, after what is at %d", part, at, last)
		}
		last = at
	}
	if n := strings.Count(card, "high confidence"); n != 1 {
		t.Errorf("the confidence is said %d times", n)
	}
}

// hostile puts markup into every text that a file can bring along.
func hostile(t *testing.T) *analyze.Result {
	const evil = `</title></style><script>alert(1)</script><img src=x onerror="alert(2)">'"` + "`{{.}}\u202e\x00\n]]>"
	r := analyzetest.Failed(t)
	s := r.Snapshot
	s.Name, s.Writer.Text, s.Container, s.Missing = evil, evil, []string{evil}, []string{evil}
	s.Partial = fmt.Errorf("read %s", evil)
	s.Settings.Conf = evil
	s.Settings.Values[0].Key, s.Settings.Values[0].Value = evil, evil
	v := &r.Verdict
	v.Status, v.Headline = finding.Status(evil), evil
	for i := range v.Findings {
		f := &v.Findings[i]
		f.Title, f.Why, f.Next, f.Stack = evil, []string{evil}, []string{evil}, []string{evil}
		f.Severity, f.Confidence, f.Status, f.ID = finding.Severity(evil), finding.Confidence(evil),
			finding.Status(evil), evil
	}
	r.Quality[0] = analyze.Note{Level: evil, Text: evil}
	for i := range r.Devices[0].Moments {
		m := &r.Devices[0].Moments[i]
		for k := range m.Live {
			m.Live[k].Site, m.Live[k].Frames = evil, []string{evil, evil}
		}
	}
	return r
}

func TestEscapes(t *testing.T) {
	page := still(t, write(t, hostile(t)))
	if strings.Contains(page, "<script") || strings.Contains(page, "<img") || strings.ContainsAny(page, "\x00\u202e") {
		t.Error("page holds markup or control characters from the file")
	}
	if n := strings.Count(page, "</style>"); n != 1 {
		t.Errorf("%d style elements end, want 1", n)
	}
	if n := strings.Count(visible(page), "<script>alert(1)</script>"); n < 20 {
		t.Errorf("markup is readable as text in %d places, want it wherever it was put", n)
	}
	balanced(t, page)
}

// balanced checks that elements nest; void elements are those that the page uses.
func balanced(t *testing.T, page string) {
	t.Helper()
	var open []string
	for _, m := range regexp.MustCompile(`<(/?)([a-z][a-z0-9]*)([^>]*)>`).FindAllStringSubmatch(page, -1) {
		switch {
		case m[2] == "meta" || m[2] == "br" || strings.HasSuffix(m[3], "/"):
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			t.Fatalf("</%s> closes %v", m[2], open[max(len(open)-4, 0):])
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
}

func TestEmpty(t *testing.T) {
	for name, r := range map[string]*analyze.Result{
		"sample": analyzetest.Empty(t),
		"zero":   {Snapshot: &snapshot.Snapshot{}},
	} {
		page := write(t, r)
		balanced(t, still(t, page))
		contains(t, visible(page), "no data", "neither segments nor events", "Not in the file.")
		if strings.Contains(page, `role="img"`) {
			t.Errorf("%s: a chart of nothing", name)
		}
	}
}

func TestNoTrace(t *testing.T) {
	r := analyzetest.Failed(t)
	r.Snapshot.HasTimes, r.Snapshot.HasStacks = false, false
	r.Snapshot.Traces = nil
	d := &r.Devices[0]
	d.Timeline = &timeline.Timeline{Device: 0, Lives: d.Timeline.Lives, Final: d.Timeline.Final}
	end := d.Moments[2]
	end.State.Event, end.State.Time = -1, 0
	peak := end
	peak.Name = "peak"
	for i := range end.Live {
		end.Live[i].Site, end.Live[i].Frames, end.Live[i].Stack = "", nil, 0
	}
	d.Moments = []analyze.Moment{peak, end}
	d.Free, d.WhatIf = nil, nil
	page := write(t, r)
	balanced(t, still(t, page))
	contains(t, visible(page), "no trace for this device", "Peak and end", "Trace none")
	if strings.Contains(page, `class="plot"`) {
		t.Error("a timeline without a trace")
	}
	if n := strings.Count(page, `class="stacks"`); n != 1 {
		t.Errorf("%d tables of stacks, want one for a peak that is the end", n)
	}
}

func TestNoTimes(t *testing.T) {
	r := analyzetest.Failed(t)
	r.Snapshot.HasTimes = false
	text := visible(write(t, r))
	contains(t, text, "trace event", "event 77 768 MiB")
	if strings.Contains(text, "The same by trace event") {
		t.Error("two charts by event")
	}
	if strings.Contains(text, "time since") {
		t.Error("a time axis without times")
	}
}

// The curve of a file whose clock jumps stays within its box and never runs backwards.
func TestTimeBackwards(t *testing.T) {
	r := analyzetest.Failed(t)
	curve := r.Devices[0].Timeline.Curve
	for i := range curve {
		if i%2 == 1 {
			curve[i].Time -= 100_000_000
		}
	}
	page := write(t, r)
	line := regexp.MustCompile(`<path class="line-reserved" d="([^"]*)"`).FindStringSubmatch(page)
	if line == nil {
		t.Fatal("no line of reserved bytes")
	}
	last := 0
	for _, m := range regexp.MustCompile(`H(-?\d+)`).FindAllStringSubmatch(line[1], -1) {
		var x int
		fmt.Sscan(m[1], &x)
		if x < last || x > pathWidth {
			t.Fatalf("line goes from %d to %d", last, x)
		}
		last = x
	}
	if last != pathWidth {
		t.Errorf("line ends at %d, want %d", last, pathWidth)
	}
}

func TestManyDevices(t *testing.T) {
	page := write(t, analyzetest.Ranks(t, 64))
	without := still(t, page)
	balanced(t, without)
	if len(without) > 2<<20 {
		t.Errorf("page has %s without its script and data", units.Bytes(int64(len(without))))
	}
	contains(t, visible(without), "at 2 other moments, and for its segments then: see its timeline, "+
		"or snapana state --device 5.")
	for i := range 64 {
		if n := strings.Count(page, fmt.Sprintf(`id="gpu%d"`, i)); n != 1 {
			t.Fatalf("GPU %d has %d sections", i, n)
		}
	}
	if n := strings.Count(page, "<details class=\"fold\">"); n != 63 {
		t.Errorf("%d sections folded, want all but the one of the first finding", n)
	}
	contains(t, visible(write(t, analyzetest.Ranks(t, 70))), "6 devices with less memory have no section")
}

func TestSizeBound(t *testing.T) {
	one := still(t, write(t, analyzetest.Big(t, 1)))
	for name, devices := range map[string]int{"one device": 1, "ten devices": 10} {
		if devices > 1 && testing.Short() {
			continue
		}
		r := analyzetest.Big(t, devices)
		for _, size := range []int{DefaultBytes, 3 << 20} {
			if size != DefaultBytes && testing.Short() {
				continue
			}
			var b bytes.Buffer
			if err := Write(&b, r, size); err != nil {
				t.Fatal(err)
			}
			page := b.String()
			t.Logf("%s in %s: %s", name, units.Bytes(int64(size)), units.Bytes(int64(len(page))))
			if len(page) > size {
				t.Errorf("%s: page has %s, want at most %s", name, units.Bytes(int64(len(page))),
					units.Bytes(int64(size)))
			}
			if part := still(t, page); len(part) > 2<<20 {
				t.Errorf("%s: without data the page has %s", name, units.Bytes(int64(len(part))))
			} else {
				balanced(t, part)
			}
		}
	}
	contains(t, visible(one), "more stacks", "more segments", "more frames", "All 3 703 segments end to end")
}

// A page says what it has no room for, and that nothing at all can be zoomed.
func TestSaysWhatIsLeftOut(t *testing.T) {
	r := analyzetest.Big(t, 1)
	var b bytes.Buffer
	if err := Write(&b, r, 600<<10); err != nil {
		t.Fatal(err)
	}
	contains(t, visible(b.String()), "of 29 429 allocations", "Raise --max-page for more.")
	b.Reset()
	if err := Write(&b, r, 1); err != nil {
		t.Fatal(err)
	}
	contains(t, visible(b.String()), "its timeline cannot be zoomed")
	if strings.Contains(b.String(), "<script") {
		t.Error("a script without data")
	}
	if strings.Contains(visible(write(t, r)), "--max-page") {
		t.Error("the page speaks of room that it has")
	}
}

// Zero and negative sizes, moments without a state and stacks that do not add up must not
// break the page; what does not add up is shown.
func TestOddValues(t *testing.T) {
	r := analyzetest.Failed(t)
	d := &r.Devices[0]
	t0 := d.Timeline
	for i := range t0.Lives {
		t0.Lives[i].Rounded = int64(i%3-1) * 1000
	}
	for i := range d.Moments {
		m := &d.Moments[i]
		m.State.Segments[i].Size = int64(-i)
		m.State.Totals = timeline.Totals{}
		m.Frag.Reserved = 0
		m.Live = m.Live[1:]
	}
	d.Moments = append(d.Moments, analyze.Moment{Name: "later"})
	t0.PeakActive.Event, t0.OOMs[0].Event, t0.OOMs[0].DeviceFree = 1<<30, -5, -1
	long := strings.Repeat("é_very_long_name", 10_000)
	d.Moments[0].Live = append(d.Moments[0].Live, attribution.Group{Stack: 9, Site: long, Frames: []string{long}})
	page := write(t, r)
	balanced(t, still(t, page))
	contains(t, visible(page), "not attributed", "unknown")
	if bad := regexp.MustCompile(`NaN|Inf|(width|height|x|y|x1|x2)="-`).FindString(page); bad != "" {
		t.Errorf("page holds %q", bad)
	}
	if part := still(t, page); len(part) > 200_000 {
		t.Errorf("long names make a page of %d bytes", len(part))
	}
}

// The widths of a ledger sum to its share of the most reserved bytes.
func TestLedgerCloses(t *testing.T) {
	r := analyzetest.Failed(t)
	d := &r.Devices[0]
	bars := regexp.MustCompile(`(?s)<div class="stacked"[^>]*>(.*?)</div>`).FindAllStringSubmatch(write(t, r), -1)
	names := []string{"peak", "oom", "end"}
	if len(bars) != len(names) {
		t.Fatalf("%d ledgers, want %d", len(bars), len(names))
	}
	for i, b := range bars {
		sum := 0.0
		for _, m := range regexp.MustCompile(`width:([\d.]+)%`).FindAllStringSubmatch(b[1], -1) {
			var w float64
			fmt.Sscan(m[1], &w)
			sum += w
		}
		want := 100 * float64(d.Moment(names[i]).Frag.Reserved) / float64(d.Moment("peak").Frag.Reserved)
		if sum < want-0.1 || sum > want+0.1 {
			t.Errorf("parts of the ledger of %s fill %.2f%% of it, want %.2f%%", names[i], sum, want)
		}
	}
}

// TestAnnotations holds that the still picture marks what the program said of tensors.
func TestAnnotations(t *testing.T) {
	s, err := load.Open(t.Context(), "../../fixtures/lab/traces/2.15/annotate.pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := write(t, analyzetest.Run(t, s, analyze.Options{NoReplay: true}))
	if n := strings.Count(page, `class="mark-sign m-note"`); n != 2+3 { // by time, where two are next to each other, and by event
		t.Errorf("%d marks", n)
	}
	contains(t, page, "annotation: packed for backward", "annotation: again", "Note ×3")
	if strings.Contains(write(t, analyzetest.Failed(t)), "m-note\" style") {
		t.Error("a run without annotations has marks of them")
	}
}

// TestLargestShare checks that the page never folds away who allocated the most where memory ran out.
func TestLargestShare(t *testing.T) {
	s, err := load.Open(t.Context(), "../../fixtures/lab/devices/truth/one_of_four_oom.pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := visible(write(t, analyzetest.Run(t, s, analyze.Options{})))
	share, fold := strings.Index(page, "The largest share, 6.19 GiB in 2 blocks, came from"), strings.Index(page, "more reasons")
	if share < 0 || fold < share {
		t.Errorf("the largest share is at %d, the fold at %d", share, fold)
	}
}

// TestOneEvent checks that a ring of one event is no history: what it cannot tell is unknown, not 0, and nothing is said
// to be older than the trace.
func TestOneEvent(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for range 40 {
			d.Alloc(4 << 20)
		}
	}))
	var last snapshot.Events
	last.Add(s.Traces[0].At(s.Traces[0].Len() - 1))
	s.Traces[0] = snapshot.NewTrace(&last, 0, 1)
	page := visible(write(t, analyzetest.Run(t, s, analyze.Options{})))
	contains(t, page, "Only the final state was recorded", "Out of memory unknown", "Retries unknown", "Allocated by")
	for _, lie := range []string{"from before the trace", "older than the first"} {
		if strings.Contains(page, lie) {
			t.Errorf("the page says %q", lie)
		}
	}
}
