package timeline_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

var snapshotFile = flag.String("snapshot", "", "`file` for BenchmarkBuild")

const shared = "../../../shared"

func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := load.Open(t.Context(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// truth is what torch.cuda.memory_stats counted, per device.
type truth struct {
	Stats []map[string]int64 `json:"stats"`
}

func readTruth(t testing.TB, path string) truth {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v truth
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// cases lists the labeled snapshots: those in fixtures, and the corpus where it is there.
// Each has a trace that begins with the process, unless ring or stateOnly says otherwise.
func cases(t *testing.T) map[string][2]string {
	t.Helper()
	out := map[string][2]string{}
	local, _ := filepath.Glob("../../fixtures/*.truth.json")
	for _, path := range local {
		base := path[:len(path)-len(".truth.json")]
		out["fixtures/"+filepath.Base(base)] = [2]string{base + ".pickle", path}
	}
	dirs, _ := filepath.Glob(shared + "/corpus/*/truth.json")
	for _, path := range dirs {
		dir := filepath.Dir(path)
		for _, name := range []string{"snapshot.pickle", "snapshot.pickle.zst"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				out["corpus/"+filepath.Base(dir)] = [2]string{filepath.Join(dir, name), path}
				break
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("no labeled snapshots")
	}
	return out
}

// TestTruth compares peaks and final values with what PyTorch counted, to the byte.
func TestTruth(t *testing.T) {
	for name, files := range cases(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t, files[0])
			want := readTruth(t, files[1])
			for d, stats := range want.Stats {
				tl := timeline.Build(s, d)
				compare := func(key string, got int64) {
					t.Helper()
					if want, ok := stats[key]; ok && got != want {
						t.Errorf("device %d %s: %d, torch counted %d", d, key, got, want)
					}
				}
				compare("reserved_bytes.all.current", tl.Final.Reserved)
				compare("active_bytes.all.current", tl.Final.Active)
				compare("allocated_bytes.all.current", tl.Final.Allocated)
				compare("requested_bytes.all.current", tl.Final.Requested)
				if n := tl.Checks.Inconsistent(); n != 0 || tl.Checks.Residual != 0 {
					t.Errorf("device %d: books do not balance: %+v", d, tl.Checks)
				}
				switch name {
				case "corpus/ring_truncated", "corpus/state_only":
					continue // events are missing: peaks before the window are not known
				}
				compare("reserved_bytes.all.peak", tl.PeakReserved.Bytes)
				compare("active_bytes.all.peak", tl.PeakActive.Bytes)
				compare("allocated_bytes.all.peak", tl.PeakAllocated.Bytes)
				compare("requested_bytes.all.peak", tl.PeakRequested.Bytes)
				compare("inactive_split_bytes.all.peak", tl.PeakInactiveSplit.Bytes)
			}
		})
	}
}
