package load

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot"
)

// ring is torch's RingBuffer (c10/core/RingBuffer.h).
type ring struct {
	events    []int
	next, max int
}

func (r *ring) add(event int) {
	if len(r.events) < r.max {
		r.events = append(r.events, event)
		return
	}
	r.events[r.next] = event
	if r.next++; r.next == r.max {
		r.next = 0
	}
}

func (r *ring) dump() []int { return slices.Concat(r.events[r.next:], r.events[:r.next]) }

// history is a program of blocks, as pickled events; the size of each is its number. Live are the blocks at its end.
type history struct {
	events []string
	times  []int
	live   map[int]int // by address, the event that allocated it
}

func (h *history) step(rng *rand.Rand, time int) {
	event := func(action string, addr, size int) {
		h.times = append(h.times, time)
		h.events = append(h.events, fmt.Sprintf(`{"action": %q, "addr": %d, "size": %d, "stream": 0, "time_us": %d}`,
			action, addr, size, time))
	}
	addr := 512 * (1 + rng.IntN(20))
	if _, live := h.live[addr]; live {
		event("free_requested", addr, len(h.events)+1)
		event("free_completed", addr, len(h.events)+1)
		delete(h.live, addr)
		return
	}
	event("alloc", addr, len(h.events)+1)
	h.live[addr] = len(h.events)
}

func (h *history) file(t *testing.T, order []int) *snapshot.Snapshot {
	t.Helper()
	var events, blocks []string
	for _, i := range order {
		events = append(events, h.events[i])
	}
	for addr := 512; addr <= 512*20; addr += 512 {
		state := "inactive"
		if _, live := h.live[addr]; live {
			state = "active_allocated"
		}
		blocks = append(blocks, fmt.Sprintf(`{"address": %d, "size": 512, "requested_size": 1, "state": %q}`, addr, state))
	}
	return fromJSON(t, `{"segments": [{"device": 0, "address": 512, "total_size": 10240, "stream": 0, "blocks": [`+
		strings.Join(blocks, ", ")+`]}], "device_traces": [[`+strings.Join(events, ", ")+`]]}`)
}

func numbers(tr snapshot.Trace) []int {
	var out []int
	for i := range tr.Len() {
		out = append(out, int(tr.At(i).Size)-1)
	}
	return out
}

// A ring that is resized once gives its events back in the order in which they were recorded, without a gap.
func TestResizedRing(t *testing.T) {
	resized := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := history{live: map[int]int{}}
		r := ring{max: 1 + rng.IntN(60)}
		time, broken := 1_000_000, false
		for range 2 {
			for range rng.IntN(100) {
				time += min(rng.IntN(20), 1) * 3000 // some at the same time
				n := len(h.events)
				h.step(rng, time)
				for ; n < len(h.events); n++ {
					if broken = broken || len(r.events) >= r.max && r.next >= len(r.events); !broken {
						r.add(n)
					}
				}
			}
			r.max = 1 + rng.IntN(60)
		}
		if broken {
			continue // torch writes behind its array
		}
		dump := r.dump()
		s := h.file(t, dump)
		got := numbers(s.Traces[0])
		if slices.IsSortedFunc(dump, func(a, b int) int { return cmp.Compare(h.times[a], h.times[b]) }) {
			if s.Resized != nil || !slices.Equal(got, dump) {
				t.Errorf("seed %d: %v became %v, %+v", seed, dump, got, s.Resized)
			}
			continue
		}
		resized++
		if len(s.Resized) != 1 || s.Resized[0].Dropped != len(dump)-len(got) {
			t.Errorf("seed %d: %+v, %d of %d events", seed, s.Resized, len(got), len(dump))
		}
		// Events of one microsecond may change places: neither times nor addresses tell.
		timely := slices.IsSortedFunc(got, func(a, b int) int { return cmp.Compare(h.times[a], h.times[b]) })
		slices.Sort(got)
		if first := got[0]; !timely || len(got) != len(h.events)-first || got[len(got)-1] != len(h.events)-1 {
			t.Errorf("seed %d: %v became %v of %d", seed, dump, got, len(h.events))
		}
	}
	if resized < 100 {
		t.Errorf("only %d of the rings were out of order", resized)
	}
}

// Threads note the time before they wait for the allocator: the order of the file is right, also where the file
// contradicts itself otherwise.
func TestLateThread(t *testing.T) {
	for _, late := range []int{3, 900, 5_000} { // microseconds
		for _, twice := range []bool{false, true} {
			h := history{live: map[int]int{}}
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 100 {
				time := 1_000_000 + 100*i
				if i == 60 {
					time -= late
				}
				h.step(rng, time)
			}
			order := make([]int, len(h.events))
			for i := range order {
				order[i] = i
			}
			if twice {
				order = slices.Insert(order, 3, 0) // the first block
			}
			if s := h.file(t, order); s.Resized != nil || !slices.Equal(numbers(s.Traces[0]), order) {
				t.Errorf("%d us late: %+v, %v", late, s.Resized, numbers(s.Traces[0]))
			}
		}
	}
}

// Times that no clock gives: before 1970, and as far apart as 64 bits allow.
func TestHostileTimes(t *testing.T) {
	for _, times := range [][]int{
		{-5000, -4000, 1, 2}, {-1, -9000, -8000}, {math.MinInt64, 0},
		{math.MaxInt64, math.MinInt64, math.MaxInt64, math.MinInt64},
	} {
		var events []string
		for i, time := range times {
			events = append(events, fmt.Sprintf(`{"action": "alloc", "addr": %d, "size": %d, "stream": 0, "time_us": %d}`,
				512*(i+1), i+1, time))
		}
		s := fromJSON(t, `{"segments": [], "device_traces": [[`+strings.Join(events, ", ")+`]]}`)
		if n := s.Traces[0].Len(); n == 0 || n > len(times) {
			t.Errorf("%d: %d events", times, n)
		}
	}
}

// A clock that was set back makes two stretches of the same times, which is no ring, even where the file contradicts
// itself otherwise.
func TestClockSetBack(t *testing.T) {
	h := history{live: map[int]int{}}
	rng := rand.New(rand.NewPCG(1, 3))
	for i := range 1000 {
		h.step(rng, 5_000_000+100*(i%500))
	}
	order := make([]int, len(h.events))
	for i := range order {
		order[i] = i
	}
	order = slices.Insert(order, 9, 0) // the first block twice
	if s := h.file(t, order); s.Resized != nil || !slices.Equal(numbers(s.Traces[0]), order) {
		t.Errorf("%+v, %d of %d events", s.Resized, s.Traces[0].Len(), len(order))
	}
}
