package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/internal/chart"
)

// mostFolded is how many bytes of lines are written in full, beside four for each byte of the snapshot. A line repeats all
// names of its stack, of which a hostile file has one that is long in all stacks: behind that, lines have the innermost call.
const mostFolded = 64 << 20

// writeFolded writes a line for each stack: its calls from the outermost on with ";" between them, a blank, and rounded
// bytes. Of several devices the first call is the name.
func writeFolded(ctx context.Context, w io.Writer, r *analyze.Result, at Moment) error {
	if err := has(r, at); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	left := mostFolded + 4*r.Snapshot.Bytes
	k := slices.Index(Moments(), at)
	for i := range r.Devices {
		d := newDevice(r.Snapshot, &r.Devices[i])
		var (
			code  attribution.Code
			bytes int64
		)
		line := func() error { // of what came before
			if bytes == 0 {
				return nil
			}
			var names []string
			if len(r.Devices) > 1 {
				names = append(names, chart.DeviceName(d.Timeline.Device))
			}
			calls := d.calls(code)
			if left < 0 {
				calls = calls[:1]
			}
			for _, f := range slices.Backward(calls) {
				names = append(names, unfolded(f.Text()))
			}
			n, err := fmt.Fprintf(out, "%s %d\n", strings.Join(names, ";"), bytes)
			left, bytes = left-int64(n), 0
			return err
		}
		err := d.groups(ctx, func(g *group) (err error) {
			if g.code != code {
				err = line()
			}
			code, bytes = g.code, bytes+g.sums[k].Rounded
			return err
		})
		if err == nil {
			err = line()
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// unfolded keeps what parts calls and lines out of a name, and what a terminal or an SVG of a flame graph cannot take.
func unfolded(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, valid(name))
}

// has fails where a snapshot has no such moment. That nothing leaked is an answer.
func has(r *analyze.Result, at Moment) error {
	lacks := map[Moment]string{Peak: "no history, so that the peak is not known", OOM: "no request that failed",
		Allocated: "no events"}
	for i := range r.Devices {
		t := r.Devices[i].Timeline
		if at == Peak && t.HasHistory() || at == OOM && len(t.OOMs) > 0 || at == Allocated && t.Trace.Len() > 0 {
			return nil
		}
	}
	if lacks[at] == "" {
		return nil
	}
	code := failure.NoHistory
	if at == OOM {
		code = failure.NotInFile
	}
	return failure.Mark(code, fmt.Errorf("%s has %s; %q is always known", r.Snapshot.Name, lacks[at], End))
}
