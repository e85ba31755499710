package analyze_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// held are recordings of programs on the CPU with two dumps (fixtures/host/programs.py): who keeps the tensors, "" for
// nobody who should not, and what stats says of the process.
var held = []struct {
	name, ghost, kind string
	stats             string
}{
	{"list", "list attribute `kept` of Trainer", "", "host-tensors high: list attribute `kept` of Trainer"},
	{"dict", "dict `results`, local of held_dict", "", "host-tensors high: dict `results`, local of held_dict"},
	{"shared", "list `queue`, local of held_shared", sidecar.HostShared, "host-tensors high: list `queue`"},
	{"cat", "", "", "host-tensors medium: tensor attribute `kept` of Trainer"},
	{"window", "", "", ""},
	{"cache", "", "", ""},
	{"filling", "", "", ""},
}

// TestAlone holds what a recorder's file says without a snapshot, of host memory.
func TestAlone(t *testing.T) {
	for _, p := range held {
		t.Run(p.name, func(t *testing.T) {
			f, err := sidecar.Open(t.Context(), "../fixtures/host/held_"+p.name+".snapana", sidecar.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := analyze.Alone(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			status, first := finding.Healthy, &r.Holders.Holders[0]
			if p.ghost != "" {
				status = finding.Ghost
				if !strings.HasPrefix(first.String(), p.ghost) || first.Standing != holder.Ghost || first.Count != 40 ||
					first.Bytes != 10<<20 || first.Before.Count != 15 {
					t.Errorf("%s: %+v", first, first)
				}
			}
			for i := range r.Holders.Holders {
				if h := &r.Holders.Holders[i]; h.Standing == holder.Ghost && i > 0 {
					t.Errorf("%s is accused", h)
				}
			}
			switch {
			case p.kind == "" && len(first.Host) > 0,
				p.kind != "" && (len(first.Host) != 1 || first.Host[0].Name != p.kind || first.Host[0].Bytes != 10<<20):
				t.Errorf("host memory %+v", first.Host)
			}
			g := r.Verdict.Ghosts(r.Holders, verdict.Unseen(r.Snapshot, false))
			if g.Status != status {
				t.Errorf("%s: %s", g.Status, g.Headline)
			}
			if grew := strings.Contains(g.Headline, "no holder gains tensors, but"); grew != (p.name == "cat") {
				t.Errorf("%q", g.Headline)
			}
			if got := told(f); !strings.HasPrefix(got, p.stats) || p.stats == "" && got != "" {
				t.Errorf("stats: %q, want %q", got, p.stats)
			}
		})
	}
}

// told is the finding of stats on tensors that grow, with who holds them.
func told(f *sidecar.File) string {
	for _, x := range verdict.JudgeHost(host.Read(f)[0]).Findings {
		if x.ID == "host-tensors" && x.Severity != finding.Info && x.Evidence.Holder != nil {
			return x.ID + " " + string(x.Confidence) + ": " + x.Evidence.Holder.Reference
		}
	}
	return ""
}

// One dump shows who holds memory, not what grows; a file without any is refused.
func TestAloneWithout(t *testing.T) {
	f, err := sidecar.Open(t.Context(), "../fixtures/host/held_list.snapana", sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := &f.Runs[0]
	run.Holders = run.Holders[:1]
	r, err := analyze.Alone(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := r.Verdict.Ghosts(r.Holders, verdict.Unseen(r.Snapshot, false))
	if g.Status != finding.NoData || !strings.Contains(g.Headline, "dump()") {
		t.Errorf("%+v", g)
	}
	if got := told(f); got != "" {
		t.Errorf("stats: %q", got)
	}
	run.Holders = nil
	if _, err := analyze.Alone(f, nil); err == nil || !strings.Contains(err.Error(), "has no dump") {
		t.Errorf("error %v", err)
	}
}
