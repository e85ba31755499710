// Package ranks compares the processes of one distributed run: which of them failed first, what verdicts they share,
// which one holds more than the others, and where, which did less, and what is missing.
//
// Each snapshot is reduced to its digest as soon as it is analyzed, and each digest to a few figures, so that a hundred
// thousand of them fit in memory. Ranks are compared at their own peaks of active memory, on the device of each on which
// most was reserved. A comparison is of a set: the order in which ranks were read, or which process read them first,
// changes no byte of it.
package ranks

import (
	"context"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unique"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
)

// Rank is what is kept of one snapshot. Sizes are bytes.
type Rank struct {
	File     string // as the caller names it
	Number   int    // the rank, -1 when neither the recorder nor the names of the files tell
	Fault    string // why the file could not be read; then nothing below is known
	Err      error  // what Fault says, nil where only a digest tells it
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
	Pieces int64
	// Steps is how many the trace has, -1 unknown: none were found, or it does not begin with the program.
	Steps   int64
	Unit    string // what a step of it is, as "ProfilerStep": only numbers of the same can be compared
	Failure *Failure
	// Over is how far the active peak lies above the median of the ranks like it, negative below it; 0 where it is
	// unknown. Those like it are all, or those at the same place of the axes that explain the peaks.
	Over   int64
	Stands bool // it stands out, as Outlier says
	// Laps are the peaks of active memory of its steps, of LapSteps each, a power of two, the highest. Nil: no steps were
	// found.
	Laps     []int64
	LapSteps int64

	path, content string // of the snapshot: absolute, and the checksum of it as it is stored; "" unknown
	modified      int64
	began, ended  int64 // microseconds since 1970 by the clock of its machine, 0 unknown
	options       string
	recorded      int64 // the rank that the recorder saw, or the name of the file tells, and 1; 0 for neither
	world         int64 // how many there are, as the recorder saw it; 0 unknown
	machine       string
	settings      [][2]unique.Handle[string] // name and value, by name
	sites         []site                     // active bytes at the peak, by where they were allocated, most first
	least         int64                      // no place that is not in sites has more
	unplaced      int64                      // active bytes at the peak of which nobody knows where they were allocated
	class         int32                      // of ranks at the same place of the axes that explain the peaks
}

type site struct {
	name  unique.Handle[string]
	bytes int64
}

// Failure is the last request of a rank that failed, on whichever of its devices.
type Failure struct {
	Device    int
	Event     int
	Time      int64 // microseconds since 1970 by the clock of the rank's machine, 0 unknown
	First     int64 // the same of the first request that failed; 0 where the trace may have lost an earlier one, too
	Requested int64 // rounded
	Site      string
}

// Unread stands for a file that could not be read.
func Unread(file string, err error) Rank {
	k := unknown(file)
	k.Fault, k.Err = err.Error(), err
	return k
}

// unknown is a rank without figures.
func unknown(file string) Rank {
	return Rank{File: file, Number: -1, Device: -1, Reserved: -1, Active: -1, End: -1, Growth: -1, Pieces: -1, Steps: -1}
}

// Reduce keeps of an analyzed snapshot what Compare needs.
func Reduce(file string, r *analyze.Result) Rank {
	return Of(file, digest.Of(digest.Source{Path: file}, r, nil))
}

// Bounds of what is kept of a rank, whatever a digest has.
const (
	maxLaps     = 64
	maxSites    = 64
	maxSettings = 128
)

// Of keeps of a digest what Compare needs. The file is the snapshot as the caller names it.
func Of(file string, d *digest.Digest) Rank {
	k := unknown(file)
	src, id := &d.Source, &d.Identity
	k.path, k.content, k.modified, k.options = src.Path, string(src.SHA256), src.Modified, src.Options
	k.recorded, k.world, k.machine = id.Rank+1, max(id.WorldSize, 0), shared(id.Machine)
	if k.Fault = d.Fault; k.Fault != "" {
		return k
	}
	if id.HasConf {
		k.settings = append(k.settings, [2]unique.Handle[string]{unique.Make(settingsName), unique.Make(id.Conf)})
	}
	for _, e := range id.Environment[:min(len(id.Environment), maxSettings)] {
		k.settings = append(k.settings, [2]unique.Handle[string]{unique.Make(e[0]), unique.Make(e[1])})
	}
	k.Status, k.Headline, k.Cause = finding.Status(shared(string(d.Verdict.Status))), shared(d.Verdict.Headline),
		shared(d.Verdict.Cause)
	if len(d.Devices) == 0 {
		return k
	}
	v := &d.Devices[0]
	k.Device, k.Pieces, k.Reserved, k.Active, k.Growth = int(v.Ordinal), v.Pieces, v.Reserved, v.Active, v.Growth
	k.began, k.ended = v.Begin, v.End
	if v.Whole && v.Steps.Count > 0 {
		k.Steps, k.Unit = v.Steps.Count, shared(v.Steps.Unit)
	}
	var few int
	k.Laps, few = digest.Columns(v.Steps.Peaks, maxLaps)
	k.LapSteps = v.Steps.Each * int64(few)
	k.Failure = failed(d.Devices)
	if len(v.Moments) == 0 {
		k.unplaced = max(k.Active, 0)
		return k
	}
	m := &v.Moments[len(v.Moments)-1]
	k.End = m.Totals.Active
	if v.Moments[0].Name == "peak" {
		m = &v.Moments[0]
	}
	k.sites = make([]site, min(len(m.Sites.Names), maxSites))
	for i := range k.sites {
		k.sites[i] = site{unique.Make(d.Texts[m.Sites.Names[i]]), m.Sites.Bytes[i]}
		if k.sites[i].name == noStack {
			k.unplaced = m.Sites.Bytes[i]
		}
	}
	if len(k.sites) == 0 {
		k.unplaced = max(k.Active, 0)
	}
	if n := len(k.sites); n > 0 {
		if k.least = k.sites[n-1].bytes; n == len(m.Sites.Names) {
			k.least = min(k.least, m.Sites.Rest)
		}
	}
	return k
}

// failed is the last failure of all devices, whose first is that of all.
func failed(devices []digest.Device) (out *Failure) {
	first, sure := int64(0), true
	for i := range devices {
		f := devices[i].Failure
		if f == nil {
			continue
		}
		if sure = sure && f.Sure && f.First != 0; first == 0 || f.First < first {
			first = f.First
		}
		if out == nil || f.Time > out.Time {
			out = &Failure{Device: int(devices[i].Ordinal), Event: int(f.Event), Time: f.Time, Requested: f.Requested,
				Site: shared(f.Site)}
		}
	}
	if out != nil && sure {
		out.First = first
	}
	return out
}

// settingsName is what the allocator's settings are called.
const settingsName = "the allocator's settings"

// shared is a text that others with the same one share.
func shared(s string) string { return unique.Make(s).Value() }

// noStack is the place of memory of which nobody knows where it was allocated.
var noStack = unique.Make(attribution.Placed(""))

// placed reports whether it is known of a rank where most of its memory was allocated: gradients have no stack of Python.
func (k *Rank) placed() bool { return k.unplaced <= k.Active/2 }

// at is what a rank has from one place, at most so much where that is not known.
func (k *Rank) at(name unique.Handle[string]) int64 {
	for i := range k.sites {
		if k.sites[i].name == name {
			return k.sites[i].bytes
		}
	}
	return k.least
}

// maxReaders bounds how many snapshots are in memory at a time.
const maxReaders = 4

// Read makes ranks of the files of a run, some at a time, and compares them. open gives the digest of a file; where it
// fails, the file is a rank of which nothing is known. The error is that of a canceled ctx, or of a question that does
// not fit the ranks.
func Read(ctx context.Context, files []string, open func(file string) (Rank, error), q Question) (*Comparison, error) {
	list := make([]Rank, len(files))
	var wg sync.WaitGroup
	slots := make(chan struct{}, min(runtime.NumCPU(), maxReaders))
	for i, file := range files {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			k, err := open(file)
			if err != nil {
				k = Unread(file, err)
				k.path, _ = filepath.Abs(file)
			}
			if shown := input.Shown(ctx, file); shown != file {
				k.File, k.path, k.Fault = shown, input.Shown(ctx, k.path), strings.ReplaceAll(k.Fault, file, shown)
			}
			list[i] = k
			<-slots
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return q.Compare(list)
}

var digits = regexp.MustCompile(`[0-9]+`)

// Numbers tells the ranks of files from their names: by the number behind the word rank, and
// where no name has it, by the only number in which the names differ. -1 is unknown; a number that
// two files have tells nothing.
func Numbers(files []string) []int {
	out := make([]int, len(files))
	for i, f := range files {
		out[i] = snapshot.NamedRank(f)
	}
	return unambiguous(files, out)
}

// unambiguous completes the numbers that files tell, -1 for none.
func unambiguous(files []string, out []int) []int {
	if !slices.ContainsFunc(out, func(n int) bool { return n >= 0 }) {
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
