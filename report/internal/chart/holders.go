package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Holders is who keeps the memory at the end of a snapshot, in words. All texts are plain.
type Holders struct {
	verdict.Ghosts
	Source   string // which dump of which file was joined
	Proven   []HolderGhost
	Suspects []HolderGhost // growth of the trace that no holder explains
	Lists    []HolderList  // of holders that accuse no one
	Closing  string        // how the sum closes
	Notes    []string

	r   *analyze.Result
	min int64 // bytes of a holder that gets a line
}

// HolderGhost is one ghost with its evidence.
type HolderGhost struct {
	Title string
	Bytes int64
	Facts []HolderFact
	Sites []HolderRow
	Fix   []string // lines of Python
}

// facts adds lines of evidence with a label, which only the first one shows.
func (g *HolderGhost) facts(label string, lines ...string) {
	for _, l := range lines {
		g.Facts = append(g.Facts, HolderFact{label, clean(l)})
		label = ""
	}
}

// HolderFact is one line of evidence.
type HolderFact struct{ Label, Text string }

// HolderRow is a sum.
type HolderRow struct {
	Bytes int64
	Text  string
	Note  string
}

// TitleSuspects is the title of Suspects beside Proven.
const TitleSuspects = "Growing in the trace, with no single holder found"

// HolderList is a list with its title.
type HolderList struct {
	Title string
	Rows  []HolderRow
}

// list adds a list that has rows.
func (v *Holders) list(title string, rows []HolderRow) {
	if len(rows) > 0 {
		v.Lists = append(v.Lists, HolderList{title, rows})
	}
}

// How much is shown of each list.
const (
	mostGhosts  = 20
	mostRows    = 12
	mostSites   = 3
	mostOneOffs = 5
	mostText    = 300
)

// NewHolders puts the holders of a result in words. Holders below min bytes are summed up,
// ghosts are always shown.
func NewHolders(r *analyze.Result, min int64) *Holders {
	traced := slices.ContainsFunc(r.Devices, func(d analyze.Device) bool { return d.Timeline.HasHistory() })
	v := &Holders{Ghosts: r.Verdict.Ghosts(r.Holders, verdict.Unseen(r.Snapshot, traced)), r: r, min: min}
	v.Headline = Clip(Plain(v.Headline), 2*mostText)
	problems, _, _ := r.Notes()
	for _, n := range problems {
		v.Notes = append(v.Notes, clean(n.Text))
	}
	h := r.Holders
	if h == nil {
		v.inferred()
		return v
	}
	v.Source = fmt.Sprintf("%s of %s", h.Dump, clean(h.File))
	if h.Alone {
		v.Source = h.Dump
	}
	if h.Earlier != "" {
		v.Source += ", compared with " + h.Earlier
	}
	v.proven(h)
	for _, n := range h.Notes {
		v.Notes = append(v.Notes, clean(n))
	}
	return v
}

func clean(s string) string { return Line(s, mostText) }

// proven puts a join in words.
func (v *Holders) proven(h *holder.Result) {
	var ghosts []HolderGhost
	lists := [...]struct {
		title string
		rows  []HolderRow
		small holder.Sum
	}{{title: "Other holders: not growing, as far as the trace shows"}, {title: "Held as expected"}}
	switch {
	case h.Alone && h.Earlier == "":
		lists[0].title = "Holders"
	case h.Alone:
		lists[0].title = "Other holders: not growing, as far as two dumps show"
	}
	for i := range h.Holders {
		x := &h.Holders[i]
		if x.Standing == holder.Ghost {
			ghosts = append(ghosts, v.ghost(h, x))
			continue
		}
		l := &lists[0]
		if x.Standing != holder.Other {
			l = &lists[1]
		}
		if x.Bytes >= v.min {
			l.rows = append(l.rows, v.row(x))
		} else {
			l.small.Count, l.small.Bytes = l.small.Count+1, l.small.Bytes+x.Bytes
		}
	}
	v.Proven = ghosts[:min(len(ghosts), mostGhosts)]
	if more := len(ghosts) - len(v.Proven); more > 0 {
		v.Notes = append(v.Notes, units.Plural(more, "more ghost")+" with less memory.")
	}
	for i := range lists {
		l := &lists[i]
		rows := cut(l.rows, mostRows, "more holder")
		if n := l.small.Count; n > 0 {
			text := fmt.Sprintf("%s below %s each", units.Plural(n, "more holder"), units.Bytes(v.min))
			rows = append(rows, HolderRow{l.small.Bytes, text, ""})
		}
		v.list(l.title, rows)
	}
	for i := range h.Unproven {
		v.Suspects = append(v.Suspects, v.unproven(h, &h.Unproven[i]))
	}
	v.apart(h)
}

// cut makes n rows of more: the last is the sum of those that there is no room for, and says what they are.
func cut(rows []HolderRow, n int, what string) []HolderRow {
	if len(rows) <= n {
		return rows
	}
	rest := HolderRow{Text: units.Plural(len(rows)-n+1, what)}
	for _, r := range rows[n-1:] {
		rest.Bytes += r.Bytes
	}
	return append(rows[:n-1:n-1], rest)
}

// ghost is the evidence against one holder.
func (v *Holders) ghost(r *holder.Result, h *holder.Holder) HolderGhost {
	g := HolderGhost{Title: clean(h.Reference.String()), Bytes: h.Bytes}
	fact := func(label, format string, args ...any) { g.facts(label, fmt.Sprintf(format, args...)) }
	piece := "block"
	if r.Alone {
		piece = "storage"
	}
	keeps := fmt.Sprintf("%s in %s: %s", units.Bytes(h.Bytes), units.Plural(h.Count, piece),
		units.Plural(h.Tensors, "tensor"))
	if h.Graph > 0 {
		keeps += fmt.Sprintf(", and the autograd graphs behind them (%s)", units.Bytes(h.Graph))
	}
	if h.Objects > 1 {
		noun := "object"
		if h.Kind == holder.Cycle {
			noun = "cycle"
		}
		keeps += fmt.Sprintf(", by %s of this kind", units.Plural(h.Objects, noun))
	}
	fact("Keeps", "%s", keeps)
	if onHost(h) {
		fact("", "%s", "in host memory"+hostKinds(h))
	}
	if h.GrownBlocks > 0 {
		g.facts("Grows", HolderGrows(v.r.Snapshot, h))
	}
	if h.Before.Count > 0 {
		fact("Before", "%s (%s) in %s, now %s (%s)", units.Plural(h.Before.Count, "storage"),
			units.Bytes(h.Before.Bytes), r.Earlier, units.Count(h.Storage.Count), units.Bytes(h.Storage.Bytes))
	}
	if h.Formerly != nil {
		fact("", "then held by %s", h.Formerly)
	}
	fact("Chain", "%s", h.Chain)
	var also []string
	for _, x := range h.Also[:min(len(h.Also), mostSites)] {
		also = append(also, fmt.Sprintf("referenced by %s: empty it, or drop both", x))
	}
	g.facts("Also", also...)
	if n := len(h.Also) - mostSites; n > 0 {
		fact("", "and by %d more references", n)
	}
	frees := units.Bytes(h.Frees)
	if h.Shared > 0 {
		with := "something else"
		if n := len(h.SharedWith) - 1; n >= 0 {
			with = h.SharedWith[0]
			if n > 0 {
				with += fmt.Sprintf(" and %d more", n)
			}
		}
		frees += fmt.Sprintf("; the other %s is also kept by %s", units.Bytes(h.Shared), with)
	}
	fact("Frees", "%s", frees)
	if !r.Alone {
		g.Sites = v.sites(h.Sites)
	}
	for _, l := range h.Fix() {
		g.Fix = append(g.Fix, clean(l))
	}
	return g
}

// sites sums up stacks by their site, and shows the largest.
func (v *Holders) sites(stacks []holder.Site) []HolderRow {
	bySite := map[string]holder.Sum{}
	for _, s := range stacks {
		site := cmp.Or(v.site(s.Stack), attribution.NoStack)
		sum := bySite[site]
		bySite[site] = holder.Sum{Count: sum.Count + s.Count, Bytes: sum.Bytes + s.Bytes}
	}
	var rows []HolderRow
	for name, sum := range bySite {
		rows = append(rows, HolderRow{sum.Bytes, name, units.Plural(sum.Count, "block")})
	}
	sorting.By(rows, func(x, y HolderRow) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Text, y.Text))
	})
	return cut(rows, mostSites+1, "more site")
}

// site is where a stack allocated, "" where that is not recorded.
func (v *Holders) site(stack snapshot.StackID) string {
	return clean(attribution.Site(v.r.Snapshot, stack))
}

// HolderGrows is how fast a holder grows, by the trace. It is not clean.
func HolderGrows(s *snapshot.Snapshot, h *holder.Holder) string {
	return fmt.Sprintf("by %s per iteration of %s, %d so far", units.Bytes(h.PerLap), frames.Function(s, h.Loop),
		h.Laps)
}

// HolderName is a holder's reference with what it is for, where that is known. It is not clean.
func HolderName(h *holder.Holder) string {
	switch name := h.Reference.String(); h.Standing {
	case holder.Parameter, holder.Buffer, holder.Gradient:
		return string(h.Standing) + "s of " + name
	case holder.Optimizer:
		return "optimizer state of " + name
	default:
		return name
	}
}

// row is a holder in a line.
func (v *Holders) row(h *holder.Holder) HolderRow {
	what := HolderName(h)
	if h.Standing != holder.Running && 2*h.Graph > h.Bytes {
		what += ", through autograd graphs"
	}
	if b := h.Bound; b != nil && h.Filling() {
		what += fmt.Sprintf(": still filling, %s of %s entries; %v when full", units.Count(b.Length),
			units.Count(b.Limit), b.Full)
		if b.Hint != "" {
			what += ", if " + b.Hint + " is its limit"
		}
	}
	if onHost(h) {
		what += ", host memory" + hostKinds(h)
	}
	if h.GrownBlocks > 0 && h.Steady {
		what += ": it seems to grow in the trace, but the earlier dump had as much"
	}
	note := units.Plural(h.Tensors, "tensor")
	return HolderRow{h.Bytes, clean(what), note}
}

// unproven is a growth without a holder to blame.
func (v *Holders) unproven(r *holder.Result, u *holder.Unproven) HolderGhost {
	g := HolderGhost{Bytes: u.Bytes, Title: clean(fmt.Sprintf("%s retains %s more per iteration; most of it %s",
		frames.Function(v.r.Snapshot, u.Loop), units.Bytes(u.PerLap), attribution.Allocated(v.site(u.Stacks[0]))))}
	var by []string
	for _, n := range u.Holders[:min(len(u.Holders), mostSites)] {
		by = append(by, v.row(&r.Holders[n]).Text)
	}
	g.facts("Held by", by...)
	if len(u.Holders) == 0 {
		g.facts("Held by", "nothing the recorder saw: C++ may own it, or it was freed between the two dumps")
	}
	return g
}

// onHost reports whether a holder has memory of the host.
func onHost(h *holder.Holder) bool { return slices.Contains(h.Devices, holder.Host) }

// hostKinds says what of a holder's host memory is not the process's own, "" for nothing.
func hostKinds(h *holder.Holder) string {
	var parts []string
	for _, k := range h.Host {
		parts = append(parts, units.Bytes(k.Bytes)+" "+map[string]string{sidecar.HostPinned: "pinned",
			sidecar.HostShared: "shared with other processes", sidecar.HostMapped: "mapped from files"}[k.Name])
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// sums says how much all tensors of a dump take.
func (v *Holders) sums(h *holder.Result) string {
	var parts []string
	for i := range h.Devices {
		d := &h.Devices[i]
		name := DeviceName(d.Ordinal)
		if d.Ordinal == holder.Host {
			name = "host memory"
		}
		parts = append(parts, fmt.Sprintf("%s: %s in %s of tensors", name, units.Bytes(d.Allocated.Bytes),
			units.Plural(d.Allocated.Count, "storage")))
	}
	return strings.Join(parts[:min(len(parts), 9)], "; ")
}

// apart lists what was not joined, and says how the sum closes.
func (v *Holders) apart(h *holder.Result) {
	if h.Alone {
		v.Closing = v.sums(h)
		return
	}
	var closing []string
	var rows []HolderRow
	for i := range h.Devices {
		d := &h.Devices[i]
		if d.Allocated.Count == 0 {
			continue
		}
		if len(closing) < 8 {
			closing = append(closing, fmt.Sprintf("%s: %s allocated = %s held + %s in blocks where no tensor was seen",
				DeviceName(d.Ordinal), units.Bytes(d.Allocated.Bytes), units.Bytes(d.Held.Bytes),
				units.Bytes(d.Unheld.Bytes)))
		}
		scratch, others := v.workspaces(h, d)
		for _, s := range v.sites(scratch) {
			s.Text = "a library's workspace, in no Python tensor: " + s.Text
			rows = append(rows, s)
		}
		for _, s := range v.sites(others) {
			s.Text = "no tensor was seen in it: allocated at " + s.Text
			rows = append(rows, s)
		}
	}
	rows = cut(rows, mostRows, "more site")
	if h.Stray.Count > 0 {
		rows = append(rows, HolderRow{h.Stray.Bytes, "storages outside all allocated blocks: another allocator's, or " +
			"already freed", units.Plural(h.Stray.Count, "storage")})
	}
	v.list("Not matched to a holder", rows)
	v.Closing = strings.Join(closing, "; ")
}

// workspaces parts what no tensor was seen in: the workspaces of libraries, such as cuBLAS, never have one.
func (v *Holders) workspaces(h *holder.Result, d *holder.Device) (scratch, others []holder.Site) {
	held := map[holder.Block]bool{}
	for i := range h.Holders {
		for _, b := range h.Holders[i].Blocks {
			held[b] = true
		}
	}
	by := map[snapshot.StackID]holder.Sum{}
	for i := range v.r.Devices {
		a := &v.r.Devices[i]
		if a.Timeline.Device != d.Ordinal || a.Categories == nil {
			continue
		}
		for row := range a.Timeline.Lives {
			l := &a.Timeline.Lives[row]
			use, _ := a.Categories.Of(int32(row))
			if use == category.Workspace && l.Freed < 0 && l.FreeRequested == -1 &&
				!held[holder.Block{Device: d.Ordinal, Row: int32(row)}] {
				sum := by[l.Stack]
				by[l.Stack] = holder.Sum{Count: sum.Count + 1, Bytes: sum.Bytes + l.Rounded}
			}
		}
	}
	for _, s := range d.UnheldSites {
		// A list that was cut has less than that.
		own := holder.Sum{Count: min(by[s.Stack].Count, s.Count), Bytes: min(by[s.Stack].Bytes, s.Bytes)}
		for _, part := range []struct {
			to  *[]holder.Site
			sum holder.Sum
		}{{&scratch, own}, {&others, holder.Sum{Count: s.Count - own.Count, Bytes: s.Bytes - own.Bytes}}} {
			if part.sum.Count > 0 {
				*part.to = append(*part.to, holder.Site{Stack: s.Stack, Name: s.Name, Sum: part.sum})
			}
		}
	}
	return scratch, others
}

// inferred says what the snapshot alone tells.
func (v *Holders) inferred() {
	for i := range v.r.Verdict.Findings {
		f := &v.r.Verdict.Findings[i]
		if f.Status != finding.Ghost {
			continue
		}
		g := HolderGhost{Title: clean(f.Title), Bytes: f.Bytes}
		g.facts("Why", f.Why...)
		g.facts("Next", f.Next...)
		v.Suspects = append(v.Suspects, g)
		if len(v.Suspects) == mostGhosts {
			break
		}
	}
	v.oneOffs()
	v.Notes = append(v.Notes, "A snapshot records where memory was allocated, not who keeps it. For proof, run the "+
		"program with the recorder: "+
		"`snapana recorder > snapana_recorder.py`, then `python -m snapana_recorder train.py`; it writes a .snapana "+
		"file beside the snapshot.")
}

// oneOffs lists large memory that stays and does not grow. A recorder's file names its holders,
// so it is listed for a snapshot alone.
func (v *Holders) oneOffs() {
	var rows []HolderRow
	for i := range v.r.Devices {
		d := &v.r.Devices[i]
		for _, o := range d.OneOffs {
			row := HolderRow{o.Bytes, "allocated at " + clean(attribution.Place(v.r.Snapshot, o.Stack)),
				units.Plural(o.Count, "block")}
			if len(v.r.Devices) > 1 {
				row.Text += ", " + DeviceName(d.Timeline.Device)
			}
			rows = append(rows, row)
		}
	}
	sorting.Stable(rows, func(x, y HolderRow) int { return cmp.Compare(y.Bytes, x.Bytes) })
	v.list("Large and not growing, allocated during the trace: not a leak by itself",
		rows[:min(len(rows), mostOneOffs)])
}
