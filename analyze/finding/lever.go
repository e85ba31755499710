package finding

import "github.com/snapana/snapana/analyze/units"

// Lever is one change of a program, or of the allocator's settings, that lowers its peak. Each is
// computed on its own: gains of several do not add up.
type Lever struct {
	Kind   LeverKind  `json:"kind"`
	Device int        `json:"device"`
	Gain   units.Size `json:"gain"`        // Before less After
	Before units.Size `json:"peak_before"` // of active memory (of a Setting reserved), with requests that failed
	After  units.Size `json:"peak_after"`  // the new peak, wherever in the trace it is by then
	Bytes  units.Size `json:"bytes"`       // rounded, of Blocks
	Blocks int64      `json:"blocks"`      // that stand at the peak and would not
	Event  int        `json:"event"`       // after which the peak holds
	Site   string     `json:"site"`        // of most of Bytes, or the line that keeps them; "" unknown
	Sites  int        `json:"sites"`       // lines where the same is to be done, Site being one; 0 elsewhere
	During string     `json:"during"`      // of Held: the line that runs at the peak
	// Function is that of torch.optim which made the blocks, of LargestUse the loss function in which most of them
	// were made; "" elsewhere.
	Function string `json:"function"`
	// Category is what Bytes are for, of LargestUse alone.
	Category string `json:"category"`
	// InUse is all active memory after Event, without a request that failed; 0 but for LargestUse.
	InUse units.Size `json:"in_use,omitempty"`
	// AtSite is how much of Bytes was allocated at Site; 0 but for LargestUse.
	AtSite units.Size `json:"at_site,omitempty"`
	// Recomputed says of LargestUse that the program recomputes activations already (torch.utils.checkpoint).
	Recomputed bool `json:"recomputed"`
	// Conf is the setting, "" for the defaults, and Needs the release of torch that it takes, if newer
	// than the file's.
	Conf  string `json:"conf"`
	Needs string `json:"needs"`
	// Confidence is High where stacks or a replay prove that the change can be made, Inferred where the trace
	// only suggests it: no snapshot tells when memory is read.
	Confidence Confidence `json:"confidence"`
	Inferred   bool       `json:"inferred"`
	// AtMost says that Gain is a bound: the change itself may take some memory.
	AtMost bool   `json:"at_most"`
	Text   string `json:"text"` // what to do and what it gives, in words
}

// LeverKind is what a lever pulls.
type LeverKind string

// The kinds of levers.
const (
	AllocatorSetting LeverKind = "setting"
	ForeachStep      LeverKind = "foreach"     // temporaries of a foreach optimizer of torch.optim
	OptimizerStep    LeverKind = "optimizer"   // those of an optimizer that is the program's own
	Generations      LeverKind = "generations" // results that live until the next ones are made
	KeptGradients    LeverKind = "gradients"   // after the optimizer's step
	Held             LeverKind = "held"        // made long before the peak's phase, freed long after it
	LargestUse       LeverKind = "category"    // the largest category, of which no gain is known
)
