package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// stackTable says whose memory is live at one moment. Its rows sum to the total.
type stackTable struct {
	phase
	Rows              []stackRow
	All, Most, Blocks int64 // bytes and blocks of all, and bytes of the largest row
}

type stackRow struct {
	attribution.Group
	paint
	Site     string
	Frames   []string
	Stacks   int    // that the row sums, of which Frames are the largest
	Compiled string // how many of them torch.compile made, "" for none
	Rest     bool   // a sum of all others
}

// paint is how a stack is shown: its number, 0 for none, and its color.
type paint struct{ Number, Color chart.Slot }

// palette has the paints of stacks, the same in tables and maps of a device. A color of the page stands for what memory
// is for, wherever that is known of most of it; where it is not, stacks have colors of their own.
type palette map[snapshot.StackID]paint

func newPalette(d *analyze.Device, moments []*analyze.Moment, byUse bool) palette {
	numbers := chart.StackColors(moments...)
	colors := palette{}
	for stack, n := range numbers {
		colors[stack] = paint{n, n}
	}
	if !byUse || d.Categories == nil {
		return colors
	}
	bytes := map[snapshot.StackID]map[category.Category]int64{}
	for _, m := range moments {
		for i := range m.State.Segments {
			for _, row := range m.State.Segments[i].Live {
				l := &d.Timeline.Lives[row]
				if bytes[l.Stack] == nil {
					bytes[l.Stack] = map[category.Category]int64{}
				}
				c, _ := d.Categories.Of(row)
				bytes[l.Stack][c] += l.Rounded
			}
		}
	}
	for stack, uses := range bytes {
		most := category.Unknown
		for _, c := range chart.UseOrder { // of equal ones the last
			if uses[c] > 0 && uses[c] >= uses[most] {
				most = c
			}
		}
		colors[stack] = paint{numbers[stack], chart.UseSlot(most)}
	}
	return colors
}

func newStackTable(ph phase, colors palette, deep depth, history bool) stackTable {
	v := stackTable{phase: ph, All: max(ph.Frag.Active, chart.Sum(ph.Live))} // more in a file that contradicts itself
	top, other, more := chart.LargestSources(chart.Sources(ph.Live), deep.stacks)
	rest := v.All - chart.Sum(ph.Live)
	for i := range ph.Live {
		v.Blocks += ph.Live[i].Count
	}
	v.Most = max(v.Most, other.Rounded)
	for i, name := range chart.Sites(top) {
		g := &top[i]
		v.Most = max(v.Most, g.Rounded)
		if !history {
			g.PreTrace = 0 // all is older than a trace of nothing
		}
		v.Rows = append(v.Rows, stackRow{Group: g.Group, paint: colors[g.Stack], Site: site(name),
			Frames: frames(g.Frames, deep.frames), Stacks: len(g.Stacks), Compiled: g.Note()})
	}
	if more > 0 {
		v.Rows = append(v.Rows, stackRow{Group: other, Rest: true,
			Site: units.Count(int64(more)) + " more stacks"})
	}
	if rest != 0 { // never happens when the analysis keeps its promise; shown rather than hidden
		v.Rows = append(v.Rows, stackRow{Group: attribution.Group{Sum: attribution.Sum{Rounded: rest}}, Rest: true,
			Site: "not attributed"})
	}
	return v
}

// Gist names where most comes from.
func (v *stackTable) Gist() string {
	for i := range v.Rows {
		if x := &v.Rows[i]; !x.Rest {
			return v.Title + ": " + units.Percent(x.Rounded, v.All) + " at " + x.Site
		}
	}
	return ""
}

// Note tells what the bytes of the row hide: "from before the trace", "12.0 KiB lost to rounding", "3 stacks".
func (r *stackRow) Note() string {
	g := &r.Group
	var notes []string
	switch {
	case g.PreTrace > 0 && g.PreTrace == g.Rounded:
		if g.Site != "" || g.Stack == snapshot.EmptyStack { // else its line says so
			notes = append(notes, "from before the trace")
		}
	case g.PreTrace > 0:
		notes = append(notes, units.Bytes(g.PreTrace)+" from before the trace")
	}
	if lost := g.Rounded - g.Requested; lost*20 > g.Rounded && g.Requested > 0 {
		notes = append(notes, units.Bytes(lost)+" lost to rounding")
	}
	if r.Stacks > 1 {
		notes = append(notes, cmp.Or(r.Compiled, units.Plural(r.Stacks, "stack"))+"; the largest is listed")
	}
	return strings.Join(notes, ", ")
}

// frames cuts a stack and its frames to what a page can show.
func frames(list []string, n int) []string {
	var out []string
	for i, f := range list {
		if i == n {
			return append(out, fmt.Sprintf("… %s more frames", units.Count(int64(len(list)-n))))
		}
		out = append(out, site(f))
	}
	return out
}

// fragments shows the ledger reserved = active + releasable + split of each moment, and what
// keeps segments at the one that matters most.
type fragments struct {
	Ledgers  []ledger
	Worst    *phase // the moment that matters most, of which the others tell
	Pins     []chart.Pin
	MorePins int
	Holes    []fragmentation.Holes // largest pieces first
	Most     int64                 // of the bytes of any Holes
	Groups   *table                // by stream and pool, nil where there is one of each
	Without  *table                // what to free, nil for nothing
}

// Gist says how much is not in use.
func (v *fragments) Gist() string {
	f := &v.Worst.Frag
	return fmt.Sprintf("%s: %s free in pieces, %s in whole segments", v.Worst.Title, units.Bytes(f.Split),
		units.Bytes(f.Releasable))
}

// ledger is one bar; the widths are percents of the most that is reserved at any moment.
type ledger struct {
	*phase
	Parts   []part
	Classes []part // of what is not allocated
}

// part is a part of a bar; its share is of the bar, its width of the longest one.
type part struct {
	Class, Name, Bytes, Share, Width, Meaning string
}

func newPart(class, name string, bytes, all, most int64, meaning string) part {
	return part{class, name, units.Bytes(bytes), units.Percent(bytes, all), width(bytes, most), meaning}
}

func newFragments(t *timeline.Timeline, phases []phase, pins int) fragments {
	var v fragments
	var most int64
	for _, ph := range phases {
		most = max(most, ph.Frag.Reserved)
	}
	var worst *phase
	for i := range phases {
		ph := &phases[i]
		v.Ledgers = append(v.Ledgers, newLedger(ph, most))
		if worst == nil || ph.Frag.Split > worst.Frag.Split {
			worst = ph
		}
	}
	for i := range phases {
		if phases[i].OOM && len(phases[i].Frag.Pins) > 0 {
			worst = &phases[i]
		}
	}
	if worst == nil {
		return v
	}
	v.Worst, v.Groups, v.Without = worst, newGroups(worst), newWithout(t, worst)
	v.Pins, v.MorePins = chart.Pins(t, worst.Moment, pins)
	for _, h := range slices.Backward(worst.Frag.Holes[:]) {
		if h.Count > 0 {
			v.Holes, v.Most = append(v.Holes, h), max(v.Most, h.Bytes)
		}
	}
	return v
}

func newLedger(ph *phase, most int64) ledger {
	f := &ph.Frag
	v := ledger{phase: ph}
	for _, k := range chart.FreeKinds {
		if n := k.Bytes(&f.Classes); n > 0 {
			v.Classes = append(v.Classes, newPart("", k.Name, n, f.Classes.Sum(), most, k.Means))
		}
	}
	v.Parts = []part{
		newPart("k-live", "Active", f.Active, f.Reserved, most, "in live blocks"),
		newPart("k-releasable", "Releasable", f.Releasable, f.Reserved, most,
			"free in segments without a live block: empty_cache() returns it"),
		newPart("k-split", "Split", f.Split, f.Reserved, most,
			"free in segments with live blocks: only a request that fits a gap can use it"),
	}
	return v
}

// maxGroups bounds the rows: graphs can have a pool each.
const maxGroups = 12

func newGroups(ph *phase) *table {
	groups := ph.Frag.Groups
	if len(groups) < 2 {
		return nil
	}
	t := newTable("groups", words("Stream, pool"), numbers("Reserved"), numbers("Active"), numbers("Pending"),
		numbers("Releasable"), numbers("Split"), numbers("Largest piece"))
	shown := min(len(groups), maxGroups)
	for _, g := range groups[:shown] {
		t.add(fmt.Sprintf("stream %d, %s", g.Stream, chart.Pool(snapshot.KindUnknown, g.Pool, 0, false)),
			units.Bytes(g.Reserved), units.Bytes(g.Active), units.Bytes(g.Pending), units.Bytes(g.Releasable),
			units.Bytes(g.Split), units.Bytes(g.Largest))
	}
	if more := groups[shown:]; len(more) > 0 {
		var bytes int64
		for _, g := range more {
			bytes += g.Reserved
		}
		t.More = fmt.Sprintf("%s more with %s reserved", units.Count(int64(len(more))), units.Bytes(bytes))
	}
	return t
}

// newWithout says what to free so that segments are released.
func newWithout(t *timeline.Timeline, ph *phase) *table {
	list := fragmentation.Rank(t, ph.State, &ph.Frag, 5)
	if len(list) == 0 {
		return nil
	}
	out := newTable("", sites("All blocks allocated at"), numbers("Blocks"), numbers("Bytes"),
		numbers("Free beside them"), strong("Returned so far"), numbers("Segments"))
	name := attribution.Names(ph.Live)
	for _, x := range list {
		out.add(site(name(x.Stack)), units.Count(x.Blocks), units.Bytes(x.Bytes), units.Bytes(x.Hostage),
			units.Bytes(x.Returned), units.Count(int64(x.Segments)))
	}
	return out
}

// freeView draws what is reserved and not allocated over the trace, by what keeps it from use.
type freeView struct {
	Plot template.HTML
	Keys []*chart.FreeKind
	Most string
}

// newFree is nil where nothing was ever free.
func newFree(samples []fragmentation.Sample) *freeView {
	var most int64
	for i := range samples {
		most = max(most, samples[i].Classes.Sum())
	}
	if most == 0 {
		return nil
	}
	v := &freeView{Most: units.Bytes(most)}
	var paths [len(chart.FreeKinds)]path
	n := float64(len(samples))
	for i := range samples {
		top := 0.0
		for k := range paths {
			if h := chart.Share(chart.FreeKinds[k].Bytes(&samples[i].Classes), most); h > 0 {
				paths[k].box(float64(i)/n, 1-top-h, 1/n, h)
				top += h
			}
		}
	}
	for k := range paths {
		paths[k].class = chart.FreeKinds[k].Class
		if len(paths[k].b) > 0 {
			v.Keys = append(v.Keys, &chart.FreeKinds[k])
		}
	}
	var d drawing
	d.open("plot areas", "reserved and not allocated bytes over the trace")
	d.paths(paths[:]...)
	d.close()
	v.Plot = d.html()
	return v
}
