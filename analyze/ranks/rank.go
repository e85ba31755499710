// Package ranks compares the snapshots of the processes of one distributed run: which of them
// failed first, what verdicts they share, and which one holds more than the others, and where.
//
// Each snapshot is reduced to a few figures as soon as it is analyzed, so that thousands of them
// take no more memory than the ones that are being read. Ranks are compared at their own peaks of
// active memory, on the device of each on which most was reserved.
package ranks

import (
	"context"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Rank is what is kept of one snapshot. Sizes are bytes.
type Rank struct {
	File     string // as the caller names it
	Number   int    // the rank, -1 when the names of the files do not tell
	Fault    string // why the file could not be read; then nothing below is known
	Status   finding.Status
	Headline string
	Cause    string // what verdicts of one status must share to be the same: the finding, and where
	Device   int    // the one with the highest peak of reserved memory, -1 for none
	// Peaks of that device, -1 unknown: the trace tells no history, or not the whole of it.
	Reserved int64
	Active   int64
	End      int64 // active bytes at the end, -1 unknown: there is no device
	// Growth is the memory that loops added and did not return, -1 unknown: there is no history.
	Growth int64
	// Pieces is free memory in segments that live blocks keep, at that of the moments looked at when it is most, -1
	// unknown.
	Pieces  int64
	Failure *Failure
	// Over is how far the active peak lies above the median of all ranks, negative below it; 0 where it is unknown.
	Over   int64
	Stands bool // it stands out, as Outlier says

	sites map[string]int64 // active bytes at the peak, by where they were allocated
}

// Failure is the last request of a rank that failed.
type Failure struct {
	Event     int
	Time      int64 // microseconds since 1970 by the clock of the rank's machine, 0 unknown
	First     int64 // the same of the first request that failed
	Requested int64 // rounded
	Site      string
}

// Unread stands for a file that could not be read.
func Unread(file string, err error) Rank {
	k := unknown(file)
	k.Fault = err.Error()
	return k
}

// unknown is a rank without figures.
func unknown(file string) Rank {
	return Rank{File: file, Number: -1, Device: -1, Reserved: -1, Active: -1, End: -1, Growth: -1, Pieces: -1}
}

// Reduce keeps of an analyzed snapshot what Compare needs.
func Reduce(file string, r *analyze.Result) Rank {
	k := unknown(file)
	k.Status, k.Headline = r.Verdict.Status, r.Verdict.Headline
	if f := r.Verdict.Lead(); f != nil {
		k.Cause = f.ID + f.Cause
		for _, frame := range f.Stack {
			k.Cause += "\n" + frame
		}
	}
	d := r.Main()
	if d == nil {
		return k
	}
	t := d.Timeline
	told := t.Recording.Told()
	k.Device, k.End, k.Pieces = t.Device, t.Final.Active, 0
	if t.HasHistory() {
		if told.Peak.Reserved == timeline.Exact {
			k.Reserved = t.PeakReserved.Bytes
		}
		if told.Peak.Active == timeline.Exact {
			k.Active = t.PeakActive.Bytes
		}
		k.Growth = 0
		for i := range d.Growth {
			k.Growth += d.Growth[i].Bytes
		}
	}
	for i := range d.Moments {
		c := &d.Moments[i].Frag.Classes
		k.Pieces = max(k.Pieces, c.Hard+c.Soft)
	}
	m := &d.Moments[len(d.Moments)-1]
	if d.Moments[0].Name == "peak" {
		m = &d.Moments[0]
	}
	k.sites = make(map[string]int64)
	for i := range m.Live {
		if s := attribution.Place(r.Snapshot, m.Live[i].Stack); len(k.sites) < maxSites || k.sites[s] > 0 {
			k.sites[s] += m.Live[i].Rounded
		}
	}
	if n := len(t.OOMs); n > 0 {
		last := t.OOMs[n-1]
		k.Failure = &Failure{Event: last.Event, Requested: last.Requested,
			Site: attribution.Site(r.Snapshot, last.Stack)}
		at := func(event int) int64 {
			if event < 0 || event >= t.Trace.Len() {
				return 0
			}
			return t.Trace.Time(event)
		}
		k.Failure.Time = at(last.Event)
		if told.Failures == timeline.Exact {
			k.Failure.First = at(t.OOMs[0].Event)
		}
	}
	return k
}

// maxSites bounds the places that are kept of a rank, those with the most bytes.
const maxSites = 256

// maxReaders bounds how many snapshots are in memory at a time.
const maxReaders = 4

// Read opens the snapshots of a run, some at a time, analyzes each, and compares them. Those that cannot be read are
// ranks of which nothing is known; the error is that of a canceled ctx. Where each is not nil it gets the results, of
// several files at a time, and only then the runs are replayed.
func Read(ctx context.Context, files []string, open func(file string) (*snapshot.Snapshot, error), opt analyze.Options,
	each func(file string, r *analyze.Result)) (*Comparison, error) {
	opt.NoReplay = each == nil
	read := func(file string) Rank {
		s, err := open(file)
		if err != nil {
			return Unread(file, err)
		}
		r, err := analyze.Run(ctx, s, opt)
		if err != nil {
			return Unread(file, err)
		}
		if each != nil {
			each(file, r)
		}
		return Reduce(file, r)
	}
	list := make([]Rank, len(files))
	var wg sync.WaitGroup
	slots := make(chan struct{}, min(runtime.NumCPU(), maxReaders))
	for i, file := range files {
		slots <- struct{}{}
		wg.Go(func() {
			list[i] = read(file)
			<-slots
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return Compare(list), nil
}

var digits = regexp.MustCompile(`[0-9]+`)

// Numbers tells the ranks of files from their names: by the number behind the word rank, and
// where no name has it, by the only number in which the names differ. -1 is unknown; a number that
// two files have tells nothing.
func Numbers(files []string) []int {
	out := slices.Repeat([]int{-1}, len(files))
	some := false
	for i, f := range files {
		out[i] = snapshot.NamedRank(f)
		some = some || out[i] >= 0
	}
	if !some {
		differing(files, out)
	}
	seen := make(map[int]int)
	for _, n := range out {
		seen[n]++
	}
	for i, n := range out {
		if seen[n] > 1 {
			out[i] = -1
		}
	}
	return out
}

// differing fills in the numbers of names that are equal but for one number.
func differing(files []string, out []int) {
	if len(files) < 2 {
		return
	}
	at, shape := -1, digits.ReplaceAllString(files[0], "0")
	first := digits.FindAllString(files[0], -1)
	for _, f := range files[1:] {
		if digits.ReplaceAllString(f, "0") != shape {
			return
		}
		for i, n := range digits.FindAllString(f, -1) {
			if n == first[i] {
				continue
			}
			if at >= 0 && at != i {
				return
			}
			at = i
		}
	}
	if at < 0 {
		return
	}
	for i, f := range files {
		out[i] = number(digits.FindAllString(f, -1)[at])
	}
}

// number is -1 where there are too many digits for a rank.
func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n < 1e7 {
		return n
	}
	return -1
}
