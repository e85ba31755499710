package text_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/text"
)

func TestLedger(t *testing.T) {
	r := analyzetest.Reading()
	r.Devices = r.Devices[:1]
	side := device.Side{At: time.Unix(0, r.Time)}.Of(timeline.Totals{Reserved: 44 << 30, Allocated: 40 << 30},
		fragmentation.Classes{Releasable: 1 << 30, Hard: 1 << 30, Soft: 512 << 20, Stream: 1 << 30, Pending: 512 << 20})
	l, err := device.BuildLedger(r, side)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	result := &analyze.Result{Devices: []analyze.Device{
		{Timeline: &timeline.Timeline{}, Account: &analyze.Account{Ledger: l}},
		{Timeline: &timeline.Timeline{Device: 1}},
		{Timeline: &timeline.Timeline{Device: 2}, Account: &analyze.Account{Why: "not comparable: \x1b[31mred"}},
	}}
	if err := text.Accounts(&b, result, text.Options{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "ledger.txt", b.Bytes())
}
