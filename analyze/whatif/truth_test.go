package whatif_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

// TestTruth predicts five programs under eight settings each, from a recording under default
// settings and from one with expandable segments, and compares with what PyTorch 2.6 did.
func TestTruth(t *testing.T) {
	runs := 0
	for _, path := range glob(t, "corpus/whatif/*/truth.json") {
		dir := filepath.Dir(path)
		var truth struct {
			Total    int64 `json:"device_total"`
			Overhead int64 `json:"device_overhead"`
			Runs     []struct {
				Conf         string
				Reserved     int64 `json:"reserved_peak"`
				End          int64 `json:"reserved_end"`
				Allocated    int64 `json:"allocated_peak"`
				Active       int64 `json:"active_peak"`
				Split        int64 `json:"inactive_split_peak"`
				DeviceAllocs int64 `json:"num_device_alloc"`
				DeviceFrees  int64 `json:"num_device_free"`
				Retries      int64 `json:"num_alloc_retries"`
			}
		}
		if err := json.Unmarshal(readFile(t, path), &truth); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"snapshot.pickle", "snapshot_expandable.pickle"} {
			p, _ := program(t, filepath.Join(dir, file))
			for _, want := range truth.Runs {
				runs++
				o := run(t, p, want.Conf, whatif.Options{Capacity: truth.Total - truth.Overhead})
				for _, c := range []struct {
					name      string
					got, want int64
				}{
					{"reserved peak", o.ReservedPeak, want.Reserved}, {"reserved at the end", o.ReservedEnd, want.End},
					{"allocated peak", o.AllocatedPeak, want.Allocated}, {"active peak", o.Stats.ActiveBytes[0].Peak,
						want.Active},
					{"inactive split peak", o.Stats.InactiveSplitBytes[0].Peak, want.Split},
					{"num_device_alloc", o.DeviceAllocs, want.DeviceAllocs},
					{"num_device_free", o.DeviceFrees, want.DeviceFrees}, {"num_alloc_retries", o.Retries,
						want.Retries},
					{"failures", int64(o.Failures), 0},
				} {
					if c.got != c.want {
						t.Errorf("%s/%s, %q: %s is %d, want %d", filepath.Base(dir), file, want.Conf, c.name, c.got,
							c.want)
					}
				}
			}
		}
	}
	if runs < 80 {
		t.Errorf("only %d runs", runs)
	}
}

// recording is a file in testdata with PyTorch's own statistics.
type recording struct {
	Runs []struct {
		Conf     string
		Fraction float64
		Total    int64
		Capacity int64
		Stats    map[string]int64
	}
}

// TestStatistics compares all of memory_stats() with what PyTorch 2.6 counted: in programs that
// fill the device, wait for streams, collect garbage and fail, and, without having seen them, in
// the runs of one program under other settings.
func TestStatistics(t *testing.T) {
	for _, name := range []string{"random", "full", "full_expandable", "full_split", "collected"} {
		base := filepath.Join("testdata", name)
		var truth recording
		if err := json.Unmarshal(readFile(t, base+".truth.json"), &truth); err != nil {
			t.Fatal(err)
		}
		p, v := program(t, base+".pickle.gz")
		if name == "collected" {
			if v.FirstEvent < 0 || v.Share != 1 {
				t.Errorf("%s: %+v", name, v)
			}
		} else {
			exact(t, name, v, 500)
		}
		for _, want := range truth.Runs {
			set, err := p.Setting(want.Conf)
			if err != nil {
				t.Fatal(err)
			}
			set.Conf.Fraction = want.Fraction
			o, err := p.Run(t.Context(), whatif.Options{Conf: set.Conf, Capacity: want.Capacity, Total: want.Total})
			if err != nil {
				t.Fatal(err)
			}
			// Calls of empty_cache that found nothing are not in a trace.
			delete(want.Stats, "num_sync_all_streams")
			compared := 0
			o.Stats.Each(func(key string, value int64) {
				if key == "num_sync_all_streams" {
					return
				}
				if _, ok := want.Stats[key]; ok {
					compared++
				}
				if value != want.Stats[key] {
					t.Errorf("%s under %q: %s is %d, want %d", name, want.Conf, key, value, want.Stats[key])
				}
			})
			if compared < 50 || compared < len(want.Stats) {
				t.Errorf("%s under %q: %d of %d figures are known", name, want.Conf, compared, len(want.Stats))
			}
		}
	}
}

// TestUnrecordedFraction holds that garbage collection is named where it is the likely reason.
func TestUnrecordedFraction(t *testing.T) {
	s := open(t, "testdata/collected.pickle.gz")
	p, v := loaded(t, s, timeline.Build(s, 0))
	if v.FirstEvent < 0 ||
		v.Why != "garbage_collection_threshold is set: it acts under a memory fraction, which the file "+
			"does not record." {
		t.Errorf("%+v", v.What)
	}
	e := s.Traces[0].At(v.FirstEvent)
	if e.Action != snapshot.Alloc || p.Recorded.Conf.GCThreshold != 0.5 {
		t.Errorf("event %d is %v, threshold %v", v.FirstEvent, e.Action, p.Recorded.Conf.GCThreshold)
	}
}

// TestFailures replays recordings that ran out of memory, on a device of the same size: the same
// request fails and no other. Expandable segments do not help any of them. That is what PyTorch
// 2.6 does too when pinned_segments_oom is run with them: one live block of 5 MiB in four leaves
// no granule of 20 MiB free.
func TestFailures(t *testing.T) {
	files := []string{"../../fixtures/fragmentation.pickle"}
	for _, name := range []string{"genuine_oom", "pinned_segments_oom"} {
		for _, file := range []string{"snapshot.pickle", "snapshot_at_oom.pickle"} {
			if path := shared + "corpus/" + name + "/" + file; exists(path) {
				files = append(files, path)
			}
		}
	}
	for _, path := range files {
		s := open(t, path)
		tl := timeline.Build(s, 0)
		p, _ := loaded(t, s, tl)
		if p.OOMs != 1 || p.Capacity == 0 {
			t.Fatalf("%s: %d failed requests, capacity %d", path, p.OOMs, p.Capacity)
		}
		for _, conf := range []string{p.Recorded.Text, "expandable_segments:True"} {
			o := run(t, p, conf, whatif.Options{Capacity: p.Capacity})
			if o.Failures != 1 || o.First.Event != tl.OOMs[0].Event || o.First.Requested != tl.OOMs[0].Requested ||
				!o.First.Recorded {
				t.Errorf("%s under %q: %d failures, first %+v; want event %d", path, conf, o.Failures, o.First,
					tl.OOMs[0].Event)
			}
			if conf == p.Recorded.Text && o.First.Reserved != tl.OOMs[0].After.Reserved {
				t.Errorf("%s: %d bytes reserved at the failure, want %d", path, o.First.Reserved,
					tl.OOMs[0].After.Reserved)
			}
		}
		if o := run(t, p, "", whatif.Options{}); o.Failures != 0 || o.Served != 1 {
			t.Errorf("%s without limit: %d failures, %d served", path, o.Failures, o.Served)
		}
	}
}

// pieces fills 400 MiB so that a request for 200 MiB fails while 240 MiB lie free in two
// segments.
func pieces(d *build.Device) {
	a, b := d.Alloc(160*mib), d.Alloc(160*mib)
	d.Free(a)
	d.Alloc(40 * mib)
	x := d.Alloc(100 * mib)
	d.Free(b)
	d.Alloc(40 * mib)
	d.Free(x)
	d.Alloc(200 * mib)
	d.Alloc(8 * mib)
}

// TestSaved is a failure that expandable segments save.
func TestSaved(t *testing.T) {
	opt := build.Options{Capacity: 400 * mib}
	made := build.Run(opt, pieces)
	if made.Truth[0].OOMs != 1 {
		t.Fatalf("the case is wrong: %+v", made.Truth[0])
	}
	s := buildtest.Read(t, made)
	p, v := loaded(t, s, timeline.Build(s, 0))
	exact(t, "in pieces", v, 6)
	if p.Capacity != 400*mib {
		t.Fatalf("capacity %d", p.Capacity)
	}
	if o := run(t, p, "", whatif.Options{Capacity: p.Capacity}); o.Failures != 1 || o.Served != 0 || o.Retries != 1 ||
		o.First.Allocated != 80*mib {
		t.Errorf("recorded settings: %+v, first %+v", o, o.First)
	}
	o := run(t, p, "expandable_segments:True", whatif.Options{Capacity: p.Capacity})
	if o.Failures != 0 || o.Served != 1 {
		t.Errorf("expandable segments: %d failures, %d served", o.Failures, o.Served)
	}
	opt.Expandable = true
	if truth := build.Run(opt, pieces).Truth[0]; truth.OOMs != 0 {
		t.Errorf("the other model says %+v", truth)
	}
}
