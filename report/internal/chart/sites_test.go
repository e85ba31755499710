package chart_test

import (
	"fmt"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/report/internal/chart"
)

// TestSources has a line with 40 stacks of generated code, and one whose two stacks differ in code of people.
func TestSources(t *testing.T) {
	var groups []attribution.Group
	add := func(bytes int64, site string, frames ...string) {
		g := attribution.Group{Site: site, Frames: append(frames, "/app/"+site)}
		g.Add(attribution.Sum{Count: 1, Rounded: bytes})
		groups = append(groups, g)
	}
	add(500, "train.py:9 step", "torch/optim/adam.py:179 _init_group")
	add(400, "train.py:9 step", "torch/optim/adam.py:183 _init_group")
	for i := range 39 {
		add(int64(100-i), "model.py:38 forward", fmt.Sprintf("/tmp/torchinductor_me/ab/cabc.py:%d call", i))
	}
	add(10, "model.py:38 forward") // too small to have its frames
	add(5, "once.py:1 f", "<eval_with_key>.3:4 forward")
	rows := chart.Sources(groups)
	if len(rows) != 4 || rows[0].Site != "model.py:38 forward" || rows[0].Note() != "40 compiled stacks" ||
		rows[0].Count != 40 || rows[3].Note() != "" {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
	top, other, more := chart.LargestSources(rows, 2)
	if len(top) != 2 || more != 2 || other.Rounded != 405 || top[0].Rounded+top[1].Rounded+405 != chart.Sum(groups) {
		t.Errorf("%d rows, and %d stacks with %d B", len(top), more, other.Rounded)
	}
}
