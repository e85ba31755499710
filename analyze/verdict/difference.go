package verdict

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/units"
)

// Difference says in one sentence what changed from one side to the other, and why.
func Difference(r *diff.Result) string {
	a, b := r.A.Totals.Active, r.B.Totals.Active
	switch {
	case len(r.Causes) == 0 && a == 0:
		return "No difference: nothing is active on either side."
	case len(r.Causes) == 0:
		return fmt.Sprintf("No difference: %s active on both sides, from the same code.", units.Bytes(a))
	}
	first := &r.Causes[0]
	if first.Kind == diff.Moved && len(r.Causes) == 1 {
		return fmt.Sprintf("No difference: %s active on both sides, %s of it from other lines.", units.Bytes(a),
			units.Bytes(first.Moved))
	}
	if r.Delta() == 0 {
		return fmt.Sprintf("As much active memory on both sides, %s, and not all of it the same: %s.", units.Bytes(a),
			CauseOf(first))
	}
	s := fmt.Sprintf("%s (%s to %s): %s", units.Signed(r.Delta()), units.Bytes(a), units.Bytes(b), CauseOf(first))
	if part := float64(first.Bytes) / float64(r.Delta()); part > 0.95 && part < 1.05 {
		return s + "."
	}
	return fmt.Sprintf("%s, %s of it.", s, units.Signed(first.Bytes))
}

// Changed is the word for a difference as a whole, and its tone.
func Changed(r *diff.Result) (string, finding.Tone) {
	switch {
	case r.Noise():
		return "Noise", finding.None
	case r.Delta() > 0:
		return "Grown", finding.Warn
	case r.Delta() < 0:
		return "Shrunk", finding.Good
	case len(r.Causes) > 0 && (r.Causes[0].Kind != diff.Moved || len(r.Causes) > 1):
		return "Other", finding.Neutral
	}
	return "Same", finding.Good
}

// WhyDifferent says in a sentence each what makes the difference, without those causes that are below a hundredth of the
// first unless all are wanted. It says nothing beyond Difference where there is but one.
func WhyDifferent(r *diff.Result, all bool) (why []string) {
	for i := range r.Causes {
		c, first := &r.Causes[i], r.Causes[0].Bytes
		small := i > 0 && c.Kind != diff.Moved && max(c.Bytes, -c.Bytes) < max(first, -first)/100
		if small && !all {
			var rest int64
			for _, c := range r.Causes[i:] {
				rest += c.Bytes
			}
			why = append(why, fmt.Sprintf("%s for other reasons; the table has all.", units.Signed(rest)))
			break
		}
		if c.Kind == diff.Moved {
			why = append(why, CauseOf(c)+".")
			continue
		}
		why = append(why, fmt.Sprintf("%s: %s.", units.Signed(c.Bytes), CauseOf(c)))
	}
	if len(why) < 2 {
		return nil
	}
	return why
}

// SideOf says of a side which GPU and moment it is, and of which of several runs.
func SideOf(f *footprint.Footprint, s *diff.Spread) string {
	words := fmt.Sprintf("GPU %d, %s", f.Device, f.When)
	if s != nil {
		words += fmt.Sprintf("; the median of %s, %s to %s active", units.Plural(s.Runs, "run"), units.Bytes(s.Low),
			units.Bytes(s.High))
	}
	return words
}

// Unfollowed says what is not known of how memory rose and fell over the traces, "" where both are known.
func Unfollowed(r *diff.Result) string {
	var without []string
	for i, f := range []*footprint.Footprint{r.A, r.B} {
		if f.Course == nil {
			without = append(without, "AB"[i:i+1])
		}
	}
	switch {
	case len(without) == 0:
		return ""
	case len(without) == 2 && (len(r.A.Steps) == 0 || len(r.B.Steps) == 0):
		return "Neither side comes with a trace, so nothing is known between the moments that are compared."
	case len(without) == 2:
		return "Neither side comes with a trace, so the peaks of steps are compared."
	case len(r.A.Steps) > 0 && len(r.B.Steps) > 0:
		return "Side " + without[0] + " comes without a trace, so the peaks of steps are compared."
	}
	return "Side " + without[0] + " comes without a trace: only the moment that is compared is known."
}

// HowOf says by what code of one side was known on the other.
func HowOf(h diff.How) string {
	return [...]string{diff.Exact: "by the same lines", diff.Shifted: "by lines that moved", diff.Renamed: "by other names",
		diff.Inlined: "with calls put in or taken out", diff.Similar: "by similar calls", diff.Alone: "no partner"}[h]
}

// CauseOf says of a cause what changed, and where most of it is.
func CauseOf(c *diff.Cause) string {
	words := causeWords(c)
	if len(c.Sites) == 0 || c.Kind == diff.Unrecorded || c.Kind == diff.Between || c.Kind == diff.Progress {
		return words
	}
	site := c.Sites[0]
	if c.Bytes == 0 {
		return words + ", at several places"
	}
	switch share := math.Abs(float64(site.Bytes) / float64(c.Bytes)); {
	case len(c.Sites) == 1 || share > 0.9:
		return words + ", at " + site.Site
	case share > 0.5:
		return words + ", most of it at " + site.Site
	}
	return words + ", the largest part at " + site.Site
}

func causeWords(c *diff.Cause) string {
	grew := c.Bytes > 0
	by, change := times(c.Ratio), either(c.Ratio > 1, "grew ", "shrank to ")+times(c.Ratio)
	switch c.Kind {
	case diff.Leak:
		if c.PerStep > 0 {
			return fmt.Sprintf("each step retains %s more", units.Bytes(c.PerStep))
		}
		return fmt.Sprintf("each step retains %s less", units.Bytes(-c.PerStep))
	case diff.Part:
		switch {
		case c.From == "":
			return "the peak is now in " + c.To
		case c.To == "":
			return "the peak is no longer in " + c.From
		}
		return fmt.Sprintf("the peak is in %s, no longer in %s", c.To, c.From)
	case diff.Between:
		if c.To != "" {
			return "activations no longer make the peak, which is at " + c.To
		}
		return "activations make the peak, which was at " + c.From
	case diff.Progress:
		for _, u := range c.Uses {
			if u.Category == category.Gradient {
				return "the peak comes " + either(u.Bytes < 0, "earlier", "later") + " in the backward pass"
			}
		}
	case diff.Checkpointing:
		return either(grew, "activations are kept for the backward pass, no longer recomputed (torch.utils.checkpoint)",
			"activations are recomputed in the backward pass (torch.utils.checkpoint)")
	case diff.Graph:
		return either(grew, "tensors are now kept between forward and backward", "tensors are no longer kept for a backward pass")
	case diff.Optimizer:
		return either(grew, "the optimizer keeps more state", "the optimizer keeps less state")
	case diff.Precision:
		return "parameters and what is computed from them take " + by + " the bytes, as numbers of another precision do"
	case diff.Width:
		return "layers are " + by + " as wide"
	case diff.Length:
		return fmt.Sprintf("an input size such as the sequence length %s, and %s of it by its square", change,
			units.Signed(c.Squared))
	case diff.Batch:
		return "activations " + change + ", as with another batch size" + either(isHalved(c.Ratio), ", sequence length or precision",
			" or sequence length")
	case diff.Scale:
		if !slices.ContainsFunc(c.Uses, func(u diff.Use) bool { return u.Category == category.Parameter }) {
			return "the same tensors take " + by + " the bytes" + either(isHalved(c.Ratio), ", as in another precision", "")
		}
		return "a size of some layers " + change
	case diff.Layers:
		return by + " as many layers"
	case diff.Count:
		if c.Ratio == 0 {
			return either(grew, "more blocks of the same sizes are live, as where a loop keeps what it makes",
				"fewer blocks of the same sizes are live")
		}
		return by + " as many blocks of the same sizes"
	case diff.Rounding:
		return "the allocator took other blocks for the same requests"
	case diff.New:
		return "B has " + uses(c) + " of code that has none in A"
	case diff.Gone:
		return "A has " + uses(c) + " of code that has none in B"
	case diff.Moved:
		return units.Bytes(c.Moved) + " comes from other lines, in blocks of the same sizes"
	case diff.Unrecorded:
		return either(grew, "more ", "less ") + uses(c) + " without a recorded stack"
	}
	return "the same code has " + either(grew, "more ", "less ") + uses(c)
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// times prints a factor: "2x", "0.5x", "1.45x".
func times(ratio float64) string {
	switch {
	case ratio > 0.99 && ratio < 1.01:
		return strconv.FormatFloat(ratio, 'f', 4, 64) + "x"
	case ratio >= 100:
		return strconv.FormatFloat(ratio, 'f', 0, 64) + "x"
	}
	return fmt.Sprintf("%.3gx", ratio)
}

func isHalved(ratio float64) bool { return ratio == 0.5 || ratio == 2 }

// uses names what most of a cause's memory is for.
func uses(c *diff.Cause) string {
	name := c.Uses[0].Category.String()
	switch name {
	case "unknown", "other":
		return "memory"
	}
	return name + " memory"
}

// GuardOf says why two sides may not be comparable.
func GuardOf(g *diff.Guard) string {
	side, has, was, its := "Side A", "has", "was", "its peak"
	switch {
	case g.A != "" && g.B != "":
		side, has, was, its = "Both sides", "have", "were", "their peaks"
	case g.A == "":
		side = "Side B"
	}
	switch g.Kind {
	case diff.Moment:
		return fmt.Sprintf("The moments are of different kinds: %s on side A, %s on side B.", g.A, g.B)
	case diff.Backend:
		return fmt.Sprintf("The devices are of different kinds: %s and %s.", g.A, g.B)
	case diff.Writer:
		return fmt.Sprintf("Different releases of torch wrote the files: %s and %s.", orUnknown(g.A), orUnknown(g.B))
	case diff.Settings:
		return fmt.Sprintf("The allocator's settings differ: %s on side A, %s on side B.", orNone(g.A), orNone(g.B))
	case diff.Rank:
		return fmt.Sprintf("The files are of different ranks: %s and %s.", g.A, g.B)
	case diff.Device:
		return fmt.Sprintf("The sides are different GPUs: %s and %s.", g.A, g.B)
	case diff.Bound:
		return fmt.Sprintf("%s %s no record of some events, so %s may not be exact.", side, has, its)
	case diff.NoTrace:
		return fmt.Sprintf("%s %s no history of events to tell a peak by: what is compared is the final state.", side, has)
	case diff.Late:
		return fmt.Sprintf("%s %s recorded from some time on only; %s may have been earlier.", side, was, its)
	case diff.NoStacks:
		return fmt.Sprintf("%s %s no stacks for most of the memory, so little can be said about the code.", side, has)
	case diff.Cut:
		return fmt.Sprintf("A report keeps the %d largest groups of memory, so the others are compared by category alone.",
			footprint.MostGroups)
	case diff.Place:
		return fmt.Sprintf("Another part of the program peaks: side A at %s, side B at %s.", g.A, g.B)
	case diff.Steps:
		return fmt.Sprintf("%s steps were recorded on side A, %s on side B.", g.A, g.B)
	case diff.Runs:
		var of []string
		for i, numbers := range []string{g.A, g.B} {
			if numbers != "" {
				of = append(of, fmt.Sprintf("%s of side %c", numbers, 'A'+i))
			}
		}
		return fmt.Sprintf("Not like the run that stands for its side, in rank, kind of device, moment, settings or history: run %s.",
			units.List(of))
	}
	return ""
}

func orUnknown(s string) string { return either(s != "", s, "unknown") }
func orNone(s string) string    { return either(s != "", s, "none of these") }
