package export

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Rows of the tables, whose columns cmd/snapana/manual/export.md tells about; a test holds the two together. A pointer is
// nil where a value is not known, or there is none.

type deviceRow struct {
	File           string `parquet:"file"`
	Device         int32  `parquet:"device"`
	Writer         string `parquet:"writer"`
	Events         int64  `parquet:"events"`
	Failures       int64  `parquet:"failures"`
	PeakEvent      *int64 `parquet:"peak_event,optional"`
	OOMEvent       *int64 `parquet:"oom_event,optional"`
	PeakReserved   *int64 `parquet:"peak_reserved,optional"`
	PeakActive     *int64 `parquet:"peak_active,optional"`
	PeakAllocated  *int64 `parquet:"peak_allocated,optional"`
	PeakRequested  *int64 `parquet:"peak_requested,optional"`
	FinalReserved  int64  `parquet:"final_reserved"`
	FinalActive    int64  `parquet:"final_active"`
	FinalAllocated int64  `parquet:"final_allocated"`
	Status         string `parquet:"status"`
	Headline       string `parquet:"headline"`
}

type eventRow struct {
	Device     int32   `parquet:"device"`
	Event      int64   `parquet:"event,delta"`
	Time       *int64  `parquet:"time_us,optional"`
	Action     string  `parquet:"action,dict"`
	Address    *uint64 `parquet:"address,optional"`
	Size       int64   `parquet:"size"`
	DeviceFree *int64  `parquet:"device_free,optional"`
	Stream     int32   `parquet:"stream"`
	Stack      *int32  `parquet:"stack_id,optional"`
}

type allocationRow struct {
	Device        int32   `parquet:"device"`
	Allocation    int64   `parquet:"allocation,delta"`
	Address       uint64  `parquet:"address"`
	Requested     int64   `parquet:"requested"`
	Rounded       int64   `parquet:"rounded"`
	Born          *int64  `parquet:"born_event,optional"`
	BornTime      *int64  `parquet:"born_us,optional"`
	FreeRequested *int64  `parquet:"free_requested_event,optional"`
	Freed         *int64  `parquet:"freed_event,optional"`
	FreedTime     *int64  `parquet:"freed_us,optional"`
	Stream        *int32  `parquet:"stream,optional"`
	Pool          *string `parquet:"pool,optional,dict"`
	Kind          *string `parquet:"segment_kind,optional,dict"`
	Category      string  `parquet:"category,dict"`
	Confidence    string  `parquet:"category_confidence,dict"`
	Step          *int32  `parquet:"step,optional"`
	Phase         *string `parquet:"phase,optional,dict"`
	Site          string  `parquet:"site,dict"`
	Module        *string `parquet:"module,optional,dict"`
	AtPeak        *bool   `parquet:"live_at_peak,optional"`
	AtOOM         *bool   `parquet:"live_at_oom,optional"`
	AtEnd         bool    `parquet:"live_at_end"`
	Leaked        bool    `parquet:"leaked"`
	Stack         *int32  `parquet:"stack_id,optional"`
}

type stackRow struct {
	Stack    int32  `parquet:"stack_id,delta"`
	Depth    int32  `parquet:"depth"`
	File     string `parquet:"file,dict"`
	Line     *int32 `parquet:"line,optional"`
	Function string `parquet:"function,dict"`
}

type segmentRow struct {
	Device     int32  `parquet:"device"`
	Address    uint64 `parquet:"address"`
	Size       int64  `parquet:"size"`
	From       *int64 `parquet:"from_event,optional"`
	Until      *int64 `parquet:"until_event,optional"`
	Stream     int32  `parquet:"stream"`
	Pool       string `parquet:"pool,dict"`
	Kind       string `parquet:"segment_kind,dict"`
	Expandable bool   `parquet:"expandable"`
	Stack      *int32 `parquet:"stack_id,optional"`
}

type sampleRow struct {
	Device       int32  `parquet:"device"`
	First        int64  `parquet:"first_event,delta"`
	Last         int64  `parquet:"last_event,delta"`
	Time         *int64 `parquet:"time_us,optional"`
	Reserved     int64  `parquet:"reserved"`
	Active       int64  `parquet:"active"`
	Allocated    int64  `parquet:"allocated"`
	Requested    int64  `parquet:"requested"`
	MaxReserved  int64  `parquet:"max_reserved"`
	MaxActive    int64  `parquet:"max_active"`
	MaxAllocated int64  `parquet:"max_allocated"`
	MaxRequested int64  `parquet:"max_requested"`
}

type stepRow struct {
	Device int32   `parquet:"device"`
	Step   int32   `parquet:"step"`
	Name   *string `parquet:"name,optional"`
	First  int64   `parquet:"first_event"`
	Last   int64   `parquet:"last_event"`
	Peak   int64   `parquet:"peak_active"`
	Start  int64   `parquet:"start_active"`
	End    int64   `parquet:"end_active"`
	Growth int64   `parquet:"growth"`
	WarmUp bool    `parquet:"warm_up"`
}

type findingRow struct {
	Position   int32  `parquet:"position"`
	ID         string `parquet:"id"`
	Status     string `parquet:"status"`
	Severity   string `parquet:"severity"`
	Confidence string `parquet:"confidence"`
	Heuristic  bool   `parquet:"heuristic"`
	Device     *int32 `parquet:"device,optional"`
	Bytes      int64  `parquet:"bytes"`
	Title      string `parquet:"title"`
	Why        string `parquet:"why"`
	Next       string `parquet:"next"`
	Evidence   string `parquet:"evidence"`
}

// tables are the files of a snapshot, one for each table.
func tables(ctx context.Context, r *analyze.Result) []place.File {
	return []place.File{
		table("allocations", func(add func(allocationRow) error) error { return allocations(ctx, r, add) }),
		table("devices", func(add func(deviceRow) error) error { return devices(r, add) }),
		table("events", func(add func(eventRow) error) error { return events(ctx, r, add) }),
		table("findings", func(add func(findingRow) error) error { return findings(r, add) }),
		table("samples", func(add func(sampleRow) error) error { return samples(r, add) }),
		table("segments", func(add func(segmentRow) error) error { return segments(ctx, r, add) }),
		table("stacks", func(add func(stackRow) error) error { return stacks(ctx, r, add) }),
		table("steps", func(add func(stepRow) error) error { return steps(r, add) }),
	}
}

// rowsGroup is by how many rows a file is read.
const rowsGroup = 1 << 18

// table is a file of rows, which fill adds.
func table[T any](name string, fill func(add func(T) error) error) place.File {
	return place.File{Name: name + ".parquet", Fill: func(to io.Writer) error {
		w, err := newTableWriter(to, reflect.TypeFor[T]())
		if err != nil {
			return err
		}
		if err := fill(func(row T) error { return w.add(reflect.ValueOf(&row).Elem()) }); err != nil {
			return err
		}
		return w.close()
	}}
}

// known is a pointer to a number that is not below 0, nil for another.
func known[N int32 | int64, V ~int | ~int32 | ~int64](v V) *N {
	if v < 0 {
		return nil
	}
	return new(N(v))
}

// timeOf is the time of an event, nil where it is not recorded.
func timeOf(t snapshot.Trace, event int) *int64 {
	if event < 0 || event >= t.Len() || t.Time(event) <= 0 {
		return nil
	}
	return new(t.Time(event))
}

// told is a text, nil for none.
func told(s string) *string {
	if s == "" {
		return nil
	}
	return new(valid(s))
}

// stackOf is the number of a stack, nil for none.
func stackOf(s *snapshot.Snapshot, id snapshot.StackID) *int32 {
	if len(s.Stacks.Get(id)) == 0 {
		return nil
	}
	return new(int32(id))
}

func devices(r *analyze.Result, add func(deviceRow) error) error {
	for i := range r.Devices {
		t := r.Devices[i].Timeline
		row := deviceRow{
			File: valid(r.Snapshot.Name), Device: int32(t.Device), Writer: r.Snapshot.Writer.Text, Events: int64(t.Trace.Len()),
			Failures: int64(len(t.OOMs)), FinalReserved: t.Final.Reserved, FinalActive: t.Final.Active,
			FinalAllocated: t.Final.Allocated, Status: string(r.Verdict.Status), Headline: valid(r.Verdict.Headline),
		}
		if n := len(t.OOMs); n > 0 {
			row.OOMEvent = new(int64(t.OOMs[n-1].Event))
		}
		if t.HasHistory() {
			row.PeakEvent = new(int64(t.PeakActive.Event))
			row.PeakReserved, row.PeakActive = &t.PeakReserved.Bytes, &t.PeakActive.Bytes
			row.PeakAllocated, row.PeakRequested = &t.PeakAllocated.Bytes, &t.PeakRequested.Bytes
		}
		if err := add(row); err != nil {
			return err
		}
	}
	return nil
}

func events(ctx context.Context, r *analyze.Result, add func(eventRow) error) error {
	for i := range r.Devices {
		t := r.Devices[i].Timeline
		for n := range t.Trace.Len() {
			if n%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			e := t.Trace.At(n)
			row := eventRow{
				Device: int32(t.Device), Event: int64(n), Time: timeOf(t.Trace, n), Action: e.Action.String(), Size: e.Size,
				Stream: int32(e.Stream), Stack: stackOf(r.Snapshot, e.Stack),
			}
			if e.Action != snapshot.OOM {
				row.Address = &e.Addr
			} else if free, ok := e.DeviceFree(); ok {
				row.DeviceFree = &free
			}
			if err := add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func allocations(ctx context.Context, r *analyze.Result, add func(allocationRow) error) error {
	for i := range r.Devices {
		d := newDevice(r.Snapshot, &r.Devices[i])
		t := d.Timeline
		in := lapsOf(d.Phases)
		for row, home := range t.AllHomes() {
			if row%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			l := &t.Lives[row]
			site, module, _ := d.codes.Names(d.codes.Of(row))
			use, trust := d.Categories.Of(row)
			v := allocationRow{
				Device: int32(t.Device), Allocation: int64(row), Address: l.Addr, Requested: l.Requested, Rounded: l.Rounded,
				Born: known[int64](l.Born), BornTime: timeOf(t.Trace, int(l.Born)),
				FreeRequested: known[int64](l.FreeRequested), Freed: known[int64](l.Freed), FreedTime: timeOf(t.Trace, int(l.Freed)),
				Category: use.String(), Confidence: trust.String(), Phase: told(in.at(int(l.Born))), Site: valid(site),
				Module: told(module), Leaked: d.leaked[row], Stack: stackOf(r.Snapshot, l.Stack),
			}
			v.AtEnd = d.at(End, row)
			if d.history {
				v.AtPeak = new(d.at(Peak, row))
			}
			if d.oom >= 0 {
				v.AtOOM = new(d.at(OOM, row))
			}
			if home.Size > 0 {
				v.Stream, v.Pool = new(int32(home.Stream)), new(home.Pool.String())
				if home.Kind != snapshot.KindUnknown {
					v.Kind = new(home.Kind.String())
				}
			}
			if l.Born >= 0 {
				v.Step = known[int32](d.Steps.At(int(l.Born)))
			}
			if err := add(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// laps are those of phases, by their first events; an inner one begins after the one around it.
type laps struct {
	list []phase.Lap
	name []string
	open []int // those that the last event asked for is in, innermost last
	next int
}

func lapsOf(phases []phase.Phase) *laps {
	type named struct {
		phase.Lap
		name string
	}
	var all []named
	for i := range phases {
		for _, lap := range phases[i].List {
			if lap.First >= 0 {
				all = append(all, named{lap, phases[i].Name})
			}
		}
	}
	sorting.Stable(all, func(a, b named) int {
		if a.First != b.First {
			return a.First - b.First
		}
		return b.Last - a.Last
	})
	out := &laps{}
	for _, n := range all {
		out.list, out.name = append(out.list, n.Lap), append(out.name, n.name)
	}
	return out
}

// at is the name of the innermost lap at an event, "" for none. Events must not fall.
func (p *laps) at(event int) string {
	for ; p.next < len(p.list) && p.list[p.next].First <= event; p.next++ {
		p.open = append(p.open, p.next)
	}
	for len(p.open) > 0 && p.list[p.open[len(p.open)-1]].Last < event {
		p.open = p.open[:len(p.open)-1]
	}
	if len(p.open) == 0 {
		return ""
	}
	return p.name[p.open[len(p.open)-1]]
}

func stacks(ctx context.Context, r *analyze.Result, add func(stackRow) error) error {
	s := r.Snapshot
	for id := 1; id <= s.Stacks.Len(); id++ {
		if id%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for depth, frame := range s.Stacks.Get(snapshot.StackID(id)) {
			f := s.Frames.Get(frame)
			row := stackRow{
				Stack: int32(id), Depth: int32(depth), File: valid(s.Strings.Get(f.File)), Function: valid(s.Strings.Get(f.Name)),
			}
			if f.Line > 0 {
				row.Line = &f.Line
			}
			if err := add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// segments writes each reserved range from the event that added it to the one that took it away. A range that went in parts
// is written in these.
func segments(ctx context.Context, r *analyze.Result, add func(segmentRow) error) error {
	for i := range r.Devices {
		t := r.Devices[i].Timeline
		type piece struct {
			timeline.Range
			from int
		}
		var now []piece // by address
		put := func(p piece, until int) error {
			return add(segmentRow{
				Device: int32(t.Device), Address: p.Addr, Size: p.Size, From: known[int64](p.from), Until: known[int64](until),
				Stream: int32(p.Stream), Pool: p.Pool.String(), Kind: p.Kind.String(), Expandable: p.Expandable,
				Stack: stackOf(r.Snapshot, p.Stack),
			})
		}
		for _, in := range t.Initially {
			now = append(now, piece{in, -1})
		}
		for k := range t.Changes {
			if k%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			c := &t.Changes[k]
			at, _ := slices.BinarySearchFunc(now, c.Range.Addr, func(p piece, addr uint64) int {
				if p.End() <= addr {
					return -1
				}
				return 1
			})
			if c.Add {
				now = slices.Insert(now, at, piece{c.Range, c.Event})
				continue
			}
			for at < len(now) && now[at].Addr < c.Range.End() {
				p := now[at]
				low, high := max(p.Addr, c.Range.Addr), min(p.End(), c.Range.End())
				gone, left, right := p, p, p
				gone.Addr, gone.Size = low, int64(high-low)
				left.Size = int64(low - p.Addr)
				right.Addr, right.Size = high, int64(p.End()-high)
				if err := put(gone, c.Event); err != nil {
					return err
				}
				rest := slices.DeleteFunc([]piece{left, right}, func(p piece) bool { return p.Size == 0 })
				now = slices.Replace(now, at, at+1, rest...)
				if left.Size > 0 {
					at++
				}
				if right.Size > 0 {
					break
				}
			}
		}
		for _, p := range now {
			if err := put(p, -1); err != nil {
				return err
			}
		}
	}
	return nil
}

func samples(r *analyze.Result, add func(sampleRow) error) error {
	for i := range r.Devices {
		t := r.Devices[i].Timeline
		for _, p := range t.Curve {
			row := sampleRow{
				Device: int32(t.Device), First: int64(p.First), Last: int64(p.Last), Time: timeOf(t.Trace, p.Last),
				Reserved: p.At.Reserved, Active: p.At.Active, Allocated: p.At.Allocated, Requested: p.At.Requested,
				MaxReserved: p.Max.Reserved, MaxActive: p.Max.Active, MaxAllocated: p.Max.Allocated, MaxRequested: p.Max.Requested,
			}
			if err := add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func steps(r *analyze.Result, add func(stepRow) error) error {
	for i := range r.Devices {
		for k, s := range r.Devices[i].Steps.Steps {
			err := add(stepRow{
				Device: int32(r.Devices[i].Timeline.Device), Step: int32(k), Name: told(s.Name), First: int64(s.First), Last: int64(s.Last),
				Peak: s.Peak, Start: s.Start, End: s.End, Growth: s.Growth, WarmUp: s.WarmUp,
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func findings(r *analyze.Result, add func(findingRow) error) error {
	for i := range r.Verdict.Findings {
		f := &r.Verdict.Findings[i]
		evidence, err := json.Marshal(f.Evidence)
		if err == nil {
			err = add(findingRow{
				Position: int32(i), ID: f.ID, Status: string(f.Status), Severity: string(f.Severity), Confidence: string(f.Confidence),
				Heuristic: f.Heuristic, Device: known[int32](f.Device), Bytes: f.Bytes, Title: valid(f.Title),
				Why: valid(strings.Join(f.Why, "\n")), Next: valid(strings.Join(f.Next, "\n")), Evidence: string(evidence),
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
