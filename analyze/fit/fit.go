// Package fit says how much memory a program needs at values that it was not run with, such as a larger batch: from
// recordings of it at a few values.
//
//  1. Recordings are aligned (align.go, match.go): which request of one is the same call of the program as which of
//     another, by stack, step and order. They may have different numbers of requests, for kernels take other temporaries.
//     Those that cannot be aligned are left aside (aside.go).
//  2. Each request gets a law (law.go): the simplest sum of powers of the values that gives its recorded sizes to the byte.
//     A law is proven when it has fewer coefficients than there are sizes. Where none fits it is an estimate with bounds.
//  3. The recording nearest to a value is replayed with the sizes that the laws give there (predict.go), from an allocator
//     that has nothing reserved, by package whatif. One that begins in the middle of the run gets a beginning (midway.go).
//     Where sizes depend on data it is replayed with others that are as likely, and the middle one counts.
//  4. What was recorded is predicted from the other recordings, which tells how good that is (result.go).
//
// What a replay cannot know is what the program would do at another value that it did not do at the recorded ones: other
// kernels, other paths. Every prediction is made with bounds that say so.
package fit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// Input is one recording, and the values that it was made with, by Question.Names.
type Input struct {
	Snapshot *snapshot.Snapshot
	Timeline *timeline.Timeline
	At       Point
}

// Question is what to predict.
type Question struct {
	// Names of what scales, one or two: "batch", "seq".
	Names []string
	// To are the points to predict; nil is a few beyond those recorded.
	To []Point
	// Settings are tried, and the first of them is that of the predictions; nil are the recorded ones, and the usual ones.
	Settings []whatif.Setting
	// Capacity is the memory of the device in bytes, of which Foreign are not to be had. 0 is the run's own device where
	// a request that failed tells its size, else no limit.
	Capacity, Foreign int64
}

// Result is what was predicted. Bytes are integers; events are those of the recording that was replayed.
type Result struct {
	Names   []string `json:"names"` // of the values
	Device  int      `json:"device"`
	Release string   `json:"release"` // of torch, the newest one that may have written the files; "" unknown
	Setting string   `json:"setting"` // of the predicted runs, as in PYTORCH_CUDA_ALLOC_CONF

	Recorded []Recorded      `json:"recorded"`
	Capacity whatif.Capacity `json:"capacity"`

	// ProvenShare is the share of the bytes at the peak of the highest prediction whose law is proven; ExactShare counts
	// the laws too that are exact, but of which as many coefficients as recordings there are.
	ProvenShare float64 `json:"proven_share"`
	ExactShare  float64 `json:"exact_share"`
	// Checks are the recordings predicted from the others, Error the largest of their errors.
	Checks []Check `json:"checks"`
	Error  float64 `json:"largest_error"`
	// Unproven are the requests without a proven law at that peak, by site, most bytes first.
	Unproven []Unproven `json:"unproven"`

	Predictions []Prediction `json:"predictions"`
	// Largest is the largest value that fits, nil where there is no capacity or nothing fits. Where there are two, it is
	// the first that varies, with the other as in the last prediction.
	Largest *int64    `json:"largest"`
	Limit   *Limit    `json:"limit"` // what ends at Largest, nil without a capacity
	Tried   []Tried   `json:"settings"`
	Law     string    `json:"law"`   // of the highest prediction, in words
	Laws    []Stretch `json:"laws"`  // of the allocated peak, by rising values
	Notes   []string  `json:"notes"` // what a reader must know of the recordings, in sentences
}

// Recorded is one recording.
type Recorded struct {
	File          string  `json:"file"`
	At            int64   `json:"at"`
	Values        Point   `json:"values"`
	Events        int     `json:"events"`
	Steps         int     `json:"steps"`
	ReservedPeak  int64   `json:"reserved_peak"`
	AllocatedPeak int64   `json:"allocated_peak"`
	Failed        bool    `json:"failed"`  // it ran out of memory: its trace ends early
	Matched       float64 `json:"matched"` // share of its requests that the others have too
	Aside         bool    `json:"aside"`   // it can hardly be aligned with the others: no law is made of it
}

// Check is a recording that was predicted from others.
type Check struct {
	File      string  `json:"file"`
	Values    Point   `json:"values"`
	HeldOut   bool    `json:"held_out"` // no law was made of it; else its sizes are known, and its order of requests is not
	Reserved  int64   `json:"reserved_peak"`
	Predicted int64   `json:"predicted"`
	Error     float64 `json:"error"` // of Predicted, as a share of Reserved
}

// Unproven are requests of one site that have no proven law.
type Unproven struct {
	Site  string `json:"site"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
	Low   int64  `json:"low"`
	High  int64  `json:"high"`
	Why   string `json:"why"`
}

// Place is where a run is at an event.
type Place struct {
	Event  int    `json:"event"`
	Step   int    `json:"step"` // from 0, -1 for none
	Phase  string `json:"phase"`
	Site   string `json:"site"`
	Module string `json:"module"` // "" outside of any
}

// Prediction is a run at values that may not have been recorded.
type Prediction struct {
	At            int64 `json:"at"`
	Values        Point `json:"values"`
	ReservedPeak  int64 `json:"reserved_peak"`
	ReservedLow   int64 `json:"reserved_low"`
	ReservedHigh  int64 `json:"reserved_high"`
	AllocatedPeak int64 `json:"allocated_peak"`
	// Fits is nil without a capacity. It is Sure where both bounds agree.
	Fits     *bool `json:"fits"`
	Sure     bool  `json:"sure"`
	Recorded bool  `json:"recorded"` // a recording has these values
	From     int   `json:"from"`     // the recording that was replayed
	Peak     Place `json:"peak"`     // of allocated bytes
}

// Limit is the first value that does not fit.
type Limit struct {
	Values Point `json:"values"`
	Place
	Requested int64 `json:"requested"`
	Short     int64 `json:"short"` // bytes that are missing for that request
	// Bounds of the largest value that fits.
	Low  int64 `json:"largest_low"`
	High int64 `json:"largest_high"`
	// Beyond are higher values that would fit again: the allocator's layout is not monotonic.
	Beyond []int64 `json:"fits_again"`
}

// Tried is the largest value under some settings.
type Tried struct {
	Text    string `json:"text"`
	Largest int64  `json:"largest"` // 0 for none
	Needs   string `json:"needs"`   // a release of torch that is newer than the files', else ""
}

// Refusal is why recordings cannot be fitted: an error of the input.
type Refusal struct {
	Why       string
	NoHistory bool // a file lacks the events that are needed
}

func (r *Refusal) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refusal{Why: fmt.Sprintf(format, args...)} }

// Ask answers a question about recordings of one program. The error is a Refusal where they do not go together; else
// ctx's, when it ends.
func Ask(ctx context.Context, inputs []*Input, q Question) (*Result, error) {
	f := &fitter{ctx: ctx, q: q, terms: terms(q.Names), matches: map[[2]int][]int32{}, mosts: map[mostKey]int64{},
		extends: map[[2]int]float64{}}
	if err := f.prepare(inputs); err != nil {
		return nil, err
	}
	return f.result()
}

// fitter answers one question.
type fitter struct {
	ctx   context.Context
	q     Question
	terms []term
	all   []*recording
	aside []*recording // those that can hardly be aligned with the others
	notes []string

	conf     allocator.Conf
	capacity int64 // that can be reserved, 0 for no limit
	total    int64
	matches  map[[2]int][]int32 // partners, by recording
	models   []*model           // by recording, of all recordings; nil until asked for
	mosts    map[mostKey]int64
	extends  map[[2]int]float64 // see misses
	made     []made             // by program
	margin   float64            // by how much predictions may be off, as a share
}

// least is the share of requests that recordings of one program have in common, at least.
const least = 0.5

// prepare looks whether recordings go together.
func (f *fitter) prepare(inputs []*Input) error {
	label := labels(inputs)
	for i, in := range inputs {
		for k, o := range inputs[:i] {
			if slices.Equal(in.At, o.At) {
				return refuse("%s and %s were recorded with the same values; two recordings must differ", label[k], label[i])
			}
		}
	}
	if len(inputs) == 1 && len(f.q.Names) > 1 {
		return refuse("one recording cannot tell what grows with %s and what with %s; record more", f.q.Names[0], f.q.Names[1])
	}
	for i, name := range f.q.Names {
		same := func(p Point) bool { return p[i] == inputs[0].At[i] }
		alike := len(inputs) > 1 && !slices.ContainsFunc(inputs, func(in *Input) bool { return !same(in.At) })
		search := i == 0 && (f.q.To == nil || f.q.Capacity > 0) // goes along the first
		if alike && (search || slices.ContainsFunc(f.q.To, func(p Point) bool { return !same(p) })) {
			return refuse("all recordings have %s %d, so nothing tells how memory grows with it", name, inputs[0].At[i])
		}
	}
	if len(f.q.Names) > 1 && together(inputs) {
		return refuse("%s and %s vary together in these recordings; record one in which only one of them does",
			f.q.Names[0], f.q.Names[1])
	}
	f.number(inputs, label)
	gatherSteps(f.all)
	if n := len(f.all); n > 1 && len(f.q.Names) == 1 && volumes(f.all[0], f.all[n-1]) {
		f.terms = slices.Insert(f.terms, 3, term{3})
	}
	first := f.all[0]
	for _, r := range f.all {
		name := r.label
		switch {
		case r.program.Allocs == 0:
			return &Refusal{name + " has no allocations in its trace; record from the program's start on", true}
		case r.Timeline.Recording.BlocksUnknown():
			return &Refusal{fmt.Sprintf("%s left out %v events (skip_actions), and a replay needs them", name,
				r.Timeline.Recording.LeftOut()), true}
		case r.program.Recorded.Release != first.program.Recorded.Release,
			r.Snapshot.Writer.Backend != first.Snapshot.Writer.Backend:
			return refuse("%s and %s were written by different releases of torch", first.label, name)
		case r.program.Recorded.Text != first.program.Recorded.Text && f.q.Settings == nil:
			return refuse("%s and %s were recorded under different allocator settings: %q and %q", first.label, name,
				first.program.Recorded.Text, r.program.Recorded.Text)
		case (r.warm == 0) != (first.warm == 0):
			begins, later := first, r
			if r.warm == 0 {
				begins, later = r, first
			}
			how := "later"
			if later.midway() {
				how = "in the middle of the run, as where its events were more than max_entries"
			}
			return refuse("%s begins with the program and %s %s; record both alike", begins.label, later.label, how)
		}
	}
	if !slices.ContainsFunc(f.all, func(r *recording) bool { return !r.failed() }) {
		return refuse("%s ran out of memory, and nothing tells what the rest of the run needs; record a smaller value",
			names(f.all))
	}
	for _, r := range f.all {
		if r.failed() {
			f.notes = append(f.notes, r.label+" ran out of memory: what follows there is not known, and is predicted "+
				"from the others.")
		}
	}
	if slices.ContainsFunc(f.all, (*recording).midway) {
		f.notes = append(f.notes, "The recording begins in the middle of the run: how requests before it laid out the reserved "+
			"memory is not known. Reserved peaks are estimates even where allocated ones are exact; record from the program's "+
			"start.")
	}
	if len(f.all) > 1 && common(f.all) < least {
		return refuse("%s are not of one program: only %.0f%% of their allocations have the same stack", names(f.all),
			100*common(f.all))
	}
	f.noteFalls()
	f.leaveAside()
	f.models = make([]*model, len(f.all))
	f.conf = first.program.Recorded.Conf
	if f.q.Settings != nil {
		f.conf = f.q.Settings[0].Conf
	}
	return nil
}

// noteFalls says where a recording of higher values needed less than one of lower ones, as when values are swapped.
func (f *fitter) noteFalls() {
	const clear = 1.02 // kernels chosen by shape make less of a difference to a peak
	for _, low := range f.all {
		for _, high := range f.all {
			higher := !slices.Equal(high.At, low.At)
			for i := range high.At {
				higher = higher && high.At[i] >= low.At[i]
			}
			less, more := high.Timeline.PeakAllocated.Bytes, low.Timeline.PeakAllocated.Bytes
			if !higher || high.failed() || high.midway() != low.midway() || float64(more) < clear*float64(less) {
				continue
			}
			f.notes = append(f.notes, fmt.Sprintf("%s needed less than %s, although its values are higher: allocated memory peaked at "+
				"%s instead of %s. Are the values in the order of the files?", high.label, low.label, units.Bytes(less),
				units.Bytes(more)))
			return
		}
	}
}

// number tells the recordings' stacks apart: by all that was recorded, or else by what the recordings have in common.
func (f *fitter) number(inputs []*Input, label []string) {
	try := func(c codes, note ...string) bool {
		c.frames, c.stacks = map[frameKey]int32{}, map[string]int32{}
		f.all = f.all[:0]
		for i, in := range inputs {
			f.all = append(f.all, newRecording(in, label[i], &c))
		}
		if common(f.all) < least {
			return false
		}
		f.notes = append(f.notes, note...)
		return true
	}
	const (
		byFunction = "The program's lines differ between the recordings: calls are matched by function."
		byPython   = "Not all recordings have frames of C++: calls are matched by those of Python. Record all with the same stacks=."
	)
	if try(codes{}) || try(codes{anyLine: true}, byFunction) || !someNative(inputs) || try(codes{python: true}, byPython) {
		return
	}
	try(codes{python: true, anyLine: true}, byPython, byFunction)
}

// someNative reports whether some recordings have frames of C++, and others have none.
func someNative(inputs []*Input) bool {
	native := func(in *Input) bool {
		for i := range in.Snapshot.Frames.Len() {
			if !frames.Of(in.Snapshot, snapshot.FrameID(i+1)).Has(frames.Python) {
				return true
			}
		}
		return false
	}
	first := native(inputs[0])
	return slices.ContainsFunc(inputs, func(in *Input) bool { return native(in) != first })
}

// together reports whether two values grow by the same powers from one recording to each other, so that nothing tells what
// goes with which.
func together(inputs []*Input) bool {
	first := inputs[0].At
	log := func(in *Input, i int) float64 { return math.Log(float64(in.At[i]) / float64(first[i])) }
	for _, a := range inputs {
		if log(a, 0) == 0 || log(a, 1) == 0 {
			if log(a, 0) != log(a, 1) {
				return false
			}
			continue
		}
		for _, b := range inputs {
			if math.Abs(log(a, 0)*log(b, 1)-log(b, 0)*log(a, 1)) > 1e-9 {
				return false
			}
		}
	}
	return true
}

func names(all []*recording) string {
	var out []string
	for _, r := range all {
		out = append(out, r.label)
	}
	return strings.Join(out, " and ")
}

// common is the least share of allocations of a recording whose stack the first one has too.
func common(all []*recording) float64 {
	share := 1.0
	for _, r := range all[1:] {
		share = min(share, both(all[0], r), both(r, all[0]))
	}
	return share
}

func both(a, b *recording) float64 {
	has := map[int32]bool{}
	for row := range b.Timeline.Lives {
		has[b.stackOf(row)] = true
	}
	n := 0
	for row := range a.Timeline.Lives {
		if has[a.stackOf(row)] {
			n++
		}
	}
	return float64(n) / float64(max(len(a.Timeline.Lives), 1))
}

// model is that of a recording, with its partners in all others.
func (f *fitter) model(k int) *model {
	if f.models[k] == nil {
		f.models[k] = f.modelOf(k, -1)
	}
	return f.models[k]
}

// modelOf makes a model without one of the recordings, -1 for none.
func (f *fitter) modelOf(k, without int) *model {
	var others []*recording
	var partners [][]int32
	for j, o := range f.all {
		if j == k || j == without {
			continue
		}
		others, partners = append(others, o), append(partners, f.partners(k, j))
	}
	return newModel(f.all[k], others, partners, f.terms, f.q.Names)
}

// partners are those that the rows of a recording have in another.
func (f *fitter) partners(k, j int) []int32 {
	p, ok := f.matches[[2]int{k, j}]
	if !ok {
		p = match(f.all[k], f.all[j], f.terms)
		f.matches[[2]int{k, j}] = p
	}
	return p
}
