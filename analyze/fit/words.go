package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Stretch is a range of values, of the first of the names, in which one law gives the peak of allocated bytes.
type Stretch struct {
	From       int64  `json:"from"`
	To         int64  `json:"to"`
	Law        string `json:"law"`
	Terms      []Term `json:"terms"`
	Peak       Place  `json:"peak"`
	Categories []Part `json:"categories"`
}

// Term is a part of a law: bytes for each unit of what they go with, "" for a constant, "batch", "batch^2", "batch x seq".
type Term struct {
	Of    string `json:"of"`
	Bytes int64  `json:"bytes"`
}

// Part is what memory of one category adds to a law.
type Part struct {
	Category category.Category `json:"category"`
	Law      string            `json:"law"`
	Terms    []Term            `json:"terms"`
	Bytes    int64             `json:"bytes"` // at the stretch's end
}

// sum is a law with its coefficients by term.
type sum map[term]float64

// add adds a law, of what is computed as if it went with the first of the values from a point on.
func (s sum) add(l *law, p Point) {
	if l.size != nil {
		l = along(term{1}, l.at(p), p)
	}
	for _, p := range l.parts {
		s[p.term] += p.factor
	}
}

func (s sum) at(p Point) (n float64) {
	for m, factor := range s {
		n += factor * float64(m.of(p))
	}
	return n
}

// terms are the parts that matter at a point: those of a thousandth, or more.
func (s sum) terms(names []string, p Point) []Term {
	out := []Term{}
	whole := s.at(p)
	for _, m := range sorting.Of(maps.Keys(s), func(a, b term) int {
		return cmp.Or(cmp.Compare(a[0]+a[1], b[0]+b[1]), slices.Compare(b[:], a[:]))
	}) {
		if n := s[m]; math.Abs(n)*float64(m.of(p)) >= whole/1000 && n >= 0.5 {
			out = append(out, Term{m.name(names), int64(math.Round(n))})
		}
	}
	return out
}

func (m term) name(names []string) string {
	var out []string
	for i, name := range names {
		switch {
		case m[i] == 1:
			out = append(out, name)
		case m[i] > 1:
			out = append(out, fmt.Sprintf("%s^%d", name, m[i]))
		}
	}
	return strings.Join(out, " x ")
}

// says writes a law, as "4.10 GiB + 1.24 GiB x batch".
func says(terms []Term) string {
	var out []string
	for _, t := range terms {
		text := units.Bytes(t.Bytes)
		if t.Of != "" {
			text += " x " + t.Of
		}
		out = append(out, text)
	}
	return cmp.Or(strings.Join(out, " + "), "0 B")
}

// apart is by what share a peak may differ from a law that is said to give it.
const apart = 0.005

// mostStretches bounds the laws that are told.
const mostStretches = 4

// laws tells the laws of the allocated peak from the lowest to the highest value that was predicted.
func (f *fitter) laws(r *Result) {
	if len(r.Predictions) == 0 {
		return
	}
	last := r.Predictions[0].Values
	lo := last[0]
	for _, x := range r.Predictions {
		lo = min(lo, x.At)
		if x.At >= last[0] {
			last = x.Values
		}
	}
	for _, rec := range f.all {
		lo = min(lo, rec.At[0])
	}
	at := func(x int64) Point {
		p := slices.Clone(last)
		p[0] = x
		return p
	}
	for hi, tries := last[0], 0; hi >= lo && len(r.Laws) < mostStretches && tries < 2*mostStretches; tries++ {
		p := at(hi)
		m := f.model(f.nearest(p, -1))
		_, event := m.peak(p, mid)
		law, rows := m.live(event, p)
		from := lo + int64(sort.Search(int(hi-lo), func(i int) bool {
			p := at(lo + int64(i))
			most, _ := f.model(f.nearest(p, -1)).peak(p, mid)
			return math.Abs(law.at(p)-float64(most)) <= apart*float64(most)
		}))
		s := Stretch{From: from, To: hi, Terms: law.terms(f.q.Names, p), Peak: m.place(event), Categories: []Part{}}
		s.Law = says(s.Terms)
		uses := m.categories()
		by := map[category.Category]sum{}
		for _, row := range rows {
			c, _ := uses.Of(row)
			if by[c] == nil {
				by[c] = sum{}
			}
			by[c].add(m.laws[m.of[row]], p)
		}
		for _, c := range slices.Sorted(maps.Keys(by)) {
			t := by[c].terms(f.q.Names, p)
			s.Categories = append(s.Categories, Part{c, says(t), t, int64(by[c].at(p))})
		}
		sorting.Stable(s.Categories, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
		hi = from - 1
		if n := len(r.Laws); n > 0 && r.Laws[n-1].Law == s.Law {
			r.Laws[n-1].From = from
			continue
		}
		r.Laws = append(r.Laws, s)
		if len(r.Laws) == 1 {
			r.Law = s.Law
			f.proof(r, m, rows, p)
		}
	}
	slices.Reverse(r.Laws)
}

// live sums the laws of what is live at an event of a run at a point, before what the program frees with it, and lists the
// rows.
func (m *model) live(event int, p Point) (sum, []int32) {
	all, rows := sum{}, []int32{}
	for row := range m.of {
		l := &m.Timeline.Lives[row]
		if int(l.Born) > event {
			break
		}
		if end := l.GivenUp(); end == -1 || int(end) >= event && end >= 0 {
			all.add(m.laws[m.of[row]], p)
			rows = append(rows, int32(row))
		}
	}
	for i := range m.sums {
		if r := &m.sums[i]; int(r.event) == event && m.counts(r, mid) {
			all.add(&law{size: func(p Point) int64 { return r.bytes(m.gpu, p) }}, p)
		}
	}
	return all, rows
}

// proof tells how much of what is live at a peak has a proven law, and lists the rest.
func (f *fitter) proof(r *Result, m *model, rows []int32, p Point) {
	var whole, sure, fitting int64
	type claim struct{ site, why string }
	by := map[claim]*Unproven{}
	codes := attribution.NewCodes(m.Snapshot, m.Timeline)
	for _, row := range rows {
		l := m.laws[m.of[row]]
		n := l.at(p)
		whole += n
		if l.kind == proven {
			sure += n
		}
		if l.kind <= exact {
			fitting += n
			continue
		}
		site, _, _ := codes.Names(codes.Of(row))
		k := claim{site, f.why(m, m.of[row])}
		u := by[k]
		if u == nil {
			u = &Unproven{Site: site, Why: k.why}
			by[k] = u
		}
		u.Count++
		u.Bytes += n
		u.Low += l.bound(p, low)
		u.High += l.bound(p, high)
	}
	for _, k := range sorting.Of(maps.Keys(by), func(a, b claim) int {
		return cmp.Or(strings.Compare(a.site, b.site), strings.Compare(a.why, b.why))
	}) {
		r.Unproven = append(r.Unproven, *by[k])
	}
	sorting.Stable(r.Unproven, func(a, b Unproven) int { return cmp.Compare(b.Bytes, a.Bytes) })
	r.ProvenShare = float64(sure) / float64(max(whole, 1))
	r.ExactShare = float64(fitting) / float64(max(whole, 1))
}

// why says why a law is only estimated, or what one recording is taken to tell.
func (f *fitter) why(m *model, id int32) string {
	degree := 0
	for _, p := range m.laws[id].parts {
		degree = max(degree, p.degree())
	}
	switch {
	case len(f.all) > 1 && m.seen[id] < len(f.all):
		return "only some recordings have it"
	case len(f.all) > 1:
		return "no law fits its sizes"
	case degree == 0:
		return "taken to stay as it is"
	case degree == 1:
		return "taken to grow with " + f.q.Names[0]
	}
	return "taken to grow with the square of " + f.q.Names[0]
}
