package verdict

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

func holderEvidence(h *holder.Holder) *finding.Holder {
	return &finding.Holder{Reference: h.Reference.String(), Kind: string(h.Kind), Bytes: units.Size(h.Bytes),
		Frees: units.Size(h.Frees), Keys: h.Keys, Gone: h.Gone, Ordered: h.Ordered, Bound: h.Bound, Views: h.Views, Code: h.Code,
		Graph: 2*h.Graph > h.Bytes, Logged: h.Logged, Entries: h.Before.Count, Lost: h.Lost,
		Orphans: h.Orphans, Optimizers: h.Optimizers, Hooks: h.Hooks, Was: units.Size(h.Before.Bytes), Is: units.Size(h.Storage.Bytes)}
}

// held puts what the recorder saw in the process into a finding on a growth: who holds the memory, why it is or may be
// forgotten, and how to let it go.
func held(f *finding.Finding, w *forgotten) {
	h := f.Evidence.Holder
	f.Because("Seen in the process: %s holds %v; %s", h.Reference, h.Bytes, frees(h.Bytes, h.Frees))
	f.Heuristic = f.Confidence != finding.High
	if b := h.Bound; b != nil && b.Length < b.Limit {
		f.Because("It has %s; when full it takes %v.", entries(b), b.Full)
	} else if b != nil && b.Hint == "" {
		f.Because("It is full, with %s: each entry keeps growing.", entries(b))
	}
	f.Why = append(f.Why, w.why...)
	pinning(f, h)
	if w.next != "" {
		f.Next = append(f.Next, w.next)
	}
	next := fmt.Sprintf("Let go of what %s keeps, as the fix shows; what is meant to stay wants a bound, or the "+
		"host (.cpu()).", h.Reference)
	switch kind := holder.Kind(h.Kind); {
	case len(f.Fix) > 0:
	case kind != holder.CPP && kind != holder.Hidden && kind != holder.Unreached:
		next = fmt.Sprintf("Let go of what %s keeps, or keep copies on the host (.cpu()); what is meant to stay wants a bound.",
			h.Reference)
	default:
		next = "No Python reference can be dropped: look for an autograd graph that is still in use, a CUDA graph, or an " +
			"extension that keeps tensors."
	}
	f.Next = append(f.Next, next)
}

// frees says what is gained when a holder of some bytes is released.
func frees(holds, gain units.Size) string {
	switch {
	case gain <= 0:
		return "something else holds it too."
	case gain > holds:
		return fmt.Sprintf("releasing it frees %v, as other objects that hold %v are reached through it alone.", gain,
			gain-holds)
	}
	return fmt.Sprintf("releasing it frees %v.", gain)
}

// entries counts those of a bounded container: "13 of 500 entries".
func entries(b *finding.Bound) string {
	return fmt.Sprintf("%s of %s entries", units.Count(b.Length), units.Count(b.Limit))
}

// Held is the verdict on what the recorder saw, without a trace: its findings on holders, and no status.
func Held(s *snapshot.Snapshot, seen *holder.Result) Verdict {
	j := judge{s: s, seen: seen, findings: []finding.Finding{}}
	j.holders()
	j.views()
	finding.Sort(j.findings)
	return Verdict{Findings: j.findings}
}

// holders reports those that grow, or have what nothing can use again, without a trace that shows it; and those that
// had doubled since the earlier dump, as a note.
func (j *judge) holders() {
	if j.seen == nil {
		return
	}
	told := map[*holder.Holder]bool{}
	for o := range j.reported {
		told[o.holder] = true
	}
	for i := range j.seen.Holders {
		h := &j.seen.Holders[i]
		if told[h] || h.Growing() || len(h.Devices) == 0 || h.Standing != holder.Ghost && (!h.Doubled || h.Standing !=
			holder.Other || h.Filling()) {
			continue
		}
		v := holderEvidence(h)
		f := &finding.Finding{ID: "held", Status: finding.Ghost, Severity: finding.Warning, Device: h.Devices[0],
			Bytes: h.Bytes, Evidence: finding.Evidence{Holder: v}, Fix: h.Fix()}
		// How many steps lie between the dumps is not known, nor, of one dump, whether there will be more of it.
		w := forget(v, &finding.Growth{Iterations: unread - 1}, finding.Medium)
		if (v.Orphans > 0 || v.Hooks >= ghost.MinLaps) && !h.Doubled && w.confidence == finding.High {
			w.confidence = finding.Medium
		}
		f.Confidence, f.Heuristic = w.confidence, w.confidence != finding.High
		what := "Leak"
		switch {
		case h.Standing != holder.Ghost:
			f.Severity, f.Confidence, f.Heuristic, what = finding.Info, finding.Low, true, "It grew"
		case w.note:
			f.Severity = finding.Info
		case w.confidence == finding.Low:
			what = "Possible leak"
		}
		if v.Entries > 0 {
			f.Say("%s: %s had %v in %s, and has %v in %s now; %s", what, v.Reference, v.Was, units.Plural(v.Entries, "tensor"),
				v.Is, units.Plural(h.Storage.Count, "tensor"), frees(v.Bytes, v.Frees))
			f.Because("It was compared with %s.", j.seen.Earlier)
		} else {
			f.Say("%s: %s holds %v; %s", what, v.Reference, v.Bytes, frees(v.Bytes, v.Frees))
		}
		f.Why = append(f.Why, w.why...)
		if j.seen.Traced(h) {
			f.Because("The trace does not show it growing with each iteration: it may slow down, or the trace is too short.")
		}
		pinning(f, v)
		if w.next != "" {
			f.Next = append(f.Next, w.next)
		}
		if v.Hooks >= ghost.MinLaps {
			f.Next = append(f.Next, "Keep the handle that registering a hook returns, and call remove() on it when done.")
			j.add(f)
			continue
		}
		f.Next = append(f.Next, fmt.Sprintf("Clear or bound %s, or store .item() or .detach().cpu() of the tensors there.",
			v.Reference))
		j.add(f)
	}
}

// pinning says that most of what a holder keeps is what small views of it keep, and how to keep only what they show.
func pinning(f *finding.Finding, h *finding.Holder) {
	if v := h.Views; v != nil && 2*v.Bytes >= h.Is && 2*v.Bytes >= h.Bytes {
		f.Because("%s", pins(v))
		f.Next = append(f.Next, fmt.Sprintf("Keep copies of the parts in %s with .clone() (.detach() makes none): that frees "+
			"%v.", h.Reference, v.Hidden()))
	}
}

// pins says what views keep: "Its tensors show 8.0 KiB of 8 storages of 1.0 MiB each: ...".
func pins(v *finding.Views) string {
	return fmt.Sprintf("Its tensors show %v of %s with %v in all: a view, as x[0] is, keeps its whole storage.", v.Shown,
		units.Plural(v.Storages, "storage"), v.Bytes)
}

// views reports what small views keep, where no growth and no holder that grew has told it.
func (j *judge) views() {
	if j.seen == nil {
		return
	}
	for i := range j.seen.Holders {
		h := &j.seen.Holders[i]
		if h.Views == nil || len(h.Devices) == 0 || h.Standing == holder.Ghost || h.Growing() {
			continue
		}
		var allocated int64
		for _, d := range j.seen.Devices {
			if d.Ordinal == h.Devices[0] {
				allocated = d.Allocated.Bytes
			}
		}
		if hidden := int64(h.Views.Hidden()); hidden < pinnedWorth || 100*hidden < allocated {
			continue
		}
		v := holderEvidence(h)
		f := &finding.Finding{ID: "views", Status: finding.Capacity, Severity: finding.Info, Confidence: finding.Medium,
			Heuristic: true, Device: h.Devices[0], Bytes: int64(v.Views.Hidden()), Evidence: finding.Evidence{Holder: v},
			Next: []string{"Where they are kept, keep copies instead: .clone() of the parts."}}
		f.Say("Small views keep %v: %s has %v of %s with %v.", v.Views.Hidden(), v.Reference, v.Views.Shown,
			units.Plural(v.Views.Storages, "storage"), v.Views.Bytes)
		f.Because("A view, as x[0] is, keeps its whole storage. If C++ uses the rest, copies free nothing.")
		j.add(f)
	}
}

// pinnedWorth is from how many bytes on it is told that small views keep memory.
const pinnedWorth = 16 << 20

// filling reports a container with a bound that is not full: no ghost, but memory to plan for.
func (j *judge) filling(e *Facts, index int, s *holder.Share) {
	g, h := j.growthEvidence(e, index, s.Growth), holderEvidence(s.Holder)
	b := h.Bound
	f := &finding.Finding{
		ID: "filling", Status: finding.Capacity, Severity: finding.Info, Confidence: finding.High,
		Device: e.Timeline.Device, Bytes: int64(b.Full), Events: s.Events, Stack: attribution.Frames(j.s, s.Stack),
		Evidence: finding.Evidence{Growth: g, Holder: h},
		Title: fmt.Sprintf("Still filling (%s): %s holds %v; when full it takes %v.", entries(b), h.Reference, h.Bytes,
			b.Full),
		Next: []string{"Plan for its full size, or give it a smaller bound, or keep its entries off the GPU (.cpu())."},
	}
	grew := "grows by %v per iteration of %s and stops at its bound; an entry takes %v now."
	if b.Length == b.Limit {
		f.Say("Full (%s): %s holds %v.", entries(b), h.Reference, h.Bytes)
		f.Next = []string{"To use less, give it a smaller bound, or keep its entries off the GPU (.cpu())."}
		grew = "grew by %v per iteration of %s up to its bound; an entry takes %v."
	}
	f.Because("It "+grew, g.PerUnit, g.Loop, h.Bytes/units.Size(b.Length))
	switch {
	case b.Seen != "":
		f.Confidence, f.Heuristic = finding.Low, true
		f.Because("The program keeps to that at %s, by %s.", b.Seen, b.Hint)
	case b.Hint != "":
		f.Confidence, f.Heuristic = finding.Low, true
		f.Because("The bound was read from the attribute %s of its owner; if that is not its bound, it grows without "+
			"end.", b.Hint)
	}
	if room, known := j.seen.Room(e.Timeline); known && b.Full-h.Bytes > units.Size(room) {
		f.Severity = finding.Warning
		f.Say("It will not fit: %s takes %v when full (%s now), and the device has room for only %v more.", h.Reference,
			b.Full, entries(b), units.Size(room))
	}
	j.add(f)
}

// Ghosts is the outcome on one question: does something forgotten keep memory?
type Ghosts struct {
	Status   finding.Status // Ghost, Healthy for no ghost, or NoData where nothing can be said
	Headline string         // why, where there is none
	Trust    string         // how far it can be trusted
}

// Ghosts answers from the findings, as the verdict does, with what the recorder saw, nil for nothing, to say who it is.
// unseen says why the snapshot cannot show growth (Unseen).
func (v *Verdict) Ghosts(seen *holder.Result, unseen string) Ghosts {
	at := slices.IndexFunc(v.Findings, func(f finding.Finding) bool {
		return f.Status == finding.Ghost && f.Severity != finding.Info
	})
	switch {
	case seen != nil && seen.Alone && seen.Earlier == "":
		return Ghosts{finding.NoData, "One dump shows who holds memory, not what grows: call dump() of the recorder " +
			"twice, some steps apart.", ""}
	case at >= 0 && seen != nil:
		return v.ghostsSeen(seen, at)
	case at >= 0:
		return Ghosts{finding.Ghost, v.Findings[at].Title, v.Findings[at].Trust()}
	case seen == nil && v.Status == finding.Inconsistent:
		return Ghosts{finding.NoData, "Leaks cannot be judged: the file contradicts itself.", ""}
	case seen == nil && unseen != "":
		return Ghosts{finding.NoData, "Leaks cannot be judged: " + unseen + ".", ""}
	case seen == nil && (v.Status == finding.NoData || v.Status == finding.NoHistory):
		return Ghosts{finding.NoData, v.Headline, ""} // which says what is missing
	}
	g := Ghosts{finding.Healthy, "no loop leaves extra memory behind.", "from the snapshot alone"}
	if seen != nil {
		g.Headline, g.Trust = "no holder seen in the process grows.", "from the trace and "+seen.File
		if seen.Alone {
			g.Trust = "from two dumps"
			if h := larger(seen.Holders); h != nil {
				g.Headline = fmt.Sprintf("no holder gains tensors, but %s holds %v, and held %v in the earlier dump.",
					h.Reference, units.Size(h.Storage.Bytes), units.Size(h.Before.Bytes))
			}
		}
	}
	if at := slices.IndexFunc(v.Findings, func(f finding.Finding) bool { return f.Status == finding.Ghost }); at >= 0 {
		g.Headline = "a note only. " + v.Findings[at].Title
	}
	return g
}

// larger is the holder that gained most between two dumps, of those that have half as much again and are not known to
// be filled; nil for none.
func larger(holders []holder.Holder) *holder.Holder {
	var best *holder.Holder
	for i := range holders {
		h := &holders[i]
		if h.Before.Count == 0 || h.Filling() || 2*h.Storage.Bytes < 3*h.Before.Bytes {
			continue
		}
		if best == nil || h.Storage.Bytes-h.Before.Bytes > best.Storage.Bytes-best.Before.Bytes {
			best = h
		}
	}
	return best
}

// ghostsSeen is the outcome where the finding at a place accuses, with what the recorder saw: the holders of findings
// that accuse, those that grow where none has one.
func (v *Verdict) ghostsSeen(seen *holder.Result, at int) Ghosts {
	var all []*finding.Holder
	trust := ""
	for i := range v.Findings {
		f := &v.Findings[i]
		if f.Evidence.Holder == nil || f.Status != finding.Ghost || f.Severity == finding.Info {
			continue
		}
		if all = append(all, f.Evidence.Holder); len(all) == 1 {
			trust = "seen in the process, and growing in the trace; " + f.Trust()
			if f.Evidence.Growth == nil {
				trust = "seen in the process; " + f.Trust()
			}
		}
	}
	for i := range seen.Holders {
		if h := &seen.Holders[i]; trust == "" && h.Standing == holder.Ghost {
			all = append(all, holderEvidence(h))
		}
	}
	if len(all) == 0 {
		return Ghosts{finding.Ghost, "Memory grows in the trace, but no single holder of it was seen in the process.",
			v.Findings[at].Trust()}
	}
	var kept units.Size
	for _, h := range all {
		kept += h.Bytes
	}
	h := all[0]
	g := Ghosts{finding.Ghost, fmt.Sprintf("%s holds %v; %s", h.Reference, h.Bytes, frees(h.Bytes, h.Frees)), trust}
	if len(all) > 1 {
		g.Headline += fmt.Sprintf(" In total %s hold %v.", units.Plural(len(all), "ghost"), kept)
	}
	return g
}
