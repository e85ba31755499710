package allocator

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/snapshot/sorting"
)

// Driver is where segments come from: the CUDA driver as the allocator sees it.
type Driver interface {
	// Malloc is cudaMalloc of a whole number of bytes, false when the device is full.
	Malloc(size int64) (addr uint64, ok bool)
	// Free is cudaFree of what Malloc gave.
	Free(addr uint64, size int64)
	// Reserve gives address space for an expandable segment (cuMemAddressReserve), false when
	// there is none left.
	Reserve(size int64) (addr uint64, ok bool)
	// Map puts memory behind a part of reserved address space, all or nothing.
	Map(addr uint64, size int64) bool
	// Unmap takes memory from a part of reserved address space.
	Unmap(addr uint64, size int64)
}

// Device is a device of a given capacity. It gives ever higher addresses, see GoDown, and none twice.
type Device struct {
	// Total is the memory that can be had in bytes, 0 for no limit: without that of the CUDA
	// context, libraries and other processes.
	Total int64

	used int64
	next uint64
	down bool
	rest []Range // what chunks have left, the lowest first

	given []Range // see Follow
	taken []Range // of these
}

// Range is a range of address space.
type Range struct{ Addr, Size uint64 }

const (
	firstAddress = 0x7f0000000000
	devicePage   = 2 << 20  // cudaMalloc's own rounding
	chunk        = 32 << 20 // of address space, as an H100 and an H200 have it (driver 580)
)

// Hold counts bytes that were taken from the device before. They may be more than it has.
func (d *Device) Hold(bytes int64) { d.used += bytes }

// GoDown has it give lower addresses from now on, below those given so far: a chunk below the last one, or what one has left, which goes
// from lower ones to higher. GPUs were seen to do so, and where addresses decide between blocks of one size (see Tie) that moves them.
func (d *Device) GoDown() { d.down, d.next = true, firstAddress }

// Follow has it give what a driver gave, in that order, for as long as it is asked for as much, and lower addresses from then on. It must
// have given nothing.
func (d *Device) Follow(given []Range) {
	d.given, d.down, d.next = given, true, firstAddress
}

// follow gives what comes next, false where it is asked for something else, or where that is not free.
func (d *Device) follow(size int64) (uint64, bool) {
	next := d.given[0]
	if next.Size == uint64(roundUp(size, devicePage)) && !slices.ContainsFunc(d.taken, next.overlaps) {
		d.given, d.taken = d.given[1:], append(d.taken, next)
		return next.Addr, true
	}
	d.given = nil
	if len(d.taken) == 0 {
		return 0, false
	}
	sorting.By(d.taken, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	d.next = d.taken[0].Addr / chunk * chunk
	for i, g := range d.taken {
		end := g.Addr + g.Size
		until := (end + chunk - 1) / chunk * chunk
		if i+1 < len(d.taken) {
			until = min(until, d.taken[i+1].Addr)
		}
		if until > end {
			d.rest = append(d.rest, Range{end, until - end})
		}
	}
	d.taken = nil
	return 0, false
}

func (r Range) overlaps(o Range) bool { return r.Addr < o.Addr+o.Size && o.Addr < r.Addr+r.Size }

func (d *Device) take(size int64) bool {
	size = roundUp(size, devicePage)
	if d.Total > 0 && d.used+size > d.Total {
		return false
	}
	d.used += size
	return true
}

// Malloc implements Driver.
func (d *Device) Malloc(size int64) (uint64, bool) {
	if !d.take(size) {
		return 0, false
	}
	if len(d.given) > 0 {
		if addr, ok := d.follow(size); ok {
			return addr, true
		}
	}
	addr, ok := d.Reserve(size)
	if !ok {
		d.Free(addr, size)
	}
	return addr, ok
}

// Free implements Driver.
func (d *Device) Free(addr uint64, size int64) {
	d.used -= roundUp(size, devicePage)
	if len(d.taken) > 0 {
		d.taken = slices.DeleteFunc(d.taken, func(g Range) bool { return g.Addr == addr })
	}
}

// Reserve implements Driver.
func (d *Device) Reserve(size int64) (uint64, bool) {
	n := uint64(roundUp(size, devicePage))
	if d.next == 0 {
		d.next = firstAddress
	}
	if d.down {
		return d.below(n)
	}
	addr := d.next
	if d.next += n; d.next < addr {
		d.next = addr
		return 0, false
	}
	return addr, true
}

// below reserves address space in what chunks have left, or in those below all others.
func (d *Device) below(n uint64) (uint64, bool) {
	for i := range d.rest {
		if g := &d.rest[i]; g.Size >= n {
			addr := g.Addr
			if g.Addr, g.Size = g.Addr+n, g.Size-n; g.Size == 0 {
				d.rest = slices.Delete(d.rest, i, i+1)
			}
			return addr, true
		}
	}
	whole := uint64(roundUp(int64(n), chunk))
	if whole > d.next {
		return 0, false
	}
	if d.next -= whole; whole > n {
		d.rest = slices.Insert(d.rest, 0, Range{d.next + n, whole - n})
	}
	return d.next, true
}

// Map implements Driver.
func (d *Device) Map(_ uint64, size int64) bool { return d.take(size) }

// Unmap implements Driver.
func (d *Device) Unmap(addr uint64, size int64) { d.Free(addr, size) }
