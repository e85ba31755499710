package text

import (
	"cmp"
	"fmt"
	"io"
	"math"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
)

// WhatIf prints what other settings would have done to a run. why says why it is about that device,
// if anything.
func WhatIf(w io.Writer, a *whatif.Answer, r *allocator.Recorded, why string, o Options) error {
	p := newPrinter(w, o)
	p.margin = 10
	p.linef("%s, GPU %d: %s events, %s requests", chart.ClipLeft(chart.Plain(a.File), 60), a.Device, count(a.Events), count(a.Accuracy.Requests))
	if why != "" {
		p.say("", fmt.Sprintf("(GPU %d %s)", a.Device, why))
	}
	p.say("Replay", accuracyText(&a.Accuracy))
	if a.Accuracy.FirstEvent >= 0 {
		p.say("", fmt.Sprintf("First difference at event %d: %s %s", a.Accuracy.FirstEvent, a.Accuracy.What, a.Accuracy.Why))
	}
	p.say("Start", startText(&a.Start))
	p.say("Device", capacityText(&a.Capacity))
	p.line("")
	p.settings(a, r)
	p.line("")
	label := "Failure"
	for i := range a.Rows {
		if a.Rows[i].First != nil && (i == 0 || i == a.Best) {
			p.say(label, failureText(&a.Rows[i]))
			label = ""
		}
	}
	switch {
	case !a.Accuracy.Trusted:
		p.say("Advice", "None: the replay matches less than 99% of the trace, so the figures above are guesses.")
	case a.Best < 0 && a.Rows[0].Failures > 0:
		p.say("Advice", "None of these settings serves every request.")
	case a.Best < 0:
		p.say("Advice", "None of these settings lowers the peak by 5% and 64 MiB: keep the current ones.")
	default:
		p.say("Advice", "* "+a.Text)
		label := "Costs"
		for _, c := range a.Costs {
			p.say(label, c)
			label = ""
		}
	}
	p.smallest(a, r)
	return p.w.Flush()
}

// say prints a text under a label in the margin, however long it is.
func (p *printer) say(label, text string) {
	p.section(label, []string{chart.Plain(text)}, math.MaxInt)
}

// smallest says how small a device can be, under the recorded settings and under those that
// need least.
func (p *printer) smallest(a *whatif.Answer, r *allocator.Recorded) {
	least := 0
	for i := range a.Rows {
		if n := a.Rows[i].Smallest; n > 0 && n < a.Rows[least].Smallest {
			least = i
		}
	}
	if a.Rows[0].Smallest == 0 {
		return
	}
	if a.Rows[least].Smallest > a.Rows[0].Smallest/100*99 {
		least = 0 // hardly
	}
	label, lead := "Minimum", "device memory (to 2 MiB): "
	for _, i := range []int{0, least} {
		row := &a.Rows[i]
		text := lead + units.Bytes(row.Smallest)
		if a.Capacity.Source == "asked" {
			text += fmt.Sprintf(" for PyTorch, so a device of %s,", units.Bytes(row.Smallest+a.Capacity.Foreign))
		}
		p.say(label, text+" with "+settingName(row, r))
		label, lead = "", ""
		if least == 0 {
			break
		}
	}
	if a.Start.Mode != "empty" {
		p.say("", "Here blocks from before the trace are allocated again.")
	}
}

func count(n int) string { return units.Count(int64(n)) }

func accuracyText(l *whatif.Accuracy) string {
	share := units.Percent(int64(l.SameRequests), int64(l.Requests))
	if l.SameRequests < l.Requests && share == "100%" {
		share = "less than 100%"
	}
	return fmt.Sprintf("accuracy %s: under the recorded settings %s of %s requests get their recorded address; "+
		"%s of %s segment events and %s of %s final blocks are the same",
		share, count(l.SameRequests), count(l.Requests), count(l.SameSegments), count(l.Segments), count(l.SameBlocks), count(l.Blocks))
}

func startText(b *whatif.Begin) string {
	there := fmt.Sprintf("%s blocks (%s) in %s reserved", count(b.Blocks), units.Bytes(b.Bytes), units.Bytes(b.Reserved))
	switch b.Mode {
	case "keep":
		return there + " from before the trace stay where earlier settings had put them (--start anew allocates them again)"
	case "anew":
		return there + " from before the trace are allocated again under each setting, without the holes between them"
	}
	return "nothing was reserved before the trace"
}

func capacityText(c *whatif.Capacity) string {
	switch c.Source {
	case "asked":
		return fmt.Sprintf("%s, less %s not PyTorch's (--foreign): PyTorch can reserve %s", units.Bytes(c.Device), units.Bytes(c.Foreign), units.Bytes(c.Reservable))
	case "failure":
		return fmt.Sprintf("PyTorch can reserve %s, as in the run, which ran out of memory (--capacity tries another limit)", units.Bytes(c.Reservable))
	case "retry":
		return fmt.Sprintf("PyTorch can reserve about %s, as in the run, which released its cache when the device was full (--capacity tries another limit)", units.Bytes(c.Reservable))
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

// settings prints a row for each setting that was replayed.
func (p *printer) settings(a *whatif.Answer, rec *allocator.Recorded) {
	const format = "%9s %6s %9s %6s %7s %5s %s%s"
	p.linef(format, "reserved", "change", "waste", "calls", "retries", "fails", " ", "settings")
	base := a.Rows[0].ReservedPeak
	for i := range a.Rows {
		r := &a.Rows[i]
		mark := " "
		if i == a.Best {
			mark = "*"
		}
		name := chart.Plain(settingName(r, rec))
		if r.StartFailed {
			p.linef(format, "-", "-", "-", "-", "-", "start", mark, name)
			continue
		}
		p.linef(format, units.Bytes(r.ReservedPeak), change(r.ReservedPeak, base), units.Bytes(r.Waste),
			units.Count(r.DeviceAllocs+r.DeviceFrees), units.Count(r.Retries), count(r.Failures), mark, name)
	}
}

func change(n, base int64) string {
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
	what := "fails first, and the run would have ended there"
	if f.Recorded {
		what = "fails as in the run"
	}
	site := ""
	if f.Site != "" {
		site = " from " + f.Site
	}
	return fmt.Sprintf("With %s the request for %s at event %s%s %s: %s was reserved, %s of it allocated.", name, units.Bytes(f.Requested), count(f.Event),
		site, what, units.Bytes(f.Reserved), units.Bytes(f.Allocated))
}
