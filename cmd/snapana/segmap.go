package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"snapana/analyze"
	"snapana/analyze/attribution"
	"snapana/analyze/fragmentation"
	"snapana/report/plot"
)

// writeMap draws the segments of a state to a PNG file. Nothing is written unless all is.
func writeMap(path string, a *attribution.Answer) error {
	s, t := a.Snapshot, a.Timeline
	m := analyze.Moment{
		Name: a.Moment.Name, State: a.State,
		Live: attribution.Live(s, t, a.State), Frag: fragmentation.Measure(s, t, a.State),
	}
	r := &analyze.Result{Snapshot: s, Devices: []analyze.Device{{Timeline: t, Moments: []analyze.Moment{m}}}}
	return writeWhole(path, plot.Segments(r, &r.Devices[0], &m).Write)
}

// writeWhole writes a file at once: when anything fails, what was there stays.
func writeWhole(path string, write func(io.Writer) error) error {
	var data bytes.Buffer
	if err := write(&data); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".snapana-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data.Bytes())
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
