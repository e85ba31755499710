package change

import "slices"

// Cost is what a change takes of each step, as far as a trace tells.
type Cost struct {
	// Recomputed is the share of what the way to the loss allocates that is computed twice, by bytes.
	Recomputed float64 `json:"recomputed_share"`
	Bus        int64   `json:"bus_bytes"` // between the GPU and the host in each step
	Launches   int     `json:"launches"`  // of kernels in each step, besides those that are there
	// Time is an estimate of the time that a step takes more, as a share of it, by the figures below.
	Time float64 `json:"time_share"`
}

// What costs are estimated by. A backward pass takes twice as long as the forward pass (two matrix products for one).
// 20 GB a second is what a copy makes of PCIe 4.0 x16, 100 GB a second what a collective makes of the links between the
// GPUs of one server; 5 microseconds are what a small kernel takes.
const (
	forwardShare   = 1. / 3
	busPerSecond   = 20e9
	linksPerSecond = 100e9
	launchSeconds  = 5e-6
	smallerBatch   = 0.03 // for each batch more that a step is cut into: kernels are less well filled
)

// leastStep is how long a step takes at least where its time was not recorded, per byte that it allocates.
const leastStep = 3 / 1e12

// stepSeconds is the median time from one pass to the next.
func (r *run) stepSeconds() float64 {
	var all []int64
	for i := 1; i < len(r.passes) && !r.passes[i].open; i++ { // where an open one would begin is no event
		a, b := r.t.Trace.Time(int(r.passes[i-1].begin)), r.t.Trace.Time(int(r.passes[i].begin))
		if a > 0 && b > a {
			all = append(all, b-a)
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		return float64(all[len(all)/2]) / 1e6
	}
	return max(float64(r.forwardBytes())*leastStep/float64(max(len(r.passes), 1)), 1e-3)
}

// forwardBytes is what was allocated on the way to all losses.
func (r *run) forwardBytes() (n int64) {
	for i := range r.passes {
		p := &r.passes[i]
		for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
			n += r.t.Lives[row].Requested
		}
	}
	return n
}

// price estimates what a change costs.
func (d *draft) price(c *Change, a *Applied) {
	passes := int64(max(len(d.passes), 1))
	if a.recomputed > 0 {
		a.Cost.Recomputed = min(float64(a.recomputed)/float64(max(d.forwardBytes(), 1)), 1)
	}
	moved := a.moved / passes
	seconds := float64(moved) / busPerSecond
	if c.Kind == Zero || c.Kind == FSDP {
		seconds = float64(moved) / linksPerSecond
	} else {
		a.Cost.Bus = moved
	}
	switch c.Kind {
	case Foreach, InBackward:
		const kernels = 10 // that Adam launches for a parameter
		a.Cost.Launches = kernels * a.params
		seconds += float64(a.Cost.Launches) * launchSeconds
	case Accumulate:
		a.Cost.Time = smallerBatch * float64(c.n-1)
	}
	a.Cost.Time += a.Cost.Recomputed*forwardShare + seconds/d.stepSeconds()
}
