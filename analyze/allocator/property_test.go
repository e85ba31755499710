package allocator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// program makes random requests and keeps account of what it holds.
type program struct {
	rng     *rand.Rand
	a       *Allocator
	streams []Stream
	pools   []Pool
	held    []Block
	asked   map[Block]int64
	waiting []Ticket
	failed  int
}

func newProgram(seed uint64, o Options) *program {
	p := &program{rng: rand.New(rand.NewPCG(seed, 77)), a: New(o), asked: make(map[Block]int64)}
	p.streams = []Stream{0, p.a.Stream(0x55d0c0ffee00), p.a.Stream(2), p.a.Stream(0xffff800000000000)}
	p.pools = []Pool{0, 0, 0, p.a.NewPool()}
	return p
}

func (p *program) size() int64 {
	switch p.rng.IntN(10) {
	case 0, 1, 2, 3:
		return 1 + p.rng.Int64N(64<<10)
	case 4, 5:
		return 1 + p.rng.Int64N(1<<20)
	case 6, 7:
		return 512 * (1 + p.rng.Int64N(16<<20/512))
	case 8:
		return 1<<20 + p.rng.Int64N(90<<20)
	}
	return int64(1) << (9 + p.rng.IntN(17))
}

// step makes one random call, and says which in words.
func (p *program) step() string {
	n := len(p.held)
	switch k := p.rng.IntN(100); {
	case k < 52 && (n < 200 || k < 30):
		size, s, pool := p.size(), p.streams[p.rng.IntN(4)], p.pools[p.rng.IntN(4)]
		b, ok := p.a.Malloc(size, s, pool)
		if !ok {
			p.failed++
			return fmt.Sprintf("malloc %d fails", size)
		}
		p.held = append(p.held, b)
		p.asked[b] = size
		return fmt.Sprintf("malloc %d on stream %d, pool %d", size, s, pool)
	case k < 95 && n > 0:
		i := p.rng.IntN(n)
		if p.rng.IntN(3) == 0 {
			i = n - 1
		}
		b := p.held[i]
		p.held[i] = p.held[n-1]
		p.held = p.held[:n-1]
		delete(p.asked, b)
		if p.rng.IntN(12) == 0 {
			p.waiting = append(p.waiting, p.a.FreeRequested(b))
			return "free, later"
		}
		p.a.Free(b)
		return "free"
	case k < 98 && len(p.waiting) > 0:
		i := p.rng.IntN(len(p.waiting))
		p.a.FreeCompleted(p.waiting[i])
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return "complete"
	case k == 98:
		p.a.EmptyCache()
		return "empty cache"
	case k == 99 && p.rng.IntN(20) == 0:
		p.a.ReleasePool(p.pools[3])
		return "release pool"
	}
	return "nothing"
}

// variants are settings and devices under which everything must hold.
func variants() map[string]Options {
	out := make(map[string]Options)
	for _, text := range []string{
		"", "expandable_segments:True", "max_split_size_mb:21", "max_split_size_mb:64,max_non_split_rounding_mb:64",
		"expandable_segments:True,max_split_size_mb:32", "roundup_power2_divisions:[1:2,8:16,>:4]",
		"garbage_collection_threshold:0.5,per_process_memory_fraction:0.6", "large_segment_size_mb:12",
		"expandable_segments:True,large_segment_size_mb:40",
		"per_process_memory_fraction:0.4,throw_on_cudamalloc_oom:True",
		"garbage_collection_threshold:0.4,per_process_memory_fraction:0.9,max_split_size_mb:40",
	} {
		c, err := ParseConf(text)
		if err != nil {
			panic(err)
		}
		for tie := TieAddress; tie <= TieSegment; tie++ {
			out[fmt.Sprintf("%s tie %d", text, tie)] = Options{Conf: c, Tie: tie, Total: 3 << 30}
			out[fmt.Sprintf("%s tie %d full", text, tie)] = Options{Conf: c, Tie: tie, Total: 3 << 30,
				Driver: &Device{Total: 424 << 20}}
		}
	}
	return out
}

// TestInvariants holds after every call of random programs: blocks tile segments, no two free
// neighbors, orders and sums are right, blocks that are held do not overlap, and the device
// has given what is reserved.
func TestInvariants(t *testing.T) {
	steps, every := 700, 1
	if testing.Short() {
		steps, every = 200, 10
	}
	failed := 0
	for name, o := range variants() {
		device, ok := o.Driver.(*Device)
		if !ok {
			device = &Device{}
			o.Driver = device
		}
		p := newProgram(uint64(len(name)), o)
		for i := range steps {
			did := p.step()
			if i%every != 0 {
				continue
			}
			if err := p.a.Check(); err != nil {
				t.Fatalf("%s, step %d (%s): %v", name, i, did, err)
			}
			if got, want := p.a.stats.ReservedBytes[All].Current, device.used; got != want {
				t.Fatalf("%s, step %d (%s): %d bytes are reserved, the device has given %d", name, i, did, got, want)
			}
			if i%50 == 0 {
				p.check(t, name)
			}
		}
		failed += p.failed
	}
	if failed == 0 {
		t.Error("no request failed: no device was full")
	}
}

// check compares what the program holds with the allocator's state.
func (p *program) check(t *testing.T, name string) {
	t.Helper()
	slices.SortFunc(p.held, func(x, y Block) int { return cmp.Compare(p.a.Addr(x), p.a.Addr(y)) })
	end := uint64(0)
	var sum, requested int64
	for _, b := range p.held {
		if p.a.Addr(b) < end {
			t.Fatalf("%s: two blocks overlap at %#x", name, p.a.Addr(b))
		}
		if n := p.asked[b]; p.a.Size(b) < n {
			t.Fatalf("%s: %d bytes were given for %d", name, p.a.Size(b), n)
		}
		end = p.a.Addr(b) + uint64(p.a.Size(b))
		sum += p.a.Size(b)
		requested += p.asked[b]
	}
	st := p.a.Stats()
	if got := st.AllocatedBytes[All].Current; got != sum || st.Allocation[All].Current != int64(len(p.held)) {
		t.Fatalf("%s: %d bytes are allocated, the program holds %d", name, got, sum)
	}
	if st.RequestedBytes[All].Current < requested {
		t.Fatalf("%s: %d bytes are requested, the program holds %d", name, st.RequestedBytes[All].Current, requested)
	}
	if st.NumOOMs+st.NumOOMRejections != int64(p.failed) {
		t.Fatalf("%s: %d failures are counted, the program saw %d", name, st.NumOOMs+st.NumOOMRejections, p.failed)
	}
}

// TestRestore copies allocators in the middle of random programs, and holds that the copy goes
// on like the original.
func TestRestore(t *testing.T) {
	for name, o := range variants() {
		if o.Conf.GCThreshold > 0 || o.Tie == TieCounter || o.Tie == TieCounterPrivate || o.Tie == TieSegment {
			continue // ages and counters are not part of a state
		}
		device, ok := o.Driver.(*Device)
		if !ok {
			device = &Device{}
			o.Driver = device
		}
		p := newProgram(uint64(len(name)), o)
		for range 400 {
			p.step()
		}
		for _, w := range p.waiting {
			p.a.FreeCompleted(w)
		}
		p.waiting = nil
		twin := *device
		o.Driver = &twin
		q := newProgram(0, o)
		to := make(map[Block]Block)
		for _, seg := range p.a.Segments() {
			from := slices.Clone(seg.Pieces)
			q.a.Restore(&seg)
			for i := range from {
				to[from[i].Block] = seg.Pieces[i].Block
			}
		}
		if err := q.a.Check(); err != nil {
			t.Fatalf("%s: the copy is wrong: %v", name, err)
		}
		for _, b := range p.held {
			q.held = append(q.held, to[b])
			q.asked[to[b]] = p.asked[b]
		}
		if p.a.pools[2*p.pools[3]].freeable {
			q.a.ReleasePool(q.pools[3])
		}
		p.rng, q.rng = rand.New(rand.NewPCG(9, 9)), rand.New(rand.NewPCG(9, 9))
		for i := range 400 {
			x, y := p.step(), q.step()
			if x != y || i%10 == 0 && !sameLayout(p.a, q.a) {
				t.Fatalf("%s: %d steps after the copy: %s and %s lead to other layouts", name, i, x, y)
			}
		}
	}
}

// sameLayout compares all segments, apart from the numbers of their blocks.
func sameLayout(x, y *Allocator) bool {
	return slices.EqualFunc(x.Segments(), y.Segments(), func(a, b Segment) bool {
		same := slices.EqualFunc(a.Pieces, b.Pieces, func(p, q Piece) bool {
			return p.Size == q.Size && p.Requested == q.Requested && p.State == q.State
		})
		a.Pieces, b.Pieces = nil, nil
		return same && reflect.DeepEqual(a, b)
	})
}

// TestDeterminism holds that equal programs have equal statistics.
func TestDeterminism(t *testing.T) {
	for name, o := range variants() {
		var stats [2]Stats
		for i := range stats {
			o := o
			if d, ok := o.Driver.(*Device); ok {
				o.Driver = &Device{Total: d.Total}
			}
			p := newProgram(5, o)
			for range 500 {
				p.step()
			}
			stats[i] = *p.a.Stats()
		}
		if !reflect.DeepEqual(stats[0], stats[1]) {
			t.Errorf("%s: two runs differ", name)
		}
	}
}
