package verdict

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/units"
)

// Fit is the headline of what a program needs at other values.
func Fit(r *fit.Result) string {
	c := &r.Capacity
	if r.Limit == nil {
		last := r.Predictions[len(r.Predictions)-1]
		return sentence(fmt.Sprintf("%s needs %s reserved: allocated peak = %s", valuesOf(r.Names, last.Values), about(&last), r.Law))
	}
	room := units.Bytes(c.Reservable)
	if c.Source == "asked" {
		room = fmt.Sprintf("%s (%s for PyTorch)", units.Bytes(c.Device), room)
	}
	if r.Largest == nil {
		return fmt.Sprintf("Nothing fits in %s: %s does not", room, valuesOf(r.Names, r.Limit.Values))
	}
	at := append(fit.Point{*r.Largest}, r.Limit.Values[1:]...)
	out := fmt.Sprintf("%s is the largest that fits in %s", valuesOf(r.Names, at), room)
	if l := r.Limit; l.Low < l.High {
		out += fmt.Sprintf(", give or take: %s %d fits for certain, and nothing above %d", r.Names[0], l.Low, l.High)
		if l.Low == 0 {
			out = fmt.Sprintf("%s may be the largest that fits in %s; nothing above %d does", valuesOf(r.Names, at), room, l.High)
		}
	}
	return sentence(out)
}

// about is the reserved peak of a prediction, with its bounds where they are apart.
func about(p *fit.Prediction) string {
	low, high := units.Bytes(p.ReservedLow), units.Bytes(p.ReservedHigh)
	if low == high {
		return units.Bytes(p.ReservedPeak)
	}
	return fmt.Sprintf("about %s (%s to %s)", units.Bytes(p.ReservedPeak), low, high)
}

// sentence begins with a capital.
func sentence(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}

// valuesOf writes "batch 16", or "batch 16 with seq 512".
func valuesOf(names []string, p fit.Point) string {
	out := fmt.Sprintf("%s %s", names[0], units.Count(p[0]))
	if len(names) > 1 {
		out += fmt.Sprintf(" with %s %s", names[1], units.Count(p[1]))
	}
	return out
}

// FitLimit says what fails first beyond the largest value that fits, "" without a capacity.
func FitLimit(r *fit.Result) string {
	l := r.Limit
	if l == nil {
		return ""
	}
	out := fmt.Sprintf("%s: memory from before the recording does not fit", valuesOf(r.Names, l.Values))
	if l.Requested > 0 {
		out = fmt.Sprintf("%s: a request for %s fails %s", valuesOf(r.Names, l.Values), units.Bytes(l.Requested),
			FitPlace(&l.Place))
		if l.Short > 0 {
			out += fmt.Sprintf(", %s short", units.Bytes(l.Short))
		}
	}
	if len(l.Beyond) > 0 {
		out += fmt.Sprintf("; %s %d would fit again, by the chance of its layout", r.Names[0], l.Beyond[0])
	}
	return out
}

// FitPlace says where a run is: "in backward of step 2, at model.py:31 forward".
func FitPlace(p *fit.Place) string {
	if p.Event < 0 {
		return "before the recording begins"
	}
	var out []string
	if p.Phase != "" {
		out = append(out, "in "+p.Phase)
	}
	if p.Step >= 0 {
		if len(out) > 0 {
			out[0] += fmt.Sprintf(" of step %d", p.Step+1)
		} else {
			out = append(out, fmt.Sprintf("in step %d", p.Step+1))
		}
	}
	if p.Site != "" {
		out = append(out, fitSite(p.Site, p.Phase))
	}
	return strings.Join(out, ", ")
}

// fitSite says which code makes a request: what has no Python frames in backward is autograd's own thread.
func fitSite(site, phase string) string {
	switch {
	case site == attribution.NoStackBefore:
		return "from before the trace, without a stack"
	case site == attribution.NoStack:
		return "at a call without a stack"
	case site != attribution.NoFrames:
		return "at " + site
	case strings.HasPrefix(phase, "backward"):
		return "on autograd's thread"
	}
	return "on a thread without Python frames"
}

// FitProof says how far the predictions can be trusted.
func FitProof(r *fit.Result) (out []string) {
	share := func(v float64) string { return units.Percent(int64(v*1e6), 1e6) }
	switch {
	case len(r.Recorded) == 1:
		out = append(out, "An estimate: one recording does not tell what grows. A second one, at another value, does.")
	case !slices.ContainsFunc(r.Recorded[1:], func(rec fit.Recorded) bool { return !rec.Aside }):
		out = append(out, "An estimate from one recording: no other can be aligned with it.")
	case r.ProvenShare >= r.ExactShare:
		out = append(out, fmt.Sprintf("%s of the bytes at the highest peak follow a proven law: the same call in all recordings, "+
			"and a law that fits its sizes exactly.", share(r.ProvenShare)))
	default:
		out = append(out, fmt.Sprintf("%s of the bytes at the highest peak follow a proven law, and %s one that fits exactly, "+
			"as others would; one more recording would tell.", share(r.ProvenShare), share(r.ExactShare-r.ProvenShare)))
	}
	var heldOut, order []string
	for i := range r.Checks {
		c := &r.Checks[i]
		text := fmt.Sprintf("%s %+.1f%%", valuesOf(r.Names, c.Values), 100*c.Error)
		if c.Error == 0 {
			text = valuesOf(r.Names, c.Values) + " exactly"
		}
		if c.HeldOut {
			heldOut = append(heldOut, text)
		} else {
			order = append(order, text)
		}
	}
	if len(heldOut) > 0 {
		out = append(out, "Reserved peaks of recordings, each predicted from the others alone: "+units.List(heldOut)+".")
	}
	if len(order) > 0 {
		out = append(out, "Reserved peaks with the order of requests of the other recording: "+units.List(order)+".")
	}
	return out
}

// FitWord is the answer in a word, with its tone.
func FitWord(r *fit.Result) (string, finding.Tone) {
	switch {
	case r.Limit == nil:
		return "Predicted", finding.Neutral
	case r.Largest == nil:
		return "Full", finding.Bad
	}
	return "Fits", finding.Good
}

// FitLaw says how the allocated peak grows over a stretch of values, and where it is.
func FitLaw(r *fit.Result, s *fit.Stretch) string {
	law := "allocated peak = " + s.Law
	if len(r.Laws) > 1 {
		to := ""
		if s.To > s.From {
			to = " to " + units.Count(s.To)
		}
		law = fmt.Sprintf("%s %s%s: %s", r.Names[0], units.Count(s.From), to, law)
	}
	return law + ", " + FitPlace(&s.Peak)
}

// FitAnswer says whether a value fits, "" where that was not asked.
func FitAnswer(p *fit.Prediction) string {
	switch {
	case p.Fits == nil:
		return ""
	case *p.Fits:
		return either(p.Sure, "yes", "probably")
	}
	return either(p.Sure, "no", "probably not")
}

// FitUnproven says of which memory no law is proven, and why.
func FitUnproven(u *fit.Unproven) string {
	bounds := ""
	if u.Low < u.High {
		bounds = fmt.Sprintf(" (%s to %s)", units.Bytes(u.Low), units.Bytes(u.High))
	}
	return fmt.Sprintf("%s%s %s: %s", units.Bytes(u.Bytes), bounds, fitSite(u.Site, ""), u.Why)
}
