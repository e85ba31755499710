package ranks

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// union makes a set of ranks, in a fixed order: of several states of one file the last that could be read, and of
// several files with the same rank and the same content one.
func union(list []Rank) (out []Rank, older, copies int) {
	out = slices.Clone(list)
	sorting.By(out, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(b.modified, a.modified),
			cmp.Compare(readable(&a), readable(&b)), cmp.Compare(b.recorded, a.recorded), cmp.Compare(a.options, b.options),
			cmp.Compare(a.content, b.content), cmp.Compare(a.machine, b.machine), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Fault, b.Fault))
	})
	out, older, copies = latest(out)
	files := make([]string, len(out))
	numbers := make([]int, len(out))
	for i := range out {
		if files[i], numbers[i] = out[i].File, int(out[i].recorded)-1; numbers[i] < 0 {
			numbers[i] = snapshot.NamedRank(out[i].File)
		}
	}
	type key struct {
		number  int
		content string
	}
	seen := map[key]bool{}
	kept := 0
	for i := range out {
		id := key{numbers[i], out[i].content}
		if id.content != "" && id.number >= 0 && seen[id] {
			continue
		}
		seen[id] = true
		out[kept], files[kept], numbers[kept] = out[i], files[i], numbers[i]
		kept++
	}
	for i, n := range unambiguous(files[:kept], numbers[:kept]) {
		out[i].Number = n
	}
	return out[:kept], older, copies + len(out) - kept
}

func readable(k *Rank) int {
	if k.Fault == "" {
		return 0
	}
	return 1
}

// latest keeps of ranks with one path, which follow each other and are in order, the first: of each machine and each rank
// that the recorder tells, for machines may have a file of that path each.
func latest(list []Rank) (out []Rank, older, copies int) {
	apart := func(a, b *Rank) bool {
		return a.machine != "" && b.machine != "" && a.machine != b.machine ||
			a.recorded > 0 && b.recorded > 0 && a.recorded != b.recorded
	}
	begin := 0 // in out, of those with this path
	for i := range list {
		k := &list[i]
		if len(out) > 0 && out[len(out)-1].place() != k.place() {
			begin = len(out)
		}
		same := slices.IndexFunc(out[begin:], func(o Rank) bool { return !apart(&o, k) })
		switch {
		case same < 0:
			out = append(out, *k)
		case k.content == "" || out[begin+same].content == k.content:
			copies++
		default:
			older++
		}
	}
	return out, older, copies
}

// place tells files apart.
func (k *Rank) place() string { return cmp.Or(k.path, k.File) }

// expect counts who is missing.
func (c *Comparison) expect(q Question) error {
	c.Expected = q.Expected
	if q.Mesh != nil {
		c.Expected = q.Mesh.Size()
	}
	most, all, world := -1, true, int64(0)
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Fault != "" { // whose name is all that is known
			if k.Number >= c.Expected && c.Expected > 0 {
				k.Number = -1
			}
			continue
		}
		most, all = max(most, k.Number), all && k.Number >= 0
		if k.world > 0 {
			if world > 0 && world != k.world {
				world = maxExpected + 1 // they do not agree
			}
			world = max(world, k.world)
		}
	}
	if most >= c.Expected && c.Expected > 0 {
		return &ExpectedError{most, c.Expected}
	}
	if c.Expected == 0 && all && world > int64(most) && world <= fewMissing+64*int64(len(c.Ranks)) {
		c.Expected = int(world)
	}
	if c.Expected == 0 || !all {
		return nil
	}
	here := make([]bool, c.Expected)
	for i := range c.Ranks {
		if n := c.Ranks[i].Number; n >= 0 && n < c.Expected {
			here[n] = true
		}
	}
	for n, yes := range here {
		if !yes {
			c.Missing = append(c.Missing, n)
		}
	}
	return nil
}

const (
	maxExpected = 1e7  // ranks of a run
	fewMissing  = 4096 // ranks that may be missing by what files alone say
)

// ExpectedError says that there is a rank that the number of ranks which was given does not have.
type ExpectedError struct{ Rank, Expected int }

func (e *ExpectedError) Error() string {
	return fmt.Sprintf("there is rank %d, and of %d ranks the last is %d", e.Rank, e.Expected, e.Expected-1)
}
