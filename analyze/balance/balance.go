// Package balance compares the devices that one program uses: which of them is fullest, what it has that the others do
// not, and what put it there, as far as stacks tell.
package balance

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Device is one of the process's devices.
type Device struct {
	Timeline *timeline.Timeline
	Live     []attribution.Group // at the peak of active memory, or at the end if that is all that is known
}

// mostSites bounds the places that are named.
const mostSites = 3

// Compare puts devices side by side. It is nil where fewer than two have memory.
func Compare(s *snapshot.Snapshot, devices []Device) *finding.Imbalance {
	v := &finding.Imbalance{Final: true}
	for i := range devices {
		v.Final = v.Final && !devices[i].Timeline.HasHistory()
	}
	top := -1
	for i := range devices {
		t := devices[i].Timeline
		if t.PeakReserved.Bytes == 0 {
			v.Unused++
			continue
		}
		n := units.Size(t.PeakActive.Bytes)
		v.Devices = append(v.Devices, finding.Load{Device: t.Device, Active: n})
		if top < 0 || n > v.Most {
			top, v.Fullest, v.Others, v.Most = i, t.Device, v.Most, n
		} else {
			v.Others = max(v.Others, n)
		}
	}
	if len(v.Devices) < 2 {
		return nil
	}
	surplus(s, v, devices, top)
	placed(s, v, devices, top)
	return v
}

// surplus names the places of which the fullest device has most more than any other.
func surplus(s *snapshot.Snapshot, v *finding.Imbalance, devices []Device, top int) {
	most := map[string]units.Size{} // of the others, by site
	var own map[string]units.Size
	for i := range devices {
		sums := map[string]units.Size{}
		for k := range devices[i].Live {
			g := &devices[i].Live[k]
			sums[g.Site] += units.Size(g.Rounded)
		}
		if i == top {
			own = sums
			continue
		}
		for site, n := range sums {
			most[site] = max(most[site], n)
		}
	}
	for site, n := range own {
		if n > most[site] {
			v.Sites = append(v.Sites, finding.Surplus{Site: site, Bytes: n, Others: most[site]})
		}
	}
	sorting.By(v.Sites, func(a, b finding.Surplus) int {
		return cmp.Or(cmp.Compare(b.Bytes-b.Others, a.Bytes-a.Others), cmp.Compare(a.Site, b.Site))
	})
	v.Sites = v.Sites[:min(len(v.Sites), mostSites)]
}

// placements are what stacks tell of them, in the order of the constants.
var placements = [...]struct {
	is    finding.Placement
	facts frames.Class
	part  frames.Part
}{
	{finding.Gather, frames.Gathers, frames.None},
	{finding.DeviceMap, frames.Dispatches, frames.None},
	{finding.DefaultGPU, frames.DefaultGPU, frames.None},
	{finding.LossOnOne, 0, frames.Loss},
}

// shares are bytes by placement, each with the stack of most of them.
type shares [len(placements)]struct {
	bytes, most units.Size
	stack       snapshot.StackID
}

// placed looks for what put memory on the fullest device: a tenth of what it has more than the others.
func placed(s *snapshot.Snapshot, v *finding.Imbalance, devices []Device, top int) {
	own, least := sharesOf(s, &devices[top]), (v.Most-v.Others)/10
	var others [len(placements)]units.Size // most that one of them has
	for i := range devices {
		if i != top {
			for k, other := range sharesOf(s, &devices[i]) {
				others[k] = max(others[k], other.bytes)
			}
		}
	}
	for i := range own {
		if n := own[i].bytes - others[i]; n >= least && n > 0 {
			v.Placed, v.Evident, v.Site = placements[i].is, n, attribution.Site(s, own[i].stack)
			return
		}
	}
}

// sharesOf sums what lives at the peak. Of what is gathered it takes the largest block that there ever was, since it
// need not live then.
func sharesOf(s *snapshot.Snapshot, d *Device) (v shares) {
	add := func(from, to int, stack snapshot.StackID, bytes int64) {
		for i := from; i < to; i++ {
			if p := &v[i]; isIn(s, stack, placements[i].facts, placements[i].part) {
				p.bytes += units.Size(bytes)
				if units.Size(bytes) > p.most {
					p.most, p.stack = units.Size(bytes), stack
				}
			}
		}
	}
	for i := range d.Live {
		add(1, len(v), d.Live[i].Stack, d.Live[i].Rounded)
	}
	made := make([]int64, s.Stacks.Len()+1)
	for i := range d.Timeline.Lives {
		l := &d.Timeline.Lives[i]
		made[l.Stack] = max(made[l.Stack], l.Rounded)
	}
	for stack, bytes := range made {
		if bytes > 0 {
			add(0, 1, snapshot.StackID(stack), bytes)
		}
	}
	v[0].bytes = v[0].most
	return v
}

// isIn reports whether a frame of a stack has a fact, or is of a part of torch.
func isIn(s *snapshot.Snapshot, stack snapshot.StackID, facts frames.Class, part frames.Part) bool {
	return slices.ContainsFunc(s.Stacks.Get(stack), func(id snapshot.FrameID) bool {
		c := frames.Of(s, id)
		return c.Has(facts) || part != frames.None && c.Part() == part
	})
}
