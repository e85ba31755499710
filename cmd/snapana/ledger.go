package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"snapana/analyze"
	"snapana/analyze/device"
	"snapana/analyze/device/ledger"
	"snapana/analyze/verdict"
	"snapana/report/text"
	"snapana/snapshot/sidecar"
)

// driverSide is where the driver's side of a report comes from.
type driverSide struct {
	live     *sidecar.Reading // read just now, or nil
	recorded *sidecar.File    // or nil
}

func openDriverSide(live bool, readings string) (*driverSide, error) {
	switch {
	case live && readings != "":
		return nil, fmt.Errorf("--nvml and --readings exclude each other")
	case readings != "":
		f, err := sidecar.Open(readings, sidecar.Options{})
		return &driverSide{recorded: f}, err
	case live:
		driver, err := device.Open()
		if err != nil {
			return nil, fmt.Errorf("%w; the report does without --nvml", err)
		}
		defer driver.Close()
		return &driverSide{live: driver.Read(os.DirFS("/proc"))}, nil
	}
	return nil, nil
}

// ledger joins a device at the end of a snapshot with the driver's side.
func (s *driverSide) ledger(r *analyze.Result, d *analyze.Device) (*ledger.Ledger, error) {
	var at time.Time
	if n := d.Timeline.Trace.Len(); n > 0 && r.Snapshot.HasTimes {
		at = time.UnixMicro(d.Timeline.Trace.At(n - 1).Time)
	}
	end := &d.Moments[len(d.Moments)-1]
	reading, side := s.live, ledger.Side{At: at}
	if s.recorded != nil {
		var err error
		if reading, side, err = ledger.Recorded(s.recorded, filepath.Base(r.Snapshot.Name), d.Timeline.Device, end.State.Totals.Reserved, at); err != nil {
			return nil, err
		}
	}
	return ledger.Build(reading, side.Of(end.State.Totals, end.Frag.Classes))
}

// print writes the ledger of each device that PyTorch used, or why there is none.
func (s *driverSide) print(w io.Writer, r *analyze.Result) error {
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Timeline.Final.Reserved == 0 {
			continue
		}
		l, err := s.ledger(r, d)
		if errors.Is(err, ledger.ErrApart) {
			_, err = fmt.Fprintf(w, "\nGPU %d has no ledger: %s\n", d.Timeline.Device, oneLine(err.Error()))
		} else if err == nil {
			_, err = fmt.Fprintln(w)
		}
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		var found []verdict.Finding
		if f := ledger.Context(l); f != nil {
			found = append(found, *f)
		}
		if s.recorded != nil {
			for k := range s.recorded.Runs {
				if f := ledger.Growth(ledger.Points(s.recorded, &s.recorded.Runs[k], d.Timeline.Device)); f != nil {
					f.Device = l.Device
					found = append(found, *f)
				}
			}
		}
		if err := text.Ledger(w, l, found, look(w)); err != nil {
			return err
		}
	}
	return nil
}
