package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Applied is what a change did to the recorded requests, and what it rests on.
type Applied struct {
	Change string `json:"change"`
	Kind   Kind   `json:"kind"`
	// Line is where the code is that changes, "" where that is not one line, and Modules are how many calls of modules
	// run again in one pass, of so many that the line makes.
	Line    string `json:"line"`
	Modules int    `json:"modules"`
	OfThose int    `json:"modules_of_line"`
	Blocks  int64  `json:"blocks"` // recorded blocks that end earlier, become smaller or go
	Bytes   int64  `json:"bytes"`  // rounded, of Blocks
	// Assumptions are what is taken for granted, besides that everything else stays as recorded.
	Assumptions []Assumption `json:"assumptions"`
	Cost        Cost         `json:"cost"`
	Text        string       `json:"text"` // what it does, in words

	recomputed int64
	moved      int64 // over the bus, there and back
	params     int   // parameters that one step of an optimizer updates
	leaves     int64 // let go of in one pass, that it may need all the same
	stays      int64 // kept in one pass, that may go
	recast     int64 // what losses may have in 32 bits all the same
	uncast     int64 // what losses may not have
	other      int64 // reserved peak where the program does it in the other way, see way, 0 for no such
	module     int64 // what the module keeps for backward that keeps most
	quotient   int64 // what Adam makes besides, where it steps with foreach=False

	sooner, later variant // what the program may let go of sooner, or make smaller, and what later
}

// Assumption is something that the file does not tell.
type Assumption struct {
	Kind AssumptionKind `json:"kind"`
	Name string         `json:"name,omitempty"` // of TakenFor and OnlyLeak: what was asked for
	Line string         `json:"line,omitempty"` // of these: what it is taken for
	Text string         `json:"text"`
}

// AssumptionKind is what is assumed.
type AssumptionKind string

// The assumptions.
const (
	TakenFor       AssumptionKind = "taken_for"       // a line's modules are taken for those of a name
	OneOfLists     AssumptionKind = "one_of_lists"    // which lists of modules, or parts of one, a name means is guessed
	OnlyLeak       AssumptionKind = "only_leak"       // the one leak that there is is taken for that of a line
	HeldGraphs     AssumptionKind = "held_graphs"     // graphs that stay, and that nothing goes back through, leak
	NonReentrant   AssumptionKind = "non_reentrant"   // checkpoints are of the form use_reentrant=False
	LeafInput      AssumptionKind = "leaf_input"      // adapters: what goes into the first checkpoint needs a gradient
	LastReader     AssumptionKind = "last_reader"     // the statement behind is the last to read a variable
	SingleTensor   AssumptionKind = "single_tensor"   // of optimizers but Adam: they make for one what they made for all
	StepsAlike     AssumptionKind = "steps_alike"     // Adam, which steps each parameter, runs with foreach, as recorded
	StepsAtOnce    AssumptionKind = "steps_at_once"   // nothing adds to a gradient once it is complete, nothing clips it
	DividesEvenly  AssumptionKind = "divides_evenly"  // what a pass makes grows with the batch
	KeepsAll       AssumptionKind = "keeps_gradients" // gradients add up over the micro-batches
	EvaluatesWhole AssumptionKind = "evaluates_whole" // batches of an evaluation stay as they are
	Shards         AssumptionKind = "shards"          // each tensor is cut into equal parts
	Dealt          AssumptionKind = "dealt"           // whole parameters are dealt to ranks, of which this is the first
	OneUnit        AssumptionKind = "one_unit"        // parameters are gathered for one module at a time
	FullyShard     AssumptionKind = "fully_shard"     // each module of a loop is a unit of FSDP2's, and the model with the rest
	RootAlone      AssumptionKind = "root_alone"      // no modules called in a loop: the model is the only unit
	Elements32     AssumptionKind = "elements_32"     // elements had 32 bits
	Converted      AssumptionKind = "converted"       // the model is made in 32 bits, then converted
	Loaded16       AssumptionKind = "loaded_16"       // the model comes to the device with 16 bits
	Autocast       AssumptionKind = "autocast"        // activations of 16 bits are those of torch.autocast
	PythonAlone    AssumptionKind = "python_alone"    // C++ was not recorded, and what the program computes itself is guessed
	Accelerated    AssumptionKind = "accelerated"     // accelerate runs the model alone so, and what it gives goes over to 32 bits
	EvaluatesHalf  AssumptionKind = "evaluates_16"    // evaluations run under torch.autocast, too
	SamplesFull    AssumptionKind = "samples_32"      // what a program samples is made outside of it
	Casts          AssumptionKind = "casts"           // what is known to compute in 32 bits does so, in copies
	CastsLoss      AssumptionKind = "casts_loss"      // so does a cross entropy of what comes of tokens
	CastsCapped    AssumptionKind = "casts_capped"    // the program makes 32 bits of logits that it caps
	WeightsGiven   AssumptionKind = "weights_given"   // torch.autocast, which is there, copies no weights of 16 bits
	FollowsWeights AssumptionKind = "follows_weights" // gradients and states have the type of weights
	Trains32       AssumptionKind = "trains_32"       // gradients and states keep 32 bits where weights have 16
	Adapters32     AssumptionKind = "adapters_32"     // so do adapters
	SavedOnCPU     AssumptionKind = "saved_on_cpu"    // activations go at once, and come back as they are needed
	BlockWise      AssumptionKind = "block_wise"      // 8-bit states as bitsandbytes makes them
	StepsOnCPU     AssumptionKind = "steps_on_cpu"    // the optimizer runs on the CPU
	KeptAtFailure  AssumptionKind = "kept_at_failure" // no backward tells what is kept, so all that modules made is
	EndsWithStep   AssumptionKind = "ends_with_step"  // what leaks is not needed behind its step
	TrainsAlone    AssumptionKind = "trains_alone"    // modules are checkpointed while the model trains, not in an evaluation
	EvaluatesToo   AssumptionKind = "evaluates_too"   // modules are checkpointed in an evaluation, too
	FoundSteps     AssumptionKind = "found_steps"     // steps are those of the loop that was found, not of one before it
	BoundAgain     AssumptionKind = "bound_again"     // a variable of the loop keeps the last of it until it is bound again
)

// Missing is what a file lacks that a change needs.
type Missing string

// What a file can lack.
const (
	NoPass        Missing = "backward"      // no backward pass was recorded
	NoModules     Missing = "modules"       // no stack goes through a module that keeps anything
	NoOptimizer   Missing = "optimizer"     // no optimizer allocates anything in the trace
	NoState       Missing = "state"         // optimizer state from before the trace cannot be told from other memory
	NoSteps       Missing = "steps"         // no steps were found
	NoLeak        Missing = "leak"          // nothing grows
	NoGradients   Missing = "gradients"     // no gradients of parameters were made
	NoneSuch      Missing = "category"      // nothing of that category was recorded
	ManyLines     Missing = "ambiguous"     // several lines call modules in a loop
	ManyLeaks     Missing = "leaks"         // several lines leak, and not the one that is named
	TooFew        Missing = "too_few"       // the line calls fewer modules
	NoStacks      Missing = "stacks"        // stacks were not recorded
	NoParams      Missing = "parameters"    // parameters from before the trace cannot be told from other memory
	Contradiction Missing = "contradiction" // with another change: Lines is that
	NoName        Missing = "name"          // nothing tells which module a name is of that is of no list
	NoValues      Missing = "values"        // the line is there, and only an optimizer or a backward pass allocates there
	NoCalls       Missing = "no_calls"      // the line is there, and calls no module that keeps anything for backward
)

// RefusedError says that a change cannot be replayed, and why.
type RefusedError struct {
	Change string
	Lacks  Missing
	Lines  []string // of ManyLines and ManyLeaks what to ask for instead, of TooFew, and the other change of Contradiction
	Counts []int    // of ManyLines: the modules of each of Lines
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s cannot be replayed: %s", e.Change, e.Lacks)
}

// apply makes one change.
func (d *draft) apply(ctx context.Context, c *Change) (*Applied, error) {
	a := &Applied{Change: c.Text, Kind: c.Kind, Assumptions: []Assumption{}}
	refuse := func(why Missing, lines ...string) error {
		return &RefusedError{Change: c.Text, Lacks: why, Lines: lines}
	}
	if d.s.Stacks.Len() == 0 {
		return nil, refuse(NoStacks)
	}
	var err error
	switch c.Kind {
	case FreeLeak:
		err = d.applyLeak(c, a, refuse)
	case Del, NoGrad, Free:
		err = d.applyLine(ctx, c, a, refuse)
	case Checkpoint:
		err = d.applyCheckpoint(c, a, refuse)
	case Offload:
		err = d.applyOffload(c, a, refuse)
	case Foreach:
		if d.oneByOne(a); !d.trains {
			err = refuse(NoOptimizer)
		}
	case InBackward:
		switch d.inBackward(a); {
		case len(d.calls) == 0:
			err = refuse(NoOptimizer)
		case a.Blocks == 0:
			err = refuse(NoGradients)
		}
		a.assume(StepsAtOnce)
	case EightBit:
		switch {
		case len(d.calls) == 0:
			err = refuse(NoOptimizer)
		case !d.has(category.OptimizerState):
			err = refuse(NoState)
		}
		d.eightBit(a)
		a.assume(BlockWise, Elements32)
	case Accumulate:
		if len(d.passes) == 0 {
			err = refuse(NoPass)
		} else {
			d.accumulate(c.n, a)
		}
		a.assume(DividesEvenly, KeepsAll)
		if len(a.sooner.sizes) > 0 {
			a.assume(EvaluatesWhole)
		}
	case Zero:
		err = d.applyZero(c, a, refuse)
	case FSDP:
		err = d.applyFSDP(c, a, refuse)
	case DType:
		err = d.applyType(c, a, refuse)
	}
	for row, end := range d.inLoops {
		if d.ends[row] == end.now {
			a.mayEnd(row, end.now, end.otherwise)
		}
	}
	clear(d.inLoops)
	return a, err
}

func (d *draft) applyType(c *Change, a *Applied, refuse refusal) error {
	of := func(row int32) bool {
		of, _ := d.uses.Of(row)
		switch {
		case c.all:
			return of != category.Input && (of != category.Workspace || d.follows(row))
		case of == category.Gradient && !d.gradient(row):
			return false // what backward passes on
		}
		return slices.Contains(c.of, of)
	}
	if c.converts() {
		if under := d.convert(c.all); under != nil {
			d.narrow(under.narrows, a)
			a.assume(Converted, WeightsGiven)
			switch {
			case len(under.adapters) > 0:
				a.assume(Adapters32)
			case under.follow:
				a.assume(FollowsWeights)
			default:
				a.assume(Trains32)
			}
			return nil
		}
	}
	a.assume(Elements32)
	saved := slices.Contains(c.of, category.AutogradSaved)
	half, capped := map[int32]bool{}, int64(0) // under autocast
	var evaluated evaluated
	if saved && !c.converts() && slices.Contains(c.of, category.Activation) {
		evaluated = d.evaluated()
		half, a.uncast, capped = d.autocast(evaluated.wide)
	}
	switch {
	case len(half) > 0:
		d.narrow(func(row int32) bool {
			use, _ := d.uses.Of(row)
			own := use == category.Activation || use == category.AutogradSaved || d.phase(row) == inBackward && !d.gradient(row)
			return half[row] || of(row) && !evaluated.wide[row] && !(own && d.passOf(d.t.Lives[row].Born) != nil)
		}, a)
		d.flash(func(row int32) bool { return half[row] })
		a.assume(Autocast)
		if !d.hasOperators() {
			a.assume(PythonAlone)
		}
		if d.accelerates {
			a.assume(Accelerated)
		}
		a.assume(evaluated.assumptions...)
		if a.uncast = max(a.uncast, capped); capped > 0 {
			a.assume(CastsCapped)
		}
	case saved || c.all:
		wide, likely := d.cast(!c.losses)
		if a.uncast = likely; likely > 0 {
			a.assume(CastsLoss)
		}
		a.recast = d.recast(wide)
		half := func(row int32) bool { return !wide[row] && of(row) }
		d.narrow(half, a)
		d.flash(half)
		if len(wide) > 0 {
			a.assume(Casts)
		}
	default:
		d.narrow(of, a)
	}
	if a.Blocks == 0 {
		return refuse(NoneSuch)
	}
	if c.all {
		d.castInputs()
	}
	if c.converts() {
		a.assume(Converted)
	}
	return nil
}

// converts reports whether a change makes parameters smaller.
func (c *Change) converts() bool {
	return c.Kind == DType && (c.all || slices.Contains(c.of, category.Parameter))
}

func (a *Applied) assume(kinds ...AssumptionKind) {
	for _, k := range kinds {
		a.Assumptions = append(a.Assumptions, Assumption{Kind: k})
	}
}

// assumeOnce is assume for what may be assumed already.
func (a *Applied) assumeOnce(kind AssumptionKind) {
	if !slices.Contains(a.Assumptions, Assumption{Kind: kind}) {
		a.assume(kind)
	}
}

func (a *Applied) count(r *run, row int32) {
	a.Blocks++
	a.Bytes += r.t.Lives[row].Rounded
}

// mayEnd says where a row, which ends at an event now, does if the program does not do what is assumed.
func (a *Applied) mayEnd(row, now, otherwise int32) {
	a.endings(otherwise > now)[row] = ending{now, otherwise}
}

// mayEnd is that for a row as it is changed so far, or as recorded where it is not.
func (d *draft) mayEnd(a *Applied, row, otherwise int32) {
	a.endings(otherwise > d.last(row))[row] = ending{d.ends[row], otherwise}
}

// endings are those of rows that may end later, or sooner.
func (a *Applied) endings(later bool) map[int32]ending {
	o := &a.sooner
	if later {
		o = &a.later
	}
	if o.ends == nil {
		o.ends = map[int32]ending{}
	}
	return o.ends
}

// mayShrink says how many times fewer bytes a row has if the program does not do what is assumed.
func (a *Applied) mayShrink(row int32, times int64) {
	if a.sooner.sizes == nil {
		a.sooner.sizes = map[int32]int64{}
	}
	a.sooner.sizes[row] = times
}

// variant is what a program may do that does not do what is assumed.
type variant struct {
	ends  map[int32]ending // by row
	sizes map[int32]int64  // by row, how many times fewer bytes it may have
	peak  int64            // reserved, 0 where it was not replayed
}

// ending is where a row ends, and where it may, see whatif.Edits.
type ending struct{ now, otherwise int32 }

type refusal func(why Missing, lines ...string) error

func (d *draft) applyLeak(c *Change, a *Applied, refuse refusal) error {
	growths := ghost.Find(d.s, d.t, nil)
	where := d.place(c.line)
	if len(growths) == 0 {
		return d.applyHeld(c, where, a, refuse)
	}
	var stacks []snapshot.StackID
	var lines []string
	for i := range growths {
		g := &growths[i]
		lines = append(lines, attribution.Place(d.s, g.Stack))
		there := func(id snapshot.StackID) bool { return where.depth(id) >= 0 }
		if c.line == "" || where != nil && slices.ContainsFunc(g.Stacks, there) {
			stacks = append(stacks, g.Stacks...)
			a.Line = cmp.Or(a.Line, attribution.Place(d.s, g.Stack))
		}
	}
	if len(stacks) == 0 {
		if len(growths) > 1 {
			for i := range lines {
				lines[i] = string(FreeLeak) + "=" + lines[i]
			}
			slices.Sort(lines)
			return refuse(ManyLeaks, slices.Compact(lines)...)
		}
		// The line that keeps it may allocate nothing.
		stacks, a.Line = growths[0].Stacks, lines[0]
		a.Assumptions = append(a.Assumptions, Assumption{Kind: OnlyLeak, Name: c.line, Line: a.Line})
	}
	if d.freeLeak(stacks, a); !slices.Contains(a.Assumptions, Assumption{Kind: BoundAgain}) {
		a.assume(EndsWithStep)
	}
	return nil
}

// applyHeld takes graphs that stay for the leak, where nothing is certain to grow.
func (d *draft) applyHeld(c *Change, where *place, a *Applied, refuse refusal) error {
	if c.line != "" && where == nil {
		return d.noLine(c.line)
	}
	held := d.heldGraphs(where)
	if len(held) == 0 {
		return refuse(NoLeak)
	}
	d.freeGraphs(held, a)
	a.Line = attribution.Place(d.s, d.t.Lives[held[0].end].Stack)
	a.Assumptions = append(a.Assumptions, Assumption{Kind: HeldGraphs, Line: a.Line})
	return nil
}

func (d *draft) applyLine(ctx context.Context, c *Change, a *Applied, refuse refusal) error {
	where := d.place(c.line)
	if where == nil && c.Kind == NoGrad {
		where = d.callOf(c.line)
	}
	if where == nil {
		return d.noLine(c.line)
	}
	values := func(row int32) bool { return where.depth(d.code(row)) >= 0 && d.phase(row) == inProgram }
	if c.Kind != Free && !d.some(values) {
		return refuse(NoValues)
	}
	a.Line = c.line
	switch c.Kind {
	case Del:
		d.del(ctx, where, a)
		a.assume(LastReader)
	case NoGrad:
		d.noGrad(ctx, where, a)
		a.assume(LastReader)
	case Free:
		if c.step >= len(d.steps.Steps) {
			return refuse(NoSteps)
		}
		d.freeAt(where, c.step, a)
	}
	return nil
}

// noLine says that no stack goes through a line, and which of the program's own do.
func (d *draft) noLine(line string) error {
	e := &LineError{Line: line}
	seen := map[string]int64{}
	for row := range d.t.Lives {
		l := &d.t.Lives[row]
		if text := attribution.Line(d.s, l.Stack, "", ""); text != "" {
			seen[text] += l.Rounded
		}
	}
	for text := range seen {
		e.Known = append(e.Known, text)
	}
	sorting.By(e.Known, func(a, b string) int { return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a, b)) })
	return e
}

func (d *draft) applyCheckpoint(c *Change, a *Applied, refuse refusal) error {
	if len(d.passes) == 0 {
		return refuse(NoPass)
	}
	var calls []instance
	var seen, lines []string
	named, err := d.named(c, a, refuse)
	if err != nil {
		return err
	}
	for _, m := range c.modules {
		groups := named[m.name]
		if groups != nil && len(groups) == 0 {
			continue // it keeps nothing
		}
		if groups == nil {
			if groups = d.at(m.name, m.within); len(groups) == 0 {
				if d.place(m.name) != nil {
					return refuse(NoCalls)
				}
				return d.noLine(m.name)
			}
			isList := func(g group) bool { return g.list }
			first := slices.IndexFunc(groups, isList)
			several := first >= 0 && slices.ContainsFunc(groups[first+1:], isList)
			lists := slices.ContainsFunc(groups, func(g group) bool { return d.callsList(&g.calls[0]) })
			if m.to >= 0 && (several || lists) || slices.ContainsFunc(groups, func(g group) bool { return g.loops }) {
				a.assumeOnce(OneOfLists) // modules of several classes are numbered apart, and lists may begin elsewhere
			}
		}
		most := slices.MaxFunc(groups, func(a, b group) int { return cmp.Compare(a.most, b.most) })
		if m.to >= most.most && len(groups) == 1 {
			most = d.withFirst(most, m.to)
			groups = []group{most}
		}
		if m.to >= most.most {
			return refuse(TooFew, most.line, fmt.Sprint(most.most))
		}
		for g := range groups {
			if m.to >= groups[g].most {
				continue // what the list has between the others
			}
			if key := groups[g].key; !slices.Contains(seen, key) {
				seen, a.OfThose = append(seen, key), a.OfThose+groups[g].most
			}
			if !slices.Contains(lines, groups[g].line) {
				lines = append(lines, groups[g].line)
			}
			for _, call := range groups[g].calls {
				if m.to < 0 || call.ordinal >= m.from && call.ordinal <= m.to {
					calls = append(calls, call)
				}
			}
		}
	}
	byBirth(calls)
	calls = slices.CompactFunc(calls, func(x, y instance) bool { return x.rows[0] == y.rows[0] })
	d.checkpoint(calls, c.ofAllModules(), a)
	a.Line = units.List(lines)
	if a.Modules == 0 {
		return refuse(NoCalls)
	}
	a.assume(NonReentrant)
	if d.leafInputs(calls) {
		a.assume(LeafInput)
	}
	if d.guessed {
		a.assume(KeptAtFailure)
	}
	return nil
}

func (d *draft) applyOffload(c *Change, a *Applied, refuse refusal) error {
	if c.what == activations {
		if len(d.passes) == 0 {
			return refuse(NoPass)
		}
		d.offloadSaved(a)
		a.assume(SavedOnCPU)
		if d.guessed {
			a.assume(KeptAtFailure)
		}
		return nil
	}
	if len(d.calls) == 0 {
		return refuse(NoOptimizer)
	}
	if !d.has(category.OptimizerState) {
		return refuse(NoState)
	}
	d.offloadState(a)
	a.assume(StepsOnCPU)
	return nil
}

func (d *draft) has(c category.Category) bool {
	return d.some(func(row int32) bool { return d.is(row, c) })
}

func (d *draft) rows() func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for row := range d.t.Lives {
			if !yield(int32(row)) {
				return
			}
		}
	}
}

// some reports whether a filter takes any row.
func (d *draft) some(takes func(row int32) bool) bool {
	for row := range d.rows() {
		if takes(row) {
			return true
		}
	}
	return false
}

func (d *draft) applyZero(c *Change, a *Applied, refuse refusal) error {
	switch {
	case !d.has(category.OptimizerState):
		return refuse(NoState)
	case c.stage > 1 && !d.some(d.gradient):
		return refuse(NoGradients)
	case c.stage > 2 && !d.has(category.Parameter):
		return refuse(NoParams)
	}
	d.zero(c, a)
	if c.dealt {
		a.assume(Dealt)
	} else {
		a.assume(Shards)
	}
	if c.stage > 2 {
		a.assume(OneUnit)
	}
	return nil
}
