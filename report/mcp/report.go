package mcp

import (
	"context"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
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
	at, err := s.roots.find(ctx, in.File)
	if err == nil && at.info.IsDir() {
		return s.folder(ctx, &at, p)
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
	calls = append(calls, r.to("report", "the other findings"))
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
	if at.dir == nil {
		return nil, outside(at.name)
	}
	seen := 0
	err = fs.WalkDir(at.dir.FS(), at.name, func(name string, d fs.DirEntry, err error) error {
		seen++
		switch hidden := name != at.name && strings.HasPrefix(path.Base(name), "."); {
		case ctx.Err() != nil:
			return ctx.Err()
		case seen > maxSeen:
			return fs.SkipAll
		case err != nil:
			return nil
		case d.IsDir() && (hidden || strings.HasSuffix(name, ".report") ||
			strings.Count(strings.TrimPrefix(name, at.name), "/") > maxBelow):
			return fs.SkipDir
		case d.Type().IsRegular() && !hidden && (recording.MatchString(name) || s.pickled(ctx, name, d)):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// pickled reports whether a file without an ending begins as pickles do.
func (s *server) pickled(ctx context.Context, name string, d fs.DirEntry) bool {
	if path.Ext(name) != "" {
		return false
	}
	at, err := s.roots.find(ctx, name)
	if err != nil {
		return false
	}
	f, err := at.open(ctx)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	n, _ := f.Read(head[:])
	return n == 2 && head[0] == 0x80 && head[1] <= 5
}

// folder lists the snapshots below a folder.
func (s *server) folder(ctx context.Context, at *place, p *page) error {
	names, err := s.listed(ctx, at)
	if err != nil {
		return err
	}
	p.text("verdict", units.Plural(len(names), "file")+" in "+at.name+" may be snapshots or recordings.")
	p.set("status", finding.NoData)
	p.list("files", len(names), 60, func(i int) any { return clip(names[i], shortText) })
	var calls []call
	if len(names) > 1 {
		calls = append(calls, call{"ranks", map[string]any{"files": []string{at.name}}, "compare them, if they are of one run"})
	}
	for _, name := range names[:min(len(names), 3)] {
		calls = append(calls, call{"report", map[string]any{"file": name}, "its verdict"})
	}
	p.lead(calls...)
	return nil
}
