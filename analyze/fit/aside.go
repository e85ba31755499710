package fit

import (
	"fmt"
	"slices"
)

// told is the share of the bytes that a recording asks for in its trace whose requests another one must have too, for the two to
// tell what grows. Below it what is paired is chance.
const told = 0.8

// leaveAside goes on without recordings that can hardly be aligned with the others, as where each has another part of a long run.
// The most that go together stay, those of the highest values among as many.
func (f *fitter) leaveAside() {
	n := len(f.all)
	together := make([][]int, n)
	for k := range n {
		for j := range n {
			if k == j || f.tells(k, j) {
				together[k] = append(together[k], j)
			}
		}
	}
	best := 0
	for k := range n {
		more := len(together[k]) - len(together[best])
		if more > 0 || more == 0 && slices.Compare(f.all[k].At, f.all[best].At) > 0 && !f.all[k].failed() {
			best = k
		}
	}
	if len(together[best]) == n {
		return
	}
	if len(f.q.Names) > 1 {
		f.notes = append(f.notes, fmt.Sprintf("%s can hardly be aligned: what is paired between them may be chance.", names(f.all)))
		return
	}
	all := f.all
	f.all, f.matches = nil, map[[2]int][]int32{}
	for k, r := range all {
		if slices.Contains(together[best], k) {
			f.all = append(f.all, r)
		} else {
			f.aside = append(f.aside, r)
		}
	}
	f.notes = append(f.notes, fmt.Sprintf("%s can hardly be aligned with %s, as where recordings have other parts of a run: no "+
		"law is made of it, and it is predicted from the rest. Record both whole, from the program's start.", names(f.aside),
		names(f.all)))
}

// tells reports whether two recordings can be aligned: one of them has most of what the other asks for, or passes of loops of
// which that has fewer.
func (f *fitter) tells(k, j int) bool {
	for _, p := range [][2]int{{k, j}, {j, k}} {
		a, b := f.all[p[0]], f.all[p[1]]
		partners := f.partners(p[0], p[1])
		if a.share(partners, nil) >= told {
			return true
		}
		m := newModel(a, []*recording{b}, [][]int32{partners}, f.terms, f.q.Names)
		if a.share(partners, m.loops) >= told {
			return true
		}
	}
	return false
}

// share is that of the bytes asked for in the trace by rows that have partners, or are passes of a loop.
func (r *recording) share(partners []int32, loops []loop) float64 {
	var some, all int64
	for row := r.warm; row < len(partners); row++ {
		n := r.Timeline.Lives[row].Requested
		all += n
		if partners[row] >= 0 || slices.ContainsFunc(loops, func(l loop) bool { return l.all.from <= row && row < l.all.to }) {
			some += n
		}
	}
	return float64(some) / float64(max(all, 1))
}
