package fit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/load"
)

func TestShow(t *testing.T) {
	files := strings.Fields(os.Getenv("FILES"))
	if len(files) == 0 {
		t.Skip()
	}
	var ins []*Input
	for i, v := range strings.Fields(os.Getenv("FROM")) {
		s, err := load.Open(t.Context(), files[i], load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		fmt.Sscan(v, &n)
		ins = append(ins, &Input{s, timeline.Main(s), Point{n}})
	}
	f := &fitter{ctx: t.Context(), q: Question{Names: []string{"x"}}, terms: terms(1), matches: map[[2]int][]int32{}, mosts: map[mostKey]int64{}}
	if err := f.prepare(ins); err != nil {
		t.Fatal(err)
	}
	k := len(f.all) - 1
	m := f.model(k)
	var n int64
	fmt.Sscan(os.Getenv("TO"), &n)
	_, event := m.peak(Point{n}, mid)
	_, rows := m.live(event)
	slices.SortFunc(rows, func(a, b int32) int { return int(m.laws[m.of[b]].at(Point{n}) - m.laws[m.of[a]].at(Point{n})) })
	for _, row := range rows[:min(len(rows), 25)] {
		l := m.laws[m.of[row]]
		lf := m.Timeline.Lives[row]
		others := ""
		for j := range f.all {
			if j != k {
				o := int64(-1)
				if p := f.matches[[2]int{k, j}][row]; p >= 0 {
					o = f.all[j].Timeline.Lives[p].Requested
				}
				others += fmt.Sprintf(" %d", o)
			}
		}
		fmt.Printf("step %d kind %d %v: %d from %s -> %d at %s\n", m.steps.At(int(lf.Born)), l.kind, l.parts, lf.Requested, others, l.at(Point{n}), attribution.Site(m.Snapshot, lf.Stack))
	}
}
