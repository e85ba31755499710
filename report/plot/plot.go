// Package plot draws a result as PNG and SVG pictures for chats, issues and slides: memory over
// time, in all and by category, free memory, the layout of the segments, the stacks that
// allocated the memory, and what other allocator settings would do. Equal results give equal bytes.
package plot

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// Plot is one picture.
type Plot struct {
	Name string // of its file without an ending, for example "timeline"
	draw painter
}

// painter draws a picture.
type painter func(Medium) *page

// Medium is what a picture is drawn for. The zero value is a PNG of 1600 by 900 pixels.
type Medium struct {
	SVG           bool
	Width, Height int // in pixels, 0 for the usual ones
}

func (m Medium) size() (width, height int) {
	width, height = cmp.Or(m.Width, Width), m.Height
	return width, cmp.Or(height, width*pageHeight/Width)
}

// Write draws the picture. Plots may be written at the same time.
func (p Plot) Write(w io.Writer, m Medium) error {
	page := p.draw(m)
	defer page.close()
	if err := page.encode(w); err != nil {
		return fmt.Errorf("draw %s: %w", p.Name, err)
	}
	return nil
}

// Kind is what a picture shows.
type Kind string

// What pictures there are.
const (
	KindTimeline      Kind = "timeline"
	KindCategories    Kind = "categories"
	KindFragmentation Kind = "fragmentation"
	KindSegments      Kind = "segments"
	KindStacks        Kind = "stacks"
	KindWhatIf        Kind = "whatif"
)

// About says what the pictures of a kind show.
type About struct {
	Kind     Kind
	Shows    string
	AtMoment bool // and not the whole trace
}

// subject is what a picture shows: a device, at up to two moments.
type subject struct {
	r       *analyze.Result
	d       *analyze.Device
	moments []*analyze.Moment // some may be nil
}

// kinds has a row for each kind of picture, in the order in which a report has them.
var kinds = []struct {
	About
	moments []string // of which All draws a picture each; none for one picture in all
	// analyze adds to the only device of a result what the picture needs beside a timeline and
	// moments; nil for nothing.
	analyze func(ctx context.Context, s *snapshot.Snapshot, d *analyze.Device, rules []category.Rule) error
	page    func(Medium, subject) *page
	why     func(subject) string // there is nothing to draw; "" when there is
}{
	{About{KindTimeline, "reserved, active and allocated bytes over time", false}, nil, nil, timelinePage,
		subject.untraced},
	{About{KindCategories, "what the active memory is for, over time", false}, nil, addUses, categoriesPage,
		func(s subject) string {
			return cmp.Or(s.untraced(), unless(len(s.d.Uses.Get()) > 0, "no block has a category"))
		}},
	{About{KindFragmentation, "reserved and free bytes over time, by what keeps them from use", false}, nil, addFree,
		fragmentationPage,
		func(s subject) string {
			return cmp.Or(s.untraced(), unless(len(s.d.Free.Get()) > 0, "free memory was not measured"))
		}},
	{About{KindSegments, "the map of the segments and their blocks", true}, []string{"peak", "end"}, nil,
		func(to Medium, s subject) *page { return segmentsPage(to, s, byStack(s.d.Timeline, s.moment())) },
		func(s subject) string {
			m := s.moment()
			return unless(m != nil && m.State.Totals.Reserved > 0, "no memory is reserved then")
		}},
	{About{KindStacks, "the stacks that allocated the most", true}, nil, nil, stacksPage, func(s subject) string {
		live := func(m *analyze.Moment) bool { return m != nil && len(m.Live) > 0 }
		return unless(slices.ContainsFunc(s.moments, live), "nothing is live then")
	}},
	{About{KindWhatIf, "the peaks under other allocator settings, replayed", false}, nil, replay, whatifPage,
		func(s subject) string {
			return unless(s.d.WhatIf != nil && len(s.d.WhatIf.Rows) > 0, "nothing was replayed")
		}},
}

// moment is the first one that there is.
func (s subject) moment() *analyze.Moment { return cmp.Or(s.moments...) }

// untraced says why there is no picture over time, "" when there is one.
func (s subject) untraced() string {
	return unless(len(s.d.Timeline.Curve) > 0 && s.d.Timeline.Trace.Len() > 0, "the file has no trace of it")
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// Kinds lists all kinds.
func Kinds() []About {
	var out []About
	for i := range kinds {
		out = append(out, kinds[i].About)
	}
	return out
}

// Of is the picture of a kind for one device of a result. Segments and Stacks show m; nil is the
// peak, or for Stacks the peak and the end. The error says why there is nothing to draw.
func Of(kind Kind, r *analyze.Result, d *analyze.Device, m *analyze.Moment) (Plot, error) {
	for i := range kinds {
		if kinds[i].Kind != kind {
			continue
		}
		s := subject{r, d, []*analyze.Moment{m}}
		if m == nil {
			s.moments = []*analyze.Moment{d.Moment("peak"), d.Moment("end")}
		}
		if why := kinds[i].why(s); why != "" {
			return Plot{}, fmt.Errorf("%s of %s: %s", kind, chart.DeviceName(d.Timeline.Device), why)
		}
		return Plot{string(kind), func(m Medium) *page { return kinds[i].page(m, s) }}, nil
	}
	return Plot{}, fmt.Errorf("unknown kind of picture %q", kind)
}

// All lists the pictures of a result, for the devices that reserved most. Names carry the
// device, as in "timeline-gpu1", when there are several.
func All(r *analyze.Result) []Plot {
	var out []Plot
	devices := r.Pictured()
	for _, d := range devices {
		suffix := ""
		if len(devices) > 1 {
			suffix = fmt.Sprintf("-gpu%d", d.Timeline.Device)
		}
		add := func(kind Kind, name string, m *analyze.Moment) {
			if p, err := Of(kind, r, d, m); err == nil {
				p.Name = name + suffix
				out = append(out, p)
			}
		}
		for i := range kinds {
			k := &kinds[i]
			if k.moments == nil {
				add(k.Kind, string(k.Kind), nil)
			}
			for _, name := range k.moments {
				if m := d.Moment(name); m != nil {
					add(k.Kind, string(k.Kind)+"-"+name, m)
				}
			}
		}
	}
	return out
}

// IsName reports whether a picture of All can have that name.
func IsName(name string) bool {
	if i := strings.LastIndex(name, "-gpu"); i >= 0 && i+4 < len(name) && strings.Trim(name[i+4:], "0123456789") == "" {
		name = name[:i]
	}
	for i := range kinds {
		base, moment, several := strings.Cut(name, "-")
		if base == string(kinds[i].Kind) && several == (kinds[i].moments != nil) &&
			(!several || slices.Contains(kinds[i].moments, moment)) {
			return true
		}
	}
	return false
}

// By is what the colors of live blocks stand for.
type By string

const (
	ByStack    By = "stack"
	ByCategory By = "category"
	ByState    By = "state" // allocated, or freed and waiting for another stream
)

// Segments is the map of the segments at the moment of an answer, whose query names categories for
// ByCategory.
func Segments(a *attribution.Answer, by By) Plot {
	m := analyze.NewMoment(a.Snapshot, a.Timeline, a.Moment.Name, a.State)
	r := &analyze.Result{Snapshot: a.Snapshot, Devices: []analyze.Device{{Timeline: a.Timeline}}}
	return segments(subject{r, &r.Devices[0], []*analyze.Moment{&m}}, by, a.Query.Category)
}

// segments is the map of the segments at the first moment.
func segments(s subject, by By, category func(row int32) string) Plot {
	t, m := s.d.Timeline, s.moments[0]
	return Plot{"segments", func(to Medium) *page {
		paint := byStack(t, m)
		switch by {
		case ByCategory:
			paint = byCategory(t, m, category)
		case ByState:
			paint = byState(t, m)
		}
		return segmentsPage(to, s, paint)
	}}
}
