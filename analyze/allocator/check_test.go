package allocator

import "fmt"

// Check reports the first invariant that does not hold: blocks tile their segments, free
// neighbors are one, every free block is in its pool's order and nothing else is, and the sums
// are those of the blocks. It takes time in the number of blocks, and is for tests.
func (a *Allocator) Check() error {
	var free, unmapped int
	var got [3]struct{ reserved, allocated, active, requested, split, splitBytes, segments, live, held int64 }
	for i := range a.blocks {
		b := &a.blocks[i]
		if b.state == unused {
			continue
		}
		q := &a.queues[b.queue]
		if n := b.next; n != none {
			k := &a.blocks[n]
			switch {
			case k.prev != int32(i) || k.addr != b.end():
				return fmt.Errorf("block %#x ends at %#x, the next begins at %#x", b.addr, b.end(), k.addr)
			case k.queue != b.queue || k.space != b.space:
				return fmt.Errorf("blocks %#x and %#x are of one segment and of two pools", b.addr, k.addr)
			case k.state == b.state && (b.state == Free || b.state == Unmapped):
				return fmt.Errorf("blocks %#x and %#x are free neighbors", b.addr, k.addr)
			}
		}
		if b.size < MinBlockSize || b.size%MinBlockSize != 0 {
			return fmt.Errorf("block %#x has %d bytes", b.addr, b.size)
		}
		if b.space != none {
			sp := &a.spaces[b.space]
			if b.addr < sp.base || b.end() > sp.base+uint64(sp.size) || sp.dropped {
				return fmt.Errorf("block %#x is outside of its address space", b.addr)
			}
			if b.state == Unmapped && (sp.down(b.addr) != b.addr || sp.down(b.end()) != b.end()) {
				return fmt.Errorf("unmapped block %#x is not made of whole granules", b.addr)
			}
			if b.prev == none && b.addr != sp.base || b.next == none && b.end() != sp.base+uint64(sp.size) {
				return fmt.Errorf("block %#x: its segment is not tiled to its ends", b.addr)
			}
		} else if b.state == Unmapped {
			return fmt.Errorf("block %#x of cudaMalloc is unmapped", b.addr)
		}
		switch b.state {
		case Free:
			free++
			e := b.entry(int32(i))
			if s := q.free.seek(&e); !q.free.valid(s) || q.free.get(s).block != int32(i) {
				return fmt.Errorf("free block %#x is in no order", b.addr)
			}
		case Unmapped:
			unmapped++
			if at, ok := a.findUnmapped(q, int32(i)); !ok || q.unmapped[at] != int32(i) {
				return fmt.Errorf("unmapped block %#x is in no list", b.addr)
			}
		}
		for _, kind := range []int{All, KindOf(q.small)} {
			g := &got[kind]
			if b.state != Unmapped {
				g.reserved += b.size
			}
			if b.state == Live {
				g.live++
				g.allocated += b.size
			}
			if b.state == Live || b.state == Pending {
				g.held++
				g.active += b.size
				g.requested += b.requested
			}
			if b.space == none && b.prev == none {
				g.segments++
			}
			if b.space == none && b.state == Free && b.split() {
				g.split++
				g.splitBytes += b.size
			}
		}
	}
	for i := range a.queues {
		q := &a.queues[i]
		free -= q.free.count()
		unmapped -= len(q.unmapped)
		if err := q.free.check(); err != nil {
			return err
		}
	}
	if free != 0 || unmapped != 0 {
		return fmt.Errorf("%d free and %d unmapped blocks are in an order twice, or no blocks", -free, -unmapped)
	}
	st := &a.stats
	for kind := range got {
		g := &got[kind]
		for _, m := range []struct {
			name string
			stat *Metric
			want int64
		}{
			{"reserved_bytes", &st.ReservedBytes, g.reserved}, {"allocated_bytes", &st.AllocatedBytes, g.allocated},
			{"active_bytes", &st.ActiveBytes, g.active}, {"requested_bytes", &st.RequestedBytes, g.requested},
			{"inactive_split", &st.InactiveSplit, g.split},
			{"inactive_split_bytes", &st.InactiveSplitBytes, g.splitBytes},
			{"segment", &st.Segment, g.segments}, {"allocation", &st.Allocation, g.live},
			{"active", &st.Active, g.held},
		} {
			if s := m.stat[kind]; s.Current != m.want || s.Peak < s.Current {
				return fmt.Errorf("%s is %d with a peak of %d, the blocks have %d", m.name, s.Current, s.Peak, m.want)
			}
		}
	}
	return nil
}

func (o *order) count() int {
	n := 0
	for _, run := range o.runs {
		n += len(run)
	}
	return n
}

func (o *order) check() error {
	var last *entry
	for _, run := range o.runs {
		if len(run) == 0 || len(run) >= maxRun {
			return fmt.Errorf("an order has a run of %d", len(run))
		}
		for i := range run {
			if last != nil && !last.before(&run[i]) {
				return fmt.Errorf("free blocks %#x and %#x are in the wrong order", last.addr, run[i].addr)
			}
			last = &run[i]
		}
	}
	return nil
}

// Size is the rounded size of a block, with what was not worth a split.
func (a *Allocator) Size(b Block) int64 { return a.blocks[b].size }

// ParseConf reads a settings string, what PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF holds, as
// the newest release does. See Release.ParseConf.
func ParseConf(s string) (Conf, error) { return Newest.ParseConf(s) }
