package text

import (
	"cmp"
	"fmt"
	"io"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
)

// WhatIf prints what other settings would have done to a run. why says why it is about that device,
// if anything.
func WhatIf(w io.Writer, a *whatif.Answer, r *allocator.Recorded, why string, o Options) error {
	if o.Brief {
		return briefWhatIf(a, r).doc(o).print(w)
	}
	d := newDoc(o)
	d.margin = 10
	say := func(label string, texts ...string) {
		for _, t := range texts {
			d.list(label, []string{t}, 0)
			label = ""
		}
	}
	d.linef("%s, GPU %d: %s events, %s requests", chart.ClipLeft(chart.Plain(a.File), 60), a.Device,
		units.Count(a.Events), units.Count(a.Accuracy.Requests))
	say("", when(why != "", "(GPU %d %s)", a.Device, why))
	say("Replay", accuracyText(&a.Accuracy))
	say("", when(a.Accuracy.FirstEvent >= 0, "First difference at event %d: %s %s", a.Accuracy.FirstEvent,
		a.Accuracy.What, a.Accuracy.Why))
	say("Start", startText(&a.Start))
	say("Device", capacityText(&a.Capacity))
	d.gap()
	d.settings(a, r)
	d.gap()
	var reads []string
	for i := range a.Rows {
		reads = append(reads, readText(&a.Rows[i], r.Release)...)
	}
	say("Reads", reads...)
	say("Note", when(a.Doubt != "", "%s", a.Doubt))
	var failures []string
	for i := range a.Rows {
		if a.Rows[i].First != nil && (i == 0 || i == a.Best) {
			failures = append(failures, failureText(&a.Rows[i]))
		}
	}
	say("Failure", failures...)
	for i := range a.Rows {
		if e := a.Rows[i].Assumed; e != nil {
			say("Estimates", fmt.Sprintf("~ marks settings that serve a request which failed in the run, the first at event "+
				"%s. Nothing records when its memory would be freed, nor what would have been allocated next; the figures "+
				"take it to be freed at once.", units.Count(*e)))
			break
		}
	}
	say("Advice", when(a.Best >= 0 && a.Accuracy.Trusted, "* ")+WhatIfAdvice(a))
	if a.Accuracy.Trusted {
		say("Costs", a.Costs...)
	}
	say("Minimum", smallest(a, r)...)
	return d.print(w)
}

// WhatIfAdvice says which setting to take.
func WhatIfAdvice(a *whatif.Answer) string {
	switch {
	case !a.Accuracy.Trusted:
		return "None: the replay matches less than 99% of the trace, so the figures are guesses."
	case a.Best < 0 && a.Rows[0].Failures > 0:
		return "None of these settings serves every request."
	case a.Best < 0:
		return "None of these settings lowers the peak by 5% and 64 MiB: keep the current ones."
	}
	return a.Text
}

// readText says what a release makes of settings where it is not what is written.
func readText(row *whatif.Row, r allocator.Release) (out []string) {
	if row.Refused != "" {
		out = append(out, fmt.Sprintf("%s refuses %s: %s", r.Torch(), row.Text, row.Refused))
	}
	for _, m := range row.Misread {
		out = append(out, fmt.Sprintf("%s reads %s as %s", r.Torch(), m.Written, m.Read))
	}
	return out
}

// smallest says how small a device can be, under the recorded settings and under those that
// need least.
func smallest(a *whatif.Answer, r *allocator.Recorded) []string {
	recorded, least := &a.Rows[0], &a.Rows[0]
	for i := range a.Rows {
		if row := &a.Rows[i]; row.Smallest > 0 && row.Smallest < least.Smallest {
			least = row
		}
	}
	if recorded.Smallest == 0 {
		return nil
	}
	need := func(row *whatif.Row) string {
		device := when(a.Capacity.Source == "asked", " for PyTorch, so a device of %s,",
			units.Bytes(row.Smallest+a.Capacity.Foreign))
		return units.Bytes(row.Smallest) + device + " with " + settingName(row, r)
	}
	out := []string{"device memory (to 2 MiB): " + when(a.Capacity.Least, "at least ") + need(recorded)}
	if least.Smallest <= recorded.Smallest/100*99 { // else hardly
		out = append(out, need(least))
	}
	if a.Start.Mode != "empty" {
		out = append(out, "Here blocks from before the trace are allocated again.")
	}
	return out
}

func accuracyText(l *whatif.Accuracy) string {
	count := units.Count[int]
	share := units.Percent(int64(l.SameRequests), int64(l.Requests))
	if l.SameRequests < l.Requests && share == "100%" {
		share = "less than 100%"
	}
	return fmt.Sprintf("accuracy %s: under the recorded settings %s of %s requests get their recorded address; "+
		"%s of %s segment events and %s of %s final blocks are the same",
		share, count(l.SameRequests), count(l.Requests), count(l.SameSegments), count(l.Segments), count(l.SameBlocks),
		count(l.Blocks))
}

func startText(b *whatif.Begin) string {
	there := fmt.Sprintf("%s blocks (%s) in %s reserved from before the trace", units.Count(b.Blocks),
		units.Bytes(b.Bytes),
		units.Bytes(b.Reserved))
	switch b.Mode {
	case "keep":
		return there + " stay where earlier settings had put them (--start anew allocates them again)"
	case "anew":
		return there + " are allocated again under each setting, without the holes between them"
	}
	return "nothing was reserved before the trace"
}

func capacityText(c *whatif.Capacity) string {
	switch c.Source {
	case "asked":
		return fmt.Sprintf("%s, less %s not PyTorch's (--foreign): PyTorch can reserve %s", units.Bytes(c.Device),
			units.Bytes(c.Foreign), units.Bytes(c.Reservable))
	case "failure":
		return fmt.Sprintf("PyTorch can reserve %s, as in the run, which ran out of memory "+
			"(--capacity tries another limit)", units.Bytes(c.Reservable))
	case "retry":
		return fmt.Sprintf("PyTorch can reserve about %s, as in the run, which released its cache when the device "+
			"was full (--capacity tries another limit)", units.Bytes(c.Reservable))
	}
	return "no limit (--capacity tries one)"
}

// settingName names a row, and says where the file does not record the settings of the run.
func settingName(r *whatif.Row, rec *allocator.Recorded) string {
	if r.Recorded && !rec.Known {
		return cmp.Or(r.Text, "the defaults") + " (the file does not record any)"
	}
	return chart.Setting(r)
}

// settings adds a row for each setting that was replayed.
func (d *doc) settings(a *whatif.Answer, rec *allocator.Recorded) {
	t := d.table(plain, num("reserved", 9), column{head: "change", sep: " ", width: 6},
		column{head: "waste", sep: " ", width: 9}, column{head: "calls", sep: " ", width: 6},
		column{head: "retries", sep: " ", width: 7}, column{head: "fails", sep: " ", width: 5},
		column{sep: " ", width: -1}, column{head: "settings"})
	base := a.Rows[0].ReservedPeak
	for i := range a.Rows {
		r := &a.Rows[i]
		mark, name := when(i == a.Best, "*"), settingName(r, rec)
		if r.StartFailed {
			t.row("-", "-", "-", "-", "-", "start", mark, name)
			continue
		}
		t.row(units.Size(r.ReservedPeak), percent(r.ReservedPeak, base), units.Size(r.Waste),
			units.Count(r.Calls()), units.Count(r.Retries), when(r.Assumed != nil, "~")+units.Count(r.Failures), mark, name)
	}
}

func percent(n, base int64) string {
	if n == base || base == 0 {
		return "-"
	}
	switch p := units.Percent(n-base, base); {
	case p == "0.0%" || p == "-0.0%":
		return "0.0%"
	case n > base:
		return "+" + p
	default:
		return p
	}
}

func failureText(r *whatif.Row) string {
	name, f := cmp.Or(r.Text, "the defaults"), r.First
	return failedText("With "+name, f)
}

// failedText says which request fails first with something.
func failedText(with string, f *whatif.Failure) string {
	what := "fails first, and the run would have ended there"
	if f.Recorded {
		what = "fails as in the run"
	}
	site := when(f.Site != "", " from %s", f.Site)
	return fmt.Sprintf("%s the request for %s at event %s%s %s: %s was reserved, %s of it allocated.", with,
		units.Bytes(f.Requested), units.Count(f.Event), site, what, units.Bytes(f.Reserved), units.Bytes(f.Allocated))
}
