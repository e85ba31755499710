package allocator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const mib = 1 << 20

// journal is a device that writes down what is asked of it.
type journal struct {
	Device
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) Malloc(size int64) (uint64, bool) {
	addr, ok := j.Device.Malloc(size)
	if !ok {
		j.note("full %s", megas(size))
		return 0, false
	}
	j.note("malloc %s", megas(size))
	return addr, true
}

func (j *journal) Free(addr uint64, size int64) {
	j.Device.Free(addr, size)
	j.note("free %s", megas(size))
}

func (j *journal) Map(addr uint64, size int64) bool {
	if !j.Device.Map(addr, size) {
		j.note("full %s", megas(size))
		return false
	}
	j.note("map %s at %s", megas(size), megas(int64(addr-firstAddress)))
	return true
}

func (j *journal) Unmap(addr uint64, size int64) {
	j.Device.Unmap(addr, size)
	j.note("unmap %s at %s", megas(size), megas(int64(addr-firstAddress)))
}

func megas(n int64) string { return fmt.Sprintf("%gM", float64(n)/mib) }

// bench is an allocator on a journal.
type bench struct {
	*testing.T
	*Allocator
	j *journal
}

func newBench(t *testing.T, conf string, capacity int64) *bench {
	t.Helper()
	c, err := ParseConf(conf)
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{Device: Device{Total: capacity}}
	return &bench{t, New(Options{Conf: c, Driver: j, Total: capacity}), j}
}

// get asks for bytes that must be had.
func (b *bench) get(n int64) Block {
	b.Helper()
	k, ok := b.Malloc(n, 0, 0)
	if !ok {
		b.Fatalf("%d bytes are not served", n)
	}
	return k
}

func (b *bench) gets(n int64, times int) []Block {
	b.Helper()
	var out []Block
	for range times {
		out = append(out, b.get(n))
	}
	return out
}

func (b *bench) fails(n int64) {
	b.Helper()
	if _, ok := b.Malloc(n, 0, 0); ok {
		b.Fatalf("%d bytes are served", n)
	}
}

// at checks where a block lies, in bytes from the first address, and its size.
func (b *bench) at(k Block, offset, size int64) {
	b.Helper()
	if got := int64(b.Addr(k) - firstAddress); got != offset || b.Size(k) != size {
		b.Errorf("block of %d bytes at %d, want %d at %d", b.Size(k), got, size, offset)
	}
}

// log checks what was asked of the device since the last time.
func (b *bench) log(want ...string) {
	b.Helper()
	if !slices.Equal(b.j.lines, want) {
		b.Errorf("asked of the device:\n  %s\nwant:\n  %s", strings.Join(b.j.lines, "\n  "), strings.Join(want, "\n  "))
	}
	b.j.lines = nil
	if err := b.Check(); err != nil {
		b.Error(err)
	}
}

func TestSegmentSizes(t *testing.T) { // SPEC.md 5.3
	b := newBench(t, "", 0)
	for _, n := range []int64{1, mib, mib + 1, 10*mib - 512, 10 * mib, 11*mib + 1} {
		b.get(n)
	}
	// The second MiB fits behind the first byte, the 10 MiB less 512 B behind 1 MiB + 512 B.
	b.log("malloc 2M", "malloc 20M", "malloc 10M", "malloc 12M")
}

func TestSplitting(t *testing.T) { // SPEC.md 5.5 step 6
	b := newBench(t, "", 0)
	b.at(b.get(1), 0, 512)
	b.at(b.get(2*mib-1024), 2*mib, 2*mib-1024)        // not of the small pool
	b.at(b.get(17*mib+1024), 4*mib-1024, 18*mib+1024) // 1 MiB remains, which is not worth a split
	b.at(b.get(9*mib), 22*mib, 9*mib)
	b.at(b.get(10*mib-512), 31*mib, 10*mib-512) // 1 MiB and 512 bytes are
	b.at(b.get(mib), 512, mib)
	b.at(b.get(mib-1024), mib+512, mib-1024) // small ones are split to the last 512 bytes
	b.at(b.get(512), 2*mib-512, 512)
	b.log("malloc 2M", "malloc 20M", "malloc 20M")
}

func TestBestFit(t *testing.T) { // SPEC.md 5.4
	b := newBench(t, "", 0)
	ten, twelve, other := b.get(10*mib), b.get(12*mib), b.get(12*mib)
	b.Free(other)
	b.Free(ten)
	b.Free(twelve)
	b.at(b.get(11*mib), 10*mib, 12*mib) // the lowest address of those of 12 MiB
	b.at(b.get(9*mib), 0, 10*mib)
	s := b.Stream(7)
	if k, ok := b.Malloc(9*mib, s, 0); ok { // other streams take no part
		b.at(k, 34*mib, 9*mib)
	}
	if k, ok := b.Malloc(9*mib, 0, b.NewPool()); ok { // nor do other pools
		b.at(k, 54*mib, 9*mib)
	}
	b.log("malloc 10M", "malloc 12M", "malloc 12M", "malloc 20M", "malloc 20M")
}

func TestMerge(t *testing.T) { // SPEC.md 5.7
	b := newBench(t, "", 0)
	k := b.gets(5*mib, 4)
	b.Free(k[0])
	w := b.FreeRequested(k[1])
	b.Free(k[2])
	b.at(b.get(6*mib), 20*mib, 6*mib) // a block that waits is no part of a hole
	b.FreeCompleted(w)
	b.at(b.get(15*mib), 0, 15*mib)
	b.FreeCompleted(w) // done already
	b.log("malloc 20M", "malloc 20M")
}

func TestTies(t *testing.T) { // SPEC.md 5.4
	for tie, want := range map[Tie]int64{TieAddress: 40 * mib, TieCounter: 60 * mib, TieCounterPrivate: 40 * mib,
		TieSegment: 60 * mib} {
		j := &journal{}
		a := New(Options{Conf: Default(), Tie: tie, Driver: j})
		b := &bench{t, a, j}
		first := b.get(30 * mib)
		b.j.next = firstAddress + 60*mib // the driver gives lower addresses later
		second := b.get(20 * mib)
		b.j.next = firstAddress + 40*mib
		third := b.get(20 * mib)
		b.Free(third)
		b.Free(second)
		if k := b.get(20 * mib); int64(b.Addr(k)-firstAddress) != want {
			t.Errorf("tie %d: block at %d MiB, want %d", tie, (b.Addr(k)-firstAddress)/mib, want/mib)
		}
		b.Free(first)
	}
}

func TestMaxSplit(t *testing.T) { // SPEC.md 5.4, 5.5 step 6
	b := newBench(t, "max_split_size_mb:40", 0)
	big := b.get(100 * mib)
	b.Free(big)
	b.get(30 * mib)                 // below the limit: large blocks are not for it
	b.at(b.get(90*mib), 0, 100*mib) // not split
	b.at(b.get(60*mib), 130*mib, 60*mib)
	b.log("malloc 100M", "malloc 30M", "malloc 60M")
	b = newBench(t, "max_split_size_mb:40", 0)
	b.Free(b.get(100 * mib))
	b.get(80 * mib) // 20 MiB would be wasted, which is the limit
	b.get(80*mib + 512)
	b.log("malloc 100M", "malloc 80M")
	b = newBench(t, "max_split_size_mb:40,max_non_split_rounding_mb:60", 0)
	b.Free(b.get(100 * mib))
	b.get(41 * mib)
	b.log("malloc 100M")
	if st := b.Stats(); st.OversizeAllocations.Current != 1 || st.OversizeSegments.Peak != 1 {
		t.Errorf("oversize: %+v, %+v", st.OversizeAllocations, st.OversizeSegments)
	}
}

func TestRetry(t *testing.T) { // SPEC.md 5.5 step 5, 5.10
	b := newBench(t, "", 100*mib)
	k := append(b.gets(10*mib, 5), b.gets(20*mib, 2)...)
	small := b.get(1)
	for _, k := range k[1:] {
		b.Free(k)
	}
	wait := b.FreeRequested(k[0])
	b.j.lines = nil
	b.get(30 * mib)
	// Streams are waited for, then all goes back in the order of the pool.
	b.log("full 30M", "free 10M", "free 10M", "free 10M", "free 10M", "free 10M", "free 20M", "free 20M", "malloc 30M")
	b.FreeCompleted(wait)
	b.fails(70 * mib)
	b.log("full 70M", "full 70M")
	b.Free(small)
	st := b.Stats()
	if st.NumAllocRetries != 2 || st.NumOOMs != 1 || st.NumSyncAllStreams != 2 || st.NumDeviceFree != 7 ||
		st.NumDeviceAlloc != 9 {
		t.Errorf("%+v", st)
	}
}

func TestReleaseAvailable(t *testing.T) { // SPEC.md 5.9
	b := newBench(t, "max_split_size_mb:30", 200*mib)
	k := []Block{b.get(40 * mib), b.get(50 * mib), b.get(90 * mib)}
	b.get(20 * mib)
	for _, k := range k {
		b.Free(k)
	}
	b.j.lines = nil
	b.get(24 * mib) // the smallest that is enough goes, no other
	b.log("full 24M", "free 40M", "malloc 24M")
	b.Free(b.get(16 * mib))
	b.j.lines = nil
	b.get(130 * mib) // none is enough: from the largest down
	b.log("full 130M", "free 90M", "free 50M", "malloc 130M")
	b = newBench(t, "max_split_size_mb:30", 200*mib)
	for _, k := range b.gets(40*mib, 3) {
		b.Free(k)
	}
	b.get(20 * mib)
	b.j.lines = nil
	b.fails(190 * mib) // all of them are too little, and have gone
	b.log("full 190M", "free 40M", "free 40M", "free 40M", "full 190M")
}

func TestGarbageCollection(t *testing.T) { // SPEC.md 5.8
	b := newBench(t, "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5", 400*mib)
	old, young := b.gets(30*mib, 2), b.gets(20*mib, 2)
	for _, k := range old {
		b.Free(k)
	}
	for range 3 { // time, for a garbage collector, is requests
		b.Free(young[0])
		young[0] = b.get(20 * mib)
	}
	for _, k := range young {
		b.Free(k)
	}
	b.get(1)
	b.j.lines = nil
	b.get(5 * mib) // served: 10 MiB remain of 20
	b.log()
	b.get(31 * mib) // 102 MiB are reserved, 100 are the limit: those of more than average age go
	b.log("free 30M", "free 30M", "malloc 32M")
	plain := newBench(t, "garbage_collection_threshold:0.5", 400*mib)
	for _, k := range plain.gets(100*mib, 3) {
		plain.Free(k)
	}
	plain.j.lines = nil
	plain.get(101 * mib) // without a fraction the threshold does nothing
	plain.log("full 102M", "free 100M", "free 100M", "free 100M", "malloc 102M")
}

func TestFraction(t *testing.T) { // SPEC.md 5.5 step 5
	b := newBench(t, "per_process_memory_fraction:0.5", 200*mib)
	b.Free(b.get(60 * mib))
	b.get(70 * mib) // the cache goes without a question to the device
	b.log("malloc 60M", "free 60M", "malloc 70M")
	b.fails(31 * mib)
	b.log()
	b = newBench(t, "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True", 200*mib)
	b.Free(b.get(60 * mib))
	b.fails(70 * mib) // nothing is given back
	b.log("malloc 60M")
	if st := b.Stats(); st.NumOOMRejections != 1 || st.NumOOMs != 0 || st.NumAllocRetries != 0 {
		t.Errorf("%+v", st)
	}
}

func TestExpandable(t *testing.T) { // SPEC.md 5.6
	b := newBench(t, "expandable_segments:True", 160*mib)
	b.get(3)
	b.log("map 2M at 0M")
	// The small segment takes 9/8 of the device's addresses: the large one begins at 180 MiB.
	x := b.get(3 * mib)
	b.at(x, 180*mib, 3*mib)
	y := b.get(30 * mib)
	b.at(y, 183*mib, 30*mib)
	z := b.get(8 * mib)
	b.at(z, 213*mib, 8*mib)
	b.log("map 20M at 180M", "map 20M at 200M", "map 20M at 220M")
	b.Free(y)
	b.at(b.get(31*mib), 221*mib, 31*mib) // the hole is too small: from the free end on
	b.log("map 20M at 240M")
	b.EmptyCache() // no granule is free as a whole
	b.log()
	b.Free(x)
	b.EmptyCache()
	b.log("unmap 20M at 180M")
}

func TestExpandableFull(t *testing.T) { // SPEC.md 5.6, 5.10
	b := newBench(t, "expandable_segments:True", 160*mib)
	k := b.gets(30*mib, 4) // up to 120 of the 180 MiB of addresses
	b.log("map 40M at 0M", "map 20M at 40M", "map 40M at 60M", "map 20M at 100M")
	b.Free(k[1])
	b.Free(k[2])
	b.fails(85 * mib) // what is behind the last block has too few addresses: a new segment
	b.log("full 100M", "unmap 40M at 40M", "full 100M")
	b.at(b.get(60*mib), 30*mib, 60*mib) // what was taken from the hole comes back
	b.log("map 40M at 40M")
}

// TestExpandableInPart has a request for which memory is mapped at two places, the second in
// vain: the first stays, until all is given back.
func TestExpandableInPart(t *testing.T) { // SPEC.md 5.6
	b := newBench(t, "expandable_segments:True", 60*mib)
	x, y, z := b.get(20*mib), b.get(5*mib), b.get(35*mib)
	b.Free(x)
	b.Free(z)
	b.EmptyCache()
	b.log("map 20M at 0M", "map 20M at 20M", "map 20M at 40M", "unmap 20M at 0M", "unmap 20M at 40M")
	b.Free(y) // 20 MiB between unmapped addresses on both sides
	b.j.Hold(15 * mib)
	b.fails(60 * mib)
	b.log("map 20M at 0M", "full 20M", "unmap 40M at 0M", "full 60M")
	if n := b.Stats().ReservedBytes[All]; n.Current != 0 || n.Peak != 60*mib {
		t.Errorf("reserved: %+v", n)
	}
}

func TestStatsKeys(t *testing.T) { // snapshot/SPEC.md 6.1
	keys := make(map[string]bool)
	new(Stats).Each(func(key string, _ int64) { keys[key] = true })
	if len(keys) != 9*3*4+2*4+7 {
		t.Errorf("%d keys", len(keys))
	}
	for _, key := range []string{"requested_bytes.large_pool.freed", "inactive_split.small_pool.peak",
		"oversize_segments.current", "num_sync_all_streams"} {
		if !keys[key] {
			t.Errorf("no key %s", key)
		}
	}
}

func TestFreedTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a block was freed twice")
		}
	}()
	b := newBench(t, "", 0)
	k := b.get(5)
	b.get(5)
	b.Free(k)
	b.Free(k)
}

// TestGoDown holds that a device gives addresses that do not overlap, the later ones below all that it gave before it went down.
func TestGoDown(t *testing.T) {
	d := &Device{}
	low, _ := d.Malloc(3 << 20)
	high, _ := d.Malloc(1)
	d.GoDown()
	next, _ := d.Malloc(5 << 20)
	last, _ := d.Malloc(1)
	if high-low < 3<<20 || low-next < 5<<20 || next-last < 1 {
		t.Errorf("%#x, %#x, then %#x, %#x", low, high, next, last)
	}
	if _, ok := d.Reserve(1 << 62); ok {
		t.Error("gave more addresses than there are")
	}
}

// TestFollow holds that a device gives what a driver gave as long as it is asked for that, and then what chunks have left, the lowest
// first, or what is below all of them.
func TestFollow(t *testing.T) {
	const mib = 1 << 20
	first := Range{0x7f0010000000, 20 * mib}
	d := &Device{}
	d.Follow([]Range{first, {0x7f0008000000, 30 * mib}, {0x7f0004000000, 2 * mib}})
	var got []uint64
	for _, size := range []int64{20 * mib, 30 * mib, 12 * mib, 40 * mib, 24 * mib, 20 * mib} {
		addr, ok := d.Malloc(size)
		if !ok {
			t.Fatal("full")
		}
		got = append(got, addr)
	}
	want := []uint64{first.Addr, 0x7f0008000000, first.Addr + 20*mib, 0x7f0008000000 - 64*mib, 0x7f0008000000 - 24*mib,
		0x7f0008000000 - 96*mib}
	if !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	d = &Device{}
	d.Follow([]Range{first, first})
	a, _ := d.Malloc(20 * mib)
	d.Free(a, 20*mib)
	b, _ := d.Malloc(20 * mib)
	if a != b {
		t.Errorf("%#x was free, and %#x is given", a, b)
	}
	d = &Device{}
	d.Follow([]Range{first, first})
	a, _ = d.Malloc(20 * mib)
	if b, _ = d.Malloc(20 * mib); a == b {
		t.Error("gave an address twice")
	}
}
