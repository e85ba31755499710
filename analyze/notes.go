package analyze

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

// Note is one line about the quality of the data.
type Note struct {
	Level string `json:"level"` // "ok", "missing" or "problem"
	Text  string `json:"text"`
	Count int64  `json:"count"` // occurrences, 0 where counting makes no sense
}

type notes []Note

func (n *notes) add(level string, count int64, format string, args ...any) {
	*n = append(*n, Note{Level: level, Count: count, Text: fmt.Sprintf(format, args...)})
}

// Books adds up the checks of all devices: how often the file contradicts itself, and by how
// many active bytes the rebuilt end differs from the recorded one.
func (r *Result) Books() (contradictions, residual int64) {
	for i := range r.Devices {
		c := &r.Devices[i].Timeline.Checks
		contradictions += c.Inconsistent()
		residual += max(c.Residual, -c.Residual)
	}
	return contradictions, residual
}

// Verified says whether the histories that were rebuilt agree with the file, as far as nothing is missing.
func (r *Result) Verified() string { return r.proof().text() }

// VerifiedBriefly is Verified in a few words, for where a note says the rest.
func (r *Result) VerifiedBriefly() string { return r.proof().short }

// Verified is that of a single device.
func Verified(t *timeline.Timeline) string {
	rec := &t.Recording
	return proofOf(t.Checks.Inconsistent(), t.Checks.Residual, rec, t.HasHistory() || rec.LeftOut() != 0).text()
}

func (r *Result) proof() proof {
	contradictions, residual := r.Books()
	var rec timeline.Recording
	replayed := false
	for i := range r.Devices {
		t := r.Devices[i].Timeline
		rec.Add(&t.Recording)
		replayed = replayed || t.HasHistory() || t.Recording.LeftOut() != 0
	}
	return proofOf(contradictions, residual, &rec, replayed)
}

// proof is how far a replay is known to be right: in a few words, and what these leave out or, where they cannot be
// part of it, all of it.
type proof struct{ short, long string }

func (p proof) text() string {
	if strings.HasPrefix(p.long, ": ") {
		return p.short + p.long
	}
	return p.long
}

func proofOf(contradictions, residual int64, rec *timeline.Recording, replayed bool) proof {
	if contradictions != 0 || residual != 0 {
		off := ""
		if residual != 0 {
			off = units.Bytes(max(residual, -residual))
		}
		return proof{"not verified", finding.NotVerified(contradictions, off)}
	}
	if !replayed {
		return proof{"none: only the final state was recorded", Agreed}
	}
	var open []string
	p, s := &rec.Peak, &rec.Start
	for _, of := range []struct {
		name        string
		peak, start timeline.Bound
	}{
		{"reserved", p.Reserved, s.Reserved}, {"active", p.Active, s.Active}, {"allocated", p.Allocated, s.Allocated},
		{"requested", p.Requested, s.Requested},
	} {
		if of.peak != timeline.Exact || of.start != timeline.Exact {
			open = append(open, of.name)
		}
	}
	if len(open) == 0 {
		return proof{"verified", Exactly}
	}
	which := units.List(open) + " memory"
	if len(open) == 4 {
		which = "all figures"
	}
	// Kinds that happened for certain weigh more than those of which there may have been none.
	left := rec.LeftOut() &^ timeline.Failures
	switch {
	case left != 0 && len(open) == 4:
		return proof{"not verified", fmt.Sprintf(": the recording left out %s events (skip_actions)", left)}
	case left != 0:
		return proof{"verified, except " + which,
			fmt.Sprintf(": the recording left out %s events (skip_actions)", left)}
	case rec.Resized:
		return proof{"verified as far as recorded",
			": max_entries was changed while recording, so events may be missing"}
	}
	matter := timeline.Allocs | timeline.Frees
	if p.Reserved != timeline.Exact || s.Reserved != timeline.Exact {
		matter = ^timeline.Failures
	}
	kinds := units.Or(((rec.Unseen | rec.Partly) & matter).Names())
	if len(kinds) > 60 {
		kinds = "whole kinds of"
	}
	return proof{"verified, unless skip_actions was used", fmt.Sprintf(
		"verified, unless skip_actions left out %s events: %s would then be wrong", kinds, which)}
}

// Exactly is what Verified says where nothing is missing and nothing contradicts.
const Exactly = "verified: the replay matches the snapshot byte for byte"

// inferred is what to add for a trace that begins with memory, but with none in use: of that there is a note.
func inferred(t *timeline.Timeline) string {
	if t.Recording.Inferred && t.Checks.PreTraceBlocks == 0 {
		return "; the cache is taken to be older than they are"
	}
	return ""
}

// Agreed is said of a device without a history.
const Agreed = "the totals of segments agree with the sums of their blocks"

// quality says how complete and how consistent the data is.
func quality(s *snapshot.Snapshot, devices []Device) []Note {
	out := notes{}
	if s.Partial != nil {
		out.add("problem", 0, "Only part of the file could be read: %v.", s.Partial)
	}
	for i := range devices {
		t := devices[i].Timeline
		c := &t.Checks
		gpu := fmt.Sprintf("GPU %d: ", t.Device)
		n, events := c.Inconsistent(), t.Trace.Len()
		switch {
		case n > 0 || c.Residual != 0:
			out.add("problem", n, "%s%s.", gpu, Verified(t))
		case events > 0 && s.Partial != nil:
			out.add("missing", 0, "%s%s could be read. The file's state is from after the missing events, so the "+
				"end shown here is that of the last event.", gpu, units.Plural(events, "event"))
		case events > 0 && !t.HasHistory():
			out.add("ok", 0, "%s%s.", gpu, Agreed)
		case events > 0 && t.Recording.LeftOut() != 0:
			out.add("missing", 0, "%s%s (%s). Figures with ≥ or ≤ are bounds.", gpu, Verified(t),
				units.Plural(events, "event"))
		case events > 0:
			says := Verified(t)
			if says == Exactly {
				says += fmt.Sprintf(" (%s)", units.Plural(events, "event"))
			}
			out.add("ok", 0, "%s%s%s.", gpu, says, inferred(t))
		default:
			out.add("ok", 0, "%s%s.", gpu, Agreed)
		}
		switch w := t.Window(); {
		case c.PreTraceBlocks == 0 || !t.HasHistory():
		case w != nil:
			out.add("ok", c.PreTraceBlocks, "%s%s (%s) are older than the window. The events before it tell where they "+
				"lay, and who allocated them%s.", gpu, units.Plural(c.PreTraceBlocks, "block"), units.Bytes(t.Initial.Active),
				older(w))
		default:
			out.add("missing", c.PreTraceBlocks, "%s%s (%s) taken to be older than the first recorded event%s.",
				gpu, units.Plural(c.PreTraceBlocks, "block"), units.Bytes(t.Initial.Active), guess(&devices[i].Before))
		}
		if c.UnknownActions > 0 {
			out.add("missing", c.UnknownActions, "%s%s with an unknown action: left out.", gpu,
				units.Plural(c.UnknownActions, "event"))
		}
	}
	for _, ring := range s.Resized {
		if ring.Dropped > 0 {
			out.add("missing", int64(ring.Dropped), "GPU %d: max_entries was changed while recording. The oldest %s "+
				"were left out, since an unknown number is missing after them.", ring.Device,
				units.Plural(int64(ring.Dropped), "event"))
		} else {
			out.add("ok", 0, "GPU %d: max_entries was changed while recording, which put events out of order: sorted by "+
				"time again.", ring.Device)
		}
	}
	if why := verdict.Blind(s); s.HasStacks && why != "" {
		out.add("missing", 0, "Missing: frames of Python: %s, so that memory goes by operators and not by lines of the "+
			"program, and leaks cannot be judged.", why)
	}
	for _, m := range s.Missing {
		out.add("missing", 0, "Missing: %s.", platform.Of(s.Writer.Backend).Say(m))
	}
	if s.Clipped > 0 {
		out.add("missing", s.Clipped, "%s cut: paths are kept up to %s, names of functions up to %s, and less of either "+
			"where they are longer in total than the file.", units.Plural(s.Clipped, "long text was", "long texts were"),
			units.Bytes(snapshot.MaxName), units.Bytes(snapshot.MaxSymbol))
	}
	for _, u := range s.Unknown {
		out.add("missing", u.Count, "Unknown key %.200q in %s, %s: left out.", u.Key, u.Where, units.Times(u.Count))
	}
	return out
}

// Window says which part of each device's trace was read, "" where all was.
func (r *Result) Window() string {
	if r.Snapshot == nil || r.Snapshot.Window == nil {
		return ""
	}
	var parts []string
	for i := range r.Devices {
		if w := r.Devices[i].Timeline.Window(); w != nil {
			words := timeline.WindowWords(w)
			if len(r.Devices) > 1 {
				words = fmt.Sprintf("GPU %d %s", r.Devices[i].Timeline.Device, words)
			}
			parts = append(parts, words)
		}
	}
	return strings.Join(parts, "; ")
}

// older is what to add about blocks from before a window where the file itself begins with some.
func older(w *snapshot.WindowTrace) string {
	if w.Inferred {
		return ", but of those that are taken to be older than the first recorded event"
	}
	return ""
}

// stackless says how much of the memory that a report shows first was allocated by unknown code.
func (r *Result) stackless() []Note {
	if !r.Snapshot.HasStacks {
		return nil // which is said of the whole file
	}
	var all, none, before int64
	at := "at the moments shown"
	for i := range r.Devices {
		m, when := r.Decisive(&r.Devices[i])
		if m == nil {
			continue
		}
		if len(r.Devices) == 1 {
			at = when
		}
		for k := range m.Live {
			g := &m.Live[k]
			all += g.Rounded
			if g.Site == "" {
				none += g.Rounded
				before += g.PreTrace
			}
		}
	}
	if none <= all/10 { // backward passes have some on their threads, which their category tells
		return nil
	}
	why := "it was allocated before recording began, or on threads without Python frames"
	if r.Verdict.Status != finding.NoHistory {
		var parts []string
		if before > 0 {
			parts = append(parts, units.Bytes(before)+" is from before the trace")
		}
		if before < none {
			parts = append(parts, units.Bytes(none-before)+" was allocated on threads without Python frames")
		}
		why = strings.Join(parts, ", ")
	}
	var out notes
	out.add("missing", 0, "Missing: call stacks of %s of the memory in use %s: %s.", units.Percent(none, all), at, why)
	return out
}

// guess says what memory from before the trace most likely is, by its sizes.
func guess(b *attribution.Before) string {
	if b.Copies == 0 || b.UnchangedBytes < 1<<20 { // as small as that no model is
		return ""
	}
	what := [...]string{
		1: "most likely the model",
		2: "most likely the model and its gradients, or a copy of it: their sizes make two equal sets",
		3: "most likely parameters and two states of an optimizer such as Adam: their sizes make three equal sets",
		4: "most likely parameters, gradients and two states of an optimizer such as Adam: their sizes make four equal sets",
	}
	of := "they"
	if b.Unchanged < b.Blocks {
		of = fmt.Sprintf("%s of them (%s)", units.Count(b.Unchanged), units.Bytes(b.UnchangedBytes))
	}
	return "; " + of + " never change: " + what[b.Copies]
}

// pinnedNotes says how far the figures of pinned host memory can be trusted, and what they lack.
func pinnedNotes(m *host.Pinned) []Note {
	if m == nil {
		return nil
	}
	var out notes
	c := &m.Checks
	add := func(level string, count int64, format string, args ...any) {
		out.add(level, count, "Pinned host memory: "+format, args...)
	}
	n := m.Trace.Len()
	switch {
	case !c.Balanced():
		add("problem", c.Inconsistent(), "%s.", host.NotVerified(c))
	case n == 0:
		add("missing", 0, "only the final state was recorded, so its peak and its growth are unknown.")
	case !m.Stated:
		add("missing", 0, "%s, but no final state to compare with.", units.Plural(n, "event"))
	default:
		add("ok", 0, "%s (%s).", Exactly, units.Plural(n, "event"))
	}
	if c.Before > 0 && n > 0 {
		add("missing", c.Before, "%s in use before the first recorded event, or handed out while recording was off: the "+
			"start and the peak assume the former.", units.Plural(c.Before, "block"))
	}
	if c.Moved > 0 {
		add("missing", c.Moved, "%s out of order, since the size of the ring was changed: put back by time.",
			units.Plural(c.Moved, "event"))
	}
	if c.Left > 0 {
		add("missing", c.Left, "%s from before a gap left out: the size of the ring was changed.",
			units.Plural(c.Left, "event"))
	}
	if c.Stateless > 0 {
		add("missing", c.Stateless, "the file does not say whether %s.",
			units.Plural(c.Stateless, "block is in use", "blocks are in use"))
	}
	if c.Unknown > 0 {
		add("missing", c.Unknown, "%s with an unknown action: left out.", units.Plural(c.Unknown, "event"))
	}
	if c.Lists > 0 {
		add("missing", c.Lists, "%s further lists of events were left out.", units.Count(c.Lists))
	}
	if n > 0 && len(m.Holders) == 1 && m.Holders[0].Stack <= snapshot.EmptyStack {
		add("missing", 0, "no recorded stacks, so the code that allocated it is unknown, and so are its leaks.")
	}
	return out
}
