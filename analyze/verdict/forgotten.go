package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/units"
)

// How many iterations tell where the program's text is known.
const (
	unread = 8  // that nothing reads what they left, is no accident
	unused = 8  // before that, what the text reads or empties elsewhere is not looked at
	far    = 64 // times what it has: a bound that is as good as none
	filled = 16 // as unused, of what it empties: most buffers take no longer
)

// forgotten is how sure it is that nobody needs what a holder keeps. That it was seen to hold the memory, and to get
// more, shows who it is, and not that it was forgotten.
type forgotten struct {
	confidence finding.Confidence
	note       bool // no more than a note: what would be as it should be is more likely
	why        []string
	next       string // how to tell, "" where it is shown
}

// forget weighs what was seen of a holder that grows. Inferred is the confidence of the growth without a holder.
func forget(h *finding.Holder, g *finding.Growth, inferred finding.Confidence) forgotten {
	v := weigh(h, g, inferred)
	if g.Spent && v.confidence == finding.Low && (h.Code == nil || h.Code.Drops == 0) {
		v.confidence, v.note = finding.Medium, false
	}
	return v
}

func weigh(h *finding.Holder, g *finding.Growth, inferred finding.Confidence) forgotten {
	shown := func(why string, args ...any) forgotten {
		return forgotten{confidence: finding.High, why: []string{fmt.Sprintf(why, args...)}}
	}
	c := h.Code
	// A list of losses is emptied after the backward pass that it is filled for.
	awaited := c != nil && c.Drops > 0 && h.Bound != nil && h.Bound.Length < h.Bound.Limit
	switch {
	case h.Kind == "cycle":
		return shown("Nothing else refers to it, so the program cannot use it again.")
	case h.Orphans > 0:
		return shown("%s of it are in no module any more: only the optimizer refers to them, and has state for them.",
			units.Plural(h.Orphans, "parameter"))
	case h.Optimizers > 0:
		return shown("%s have state for the same parameters: all but the newest are left over.",
			units.Plural(h.Optimizers, "optimizer"))
	case h.Hooks >= ghost.MinLaps:
		return forgotten{confidence: finding.High, why: []string{fmt.Sprintf("%s of the same function are registered at the "+
			"same place, each with memory of its own: all of them run each time.", units.Plural(h.Hooks, "hook"))},
			next: "Register it once, or remove it when done with it; if each of them is meant, their number stays as it is."}
	case h.Kind == "traceback":
		return shown("It is kept only because an exception is: the traceback has the variables of each function in it.")
	case h.Logged && h.Bound != nil && h.Bound.Length < h.Bound.Limit && h.Bound.Limit < far*h.Bound.Length:
		v := forgotten{confidence: finding.Medium, why: []string{"Records of Python's logging have it, which keep the arguments " +
			"of their messages as they are, until the handler is full and empties itself."},
			next: "If the device has room for what the handler takes when full, nothing is forgotten; else give it a smaller " +
				"capacity, or text instead of tensors."}
		if h.Bound.Limit < filled*h.Bound.Length {
			v.confidence = finding.Low
		}
		return v
	case h.Logged:
		return shown("Records of Python's logging have it, which keep the arguments of their messages as they are.")
	case h.Graph && g.Trained && !g.Like.Pending && !awaited:
		return shown("It has autograd graphs behind it from before later backward passes: nothing can use them again.")
	case h.Graph && inferred == finding.High && !awaited:
		return shown("It has autograd graphs behind it, and no backward pass ran for them.")
	case c == nil || !c.Whole:
		return unknown(h, g, inferred)
	case c.Drops > 0 && g.Like.Stale && g.Iterations >= filled:
		return forgotten{confidence: finding.Medium, why: []string{fmt.Sprintf("The program empties it at %s, which left "+
			"all of these %d iterations alone, and the model went on to train.", c.Dropped, g.Iterations)},
			next: fmt.Sprintf("Look at %s: whether it runs as often as something is added, at %s.", c.Dropped, c.Added)}
	case c.Drops > 0:
		few := g.Iterations < unused || g.Iterations*max(1, g.Every) < filled // steps tell as much where some leave nothing
		return forgotten{confidence: finding.Low, note: few, why: []string{fmt.Sprintf(
			"The program empties it at %s, which left all of these %d iterations alone.", c.Dropped, g.Iterations)},
			next: fmt.Sprintf("If it is emptied at %s soon enough, plan for what it takes until then; else empty it more "+
				"often.", c.Dropped)}
	case c.Reads == 0 && c.Newest < 0:
		return forgotten{confidence: finding.Medium, why: []string{fmt.Sprintf("The program reads only its last entries, at "+
			"%s, and removes nothing from it.", c.Recent)}, next: fmt.Sprintf("Look at %s: the entries before those that "+
			"it reads can go.", c.Recent)}
	case c.Reads == 0 && c.Newest > 0:
		return shown("The program reads only the last %s of its %s entries, at %s: nothing reads those before.",
			units.Count(c.Newest), units.Count(c.Length), c.Recent)
	case c.Reads == 0:
		v := shown("Nothing in the program's text reads what was added before: it is only added to, at %s.", c.Added)
		if g.Iterations < unread {
			v.confidence = finding.Medium
		}
		return v
	case c.Filled != "":
		return forgotten{confidence: finding.Low, note: g.Iterations < unused, why: []string{fmt.Sprintf("The program adds "+
			"to it at %s where a key is missing, and removes nothing: a cache, which grows as long as new keys come.",
			c.Filled)}, next: "Count its entries and how often one is found: if keys come again, it stops growing by itself; if " +
			"most are new, give it a bound, as functools.lru_cache(maxsize=...) has."}
	case g.Like.Stale:
		return forgotten{confidence: finding.Medium, why: []string{fmt.Sprintf("The program reads it at %s, and removes "+
			"nothing from it.", c.Read)}, next: tell(c)}
	}
	return forgotten{confidence: finding.Low, note: g.Iterations < unused, why: []string{fmt.Sprintf("The program "+
		"reads it at %s, and removes nothing from it: it may be kept for use, and still has no bound.", h.Code.Read)},
		next: tell(h.Code)}
}

// tell says how to tell memory that is kept for use from a leak.
func tell(c *finding.Code) string {
	return fmt.Sprintf("Look at %s: if it needs all entries, bound them or keep them on the host (.cpu()); if it needs "+
		"the last ones or a mean, drop the others.", c.Read)
}

// unknown is where the program's text is not known, or can get at the memory in ways that it does not show.
func unknown(h *finding.Holder, g *finding.Growth, inferred finding.Confidence) forgotten {
	v := forgotten{confidence: inferred}
	if inferred == finding.High {
		return v
	}
	v.why = append(v.why, "Whether the program still needs it was not seen.")
	if (h.Graph || g.Like.Model) && !g.Like.Fill && g.Iterations >= enough && h.Lost == 0 {
		v.confidence = finding.Medium
	}
	if h.Gone > 0 && g.Like.Use {
		v.why = append(v.why, fmt.Sprintf("It dropped %s of the %s keys that it had in the earlier dump: it frees memory "+
			"too, as a cache or a table of requests does.", units.Count(h.Gone), units.Count(h.Keys)))
		v.confidence = finding.Medium
	}
	if g.Like.Early {
		v.confidence = finding.Medium
		if h.Ordered {
			v.why = append(v.why, "It is an OrderedDict, as bounded caches usually are.")
		}
		if h.Gone > 0 || h.Ordered {
			v.note, v.confidence = true, finding.Low // then it is more likely one that is not full yet
		}
	}
	return v
}

// enough is how many iterations a buffer of a model's results rarely takes to fill.
const enough = 16
