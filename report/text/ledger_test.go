package text_test

import (
	"bytes"
	"testing"
	"time"

	"snapana/analyze/device/ledger"
	"snapana/analyze/fragmentation"
	"snapana/analyze/timeline"
	"snapana/analyze/verdict"
	"snapana/report/internal/sample"
	"snapana/report/text"
)

func TestLedger(t *testing.T) {
	r := sample.Reading()
	r.Devices = r.Devices[:1]
	side := ledger.Side{At: time.Unix(0, r.Time)}.Of(timeline.Totals{Reserved: 44 << 30, Allocated: 40 << 30},
		fragmentation.Classes{Releasable: 1 << 30, Hard: 1 << 30, Soft: 512 << 20, Stream: 1 << 30, Pending: 512 << 20})
	l, err := ledger.Build(r, side)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := text.Ledger(&b, l, []verdict.Finding{*ledger.Context(l)}, text.Options{}); err != nil {
		t.Fatal(err)
	}
	sample.Golden(t, "ledger.txt", b.Bytes())
}
