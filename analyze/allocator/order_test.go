package allocator

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder compares an order with a sorted list through growing and shrinking.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var o order
	var want []entry
	less := func(a, b entry) int {
		switch {
		case a.before(&b):
			return -1
		case b.before(&a):
			return 1
		}
		return 0
	}
	for step := range 30000 {
		grow := step%10000 < 5000
		if len(want) == 0 || rng.IntN(10) < 6 == grow {
			e := entry{size: rng.Int64N(300) * 512, tie: rng.Uint32N(3), addr: uint64(step) << 9, block: int32(step)}
			at, _ := slices.BinarySearchFunc(want, e, less)
			want = slices.Insert(want, at, e)
			o.insert(e)
		} else {
			at := rng.IntN(len(want))
			o.remove(&want[at])
			want = slices.Delete(want, at, at+1)
		}
		if len(want) > 0 {
			at := rng.IntN(len(want))
			old, e := want[at], want[at]
			if e.size += (rng.Int64N(600) - 300) * 512 >> rng.IntN(8); e.size < 0 {
				e.size = 0
			}
			want = slices.Delete(want, at, at+1)
			at, _ = slices.BinarySearchFunc(want, e, less)
			want = slices.Insert(want, at, e)
			o.replace(o.place(&old), e)
		}
		if step%997 == 0 {
			checkOrder(t, &o, want)
		}
		key := entry{size: rng.Int64N(310) * 512}
		at, _ := slices.BinarySearchFunc(want, key, less)
		s := o.seek(&key)
		if o.valid(s) != (at < len(want)) || at < len(want) && *o.get(s) != want[at] {
			t.Fatalf("step %d: a search for %d finds the wrong place", step, key.size)
		}
	}
	for len(want) > 0 {
		at := rng.IntN(len(want))
		o.remove(&want[at])
		want = slices.Delete(want, at, at+1)
	}
	checkOrder(t, &o, want)
}

func checkOrder(t *testing.T, o *order, want []entry) {
	t.Helper()
	if err := o.check(); err != nil || o.count() != len(want) {
		t.Fatalf("%d entries, want %d; %v", o.count(), len(want), err)
	}
	i := 0
	for s := (spot{}); o.valid(s); s = o.after(s) {
		if *o.get(s) != want[i] {
			t.Fatalf("entry %d is another", i)
		}
		i++
	}
	s, ok := o.before(o.end())
	for ; ok; s, ok = o.before(s) {
		i--
		if *o.get(s) != want[i] {
			t.Fatalf("entry %d from behind is another", i)
		}
	}
	if i != 0 {
		t.Fatalf("%d entries are not reached from behind", i)
	}
}

func TestOrderRefusesStrangers(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an entry that is not there was removed")
		}
	}()
	var o order
	o.insert(entry{size: 512, addr: 1, block: 1})
	o.remove(&entry{size: 512, addr: 2, block: 2})
}
