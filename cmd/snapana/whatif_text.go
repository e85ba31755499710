package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
)

// margin is where text begins that has a label before it, columns how wide a line may be.
const (
	margin  = 10
	columns = 100
)

// labelled prints a text under a label in the margin, wrapped.
func labelled(w io.Writer, label, text string) {
	line := ""
	flush := func() {
		fmt.Fprintf(w, "%-*s%s\n", margin, label, line)
		label, line = "", ""
	}
	for _, word := range strings.Fields(oneLine(text)) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns-margin {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}

// shortName is the end of a file name that would leave no room on its line.
func shortName(name string) string {
	const most = 60
	r := []rune(oneLine(name))
	if len(r) <= most {
		return string(r)
	}
	return "…" + string(r[len(r)-most+1:])
}

// writeWhatif prints an answer for people. why says why it is about that device, if anything.
func writeWhatif(out io.Writer, a *whatif.Answer, r *whatif.Recorded, why string) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s, GPU %d: %s events, %s requests\n", shortName(a.File), a.Device, count(a.Events), count(a.Licence.Requests))
	if why != "" {
		labelled(w, "", "(GPU "+fmt.Sprint(a.Device)+" "+why+")")
	}
	labelled(w, "Licence", licenceText(&a.Licence))
	if a.Licence.FirstEvent >= 0 {
		labelled(w, "", fmt.Sprintf("First disagreement at event %d: %s %s", a.Licence.FirstEvent, a.Licence.What, a.Licence.Why))
	}
	labelled(w, "Start", startText(&a.Start))
	labelled(w, "Device", capacityText(&a.Capacity))
	fmt.Fprintln(w)
	writeRows(w, a, r)
	fmt.Fprintln(w)
	label := "Failure"
	for i := range a.Rows {
		if a.Rows[i].First != nil && (i == 0 || i == a.Best) {
			labelled(w, label, failureText(&a.Rows[i]))
			label = ""
		}
	}
	switch {
	case !a.Licence.Trusted:
		labelled(w, "Advice", "None: the replay agrees with less than 99% of the trace, so that the figures above are guesses.")
	case a.Best < 0 && a.Rows[0].Failures > 0:
		labelled(w, "Advice", "None of these settings serves every request.")
	case a.Best < 0:
		labelled(w, "Advice", "None of these settings lowers the peak by 5% and 64 MiB: leave them as they are.")
	default:
		labelled(w, "Advice", "* "+a.Advice)
		for i, c := range a.Costs {
			labelled(w, map[bool]string{true: "Costs"}[i == 0], c)
		}
	}
	writeSmallest(w, a, r)
	return w.Flush()
}

// writeSmallest says how small a device can be, under the recorded settings and under those that
// need least.
func writeSmallest(w io.Writer, a *whatif.Answer, r *whatif.Recorded) {
	least := 0
	for i := range a.Rows {
		if n := a.Rows[i].Smallest; n > 0 && n < a.Rows[least].Smallest {
			least = i
		}
	}
	if a.Rows[0].Smallest == 0 {
		return
	}
	labelled(w, "Smallest", "every request is served, and not with 2 MiB less, when there can be reserved")
	if a.Rows[least].Smallest > a.Rows[0].Smallest/100*99 {
		least = 0 // hardly
	}
	for _, i := range []int{0, least} {
		row := &a.Rows[i]
		text := units.Bytes(row.Smallest)
		if a.Capacity.Source == "asked" {
			text += fmt.Sprintf(" (on a device of %s)", units.Bytes(row.Smallest+a.Capacity.Foreign))
		}
		labelled(w, "", text+" with "+settingsName(row, r))
		if least == 0 {
			break
		}
	}
	if a.Start.Mode != "empty" {
		labelled(w, "", "where blocks from before the trace are asked for anew.")
	}
}

func count(n int) string { return units.Count(int64(n)) }

func licenceText(l *whatif.Licence) string {
	share := units.Percent(int64(l.SameRequests), int64(l.Requests))
	if l.SameRequests < l.Requests && share == "100%" {
		share = "less than 100%"
	}
	return fmt.Sprintf("replayed under its own settings, %s of %s requests get their recorded address (%s); %s of %s segment events and %s of %s final blocks are the same",
		count(l.SameRequests), count(l.Requests), share, count(l.SameSegments), count(l.Segments), count(l.SameBlocks), count(l.Blocks))
}

func startText(b *whatif.Begin) string {
	there := fmt.Sprintf("%s blocks (%s) in %s reserved", count(b.Blocks), units.Bytes(b.Bytes), units.Bytes(b.Reserved))
	switch b.Mode {
	case "keep":
		return "from before the trace there are " + there + ", kept where they were: what earlier settings did to them stays (--start anew asks for them again)"
	case "anew":
		return "from before the trace there are " + there + ", asked for again under each setting, without the holes between them"
	}
	return "nothing was reserved before the trace"
}

func capacityText(c *whatif.Capacity) string {
	switch c.Source {
	case "asked":
		return fmt.Sprintf("%s, less %s that are not PyTorch's (--foreign): %s can be reserved", units.Bytes(c.Device), units.Bytes(c.Foreign), units.Bytes(c.Reservable))
	case "failure":
		return fmt.Sprintf("%s can be reserved, as in the run, which ran out of memory (--capacity tries another)", units.Bytes(c.Reservable))
	case "retry":
		return fmt.Sprintf("about %s can be reserved, as in the run, which gave memory back when the device was full (--capacity tries another)", units.Bytes(c.Reservable))
	}
	return "no limit (--capacity tries one)"
}

// settingsName names a row.
func settingsName(r *whatif.Row, rec *whatif.Recorded) string {
	text := r.Text
	if text == "" {
		text = "the defaults"
	}
	switch {
	case r.Recorded && !rec.Known:
		return text + " (the file does not record any)"
	case r.Recorded:
		return text + " (as recorded)"
	case r.Needs != "":
		return text + " (torch " + r.Needs + " or later)"
	}
	return text
}

func writeRows(w io.Writer, a *whatif.Answer, rec *whatif.Recorded) {
	const format = "%9s %6s %9s %6s %7s %5s %s%s\n"
	fmt.Fprintf(w, format, "reserved", "change", "waste", "calls", "retries", "fails", " ", "settings")
	base := a.Rows[0].ReservedPeak
	for i := range a.Rows {
		r := &a.Rows[i]
		mark := " "
		if i == a.Best {
			mark = "*"
		}
		name := oneLine(settingsName(r, rec))
		if r.StartFailed {
			fmt.Fprintf(w, format, "-", "-", "-", "-", "-", "start", mark, name)
			continue
		}
		fmt.Fprintf(w, format, units.Bytes(r.ReservedPeak), change(r.ReservedPeak, base), units.Bytes(r.Waste),
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
	name := r.Text
	if name == "" {
		name = "the defaults"
	}
	f := r.First
	what := "is the first that fails: the run would have ended there"
	if f.Recorded {
		what = "fails as in the run"
	}
	site := ""
	if f.Site != "" {
		site = ", from " + f.Site + ","
	}
	return fmt.Sprintf("With %s a request for %s at event %s%s %s, with %s reserved and %s of it allocated.", name, units.Bytes(f.Requested), count(f.Event),
		site, what, units.Bytes(f.Reserved), units.Bytes(f.Allocated))
}
