package counters

import (
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/memstats"
)

// The counters that are kept, by their names in memory_stats.
const (
	Allocated = "allocated_bytes.all.current"
	Requested = "requested_bytes.all.current"
	Active    = "active_bytes.all.current"
	Reserved  = "reserved_bytes.all.current"
	Split     = "inactive_split_bytes.all.current"
	Blocks    = "allocation.all.current"
	Segments  = "segment.all.current"

	AllocatedPeak = "allocated_bytes.all.peak"
	ReservedPeak  = "reserved_bytes.all.peak"
	allocatedSum  = "allocated_bytes.all.allocated"
	FreedSum      = "allocated_bytes.all.freed"
	Retries       = "num_alloc_retries"
	OOMs          = "num_ooms"
	DeviceFree    = "device.free"
	DeviceTotal   = "device.total"
	Pinned        = "host.allocated_bytes.current"
	PinnedUses    = "host.active_requests.current"
	PinnedFreed   = "host.active_requests.freed"

	// Cached is what is reserved and not active, Pending what the program has freed while another
	// stream may still use it. Both are derived.
	Cached  = "reserved - active"
	Pending = "active - allocated"
)

var kept = []string{Allocated, Requested, Active, Reserved, Split, Blocks, Segments, AllocatedPeak, ReservedPeak,
	allocatedSum, FreedSum, Retries, OOMs, DeviceFree, DeviceTotal, Pinned, PinnedUses}

// maxPoints of a device are kept; of longer runs every second is dropped as often as it takes.
const maxPoints = 1 << 13

// unknown stands in a column for a figure that a sample lacks. Counters are never negative.
const unknown = -1

// Extent says of whom a series is, and how long it is.
type Extent struct {
	Device  int   `json:"device"` // ordinal, -1 unknown
	Rank    int   `json:"rank"`   // of the process, -1 unknown
	Samples int64 `json:"samples"`
	Every   int64 `json:"every"` // one point stands for so many samples
}

// Series is the counters of one device of one process.
type Series struct {
	Extent
	finding.Incidents
	First, Last memstats.Sample
	Points      []Point

	names   []string // of the columns
	extra   []string // of them, those that were asked for
	columns map[string]*column
	uneven  bool // some sample has no step, or none above the one before
	epochs  []epoch
}

// column is the values of one counter at the points, with what all samples say of it.
type column struct {
	values     []int64
	known      bool  // some sample has it
	grain      int64 // its coarsest precision
	last, high int64
}

// Point is when a sample was taken.
type Point struct {
	Sample int64 // counts from 0
	Step   memstats.Number
	Epoch  memstats.Number
	Time   int64 // microseconds, 0 unknown
}

// epoch is the lowest of some columns in one epoch.
type epoch struct {
	number int64
	low    map[string]int64
}

// maxEpochs bounds the epochs that are kept apart.
const maxEpochs = 1 << 12

// Collector sorts samples by device.
type Collector struct {
	Series []*Series // by rank and ordinal
	names  []string  // of the columns
	extra  []string
	byID   map[[2]int]*Series
}

// NewCollector keeps the counters with the given names beside those that are judged.
func NewCollector(names ...string) *Collector {
	c := &Collector{names: slices.Clone(kept), extra: names, byID: make(map[[2]int]*Series)}
	for _, name := range names {
		if !slices.Contains(c.names, name) {
			c.names = append(c.names, name)
		}
	}
	return c
}

// maxDevices is far above what the processes of one file have.
const maxDevices = 1 << 12

// Add takes the next sample. It keeps nothing of it that is not copied.
func (c *Collector) Add(s *memstats.Sample) {
	id := [2]int{s.Rank, s.Device}
	d := c.byID[id]
	if d == nil {
		if len(c.byID) >= maxDevices {
			return
		}
		d = &Series{Extent: Extent{Device: s.Device, Rank: s.Rank}, names: c.names, extra: c.extra}
		d.begin()
		c.byID[id] = d
		at, _ := slices.BinarySearchFunc(c.Series, id, func(o *Series, id [2]int) int {
			return slices.Compare([]int{o.Rank, o.Device}, id[:])
		})
		c.Series = slices.Insert(c.Series, at, d)
	}
	d.add(s)
}

// begin forgets all samples.
func (d *Series) begin() {
	*d = Series{
		Extent: Extent{Device: d.Device, Rank: d.Rank, Every: 1}, Incidents: finding.Incidents{Restarts: d.Restarts},
		names: d.names, extra: d.extra, columns: map[string]*column{},
	}
	for _, name := range d.names {
		d.columns[name] = &column{}
	}
}

func (d *Series) add(s *memstats.Sample) {
	if d.Samples > 0 && d.restarted(s) {
		d.Restarts++
		d.begin()
	}
	if d.Samples == 0 {
		d.First = clone(s)
		sum, freed, cur := s.Get(allocatedSum), s.Get(FreedSum), s.Get(Allocated)
		if sum.Step == 1 && freed.Step == 1 && cur.Step == 1 {
			d.ResetBefore = sum.Value-freed.Value != cur.Value
		}
	}
	d.uneven = d.uneven || !s.Step.Known || d.Samples > 0 && s.Step.N <= d.Last.Step.N
	d.resets(s)
	keep := d.Samples%d.Every == 0
	if keep {
		d.Points = append(d.Points, Point{d.Samples, s.Step, s.Epoch, s.Time})
	}
	for _, name := range d.names {
		d.columns[name].add(s.Get(name), keep)
	}
	d.epoch(s)
	d.Samples++
	d.Last = clone(s)
	if len(d.Points) > maxPoints {
		d.thin()
	}
}

func clone(s *memstats.Sample) memstats.Sample {
	c := *s
	c.Stats = slices.Clone(s.Stats)
	return c
}

func (c *column) add(f memstats.Figure, keep bool) {
	v := int64(unknown)
	if f.Known() {
		v = f.Value
		c.known, c.last, c.high, c.grain = true, v, max(c.high, v), max(c.grain, f.Step)
	}
	if keep {
		c.values = append(c.values, v)
	}
}

// restarted reports whether the sample begins another run: its step is not above the last one,
// and what only ever rises fell. A counter of batches falls with every epoch, but alone.
func (d *Series) restarted(s *memstats.Sample) bool {
	if !s.Step.Known || !d.Last.Step.Known || s.Step.N > d.Last.Step.N {
		return false
	}
	if s.Epoch.Known && d.Last.Epoch.Known && s.Epoch.N > d.Last.Epoch.N {
		return false
	}
	f := s.Get(allocatedSum)
	return f.Known() && f.Value < d.columns[allocatedSum].last
}

// resets notices counters that fall although nothing but a reset lowers them, and sums the rises
// of the others.
func (d *Series) resets(s *memstats.Sample) {
	if d.Samples == 0 {
		return
	}
	fell := func(name string) bool {
		f, c := s.Get(name), d.columns[name]
		return c.known && f.Known() && f.Value < c.last
	}
	if fell(AllocatedPeak) || fell(ReservedPeak) {
		d.PeakResets++
	}
	if fell(allocatedSum) || fell(FreedSum) {
		d.SumResets++
	}
	rise := func(name string) int64 {
		f, c := s.Get(name), d.columns[name]
		switch {
		case !c.known || !f.Known():
			return 0
		case f.Value < c.last: // reset in between: all of it is new
			return f.Value
		}
		return f.Value - c.last
	}
	d.NewRetries += rise(Retries)
	d.NewOOMs += rise(OOMs)
}

func (d *Series) epoch(s *memstats.Sample) {
	if !s.Epoch.Known {
		return
	}
	n := len(d.epochs)
	if n == 0 || d.epochs[n-1].number != s.Epoch.N {
		if n >= maxEpochs {
			return
		}
		d.epochs = append(d.epochs, epoch{s.Epoch.N, make(map[string]int64)})
		n++
	}
	low := d.epochs[n-1].low
	for _, name := range []string{Allocated, Requested, Active, Reserved} {
		if f := s.Get(name); f.Known() {
			if have, ok := low[name]; !ok || f.Value < have {
				low[name] = f.Value
			}
		}
	}
}

// thin drops every second point.
func (d *Series) thin() {
	for _, c := range d.columns {
		c.values = half(c.values)
	}
	d.Points = half(d.Points)
	d.Every *= 2
}

// half keeps every second element, in place.
func half[T any](all []T) []T {
	out := all[:0]
	for i := 0; i < len(all); i += 2 {
		out = append(out, all[i])
	}
	return out
}

// Column gives the values of a counter at the points, -1 where a sample lacks it; nil when no
// sample has it.
func (d *Series) Column(name string) []int64 {
	switch name {
	case Cached:
		if c := d.difference(Reserved, Active); c != nil {
			return c
		}
		return d.difference(Reserved, Allocated)
	case Pending:
		return d.difference(Active, Allocated)
	}
	if c := d.columns[name]; c != nil && c.known {
		return c.values
	}
	return nil
}

func (d *Series) difference(a, b string) []int64 {
	x, y := d.Column(a), d.Column(b)
	if x == nil || y == nil {
		return nil
	}
	out := make([]int64, len(x))
	for i := range x {
		if out[i] = x[i] - y[i]; x[i] < 0 || y[i] < 0 || out[i] < 0 {
			out[i] = unknown
		}
	}
	return out
}

// Precision of a counter: differences below it mean nothing.
func (d *Series) Precision(name string) int64 {
	switch name {
	case Cached:
		return max(d.Precision(Reserved), d.Precision(Pending))
	case Pending:
		return max(d.Precision(Active), d.Precision(Allocated))
	}
	return max(d.columns[name].grain, 1)
}

// Unit is what the series count along: "step" where the steps of the samples rise from one to
// the next, else "sample".
func (d *Series) Unit() string {
	if d.uneven {
		return "sample"
	}
	return "step"
}

// Place is where point i lies along the unit.
func (d *Series) Place(i int) int64 {
	if d.uneven {
		return d.Points[i].Sample
	}
	return d.Points[i].Step.N
}

// Highest is the highest value of two counters in any sample.
func (d *Series) Highest(a, b string) int64 { return max(d.columns[a].high, d.columns[b].high) }
