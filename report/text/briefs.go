package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/address"
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// briefReport is the verdict on a snapshot.
func briefReport(r *analyze.Result) *brief {
	v := &r.Verdict
	b := &brief{word: v.Status.Word(), verdict: v.Headline, missing: missing(r)}
	if lead := v.Lead(); lead != nil {
		b.verdict += " (" + lead.Trust() + ")"
		b.why, b.next = lead.Why, lead.Next
	} else {
		b.next = []string{v.Next, v.Start()}
	}
	for _, s := range v.Savings() {
		b.why = append(b.why, s.Text)
	}
	if d := r.Main(); d != nil {
		b.figures = peaks(d.Timeline)
	}
	return b.clean()
}

// briefSummary is what a file has, without a judgment.
func briefSummary(r *analyze.Result) *brief {
	s, events := r.Snapshot, 0
	for _, t := range s.Traces {
		events += t.Len()
	}
	b := &brief{verdict: fmt.Sprintf("%s, %s: %s, %s, %s", chart.ClipLeft(chart.Plain(s.Name), 60), units.Bytes(s.Bytes),
		units.Plural(events, "event"), units.Plural(len(s.Segments), "segment"), units.Plural(s.Stacks.Len(), "stack")),
		missing: missing(r)}
	if s.Writer.Text != "" {
		b.why = append(b.why, "written by torch "+s.Writer.Text+" (guessed from the keys in the file)")
	}
	for i := range r.Devices {
		if t := r.Devices[i].Timeline; t.PeakReserved.Bytes > 0 {
			b.figures = append(b.figures, peaks(t)...)
		}
	}
	b.next = []string{"snapana " + Arg(s.Name) + " prints the verdict"}
	return b.clean()
}

// briefGhosts is who keeps memory.
func briefGhosts(r *analyze.Result, o Options) *brief {
	v := chart.NewHolders(r, o.Min)
	b := &brief{word: v.Status.Word(), verdict: v.Headline + when(v.Trust != "", " (%s)", v.Trust), missing: v.Notes}
	if v.Status == finding.Healthy {
		b.word = "no leak found"
	}
	for _, g := range slices.Concat(v.Proven, v.Suspects) {
		b.why = append(b.why, units.Bytes(g.Bytes)+": "+g.Title)
		if len(g.Fix) > 0 {
			b.next = append(b.next, strings.Join(g.Fix, "; "))
		}
	}
	b.figures = []string{v.Closing}
	return b.clean()
}

// peaks are the figures of a device.
func peaks(t *timeline.Timeline) []string {
	told, end := t.Recording.Told(), &t.Final
	name := chart.DeviceName(t.Device)
	out := []string{}
	if t.Trace.Len() > 0 {
		out = append(out, fmt.Sprintf("%s: peak active %s, peak reserved %s", name, told.Peak.Active.Short(t.PeakActive.Bytes),
			told.Peak.Reserved.Short(t.PeakReserved.Bytes)))
	}
	return append(out, fmt.Sprintf("%s: active at the end %s, reserved %s", name, units.Bytes(end.Active),
		units.Bytes(end.Reserved)))
}

// missing is what a file lacks or contradicts.
func missing(r *analyze.Result) (out []string) {
	if r.Snapshot.Partial != nil {
		out = append(out, "only part of the file was read: "+r.Snapshot.Partial.Error())
	}
	for _, level := range []string{"problem", "missing"} {
		for _, n := range r.Quality {
			if n.Level == level {
				out = append(out, n.Text)
			}
		}
	}
	return out
}

// briefState is what is live at a moment.
func briefState(a *attribution.Answer) *brief {
	told := a.Timeline.Recording.Told()
	t, at := a.State.Totals, told.At(a.State.Event)
	b := &brief{verdict: StateSaid(a)}
	b.figures = []string{fmt.Sprintf("allocated %s, requested %s", at.Allocated.Short(t.Allocated),
		at.Requested.Short(t.Requested)), analyze.Verified(a.Timeline)}
	if a.Holders != nil {
		for i := range a.Holders.Rows {
			r := &a.Holders.Rows[i]
			b.why = append(b.why, fmt.Sprintf("%s (%s) in %s: %s", units.Bytes(r.Rounded), units.Percent(r.Rounded, t.Active),
				units.Plural(r.Count, "block"), r.Name))
		}
	}
	b.next = []string{"snapana " + Arg(a.Snapshot.Name) + " prints the verdict"}
	if a.Timeline.Trace.Len() == 0 {
		b.missing = append(b.missing, "the file has no trace of this device: only the dumped state is known")
	}
	if a.Snapshot.Partial != nil {
		b.missing = append(b.missing, "only part of the file was read: "+a.Snapshot.Partial.Error())
	}
	return b.clean()
}

// StateSaid is what is live at a moment, in a sentence.
func StateSaid(a *attribution.Answer) string {
	told := a.Timeline.Recording.Told()
	t, at := a.State.Totals, told.At(a.State.Event)
	return fmt.Sprintf("active %s, reserved %s on %s of %s, %s", at.Active.Short(t.Active), at.Reserved.Short(t.Reserved),
		chart.DeviceName(a.Timeline.Device), chart.ClipLeft(chart.Plain(a.Snapshot.Name), 60), a.Moment.Name)
}

// briefAt is who lives at an address.
func briefAt(a *address.Answer) *brief {
	b := &brief{verdict: a.Headline, why: a.Reasons}
	b.figures = []string{fmt.Sprintf("%s of the file had this address", units.Plural(a.OwnersN, "block")),
		chart.DeviceName(a.Device) + " " + a.Moment}
	if a.Events == 0 {
		b.missing = append(b.missing, "the file has no trace of this device, so that other owners are not known")
	}
	if a.Partial != "" {
		b.missing = append(b.missing, "only part of the file was read: "+a.Partial)
	}
	return b.clean()
}

// briefOOM is the message of a log that is explained first.
func briefOOM(l *oom.Log) *brief {
	g := &l.Groups[l.Main]
	f := verdict.Message(l, g)
	b := &brief{word: f.Status.Word(), verdict: f.Title, why: f.Why, figures: oomFields(g), next: f.Next}
	if f.Wants == finding.WantSnapshot {
		b.next = append(b.next, record(l, g))
	}
	if n := len(l.Groups) - 1; n > 0 {
		b.missing = append(b.missing, fmt.Sprintf("%s, not explained here", units.Plural(n, "more different message")))
	}
	return b.clean()
}

// briefStats is what counters show, or the host's memory where there are none.
func briefStats(r *analyze.Stats) *brief {
	b := new(brief)
	judged := func(status finding.Status, headline string, all []finding.Finding) {
		if b.verdict == "" {
			b.word, b.verdict = status.Word(), headline
		} else {
			b.figures = append(b.figures, status.Word()+": "+headline)
		}
		for i := range all {
			b.why, b.next = append(b.why, all[i].Why...), append(b.next, all[i].Next...)
		}
	}
	if main, from := r.Main(); main != nil {
		judged(main.Status, main.Headline, main.Findings)
		b.figures = append(b.figures, fmt.Sprintf("%s of %s", units.Plural(main.Series.Samples, "sample"), from.Name))
	}
	for _, h := range r.Hosts {
		judged(h.Status, h.Headline, h.Findings)
		b.missing = append(b.missing, h.Notes...)
	}
	for i := range r.Files {
		f := &r.Files[i]
		b.missing = append(b.missing, f.Fault, f.End)
		if b.verdict == "" {
			b.verdict = statsFile(f)
		}
	}
	b.missing = append(b.missing, r.Unchecked)
	return b.clean()
}

// briefEnvironments is what differs between two environments.
func briefEnvironments(c *environment.Comparison) *brief {
	matter, differ, b := 0, 0, new(brief)
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Differs {
			continue
		}
		if differ++; r.Why != "" {
			matter++
			b.why = append(b.why, fmt.Sprintf("%s: %s and %s, %s", r.Name, cmp.Or(r.A, r.Absent),
				cmp.Or(r.B, r.Absent), r.Why))
		}
	}
	b.verdict = "No difference is known to matter for memory: compare the programs and their data"
	if matter > 0 {
		b.verdict = units.Plural(matter, "difference is", "differences are") + " known to matter for memory"
	}
	b.figures = []string{fmt.Sprintf("%s of %d settings", units.Plural(differ, "difference"), len(c.Rows)-c.Single)}
	if c.Single > 0 {
		b.missing = []string{fmt.Sprintf("%s recorded in one run only", units.Plural(c.Single, "setting was", "settings were"))}
	}
	return b.clean()
}

// briefRanks is a run of several ranks.
func briefRanks(c *ranks.Comparison) *brief {
	b := &brief{verdict: chart.RankCounts(c), why: chart.RankDifferences(c)}
	for i := range c.Groups {
		g := &c.Groups[i]
		if i == 0 {
			b.word, b.verdict = g.Status.Word(), chart.RankGroup(c, g)
			continue
		}
		b.why = append(b.why, g.Status.Word()+": "+chart.RankGroup(c, g))
	}
	b.figures = []string{chart.RankCounts(c)}
	if c.MedianReserved >= 0 {
		b.figures = append(b.figures, "median of the reserved peaks "+units.Bytes(c.MedianReserved))
	}
	if worst := c.Worst(); worst != nil {
		b.next = []string{"snapana report " + Arg(worst.File)}
	}
	if n := len(c.Ranks) - c.Read; n > 0 {
		b.missing = append(b.missing, fmt.Sprintf("%s could not be read", units.Plural(n, "file")))
	}
	if n := len(c.Missing); n > 0 {
		b.missing = append(b.missing, fmt.Sprintf("%s of %d", units.Plural(n, "rank"), c.Expected))
	}
	return b.clean()
}

// briefDiff is what two sides differ in.
func briefDiff(r *diff.Result) *brief {
	word, _ := verdict.Changed(r)
	b := &brief{word: word, verdict: verdict.Difference(r), why: verdict.WhyDifferent(r, false)}
	b.figures = []string{fmt.Sprintf("active %s before, %s after", units.Bytes(r.A.Totals.Active),
		units.Bytes(r.B.Totals.Active)), fmt.Sprintf("reserved %s before, %s after", units.Bytes(r.A.Totals.Reserved),
		units.Bytes(r.B.Totals.Reserved)), "matched: " + matched(r)}
	for i := range r.Guards {
		b.missing = append(b.missing, verdict.GuardOf(&r.Guards[i]))
	}
	return b.clean()
}

// briefGates is what came of limits.
func briefGates(all []gate.Outcome) *brief {
	b := &brief{word: "passed", verdict: units.Plural(len(all), "limit") + " kept."}
	if n := gate.NotKept(all); n > 0 {
		b.word, b.verdict = "failed", fmt.Sprintf("%d of %s not kept.", n, units.Plural(len(all), "limit"))
	}
	for i := range all {
		o, file := &all[i], ""
		if o.File != all[0].File {
			file = o.File + ": "
		}
		switch text := file + verdict.GateOf(o); o.Status {
		case gate.Failed:
			b.why = append(b.why, text)
			if o.Finding != nil {
				b.next = append(b.next, o.Finding.Next...)
			}
		case gate.Unknown:
			b.missing = append(b.missing, text)
		default:
			b.figures = append(b.figures, text)
		}
	}
	return b.clean()
}

// briefWhatIf is what other settings would have done.
func briefWhatIf(a *whatif.Answer, r *allocator.Recorded) *brief {
	now := &a.Rows[0]
	b := &brief{figures: []string{fmt.Sprintf("%s: reserved peak %s as recorded", chart.DeviceName(a.Device),
		units.Bytes(now.ReservedPeak))}}
	switch {
	case !a.Accuracy.Trusted:
		b.verdict = "No advice: the replay matches less than 99% of the trace, so its figures are guesses"
	case a.Best >= 0:
		b.verdict, b.next = a.Text, a.Costs
		b.figures = append(b.figures, units.Bytes(a.Rows[a.Best].ReservedPeak)+" with it")
	case now.Failures > 0:
		b.verdict = "None of these settings serves every request"
	default:
		b.verdict = "None of these settings lowers the peak by 5% and 64 MiB: keep the current ones"
	}
	if now.First != nil {
		b.why = append(b.why, failureText(now))
	}
	b.why = append(b.why, accuracyText(&a.Accuracy))
	if least := smallest(a, r); len(least) > 0 {
		b.figures = append(b.figures, "minimum "+least[0])
	}
	b.missing = []string{a.Doubt}
	return b.clean()
}

// briefChange is what changes of the program come to.
func briefChange(a *change.Answer) *brief {
	b := &brief{verdict: a.Text, why: []string{verdict.ChangeProof(a)}}
	b.figures = []string{fmt.Sprintf("reserved peak %s as recorded, %s changed", units.Bytes(a.Before.ReservedPeak),
		units.Bytes(a.After.ReservedPeak)), fmt.Sprintf("allocated peak %s as recorded, %s changed",
		units.Bytes(a.Before.AllocatedPeak), units.Bytes(a.After.AllocatedPeak))}
	for i := range a.Changes {
		b.why = append(b.why, a.Changes[i].Text)
	}
	if f := a.After.First; f != nil {
		b.why = append(b.why, failedText("With the changes", f))
	}
	for i := range a.Doubts {
		b.missing = append(b.missing, a.Doubts[i].Text)
	}
	b.missing = append(b.missing, a.Doubt)
	return b.clean()
}

// briefSearch is which changes make a run fit.
func briefSearch(f *change.Found) *brief {
	b := briefChange(&f.Answer)
	for i := range f.Refused {
		b.missing = append(b.missing, f.Refused[i].Text)
	}
	return b.clean()
}

// briefFit is what a program needs at other values.
func briefFit(r *fit.Result) *brief {
	word, _ := verdict.FitWord(r)
	b := &brief{word: word, verdict: verdict.Fit(r), why: verdict.FitProof(r), next: []string{verdict.FitLimit(r)},
		missing: r.Notes}
	for i := range r.Laws {
		b.figures = append(b.figures, verdict.FitLaw(r, &r.Laws[i]))
	}
	return b.clean()
}

// briefNVML is a reading of the driver.
func briefNVML(r *sidecar.Reading, found []finding.Finding) *brief {
	b := &brief{verdict: units.Plural(len(r.Devices), "device") + ", driver " + chart.Plain(r.Driver)}
	for i := range r.Devices {
		g := &r.Devices[i]
		b.figures = append(b.figures, gpuName(g, i)+": used "+sizeOr(g.Used)+" of "+sizeOr(g.Total))
	}
	for i := range found {
		f := &found[i]
		if i == 0 {
			b.word, b.verdict = string(f.Severity), f.Title
		}
		b.why, b.next = append(b.why, f.Why...), append(b.next, f.Next...)
	}
	for _, f := range r.Errors {
		b.missing = append(b.missing, "could not read "+f.What+": "+f.Why)
	}
	return b.clean()
}

// clean leaves out what says nothing.
func (b *brief) clean() *brief {
	for _, list := range []*[]string{&b.why, &b.figures, &b.next, &b.missing} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(s string) bool { return strings.TrimSpace(s) == "" })
	}
	return b
}
