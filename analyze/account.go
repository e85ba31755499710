package analyze

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Account is all memory of a device at the end of a snapshot: the driver's or the recorder's
// figures for the device, and in it PyTorch's.
type Account struct {
	Ledger *device.Ledger // nil where the two sides cannot be joined
	Why    string         // why not
}

// account joins each device that PyTorch used with the readings that there are, and adds what is
// odd about them to the findings, after those on the snapshot itself: they do not change its verdict.
func (r *Result) account(opt Options) {
	from := opt.Readings
	if from == nil && opt.Live == nil {
		from = opt.Recorder
	}
	if from == nil && opt.Live == nil || r.Snapshot.Part != nil {
		return // a part of the memory says nothing about the device
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Timeline.Final.Reserved == 0 {
			continue
		}
		l, err := r.join(d, from, opt.Live)
		if errors.Is(err, device.ErrApart) && opt.Readings == nil && opt.Live == nil {
			continue // nobody asked
		}
		d.Account = &Account{Ledger: l}
		if err != nil {
			d.Account.Why = strings.Join(strings.Fields(err.Error()), " ")
			continue
		}
		r.odd(d, from)
	}
}

func (r *Result) join(d *Device, from *sidecar.File, live *sidecar.Reading) (*device.Ledger, error) {
	var at time.Time
	if n := d.Timeline.Trace.Len(); n > 0 && r.Snapshot.HasTimes {
		at = time.UnixMicro(d.Timeline.Trace.Time(n - 1))
	}
	end := &d.Moments[len(d.Moments)-1]
	reading, side := live, device.Side{At: at}
	if from != nil {
		var err error
		if reading, side, err = device.Recorded(from, snapshot.PlainName(r.Snapshot.Name), r.Snapshot.Bytes,
			d.Timeline.Device, end.State.Totals.Reserved, at); err != nil {
			return nil, err
		}
	}
	return device.BuildLedger(reading, side.Of(end.State.Totals, end.Frag.Classes))
}

func (r *Result) odd(d *Device, from *sidecar.File) {
	add := func(f *finding.Finding) {
		if f != nil {
			f.Device = d.Timeline.Device
			r.Verdict.Findings = append(r.Verdict.Findings, *f)
		}
	}
	add(verdict.Outside(d.Account.Ledger))
	if from == nil {
		return
	}
	for i := range from.Runs {
		add(verdict.OutsideGrowth(device.Points(from, &from.Runs[i], d.Timeline.Device)))
	}
}

// memory is what is known of a device's memory in bytes beside the snapshot: in all, 0 for unknown,
// and what was free when the snapshot was written, -1 for unknown.
func (opt *Options) memory(s *snapshot.Snapshot, device int) (total, free int64) {
	total, free = opt.Capacity, -1
	if opt.Recorder == nil {
		return total, free
	}
	_, dump := opt.Recorder.Snapshot(snapshot.PlainName(s.Name), s.Bytes)
	if dump == nil {
		return total, free
	}
	for _, d := range dump.Devices {
		if d.Device == nil || *d.Device != int64(device) {
			continue
		}
		if d.Total != nil && total == 0 {
			total = *d.Total
		}
		if d.Free != nil {
			free = *d.Free
		}
	}
	return total, free
}

// Join puts a snapshot beside the log of the same failure. Where both are about the last request that
// failed, it is explained from the snapshot. capacity is the bytes of the device, 0 for what the message
// says. The error is that of a canceled ctx.
func Join(ctx context.Context, l *oom.Log, s *snapshot.Snapshot, capacity int64) error {
	l.Join(s.Name, oom.Events(s))
	if l.Match == nil || !l.Match.Same {
		return nil
	}
	r, err := Run(ctx, s, Options{Capacity: cmp.Or(capacity, l.Groups[l.Main].Total.Bytes)})
	if err != nil {
		return err
	}
	for _, d := range r.Devices {
		if d.OOM != nil && d.Timeline.Device == l.Match.Device && d.OOM.Event == l.Match.Index {
			l.Explain(d.OOM)
			break
		}
	}
	return nil
}
