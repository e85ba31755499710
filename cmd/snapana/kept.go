package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/snapshot/input"
)

// kept is what a file has of runs whose snapshot it is not: a baseline, or a report.
type kept struct {
	path       string
	isBaseline bool // not a report
	all        []*footprint.Footprint
}

// readKept reads a file that snapana wrote of a snapshot; nil where it is something else.
func readKept(cmd *cobra.Command, path string) (*kept, error) {
	info, err := input.Stat(cmd.Context(), path)
	if redactorOf(cmd.Context()) != nil {
		return nil, nil // whoever reads it as a snapshot refuses it
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil // whoever reads it as a snapshot says so
	}
	file, err := input.Open(cmd.Context(), path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(file, head)
	if head = head[:n]; err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	whole := io.MultiReader(bytes.NewReader(head), file)
	k := &kept{path: path}
	switch {
	case !bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")):
		return nil, nil
	case bytes.Contains(head, []byte(footprint.Schema)):
		var base *footprint.Footprint
		base, err = footprint.Read(whole)
		k.all, k.isBaseline = append(k.all, base), true
	case bytes.Contains(head, []byte(json.ReportSchema)):
		k.all, err = json.ReadFootprints(whole)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range k.all {
		f.Name = filepath.Base(path) // many snapshots have the same
	}
	return k, nil
}

// choose gives the footprint of a device at a moment, either of which may be "" for the usual one.
func (k *kept) choose(at, device string) (*footprint.Footprint, error) {
	var best *footprint.Footprint
	for _, f := range k.all {
		if (at == f.At || at == "" && f.At == footprint.Usual(f.HasHistory)) &&
			(device == strconv.Itoa(f.Device) || device == "" && (best == nil ||
				f.Peaks.PeakReserved.Bytes > best.Peaks.PeakReserved.Bytes)) {
			best = f
		}
	}
	if best != nil {
		return best, nil
	}
	var has []string
	for _, f := range k.all {
		has = append(has, fmt.Sprintf("of GPU %d at its %s", f.Device, f.At))
	}
	return nil, fail(failure.NotInFile, "%s has the memory %s; another moment or GPU needs the snapshot", k.path,
		strings.Join(has, ", "))
}
