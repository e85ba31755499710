package html

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/analyzetest"
)

func TestWhatIf(t *testing.T) {
	curve := []whatif.Sample{{First: 0, Last: 49, Reserved: 1 << 30}, {First: 50, Last: 99, Reserved: 3 << 30}}
	answer := func() *whatif.Answer {
		return &whatif.Answer{
			Accuracy: whatif.Accuracy{Requests: 200, SameRequests: 200, Share: 1, Trusted: true},
			Capacity: whatif.Capacity{Reservable: 4 << 30},
			Rows: []whatif.Row{
				{Recorded: true, Outcome: whatif.Outcome{ReservedPeak: 3 << 30, Waste: 1 << 30, Failures: 1},
					Curve: curve},
				{Text: "expandable_segments:True<", Outcome: whatif.Outcome{ReservedPeak: 2 << 30}, Curve: curve},
			},
			Advice: whatif.Advice{Best: 1, Text: "With it all is well.", Costs: []string{"It costs something."}},
		}
	}
	r := analyzetest.Failed(t)
	r.Devices[0].WhatIf = answer()
	page := write(t, r)
	balanced(t, still(t, page))
	contains(t, visible(page), "Under other allocator settings", "200 of 200 requests", "With it all is well.",
		"It costs something.",
		"the defaults (as recorded)", "-33%", "can reserve 4.00 GiB")
	if !strings.Contains(page, "expandable_segments:True&lt;") {
		t.Error("a setting is not escaped")
	}
	if n := strings.Count(page, `class="line-best"`); n != 1 {
		t.Errorf("%d lines of the best setting, want 1", n)
	}

	r.Devices[0].WhatIf = answer()
	r.Devices[0].WhatIf.Best = -1
	page = write(t, r)
	contains(t, visible(page), "None of these settings is worth a change")
	if strings.Contains(page, `class="line-best"`) {
		t.Error("a best setting is drawn where there is none")
	}

	r.Devices[0].WhatIf = answer()
	l := &r.Devices[0].WhatIf.Accuracy
	l.Trusted, l.SameRequests, l.Why = false, 100, "The trace was edited."
	page = write(t, r)
	contains(t, visible(page), "too low to predict", "The trace was edited.")
	if strings.Contains(visible(page), "-33%") {
		t.Error("predicts without being accurate")
	}
}
