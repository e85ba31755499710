package mcp

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/input"
)

type reportArgs struct {
	fileArgs
	ID       string   `json:"id,omitempty" jsonschema:"id of a finding: all about it; or of a stack: what it allocated"`
	Capacity capacity `json:"capacity,omitempty" jsonschema:"memory of each GPU, like 80GiB, which snapshots do not record"`
}

// brief is a finding in a list.
type brief struct {
	ID         string             `json:"id"`
	Kind       string             `json:"kind"`
	Status     finding.Status     `json:"status"`
	Severity   finding.Severity   `json:"severity"`
	Confidence finding.Confidence `json:"confidence"`
	Device     int                `json:"device"`
	Size       size               `json:"size"`
	Title      string             `json:"title"`
	Site       string             `json:"site,omitempty"`
	Stack      string             `json:"stack,omitempty"`
	Next       string             `json:"next,omitempty"`
}

func briefly(f *finding.Finding, id string) brief {
	b := brief{id, f.ID, f.Status, f.Severity, f.Confidence, f.Device, sized(f.Bytes), clip(f.Title, longText),
		clip(siteOf(f), shortText), stackID(f.Stack), ""}
	if len(f.Next) > 0 {
		b.Next = clip(f.Next[0], shortText)
	}
	return b
}

// siteOf is the place in code that a finding is about, "" for none.
func siteOf(f *finding.Finding) string {
	e := &f.Evidence
	switch {
	case e.Growth != nil:
		return e.Growth.Site
	case e.Late != nil:
		return e.Late.Site
	case e.Request != nil:
		return e.Request.Site
	}
	return ""
}

// gpu is the figures of a device.
type gpu struct {
	Device       int    `json:"device"`
	PeakReserved *size  `json:"peak_reserved,omitempty"` // absent without a history
	PeakActive   *size  `json:"peak_active,omitempty"`
	EndReserved  size   `json:"end_reserved"`
	EndActive    size   `json:"end_active"`
	Events       int    `json:"events"`
	Failures     int    `json:"failed_requests"`
	Requested    *size  `json:"last_failed_request,omitempty"`
	Verified     string `json:"verified"`
}

func figures(d *analyze.Device) gpu {
	t := d.Timeline
	g := gpu{Device: t.Device, EndReserved: sized(t.Final.Reserved), EndActive: sized(t.Final.Active), Events: t.Trace.Len(),
		Failures: len(t.OOMs), Verified: analyze.Verified(t)}
	if t.HasHistory() || t.Unused() {
		g.PeakReserved, g.PeakActive = known(t.PeakReserved.Bytes), known(t.PeakActive.Bytes)
	}
	if n := len(t.OOMs); n > 0 {
		g.Requested = known(t.OOMs[n-1].Requested)
	}
	return g
}

func (s *server) report(ctx context.Context, in reportArgs, p *page) error {
	if in.File != "" && path.Clean(in.File) == "." {
		tops, err := s.roots.tops(ctx)
		if err != nil {
			return err
		}
		return s.folders(ctx, tops, p)
	}
	at, err := s.roots.find(ctx, in.File)
	if err == nil && at.info.IsDir() {
		return s.folders(ctx, []place{at}, p)
	}
	r, err := s.analyze(ctx, in.fileArgs, in.Capacity)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(in.ID, "stack:"):
		return r.stackPage(in.ID, p)
	case in.ID != "":
		return r.findingPage(in.ID, p)
	}
	v := &r.Verdict
	p.text("verdict", v.Headline)
	p.set("status", v.Status)
	p.set("file", clip(r.name, shortText))
	ids := findingIDs(v.Findings)
	p.lead(r.next(ids)...)
	p.list("devices", len(r.Devices), 30, func(i int) any { return figures(&r.Devices[i]) })
	p.list("findings", len(v.Findings), 60, func(i int) any { return briefly(&v.Findings[i], ids[i]) })
	p.text("next", v.Next)
	p.texts("fix", v.Fix, 50)
	savings := v.Savings()
	p.list("would_lower_the_peak", len(savings), 60, func(i int) any {
		return map[string]any{"kind": savings[i].Kind, "gain": sized(savings[i].Gain), "text": clip(savings[i].Text, longText)}
	})
	problems, missing, _ := r.Notes()
	notes := append(problems, missing...)
	p.list("notes", len(notes), 60, func(i int) any { return clip(notes[i].Text, longText) })
	if len(r.Devices) > 0 {
		p.set("picture", r.uri("plot", "timeline.png"))
	}
	return nil
}

// next are the calls that lead on from a report.
func (r *run) next(ids []string) (out []call) {
	v := &r.Verdict
	lead := v.Lead()
	if len(v.Findings) > 0 {
		out = append(out, r.to("report", "all about the first finding: reasons, steps, stack", "id", ids[0]))
	}
	at := "peak"
	if d := r.Main(); d == nil {
		return out
	} else if !d.Timeline.HasHistory() {
		at = "end"
	} else if lead != nil && len(d.Timeline.OOMs) > 0 {
		at = "oom"
	}
	out = append(out, r.to("state", "what was live then, by code", "at", at))
	failed := false
	for i := range r.Devices {
		failed = failed || len(r.Devices[i].Timeline.OOMs) > 0
	}
	if failed {
		out = append(out, r.to("oom", "why the request failed, and when it would not have"),
			r.to("whatif", "changes of the program with which it fits", "search", true))
	}
	for i := range v.Findings {
		if v.Findings[i].Status == finding.Ghost {
			out = append(out, r.to("ghosts", "who keeps the memory, and the fix"))
			break
		}
	}
	return out
}

// findingPage is all about a finding.
func (r *run) findingPage(id string, p *page) error {
	i, err := r.findingOf(id)
	if err != nil {
		return err
	}
	f := &r.Verdict.Findings[i]
	p.text("verdict", f.Title)
	p.set("finding", briefly(f, id))
	p.set("trust", f.Trust())
	var calls []call
	if stack := stackID(f.Stack); stack != "" {
		calls = append(calls, r.to("at", "what this stack allocated, at each moment", "id", stack))
	}
	if f.Status == finding.Ghost {
		calls = append(calls, r.to("ghosts", "who keeps the memory, and the fix"))
	}
	if len(r.Verdict.Findings) > 1 {
		calls = append(calls, r.to("report", "the other findings"))
	}
	if len(calls) == 0 && r.Main() != nil {
		calls = append(calls, r.to("state", "what was live at the end, by code", "at", "end"))
	}
	p.lead(calls...)
	p.texts("why", f.Why, 40)
	p.texts("next", f.Next, 50)
	p.text("cause", f.Cause)
	p.texts("fix", f.Fix, 50)
	p.list("stack", len(f.Stack), 60, func(i int) any { return clip(f.Stack[i], shortText) })
	p.set("evidence", clean(f.Evidence))
	p.list("events", len(f.Events), 50, func(i int) any { return f.Events[i] })
	return nil
}

// Bounds of a folder's list.
const (
	maxSeen  = 10_000
	maxBelow = 4
)

var recording = regexp.MustCompile(`\.(pickle|pkl|snapana)(\.\w+)?$|` + regexp.QuoteMeta(digest.Ending) + `$`)

// listed are the files below a folder whose names are those of snapshots and digests; of other names if they begin as
// pickles do.
func (s *server) listed(ctx context.Context, at *place) (names []string, err error) {
	seen, top := 0, at.path
	each := func(name string, d fs.DirEntry, err error) error {
		seen++
		switch hidden := name != top && strings.HasPrefix(path.Base(name), "."); {
		case ctx.Err() != nil:
			return ctx.Err()
		case seen > maxSeen:
			return fs.SkipAll
		case err != nil:
			return nil
		case d.IsDir() && (hidden || strings.HasSuffix(name, ".report") ||
			strings.Count(strings.TrimPrefix(name, top), "/") > maxBelow):
			return fs.SkipDir
		case d.Type().IsRegular() && !hidden && (recording.MatchString(name) || at.pickled(name)):
			names = append(names, at.below(name))
		}
		return nil
	}
	if at.dir == nil {
		return names, input.Walk(ctx, top, each)
	}
	top = filepath.ToSlash(at.rel)
	return names, fs.WalkDir(at.dir.FS(), top, each)
}

// below is what find calls a file that a folder's list has.
func (p *place) below(name string) string {
	if p.dir != nil {
		name = path.Join(p.name, strings.TrimPrefix(name, filepath.ToSlash(p.rel)+"/"))
	}
	return name
}

// pickled reports whether a file without an ending begins as pickles do. Nothing of a store is read for that.
func (p *place) pickled(name string) bool {
	if path.Ext(name) != "" || p.dir == nil {
		return false
	}
	f, err := p.dir.Open(filepath.FromSlash(name))
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	n, _ := f.Read(head[:])
	return n == 2 && head[0] == 0x80 && head[1] <= 5
}

// folders lists the snapshots below folders.
func (s *server) folders(ctx context.Context, tops []place, p *page) error {
	var names, all []string
	for i := range tops {
		more, err := s.listed(ctx, &tops[i])
		if err != nil {
			return err
		}
		names, all = append(names, more...), append(all, tops[i].name)
	}
	p.text("verdict", units.Plural(len(names), "file")+" in "+strings.Join(all, " and ")+" may be snapshots or recordings.")
	p.set("status", finding.NoData)
	p.list("files", len(names), 60, func(i int) any { return clip(names[i], shortText) })
	var calls []call
	ranked := 0
	for _, name := range names {
		if recorded(name) {
			continue // it is read with its snapshot
		}
		if ranked++; len(calls) < 3 && !strings.HasSuffix(name, digest.Ending) {
			calls = append(calls, call{"report", map[string]any{"file": name}, "its verdict"})
		}
	}
	if ranked > 1 {
		calls = append([]call{{"ranks", map[string]any{"files": all}, "compare them, if they are of one run"}}, calls...)
	}
	p.lead(calls...)
	return nil
}
