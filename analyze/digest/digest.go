// Package digest reduces an analyzed snapshot to what the comparison of thousands of ranks needs: who made it, its
// verdict with the evidence, the peaks and what they are made of, growth, free memory, the device's ledger, failures
// and a sketch of the memory over time. A digest takes tens of kilobytes, whatever the snapshot has.
//
// Tables keep their largest rows and one sum of all others, so that their totals are exact. Equal snapshots under equal
// names give equal bytes. FORMAT.md describes the file.
package digest

import (
	"cmp"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Bounds of what is kept of a snapshot.
const (
	maxSites    = 64
	maxStacks   = 32
	maxFrames   = 24 // of a stack, innermost first
	maxPhases   = 32
	maxFindings = 32
	maxDevices  = 64
	maxColumns  = 256 // of a sketch
)

// Digest is what is kept of one snapshot. Sizes are bytes, times microseconds since 1970 by the clock of the machine
// that the program ran on; -1 is an unknown size, 0 an unknown time.
type Digest struct {
	Source   Source   `json:"source"`
	Fault    string   `json:"fault"` // why the file could not be read; then nothing below is known
	Identity Identity `json:"identity"`
	Verdict  Verdict  `json:"verdict"`
	Devices  []Device `json:"devices"` // that were used, the highest peak of reserved memory first
	Findings Findings `json:"findings"`
	Texts    []string `json:"texts"` // that the columns refer to by their place
}

// Source is the file that a digest is of.
type Source struct {
	Path     string `json:"path"` // absolute, or the pseudonym of that
	Size     int64  `json:"size"`
	Modified int64  `json:"modified_us"` // microseconds since 1970
	SHA256   []byte `json:"sha256"`      // of the file as it is stored, empty where it could not be read
	Options  string `json:"options"`     // under which it was read, "" for none
}

// Identity says whose memory it is. What is not known is "" or -1.
type Identity struct {
	Rank      int64  `json:"rank"`       // as the recorder saw it, or else as the file's name says
	WorldSize int64  `json:"world_size"` // as the recorder saw it
	LocalRank int64  `json:"local_rank"`
	Machine   string `json:"machine"` // tells machines apart: the boot id that the recorder saw
	Run       string `json:"run"`     // of the recorder
	Torch     string `json:"torch"`   // the releases that it can be, or the one that the recorder saw
	Backend   string `json:"backend"`
	Conf      string `json:"conf"`     // the allocator's settings as they were set
	HasConf   bool   `json:"has_conf"` // false: the file does not tell the settings
	// Environment has what the recorder saw of the versions and settings that change memory use, by names in order.
	Environment [][2]string `json:"environment"`
}

// Verdict is the outcome of the analysis.
type Verdict struct {
	Status   finding.Status `json:"status"`
	Headline string         `json:"headline"`
	Cause    string         `json:"cause"` // what verdicts of one status must share to be the same: the finding, and where
	Blind    bool           `json:"blind"` // leaks cannot be judged: no stacks, or a damaged file
}

// Device is the memory of one GPU.
type Device struct {
	Ordinal  int64           `json:"ordinal"`
	Total    int64           `json:"total"` // of the device, -1 unknown
	Events   int64           `json:"events"`
	Begin    int64           `json:"begin_us"` // of the first event and the last
	End      int64           `json:"end_us"`
	History  bool            `json:"history"` // the trace tells one
	Whole    bool            `json:"whole"`   // the trace begins with the program: the ring lost nothing
	Reserved int64           `json:"peak_reserved"`
	Active   int64           `json:"peak_active"`
	Alloc    int64           `json:"peak_allocated"`
	Asked    int64           `json:"peak_requested"`
	Moments  []Moment        `json:"moments"`
	Growth   int64           `json:"growth"` // what loops added and did not return
	Pieces   int64           `json:"pieces"` // free in segments that live blocks keep, at that of the moments when it is most
	Steps    Steps           `json:"steps"`
	Phases   Table           `json:"phases"` // by the peak of allocated memory
	Failure  *Failure        `json:"failure"`
	Ledger   []oom.LedgerRow `json:"ledger"` // all memory of the device, nil without readings of it
	Sketch   Sketch          `json:"sketch"`
}

// Moment is the live memory of a device at the "peak", at the last failure ("oom") or at the "end".
type Moment struct {
	Name       string                `json:"name"`
	Event      int64                 `json:"event"`
	Totals     timeline.Totals       `json:"totals"`
	Free       fragmentation.Classes `json:"free"`
	Split      int64                 `json:"split"` // free in segments that live blocks keep
	Largest    int64                 `json:"largest_free"`
	Sites      Table                 `json:"sites"` // active bytes by the line that allocated them
	Categories Table                 `json:"categories"`
	Stacks     Stacks                `json:"stacks"`
}

// Table is a sum in columns: its largest rows, and the rest as one.
type Table struct {
	Names  []int64 `json:"names"` // in Texts
	Bytes  []int64 `json:"bytes"`
	Rest   int64   `json:"rest"`      // bytes of the rows that are left out
	Others int64   `json:"rest_rows"` // how many are
}

// Stacks is a Table of stacks, innermost frames first.
type Stacks struct {
	Frames [][]int64 `json:"frames"` // in Texts
	Bytes  []int64   `json:"bytes"`
	Rest   int64     `json:"rest"`
	Others int64     `json:"rest_rows"`
}

// Steps are those of a program. Of many, each column is the highest of Each, a power of two.
type Steps struct {
	Count int64   `json:"count"` // 0: none were found
	Unit  string  `json:"unit"`
	Last  string  `json:"last"` // how the program called the last, "" when it did not
	Each  int64   `json:"each"`
	Peaks []int64 `json:"peaks"`
}

// Failure is the requests of a device that failed.
type Failure struct {
	Count     int64  `json:"count"`
	Sure      bool   `json:"sure"`     // Count and First are of all that there were; the ring lost none
	First     int64  `json:"first_us"` // of the first that is known
	Event     int64  `json:"event"`    // of the last
	Time      int64  `json:"time_us"`
	Requested int64  `json:"requested"` // rounded
	Site      string `json:"site"`
}

// Sketch is the memory over the trace, in columns of so many events each: the highest of each.
type Sketch struct {
	Events   int64   `json:"events"` // of a column
	Active   []int64 `json:"active"`
	Reserved []int64 `json:"reserved"`
}

// Failed is the digest of a file that could not be read.
func Failed(src Source, err error) *Digest {
	d := &Digest{Source: src, Fault: clip(err.Error(), maxText)}
	d.Identity = Identity{Rank: int64(snapshot.NamedRank(src.Path)), WorldSize: -1, LocalRank: -1}
	return d
}

// Of makes the digest of an analyzed snapshot. The recording is that of Options, nil for none.
func Of(src Source, r *analyze.Result, recording *sidecar.File) *Digest {
	s := r.Snapshot
	d := &Digest{Source: src, Identity: identify(src.Path, s, recording)}
	d.Verdict = Verdict{Status: r.Verdict.Status, Headline: clip(r.Verdict.Headline, maxText),
		Blind: s.Partial != nil || verdict.Blind(s) != ""}
	if f := r.Verdict.Lead(); f != nil {
		cause := f.ID + f.Cause
		for _, frame := range f.Stack[:min(len(f.Stack), maxFrames)] {
			cause += "\n" + frame
		}
		d.Verdict.Cause = clip(cause, maxText)
	}
	d.Findings.Keep(r.Verdict.Findings)
	in := interner{seen: map[string]int64{}}
	used := make([]*analyze.Device, 0, len(r.Devices))
	for i := range r.Devices {
		if t := r.Devices[i].Timeline; t.PeakReserved.Bytes > 0 || t.Trace.Len() > 0 || &r.Devices[i] == r.Main() {
			used = append(used, &r.Devices[i])
		}
	}
	sorting.Stable(used, func(a, b *analyze.Device) int { return timeline.ByPeak(a.Timeline, b.Timeline) })
	for i, a := range used[:min(len(used), maxDevices)] {
		d.Devices = append(d.Devices, in.device(s, a, i == 0))
	}
	d.Texts = in.texts
	return d
}

// device keeps of one what is comparable; of those that are not the main one, its figures alone.
func (in *interner) device(s *snapshot.Snapshot, a *analyze.Device, main bool) Device {
	t := a.Timeline
	told := t.Recording.Told()
	d := Device{Ordinal: int64(t.Device), Total: -1, Events: int64(t.Trace.Len()), History: t.HasHistory(),
		Reserved: -1, Active: -1, Alloc: -1, Asked: -1, Growth: -1, Whole: whole(t)}
	if n := t.Trace.Len(); n > 0 {
		d.Begin, d.End = t.Trace.Time(0), t.Trace.Time(n-1)
	}
	if d.History {
		known := func(p timeline.Peak, b timeline.Bound) int64 {
			if b != timeline.Exact {
				return -1
			}
			return p.Bytes
		}
		d.Reserved = known(t.PeakReserved, told.Peak.Reserved)
		d.Active = known(t.PeakActive, told.Peak.Active)
		d.Alloc = known(t.PeakAllocated, told.Peak.Allocated)
		d.Asked = known(t.PeakRequested, told.Peak.Requested)
		d.Growth = 0
		for i := range a.Growth {
			d.Growth += a.Growth[i].Bytes
		}
	}
	d.Failure = failure(s, t, told.Failures == timeline.Exact)
	for i := range a.Moments {
		m := &a.Moments[i]
		d.Pieces = max(d.Pieces, m.Frag.Classes.Hard+m.Frag.Classes.Soft)
		d.Moments = append(d.Moments, in.moment(s, m, main))
	}
	if a.Account != nil && a.Account.Ledger != nil {
		d.Total, d.Ledger = a.Account.Ledger.Total, a.Account.Ledger.Rows
	}
	if !main {
		return d
	}
	d.Steps = Steps{Count: int64(len(a.Steps.Steps)), Unit: clip(a.Steps.Unit, maxText)}
	if n := len(a.Steps.Steps); n > 0 {
		d.Steps.Last = clip(a.Steps.Steps[n-1].Name, maxText)
		var each int
		d.Steps.Peaks, each = columns(n, maxColumns, func(i int) int64 { return a.Steps.Steps[i].Peak })
		d.Steps.Each = int64(each)
	}
	rows := []row{}
	for i := range a.Phases {
		if p := a.Phases[i].Peak(); p != nil && p.Peak >= 0 {
			rows = append(rows, row{a.Phases[i].Name, p.Peak})
		}
	}
	d.Phases = in.table(rows, maxPhases)
	d.Phases.Rest = 0 // peaks do not add up
	if n := len(t.Curve); n > 0 {
		var each int
		d.Sketch.Active, each = columns(n, maxColumns, func(i int) int64 { return t.Curve[i].Max.Active })
		d.Sketch.Reserved, _ = columns(n, maxColumns, func(i int) int64 { return t.Curve[i].Max.Reserved })
		d.Sketch.Events = int64(each) * (d.Events + int64(n) - 1) / int64(n)
	}
	return d
}

// whole reports whether a trace has all that the program did on the device: there was nothing before it.
func whole(t *timeline.Timeline) bool {
	return t.HasHistory() && t.Initial.Reserved == 0 && !t.Recording.Resized && t.Window() == nil
}

func failure(s *snapshot.Snapshot, t *timeline.Timeline, sure bool) *Failure {
	n := len(t.OOMs)
	if n == 0 {
		return nil
	}
	at := func(event int) int64 {
		if event < 0 || event >= t.Trace.Len() {
			return 0
		}
		return t.Trace.Time(event)
	}
	last := t.OOMs[n-1]
	return &Failure{Count: int64(n), Sure: sure, First: at(t.OOMs[0].Event), Event: int64(last.Event),
		Time: at(last.Event), Requested: last.Requested, Site: clip(attribution.Site(s, last.Stack), maxText)}
}

func (in *interner) moment(s *snapshot.Snapshot, m *analyze.Moment, main bool) Moment {
	out := Moment{Name: m.Name, Event: int64(m.State.Event), Totals: m.State.Totals, Free: m.Frag.Classes,
		Split: m.Frag.Split, Largest: m.Frag.LargestFree}
	if !main {
		return out
	}
	bySite := map[string]int64{}
	for i := range m.Live {
		bySite[attribution.Place(s, m.Live[i].Stack)] += m.Live[i].Rounded
	}
	rows := make([]row, 0, len(bySite))
	for site, bytes := range bySite {
		rows = append(rows, row{site, bytes})
	}
	out.Sites = in.table(rows, maxSites)
	rows = rows[:0]
	for i := range m.Uses {
		rows = append(rows, row{m.Uses[i].Category.String(), m.Uses[i].Rounded})
	}
	out.Categories = in.table(rows, maxSites)
	for i := range m.Live {
		g := &m.Live[i]
		if i >= maxStacks {
			out.Stacks.Rest += g.Rounded
			out.Stacks.Others++
			continue
		}
		frames := []int64{}
		for _, f := range g.Frames[:min(len(g.Frames), maxFrames)] {
			frames = append(frames, in.id(f))
		}
		out.Stacks.Frames = append(out.Stacks.Frames, frames)
		out.Stacks.Bytes = append(out.Stacks.Bytes, g.Rounded)
	}
	return out
}

// row is one of a table in the making.
type row struct {
	name  string
	bytes int64
}

// interner gives texts their places. Once there are many bytes of them it keeps the beginnings of others only.
type interner struct {
	texts []string
	bytes int
	seen  map[string]int64
}

// Bounds of what texts and findings take of a digest.
const (
	maxTexts  = 160 << 10
	shortText = 40
	maxPacked = 128 << 10
)

func (in *interner) id(text string) int64 {
	most := maxText
	if in.bytes+len(text) > maxTexts {
		most = shortText
	}
	text = clip(text, most)
	n, ok := in.seen[text]
	if !ok {
		n = int64(len(in.texts))
		in.seen[text], in.texts, in.bytes = n, append(in.texts, text), in.bytes+len(text)
	}
	return n
}

// table keeps the k largest rows.
func (in *interner) table(rows []row, k int) (t Table) {
	sorting.By(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	for i, r := range rows {
		if i >= k {
			t.Rest += r.bytes
			t.Others++
			continue
		}
		t.Names, t.Bytes = append(t.Names, in.id(r.name)), append(t.Bytes, r.bytes)
	}
	return t
}

// columns are the highest of each few of n values, a power of two, so that there are at most so many columns.
func columns(n, most int, value func(i int) int64) (out []int64, each int) {
	for each = 1; n > each*most; {
		each *= 2
	}
	for i := range n {
		if i%each == 0 {
			out = append(out, value(i))
		} else {
			out[len(out)-1] = max(out[len(out)-1], value(i))
		}
	}
	return out, each
}

// Columns is at most so many values in the place of more: each the highest of as many neighbors as it says, a power of
// two.
func Columns(values []int64, most int) (out []int64, each int) {
	return columns(len(values), most, func(i int) int64 { return values[i] })
}
