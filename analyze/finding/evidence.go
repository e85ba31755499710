package finding

import (
	"fmt"

	"github.com/snapana/snapana/analyze/units"
)

// Evidence is what a finding rests on, in figures: its sentences say these, and nothing else says them.
// A finding has the parts that its kind is about; the others are nil.
//
// Events are indexes into the trace of the device. A site is a line of the program, as in
// "model.py:26 forward", and "" where no stack was recorded.
type Evidence struct {
	Growth    *Growth    `json:"growth,omitempty"`
	Late      *Late      `json:"late,omitempty"`
	Holder    *Holder    `json:"holder,omitempty"`
	Request   *Request   `json:"request,omitempty"`
	Fragments *Fragments `json:"fragments,omitempty"`
	Setting   *Setting   `json:"setting,omitempty"`
	Rescue    *Rescue    `json:"rescue,omitempty"`
	Faults    *Faults    `json:"faults,omitempty"`
	Trends    Trends     `json:"trends,omitempty"` // the series that tell, the first being what the finding is about
	Forecast  *Forecast  `json:"forecast,omitempty"`
	Incidents *Incidents `json:"incidents,omitempty"`
	Freed     *int64     `json:"freed,omitempty"` // bytes that were freed while others grew
	Unused    *Unused    `json:"unused,omitempty"`
	Machine   *Machine   `json:"machine,omitempty"`
	Workers   *Workers   `json:"workers,omitempty"`
	Processes []Process  `json:"processes,omitempty"` // whose memory it is
	Foreign   *Foreign   `json:"foreign,omitempty"`
	Spare     *Spare     `json:"spare,omitempty"`
	Imbalance *Imbalance `json:"imbalance,omitempty"`
	Stays     *Leftover  `json:"stays,omitempty"`
}

// Leftover is what a device still has after a program gave memory up.
type Leftover struct {
	Phase    string     `json:"phase"`    // in which it did, "" outside of any
	Lap      int64      `json:"lap"`      // from 1 on, 0 outside of a phase
	Event    int        `json:"event"`    // the last before that moment
	Before   units.Size `json:"before"`   // allocated when it began
	Reserved units.Size `json:"reserved"` // that stays: Live + Pending + Cached + Pieces + Pools
	Live     units.Size `json:"live"`     // allocated in blocks, those of private pools too
	Pending  units.Size `json:"pending"`  // freed, and waiting for another stream
	Cached   units.Size `json:"cached"`   // free segments: empty_cache returns them
	Pieces   units.Size `json:"pieces"`   // free in segments that live blocks keep
	Pools    units.Size `json:"pools"`    // free, of private pools and other streams
	InPools  units.Size `json:"in_pools"` // of Live, blocks in private pools
	Segments int        `json:"segments"` // that live blocks keep
	Pin      string     `json:"pin"`      // the site whose blocks keep most Pieces, "" for none known
	Scratch  units.Size `json:"scratch"`  // of Live, workspaces of libraries
	Holders  []Stay     `json:"holders"`  // of Live, by site, most bytes first, 5 at most
}

// Stay is the live memory of one site.
type Stay struct {
	Site   string     `json:"site"`
	Use    string     `json:"use"` // what most of it is for
	Bytes  units.Size `json:"bytes"`
	Blocks int64      `json:"blocks"`
}

// Growth is memory that a loop adds to and does not return.
type Growth struct {
	Index      int        `json:"index"`      // among the growths of the device, -1 for a part of one
	Loop       string     `json:"loop"`       // the function that runs it, and its file
	Call       string     `json:"-"`          // the same as who does something: "train()"
	Unit       string     `json:"unit"`       // what PerUnit and Slope are by: "iteration"
	PerUnit    units.Size `json:"per_unit"`   // median that an iteration leaves
	Every      int        `json:"every"`      // steps from one iteration that leaves something to the next, 0 unknown
	Iterations int        `json:"iterations"` // that left something
	Blocks     int64      `json:"blocks"`     // that stayed
	Bytes      units.Size `json:"bytes"`      // of them, rounded
	Stacks     int        `json:"stacks"`     // that allocated them
	Site       string     `json:"site"`       // of most of them
	Paces      []Pace     `json:"paces,omitempty"`
	First      int        `json:"first_event"` // births of the first and the last block that stayed
	Last       int        `json:"last_event"`
	UntilOOM   bool       `json:"until_oom"` // looked at up to a failure, else up to the end
	Released   bool       `json:"released"`  // looked at up to where its model was freed, and it with that or later
	InUse      units.Size `json:"in_use"`    // all active memory then
	Slope      float64    `json:"slope"`     // bytes an iteration (Theil-Sen)
	Chance     float64    `json:"chance"`    // probability of such a rise without a trend (Mann-Kendall)
	Freed      float64    `json:"freed"`     // share of the allocations of the same iterations that were freed
	Regular    bool       `json:"regular"`   // iterations left much the same
	Over       bool       `json:"over"`      // the loop ended, and what it left stayed
	Used       bool       `json:"used"`      // losses for which a backward pass ran
	Spent      bool       `json:"spent"`     // models, of which none was trained again after its own iteration
	Trained    bool       `json:"trained"`   // backward passes ran in most of the iterations
	Older      int64      `json:"older"`     // blocks of the same stacks from before the trace, not in Blocks
	OlderBytes units.Size `json:"older_bytes"`
	OlderLaps  int        `json:"older_iterations"` // that left them, if each left as many
	Like       Likeness   `json:"like"`
	Full       Full       `json:"full"`
	Clock      int        `json:"clock"` // the GPU by whose allocations iterations of pinned memory are told, -1 none
}

// Pace is the part of a growth that comes in so many iterations.
type Pace struct {
	Iterations int        `json:"iterations"`
	PerUnit    units.Size `json:"per_unit"` // median that such an iteration leaves
	Site       string     `json:"site"`
}

// Likeness says which memory that is kept on purpose would look like a growth.
type Likeness struct {
	Use   bool `json:"use"`   // a buffer or a cache that is not full, or results for later
	Early bool `json:"early"` // the same, and there are too few iterations to tell
	Stale bool `json:"stale"` // hardly so: a model that trains made it, and it is out of date after the next step
	Model bool `json:"model"` // results of a model: its forward made it
	Fill  bool `json:"fill"`  // a buffer that is being filled: nothing else is freed meanwhile
	Cache bool `json:"cache"` // the cache of a generation in progress
	// Pending is a graph that no backward pass could have freed before memory ran out, or one of gradients without an
	// optimizer's step since: a loop may build it for one.
	Pending bool `json:"pending"`
}

// Full says when a growth fills the device.
type Full struct {
	Ceiling    Ceiling    `json:"ceiling"`
	Bytes      units.Size `json:"bytes"`      // of Ceiling
	Iterations int64      `json:"iterations"` // from the end on
	Micros     int64      `json:"micros"`     // that they take, 0 unknown
}

// Ceiling is what is known of the room for a growth.
type Ceiling string

// Ceilings of growths.
const (
	Reached    Ceiling = "reached"    // the device did run out of memory
	Reservable Ceiling = "reservable" // a failure tells how much the process can reserve
	FreeAtEnd  Ceiling = "free"       // what the driver had free at the end
	DeviceSize Ceiling = "device"     // the size of the device, whoever uses it
	NoCeiling  Ceiling = "unknown"    // nothing is known: Bytes is a round figure
)

// Late is memory that waits for Python's garbage collector.
type Late struct {
	Steps   int        `json:"steps"`  // the most of which memory went at once
	Bytes   units.Size `json:"bytes"`  // the most that went at once
	Peak    units.Size `json:"peak"`   // of active memory
	Blocks  int64      `json:"blocks"` // that were freed so, two steps after their own or later
	Stacks  int        `json:"stacks"`
	Moments int        `json:"moments"` // at which memory went
	Site    string     `json:"site"`
}

// Holder is what keeps memory, as the recorder saw it in the process.
type Holder struct {
	Reference string     `json:"reference"` // in words
	Kind      string     `json:"kind"`      // of the reference
	Bytes     units.Size `json:"bytes"`     // that it keeps
	Frees     units.Size `json:"frees"`     // of them, when it is dropped
	Keys      int64      `json:"keys"`      // of a dict, in the dump before
	Gone      int64      `json:"gone"`      // of Keys, since then
	Ordered   bool       `json:"ordered"`   // an OrderedDict
	Bound     *Bound     `json:"bound,omitempty"`
	Views     *Views     `json:"views,omitempty"`
	Code      *Code      `json:"code,omitempty"`
	// Graph says that most of it is reached through autograd graphs, and Logged through records of Python's logging.
	Graph  bool `json:"graph"`
	Logged bool `json:"logged"`
	// Orphans are parameters that only the optimizer refers to, Optimizers those that have state for the same parameters.
	Orphans    int64 `json:"orphans"`
	Optimizers int64 `json:"optimizers"`
	// Hooks are those of one function in one registry, of which each keeps memory of its own.
	Hooks int64 `json:"hooks"`
	// Entries and Lost are the storages that it had in the earlier dump, and those of them that it has no more.
	Entries int64 `json:"entries_before"`
	Lost    int64 `json:"entries_lost"`
	// Was are the bytes of its storages in the earlier dump, and Is those in this one.
	Was units.Size `json:"bytes_before"`
	Is  units.Size `json:"storage_bytes"`
}

// Views are storages that tensors keep, and show a quarter or less of: a view, as of an index, keeps all of its storage.
type Views struct {
	Storages int64      `json:"storages"`
	Bytes    units.Size `json:"bytes"` // of the storages
	Shown    units.Size `json:"shown"` // of them, what tensors have elements in
}

// Hidden is what copies of the tensors would free.
func (v *Views) Hidden() units.Size { return v.Bytes - v.Shown }

// Code is how the program's text uses what a holder is, by its names. A place is as in "train.py:31 Trainer.mean".
type Code struct {
	Whole   bool   `json:"whole"` // all of the text was read, and nothing refers to the object but by name
	Adds    int    `json:"adds"`  // places that add something
	Reads   int    `json:"reads"` // places that may read what was added before, beyond the last entries
	Drops   int    `json:"drops"` // places that remove something, or begin anew
	Added   string `json:"added"` // the first of each, "" for none
	Read    string `json:"read"`
	Dropped string `json:"dropped"`
	// Filled is the first place that adds where a key is missing, as caches do, "" for none.
	Filled string `json:"filled"`
	// Recent is the first place that reads some of the last entries and no others, "" for none. Newest is how many at
	// most, of Length, -1 unknown.
	Recent string `json:"recent"`
	Newest int64  `json:"newest"`
	Length int64  `json:"length"`
}

// Bound is the container of a holder's memory, where it can have only so many entries.
type Bound struct {
	Length int64 `json:"length"` // entries in the dump
	Limit  int64 `json:"limit"`  // entries at most
	// Hint is the attribute that the limit was read from, "" for a limit that the container keeps
	// to itself. Whether the attribute bounds it is not known: it may.
	Hint string `json:"hint"`
	// Seen is the place in the program's text that keeps to it, as of Code; "" where none was seen.
	Seen string `json:"seen"`
	// Full is what it will take when it is full, in rounded bytes, at what an entry takes now.
	Full units.Size `json:"full"`
}

// Faults are contradictions in a file.
type Faults struct {
	Places   int64      `json:"places"`
	Residual units.Size `json:"residual"` // active bytes (reserved, if pinned) at the end, rebuilt less recorded
	Kinds    []Fault    `json:"kinds,omitempty"`
}

// NotVerified says that a file contradicts itself in so many places, and by how much the rebuilt end differs from the
// recorded one, "" for not at all.
func NotVerified(places int64, off string) string {
	switch {
	case off == "":
		return "not verified: the file contradicts itself in " + units.Plural(places, "place")
	case places == 0:
		return "not verified: the replay is off by " + off
	}
	return fmt.Sprintf("not verified: the file contradicts itself in %s, and the replay is off by %s",
		units.Plural(places, "place"), off)
}

// Fault is how often a file contradicts itself in one way.
type Fault struct {
	Kind  string `json:"kind"` // as the field of the checks
	What  string `json:"-"`    // what there are Count of
	Count int64  `json:"count"`
}

// Add counts faults of one kind.
func (f *Faults) Add(kind, what string, count int64) {
	f.Places += count
	f.Kinds = append(f.Kinds, Fault{kind, what, count})
}

// Forecast is how long memory will last if it goes on to grow as it does.
type Forecast struct {
	Usable  int64  `json:"usable"` // bytes that can be had
	Source  string `json:"source"`
	Level   int64  `json:"level"`   // the bytes that count against it: the live peak of a device
	Units   int64  `json:"units"`   // steps (samples, epochs) from the last sample on; 0 when it is full
	Seconds int64  `json:"seconds"` // the same as time, -1 unknown or below one
}

// Unused is reserved memory that no tensor uses, by counters: at the highest, or in the last sample.
type Unused struct {
	Reserved units.Size `json:"reserved"`
	Live     units.Size `json:"live"`
	Split    units.Size `json:"split"` // free in pieces between live blocks in the last sample, -1 unknown
}

// Machine is the memory of a machine that is short of it, over the samples of a process.
type Machine struct {
	Samples   int        `json:"samples"`
	Short     int        `json:"short"`      // of them, those in which less than 5% of the RAM was available
	Available units.Size `json:"available"`  // in the last
	SwapFirst units.Size `json:"swap_first"` // in use, -1 unknown
	SwapLast  units.Size `json:"swap_last"`
}

// Workers are the child processes of a program that lived to the end.
type Workers struct {
	Children    int    `json:"children"`
	StartMethod string `json:"start_method"` // of Python's multiprocessing, "" unknown
}

// Process is one that has memory of a device.
type Process struct {
	PID    int64      `json:"pid"` // of the machine
	Name   string     `json:"name"`
	User   string     `json:"user,omitempty"`
	State  string     `json:"state,omitempty"`
	Used   units.Size `json:"used"`             // -1 unknown
	Parent int64      `json:"parent,omitempty"` // the process that it helps, 0 for none
	Origin string     `json:"origin,omitempty"` // how it came from Parent
	// Elsewhere is what it has on another device, nil where that does not matter.
	Elsewhere *OnDevice `json:"elsewhere,omitempty"`
}

// OnDevice is memory of a device.
type OnDevice struct {
	Device int        `json:"device"` // as the driver numbers it
	Used   units.Size `json:"used"`
}

// Foreign is what the driver counts as used beyond what is known of it.
type Foreign struct {
	PID    int64      `json:"pid,omitempty"`   // of the process, 0 for the whole device
	Total  units.Size `json:"total,omitempty"` // of the device
	Used   units.Size `json:"used"`
	Known  units.Size `json:"known"`            // of Used: reserved by PyTorch, or the listed processes'; 0 if left out
	Before units.Size `json:"before,omitempty"` // the difference before it grew
	Moved  units.Size `json:"moved,omitempty"`  // how far Known moved meanwhile
	Micros int64      `json:"micros,omitempty"` // that it took
}

// Spare is reserved pinned memory that nobody needs.
type Spare struct {
	Bytes    units.Size `json:"bytes"`
	Reserved units.Size `json:"reserved"`
	Sizes    []OfSize   `json:"sizes"`   // the blocks, most bytes first, 3 at most
	Site     string     `json:"site"`    // of the last use of the first of them
	Bounded  bool       `json:"bounded"` // the settings bound the rounding to powers of two
}

// OfSize is the memory of blocks of one size.
type OfSize struct {
	Size  units.Size `json:"size"`
	Bytes units.Size `json:"bytes"`
}
