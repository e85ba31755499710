package ranks_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

const mib = 1 << 20

// worker is a rank of a made-up run: weights that all have, activations of some MiB that come and
// go, and a request for the rest of the device, which fails, after so many microseconds.
type worker struct {
	activations int64
	failsAfter  int64
	again       int64 // and once more after so many more
}

func (x worker) rank(t *testing.T, file string) ranks.Rank {
	t.Helper()
	opt := build.Options{}
	if x.failsAfter > 0 {
		opt.Capacity = 4 << 30
	}
	s := buildtest.Read(t, build.Run(opt, func(d *build.Device) {
		d.Stack = build.NewStack("train.py:10:build")
		for range 8 {
			d.Alloc(32 * mib)
		}
		for range 4 {
			d.Stack = build.NewStack("model.py:39:forward", "train.py:20:step")
			a := d.Alloc(x.activations * mib)
			d.Stack = build.NewStack("model.py:50:norm", "train.py:20:step")
			b := d.Alloc(10 * mib)
			d.Free(a)
			d.Free(b)
		}
		if x.failsAfter > 0 {
			d.Wait(x.failsAfter)
			d.Stack = build.NewStack("model.py:77:logits", "train.py:20:step")
			d.Alloc(8 << 30)
		}
		if x.again > 0 {
			d.Wait(x.again)
			d.Alloc(8 << 30)
		}
	}))
	return ranks.Reduce(file, analyzetest.Run(t, s, analyze.Options{NoReplay: true}))
}

func TestHealthy(t *testing.T) {
	var list []ranks.Rank
	for i := range 5 {
		list = append(list, worker{activations: 100 + int64(i)}.rank(t, fmt.Sprintf("rank%d.pickle", 4-i)))
	}
	c := ranks.Compare(list)
	if len(c.Outliers) != 0 || len(c.Groups) != 1 || c.Groups[0].Status != finding.Healthy ||
		len(c.Groups[0].Ranks) != 5 {
		t.Errorf("five ranks alike: %+v, %+v", c.Outliers, c.Groups)
	}
	for i, k := range c.Ranks {
		if k.Number != i {
			t.Errorf("row %d is rank %d (%s)", i, k.Number, k.File)
		}
	}
	if want := int64(256+102+10) * mib; c.MedianActive != want {
		t.Errorf("the median is %d, want %d", c.MedianActive, want)
	}
}

// TestOutlier finds the rank that has more, and where it has it, but not among three.
func TestOutlier(t *testing.T) {
	var list []ranks.Rank
	for i, mib := range []int64{100, 101, 180, 99, 100} {
		list = append(list, worker{activations: mib}.rank(t, fmt.Sprintf("run/%d/dump.pickle", i)))
	}
	c := ranks.Compare(list)
	want := []ranks.Difference{{Site: "model.py:39 forward", Bytes: 180 * mib, Median: 100 * mib}}
	if len(c.Outliers) != 1 || c.Outliers[0].Rank != 0 || !slices.Equal(c.Outliers[0].Sites, want) {
		t.Fatalf("outliers %+v, want rank 2 by %+v", c.Outliers, want)
	}
	if k := c.Ranks[0]; k.Number != 2 || k.Over != 80*mib {
		t.Errorf("first is rank %d with %d bytes over the median", k.Number, k.Over)
	}
	if c := ranks.Compare(list[:3]); len(c.Outliers) != 0 {
		t.Errorf("one of three stands out: %+v", c.Outliers)
	}
}

// TestUnknown leaves ranks whose peaks are unknown out of medians, and marks all that stand out, not only those told.
func TestUnknown(t *testing.T) {
	noHistory := buildtest.Read(t, build.Run(build.Options{NoTrace: true}, func(d *build.Device) { d.Alloc(32 * mib) }))
	k := ranks.Reduce("rank0.pickle", analyzetest.Run(t, noHistory, analyze.Options{NoReplay: true}))
	if k.Device != 0 || k.Active != -1 || k.Reserved != -1 || k.Growth != -1 || k.End != 32*mib {
		t.Errorf("without a history: %+v", k)
	}
	list := []ranks.Rank{k}
	if c := ranks.Compare(list); c.Read != 1 || c.Peaks != 0 || c.MedianActive != -1 || c.MedianReserved != -1 {
		t.Errorf("no peak is known, and the medians are %d and %d", c.MedianActive, c.MedianReserved)
	}
	for i := range 30 {
		k := ranks.Rank{File: fmt.Sprintf("rank%d.pickle", i+1), Active: 100 * mib, Reserved: 200 * mib}
		if i < 10 {
			k.Active *= 3
		}
		list = append(list, k)
	}
	c := ranks.Compare(list)
	stand := 0
	for i := range c.Ranks {
		if c.Ranks[i].Stands {
			stand++
		}
	}
	if c.Peaks != 30 || c.MedianActive != 100*mib || stand != 10 || len(c.Outliers) != 8 {
		t.Errorf("of %d peaks around %d %d stand out, %d are told", c.Peaks, c.MedianActive, stand, len(c.Outliers))
	}
}

// TestFailures puts what failed first in front, and what could not be read behind.
func TestFailures(t *testing.T) {
	c := ranks.Compare([]ranks.Rank{
		ranks.Unread("rank_5.pickle", errors.New("is a text file")),
		worker{activations: 100}.rank(t, "rank_0.pickle"),
		worker{activations: 100, failsAfter: 9000}.rank(t, "rank_1.pickle"),
		worker{activations: 100, failsAfter: 5000, again: 90000}.rank(t, "rank_7.pickle"),
		worker{activations: 100}.rank(t, "rank_3.pickle"),
	})
	var order []int
	for _, k := range c.Ranks {
		order = append(order, k.Number)
	}
	if want := []int{7, 1, 0, 3, 5}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if c.Read != 4 || c.Ranks[4].Fault != "is a text file" {
		t.Errorf("read %d, the last one %+v", c.Read, c.Ranks[4])
	}
	f := c.Ranks[0].Failure
	if f == nil || f.Site != "model.py:77 logits" || f.Requested != 8<<30 || c.Ranks[1].Failure.First-f.First != 4000 ||
		f.Time-f.First < 90000 {
		t.Errorf("the first failure %+v, the second %+v", f, c.Ranks[1].Failure)
	}
	if len(c.Groups) != 2 || len(c.Groups[0].Ranks) != 2 || len(c.Groups[1].Ranks) != 2 {
		t.Errorf("groups %+v", c.Groups)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		files []string
		want  []int
	}{
		{[]string{"rank0.pickle", "rank12.pickle"}, []int{0, 12}},
		{[]string{"ranks2024/memory_rank_3.pickle", "ranks2024/memory_rank_4.pickle"}, []int{3, 4}},
		{[]string{"iteration_10/rank0_memory_snapshot.pickle", "iteration_10/rank1_memory_snapshot.pickle"},
			[]int{0, 1}},
		{[]string{"2024-06-01/gpu7.pickle", "2024-06-01/gpu3.pickle"}, []int{7, 3}},
		{[]string{"node0-gpu0.pickle", "node1-gpu1.pickle"}, []int{-1, -1}}, // two numbers differ
		{[]string{"a1.pickle", "b2.pickle"}, []int{-1, -1}},
		{[]string{"node0/rank1.pickle", "node1/rank1.pickle", "node1/rank2.pickle"}, []int{-1, -1, 2}},
		{[]string{"rank.pickle", "rank3.pickle"}, []int{-1, 3}},
		{[]string{"rank7.pickle"}, []int{7}},
		{[]string{"snapshot2.pickle"}, []int{-1}},
	} {
		var list []ranks.Rank
		for _, f := range c.files {
			list = append(list, ranks.Unread(f, errors.New("")))
		}
		got := make(map[string]int)
		for _, k := range ranks.Compare(list).Ranks {
			got[k.File] = k.Number
		}
		for i, f := range c.files {
			if got[f] != c.want[i] {
				t.Errorf("%q of %q is rank %d, want %d", f, c.files, got[f], c.want[i])
			}
		}
	}
}
