package finding

import "github.com/snapana/snapana/analyze/units"

// Imbalance compares the devices of one program.
type Imbalance struct {
	Fullest int        `json:"fullest"` // the device that has most
	Most    units.Size `json:"most"`    // its peak of active memory, or what is active at the end if Final
	Others  units.Size `json:"others"`  // the same of the one that comes next
	Final   bool       `json:"final"`   // no device has a history
	Filled  bool       `json:"filled"`  // the fullest ran out of memory, or nearly
	// Devices are all that have memory, by ordinal, and Unused those of the process that never had any.
	Devices []Load `json:"devices"`
	Unused  int    `json:"unused"`
	// Sites are where the fullest has most more than any other, at its peak; 3 at most.
	Sites []Surplus `json:"sites"`
	// Placed is what puts memory on one device, as the stacks of Evident bytes of it show; Site is the line of the program
	// that calls it.
	Placed  Placement  `json:"placed,omitempty"`
	Evident units.Size `json:"evident"`
	Site    string     `json:"site"`
}

// Load is the memory of one device, as Imbalance.Most has it.
type Load struct {
	Device int        `json:"device"`
	Active units.Size `json:"active"`
}

// Surplus is memory from one place that a device has more of than any other.
type Surplus struct {
	Site   string     `json:"site"`
	Bytes  units.Size `json:"bytes"`
	Others units.Size `json:"others"` // most that another device has from there
}

// Placement is what puts memory on one device of several.
type Placement string

// The placements, the most telling first.
const (
	Gather     Placement = "gather"     // torch.nn.DataParallel gathers outputs on one device
	DeviceMap  Placement = "device-map" // accelerate spreads a model by a device_map
	DefaultGPU Placement = "default"    // Module.cuda without a device moves to the current one
	LossOnOne  Placement = "loss"       // the loss of all is computed on one device
)
