package lever_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/load"
)

// TestLargest holds that the share of the largest use is that of what was in use, as all other tables have it, and
// not of what the request that failed would have made of it, and that it names the site that made most.
func TestLargest(t *testing.T) {
	s, err := load.Open(t.Context(), "../../fixtures/ranks/rank2.pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := analyze.Run(t.Context(), s, analyze.Options{NoReplay: true})
	if err != nil {
		t.Fatal(err)
	}
	all := r.Verdict.Levers
	if len(all) == 0 || all[len(all)-1].Kind != finding.LargestUse {
		t.Fatalf("levers %+v", all)
	}
	v := all[len(all)-1]
	if active := r.Devices[0].Moment("oom").State.Totals.Active; int64(v.InUse) != active || v.InUse >= v.Before {
		t.Errorf("%d bytes in use, want %d, less than %d", v.InUse, active, v.Before)
	}
	if v.AtSite <= 0 || v.AtSite > v.Bytes || strings.Contains(v.Text, "most of it") != (2*v.AtSite > v.Bytes) {
		t.Errorf("%d of %d bytes at the site: %s", v.AtSite, v.Bytes, v.Text)
	}
}
