package verdict_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

// Small views that keep large storages are a note where nothing grows, and the reason where something does.
func TestViews(t *testing.T) {
	rows := &finding.Views{Storages: 64, Bytes: 64 << 20, Shown: 64 << 10}
	for _, c := range []struct {
		name     string
		standing holder.Standing
		views    *finding.Views
		total    int64
		id       string // of the finding, "" for none
		say      string
	}{
		{"none", holder.Other, nil, 100 << 20, "", ""},
		{"a note", holder.Other, rows, 100 << 20, "views", "Small views keep 63.9 MiB"},
		{"few", holder.Other, &finding.Views{Storages: 1, Bytes: 1 << 20, Shown: 1 << 10}, 100 << 20, "", ""},
		{"little of all", holder.Other, rows, 64 << 30, "", ""},
		{"a leak", holder.Ghost, rows, 100 << 20, "held", "show 64.0 KiB of 64 storages with 64.0 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := &holder.Result{
				Devices: []holder.Device{{Allocated: holder.Sum{Bytes: c.total}}},
				Holders: []holder.Holder{{Standing: c.standing, Devices: []int{0}, Bytes: 64 << 20, Views: c.views,
					Storage:   holder.Sum{Count: 64, Bytes: 64 << 20},
					Reference: holder.Reference{Kind: holder.Local, Variable: "kept", Function: "train"}}},
			}
			v := verdict.Held(&snapshot.Snapshot{}, seen)
			if len(v.Findings) == 0 || c.id == "" {
				if len(v.Findings) != 0 || c.id != "" {
					t.Fatalf("findings %v, want %q", v.Findings, c.id)
				}
				return
			}
			f := v.Findings[0]
			if all := f.Title + strings.Join(f.Why, " "); f.ID != c.id || !strings.Contains(all, c.say) {
				t.Errorf("%s: %s", f.ID, all)
			}
			if next := strings.Join(f.Next, " "); !strings.Contains(next, ".clone()") {
				t.Errorf("next: %s", next)
			}
			if got := f.Evidence.Holder.Views.Hidden(); got != units.Size(64<<20-64<<10) {
				t.Errorf("hidden %v", got)
			}
			if c.id == "views" && f.Severity != finding.Info {
				t.Errorf("severity %v", f.Severity)
			}
		})
	}
}
