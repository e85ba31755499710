package text

import (
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxPhases is how many phases of a device get a row.
const maxPhases = 12

// Phases prints the parts of the program that it named: how much was allocated in each at most, and what it left.
func Phases(w io.Writer, r *analyze.Result, o Options) error {
	d := newDoc(o)
	d.allPhases(r)
	return d.print(w)
}

func (d *doc) allPhases(r *analyze.Result) {
	var named []*analyze.Device
	for i := range r.Devices {
		if len(chart.Phases(r.Devices[i].Phases, false)) > 0 {
			named = append(named, &r.Devices[i])
		}
	}
	shown := analyze.Fullest(named, usualDevices, nil)
	for _, v := range shown {
		d.phases(v.Timeline.Device, "", len(named) > 1, false, v.Phases)
	}
	if n := len(named) - len(shown); n > 0 {
		d.line(more(n, "device"))
	}
}

// phases adds a table of the phases of one device, which is named where there are several. counted says that
// nothing but torch's counters is known.
func (d *doc) phases(device int, file string, several, counted bool, list []phase.Phase) {
	rows := chart.Phases(list, false)
	if len(rows) == 0 {
		return
	}
	d.gap()
	if file != "" {
		d.line(chart.ClipLeft(chart.Plain(file), 40) + ":")
	}
	heads := chart.PhaseColumns(counted)
	cols := []column{{head: heads[0] + when(several, " (%s)", chart.DeviceName(device)), width: -16, cut: chart.Clip},
		num(heads[1], 7), num(heads[2], 11), num(heads[3], 13).spared(2), num(heads[4], 12).spared(1),
		num(heads[5], 11)}
	t := d.table(bold, cols...)
	var notes [][]cell // a table of Markdown has no room for them
	for i, r := range rows {
		if i == maxPhases {
			t.line(more(len(rows)-i, "phase") + ", in the full report")
			break
		}
		values := []any{plain.name(r.Name)}
		for _, c := range r.Cells(counted)[1:] {
			values = append(values, c)
		}
		t.row(values...)
		for _, n := range r.Notes {
			if d.markdown {
				notes = append(notes, cells(plain.name(r.Name), ": "+n))
			} else {
				t.paragraph(dim.of(n), 2, 0)
			}
		}
	}
	if len(notes) > 0 {
		d.bullets("Phases", notes)
	}
}
