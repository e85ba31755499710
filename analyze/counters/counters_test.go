package counters_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/memstats"
)

const mib = 1 << 20

// sample makes a sample of device 0.
func sample(step int, stats ...any) *memstats.Sample {
	s := &memstats.Sample{Rank: -1, Step: memstats.Number{N: int64(step), Known: true}}
	for i := 0; i < len(stats); i += 2 {
		s.Stats = append(s.Stats, memstats.Stat{Name: stats[i].(string),
			Figure: memstats.Figure{Value: int64(stats[i+1].(int)), Step: 1}})
	}
	slices.SortFunc(s.Stats, func(a, b memstats.Stat) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// live judges n samples of live memory; per is the number of steps of an epoch, 0 for none.
func live(n, per int, f func(step int) int) *verdict.Counters {
	c := counters.NewCollector()
	for i := range n {
		s := sample(i, counters.Allocated, f(i))
		if per > 0 {
			s.Epoch = memstats.Number{N: int64(i / per), Known: true}
		}
		c.Add(s)
	}
	return verdict.JudgeCounters(c.Series[0], 0)
}

// TestShapes judges runs of every shape that healthy programs and leaks have.
func TestShapes(t *testing.T) {
	saw := func(period, height int) func(int) int {
		return func(i int) int { return 500*mib + i%period*height }
	}
	for name, c := range map[string]struct {
		n, per int
		f      func(i int) int
		want   finding.Status
		shape  finding.Shape
		slope  float64 // of growth, to 10%
	}{
		"level": {n: 100, f: func(i int) int { return 500 * mib }, want: finding.Flat,
			shape: counters.Steady},
		"warm-up": {n: 100, f: func(i int) int { return 500*mib + min(i, 5)*mib }, want: finding.Flat,
			shape: counters.Settled},
		"long warm-up": {n: 100, f: func(i int) int { return 500*mib + min(i, 40)*mib }, want: finding.Flat,
			shape: counters.Settled},
		"plateau at two thirds": {n: 90, f: func(i int) int { return 500*mib + min(i, 60)*mib }, want: finding.Flat,
			shape: counters.Settled},
		"sawtooth":              {n: 200, f: saw(7, mib), want: finding.Flat, shape: counters.Swings},
		"long sawtooth":         {n: 200, f: saw(70, mib), want: finding.Flat, shape: counters.Swings},
		"two and a half teeth":  {n: 25, f: saw(10, mib), want: finding.Flat, shape: counters.Swings},
		"long tooth at the end": {n: 150, f: saw(80, mib), want: finding.Flat, shape: counters.Swings},
		"validation takes more": {n: 200, f: func(i int) int { return 500*mib + i/20%2*300*mib }, want: finding.Flat,
			shape: counters.Swings},
		"validation takes less": {n: 200, f: func(i int) int { return 500*mib - i/20%2*300*mib }, want: finding.Flat,
			shape: counters.Falling},
		"ends in validation": {n: 190, f: func(i int) int { return 500*mib + i/100*300*mib }, want: finding.Flat,
			shape: counters.Settled},
		"a stair at the end": {n: 60, f: func(i int) int { return 500*mib + i/55*mib }, want: finding.Flat,
			shape: counters.Swings},
		"falling": {n: 60, f: func(i int) int { return 500*mib - i*mib }, want: finding.Flat,
			shape: counters.Falling},
		"loss list of each epoch": {n: 300, per: 50, f: saw(50, mib), want: finding.Flat, shape: counters.Swings},
		"one sample":              {n: 1, f: saw(7, mib), want: finding.Unknown, shape: counters.Short},
		"four rising":             {n: 4, f: saw(7, mib), want: finding.Unknown, shape: counters.Short},

		"leak": {n: 100, f: func(i int) int { return 500*mib + i*mib }, want: finding.Growing,
			slope: mib},
		"leak of 512 B": {n: 100, f: func(i int) int { return 500*mib + i*512 }, want: finding.Growing,
			slope: 512},
		"leak of five steps": {n: 6, f: func(i int) int { return 500*mib + i*mib }, want: finding.Growing,
			slope: mib},
		"leak, long": {n: 100_000, f: func(i int) int { return 500*mib + i*512 }, want: finding.Growing,
			slope: 512},
		"leak under a sawtooth": {n: 300, f: func(i int) int { return saw(10, 30*mib)(i) + i*mib },
			want: finding.Growing, slope: mib},
		"leak under long teeth": {n: 400, f: func(i int) int { return saw(30, 10*mib)(i) + i*mib },
			want: finding.Growing, slope: mib},
		"leak with validation": {n: 300, f: func(i int) int { return 500*mib + i*mib + i/10%3/2*300*mib },
			want: finding.Growing, slope: mib},
		"leak with lower validation": {n: 300, f: func(i int) int { return 500*mib + i*mib - i/10%3/2*300*mib },
			want: finding.Growing, slope: mib},
		"leak after warm-up": {n: 100, f: func(i int) int { return 500*mib + min(i, 5)*100*mib + i*mib },
			want: finding.Growing, slope: mib},
		"leak that began late": {n: 200, f: func(i int) int { return 500*mib + max(i-90, 0)*mib },
			want: finding.Growing, slope: mib},
		"leak with every validation": {n: 400, f: func(i int) int { return 500*mib + i/20*20*mib },
			want:  finding.Growing,
			slope: mib},
		"leak with every epoch": {n: 60, per: 10, f: func(i int) int { return 500*mib + i/10*20*mib + i%10*mib },
			want: finding.Growing},
		"leak of each seventh garbage": {n: 140, f: func(i int) int { return 500*mib + i/7*mib + i%7*3*mib },
			want: finding.Growing, slope: mib / 7.},
	} {
		t.Run(name, func(t *testing.T) {
			j := live(c.n, c.per, c.f)
			tr := j.Trends.Of(counters.Allocated)
			if j.Status != c.want || c.want == finding.Flat && tr.Shape != c.shape {
				t.Fatalf("%s, %s: %s; %+v", j.Status, tr.Shape, j.Headline, *tr)
			}
			if c.slope > 0 && math.Abs(tr.Slope-c.slope) > c.slope/10 {
				t.Errorf("slope %g a %s, want %g", tr.Slope, tr.Unit, c.slope)
			}
			if c.want == finding.Growing && (tr.From95 > tr.Slope || tr.To95 < tr.Slope || tr.Kept <= 0 ||
				tr.P > 0.01) {
				t.Errorf("%+v", tr)
			}
		})
	}
}

// TestNoFalseAlarm judges memory that wanders without a trend: noise, values that stay for a
// while, and random teeth (several: a run that ends in its first tooth shows nothing but growth).
func TestNoFalseAlarm(t *testing.T) {
	alarms := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 5 + r.IntN(400)
		held, until, tooth := 0, 0, 1+r.IntN(50)
		if seed%4 == 2 {
			n += 200
		}
		j := live(n, 0, func(i int) int {
			switch seed % 4 {
			case 0: // batches of any size
				return 500*mib + r.IntN(100)*mib
			case 1: // few sizes that stay for a while
				if i >= until {
					held, until = r.IntN(5)*mib, i+1+r.IntN(20)
				}
				return 500*mib + held
			case 2: // teeth of any length
				if held++; held > tooth {
					held, tooth = 0, 1+r.IntN(50)
				}
				return 500*mib + held*mib
			}
			return 500*mib + int(r.ExpFloat64()*10)*mib // seldom a large one
		})
		if j.Status == finding.Growing {
			alarms++
			t.Logf("seed %d, %d samples: %s", seed, n, j.Headline)
		}
	}
	if alarms > 2 {
		t.Errorf("%d of 400 runs are called growing", alarms)
	}
}

// TestCorpus holds the verdict on each workload's memory_stats.jsonl against what the workload
// does. The words of truth.json are those of a snapshot's verdict; in a series they show as:
//
//	ghost          growing
//	healthy        flat
//	cached         cached
//	fragmentation  fragmentation where the counters saw a request fail; pinned_segments_oom has one
//	               sample, from before its failure, which tells no trend: unknown, and the finding
//	               "split" says that most of what is reserved lies in pieces
//	capacity       genuine_oom failed in its first step and has no sample at all: the file is refused
func TestCorpus(t *testing.T) {
	words := map[string]finding.Status{"ghost": finding.Growing, "healthy": finding.Flat, "cached": finding.Cached,
		"fragmentation": finding.Fragmentation}
	paths, _ := filepath.Glob("../../../shared/corpus/*/memory_stats.jsonl")
	if len(paths) == 0 {
		t.Skip("no corpus")
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			var truth struct{ Verdict string }
			data, err := os.ReadFile(filepath.Join(dir, "truth.json"))
			if err == nil {
				err = json.Unmarshal(data, &truth)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := counters.NewCollector()
			_, err = memstats.Open(t.Context(), path, nil, memstats.Options{},
				memstats.Handler{Sample: func(s *memstats.Sample) { c.Add(s) }})
			if name == "genuine_oom" {
				if err == nil || !strings.Contains(err.Error(), "empty") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range c.Series {
				j := verdict.JudgeCounters(d, 0)
				want := words[truth.Verdict]
				if name == "pinned_segments_oom" {
					want = finding.Unknown
					if len(j.Findings) == 0 || j.Findings[0].ID != "split" {
						t.Errorf("%+v", j.Findings)
					}
				}
				if j.Status != want || want == "" {
					t.Errorf("GPU %d: %s, truth %s: %s", d.Device, j.Status, truth.Verdict, j.Headline)
				}
				for _, f := range j.Findings {
					if want == finding.Flat && f.Severity != finding.Info {
						t.Errorf("a healthy run is accused: %+v", f)
					}
				}
			}
		})
	}
}

// TestFindings checks what is noticed beside growth.
func TestFindings(t *testing.T) {
	run := func(capacity int64, samples ...*memstats.Sample) *verdict.Counters {
		c := counters.NewCollector()
		for _, s := range samples {
			c.Add(s)
		}
		return verdict.JudgeCounters(c.Series[0], capacity)
	}
	each := func(n int, f func(i int) *memstats.Sample) []*memstats.Sample {
		var out []*memstats.Sample
		for i := range n {
			out = append(out, f(i))
		}
		return out
	}
	for name, c := range map[string]struct {
		j    *verdict.Counters
		want finding.Status
		ids  string
		says string // in the texts
	}{
		"forecast": {run(1000*mib, each(20, func(i int) *memstats.Sample {
			s := sample(i, counters.Allocated, 500*mib+i*10*mib)
			s.Time = 1e15 + int64(i)*2e6
			return s
		})...), finding.Growing, "growth", "now 690 MiB, reaches 1000 MiB (as given) in about 31 more steps, 1m2s"},
		"forecast by mem_get_info": {run(0, each(20, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 500*mib+i*10*mib, "device.free", 200*mib, "device.total", 1000*mib,
				counters.Reserved, 700*mib)
		})...), finding.Growing, "growth", "reaches 900 MiB (free and reserved now, by mem_get_info) in about 21 " +
			"more steps"},
		"full already": {run(600*mib, each(20, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated,
				500*mib+i*10*mib)
		})...),
			finding.Growing, "growth", "has reached all that tensors can have"},
		"reserved drifts": {run(0, each(40, func(i int) *memstats.Sample {
			return sample(i, counters.Active, 500*mib, counters.Allocated, 500*mib, counters.Reserved, 600*mib+i*20*mib,
				counters.Split, 50*mib+i*15*mib)
		})...), finding.Fragmentation, "drift", "this is fragmentation"},
		"longer batches": {run(0, each(40, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 900*mib+i*10*mib, counters.Blocks, 100, "allocated_bytes.all.freed",
				i*1000*mib)
		})...), finding.Growing, "growth", "the same tensors get larger"},
		"live falls": {run(0, each(40, func(i int) *memstats.Sample {
			return sample(i, counters.Active, 900*mib-i*10*mib, counters.Allocated, 900*mib-i*10*mib, counters.Reserved,
				1000*mib)
		})...), finding.Flat, "", "falls"},
		"full and tight": {run(0, each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 500*mib, "allocated_bytes.all.peak", 950*mib,
				"reserved_bytes.all.peak", 1000*mib, counters.Reserved, 1000*mib, counters.Retries, i/5)
		})...), finding.Flat, "retries", "refused memory once"},
		"full and in pieces": {run(0, each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 300*mib, "allocated_bytes.all.peak", 400*mib, counters.Reserved,
				1000*mib, counters.Retries, i/5, counters.OOMs, i/9)
		})...), finding.Fragmentation, "fragmentation oom retries", "at most 400 MiB of the 1000 MiB reserved was " +
			"ever live"},
		"other stream": {run(0, each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Active, 500*mib+i*50*mib, counters.Allocated, 500*mib, counters.Reserved,
				1000*mib)
		})...), finding.Flat, "pending", "grow by 50.0 MiB"},
		"peaks reset": {run(0, each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 500*mib, "allocated_bytes.all.peak", 600*mib-i%5*mib)
		})...), finding.Flat, "", "Peaks fall 8 times"},
		"began again": {run(0, append(each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 500*mib+i*mib, "allocated_bytes.all.allocated", i*1000*mib)
		}), each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 500*mib, "allocated_bytes.all.allocated", i*1000*mib)
		})...)...), finding.Flat, "", "restarted once"},
		"sums reset": {run(0, each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Allocated, 500*mib, "allocated_bytes.all.allocated", i%4*mib,
				"allocated_bytes.all.freed", i%4*mib)
		})...), finding.Flat, "", "reset before the first sample"},
		"only reserved": {run(0, each(10, func(i int) *memstats.Sample {
			return sample(i, counters.Reserved,
				500*mib+i*mib)
		})...),
			finding.Growing, "growth", "fragmentation would look the same"},
		"no memory": {run(0, sample(0, counters.Retries, 0)), finding.Unknown, "", "no counter of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			var ids, texts []string
			texts = append(append(texts, c.j.Headline), c.j.Notes...)
			for _, f := range c.j.Findings {
				ids = append(ids, f.ID)
				texts = append(append(append(texts, f.Title), f.Why...), f.Next...)
			}
			if c.j.Status != c.want || strings.Join(ids, " ") != c.ids ||
				!strings.Contains(strings.Join(texts, "\n"), c.says) {
				t.Errorf("%s %v\n%s", c.j.Status, ids, strings.Join(texts, "\n"))
			}
		})
	}
}

// TestDevices keeps devices and ranks apart, whatever the order of the samples.
func TestDevices(t *testing.T) {
	c := counters.NewCollector("num_device_alloc")
	for i := range 20 {
		for _, id := range [][2]int{{1, 1}, {0, 1}, {1, 0}, {0, 0}} {
			s := sample(i, counters.Allocated, 500*mib+i*id[0]*mib, "num_device_alloc", i)
			s.Rank, s.Device = id[0], id[1]
			c.Add(s)
		}
	}
	if len(c.Series) != 4 {
		t.Fatalf("%d devices", len(c.Series))
	}
	for i, d := range c.Series {
		j := verdict.JudgeCounters(d, 0)
		if d.Rank != i/2 || d.Device != i%2 || (j.Status == finding.Growing) != (d.Rank == 1) ||
			j.Trends.Of("num_device_alloc") == nil {
			t.Errorf("%d: rank %d GPU %d: %s", i, d.Rank, d.Device, j.Status)
		}
	}
}
