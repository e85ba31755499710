package fit

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/snapshot"
)

// value is what the number says that a recording was made with, as far as its name tells.
type value uint8

const (
	count   value = iota // of anything, such as tokens
	batch                // of items that are worked on together
	pixels               // the side of images
	patches              // the side of a part of an image, or of a volume
	widths               // a size of the model itself
)

// few is a number of items that nearly all sizes can be divided by, and mostly by its square.
const few = 16

// isSide reports whether a value is the side of something.
func (v value) isSide() bool { return v == pixels || v == patches }

func valueOf(name string) value {
	name = strings.ToLower(name)
	has := func(part string) bool { return strings.Contains(name, part) }
	switch {
	case has("batch"):
		return batch
	case name == "res", has("side"), has("image"), has("img"), has("resolution"), has("crop"), has("pixel"):
		return pixels
	case slices.Contains([]string{"patch", "tile", "voxel", "voxels", "volume", "cube"}, name), strings.HasPrefix(name, "patch_"),
		strings.HasPrefix(name, "tile_"):
		return patches
	case has("hidden"), has("width"), has("dim"), has("channel"), has("layer"), has("depth"), has("head"), has("vocab"),
		has("embed"), has("class"), has("expert"):
		return widths
	}
	return count
}

// growth is the law of a size that grows with the value: with its square where that is the side of images, or where it
// is of all pairs.
func (g *guesser) growth(n int64) *law {
	at := g.At[0]
	switch {
	case g.value == pixels && g.patch > 0 && n%tokens(at, g.patch) == 0:
		each := float64(n / tokens(at, g.patch))
		return &law{parts: []part{{term{}, each}, {term{2}, each / float64(g.patch*g.patch)}}}
	case g.value.isSide(), g.pairs[n]:
		return along(term{2}, n, g.At)
	}
	return along(term{1}, n, g.At)
}

// tokens is how many tokens a vision transformer makes of an image with such a side: one for each patch, and one for all.
func tokens(side, patch int64) int64 { return side/patch*(side/patch) + 1 }

// findPatch finds the side of the patches into which a vision transformer divides an image, 0 for none: the one by whose
// tokens the sizes of most bytes that it leaves can be divided.
func (g *guesser) findPatch() {
	at := g.At[0]
	var most, all int64
	for n, count := range g.left {
		all += n * count
	}
	for _, patch := range []int64{32, 16, 14, 8} {
		if at%patch != 0 || tokens(at, patch) <= few {
			continue
		}
		var bytes int64
		for n, count := range g.left {
			if n%tokens(at, patch) == 0 {
				bytes += n * count
			}
		}
		if bytes > most && 2*bytes > all {
			most, g.patch = bytes, patch
		}
	}
}

// oneByOne reports whether steps may make one pass of a loop for each item of the value, so that a pass is as large for any: of
// nearly all requests of the middle step there are as many.
func (g *guesser) oneByOne() bool {
	const nearly = 0.95
	s := g.step(g.numSteps() / 2)
	rows := between(s.from, s.to)
	for _, period := range g.distances(rows) {
		f := g.fold(rows, period)
		all := 0
		for _, l := range f.loops {
			if int64(l.count) == g.At[0] {
				all += l.count * period
			}
		}
		if float64(all) >= nearly*float64(len(rows)) {
			return true
		}
	}
	return false
}

// findPairs finds the sizes of what is made of all pairs, with four bytes for each: of tokens, where attention makes it, a
// softmax or a distance; of the items of a batch, or of two views of each, where the program's own code makes it. No layer
// makes it of single ones, and no program moves it to the device.
func (g *guesser) findPairs() {
	at, lives := g.At[0], g.Timeline.Lives
	if at > math.MaxInt32 || g.value == count && at < few {
		return
	}
	each := func(visit func(row int, n int64, stack snapshot.StackID)) {
		for row := g.bounds[0]; row < len(lives); row++ {
			visit(row, lives[row].Requested, lives[row].Stack)
		}
	}
	attends, alike := attentions(g.Snapshot), similarities(g.Snapshot)
	sizes := map[int64]bool{}
	each(func(_ int, n int64, _ snapshot.StackID) { sizes[n] = true })
	each(func(row int, n int64, stack snapshot.StackID) {
		switch {
		case g.value == count && n%(4*at*at) == 0:
			g.pairs[n] = g.pairs[n] || attends[stack]
		case g.value == batch && alike[stack] && n%(4*at*at) == 0 && (n == 4*at*at || sizes[n/at]):
			g.pairs[n] = true // of each item with each other, before it is summed up
		case g.value == batch && (n == 4*at*at || n == 4*(2*at)*(2*at)):
			use, _ := g.uses.Of(int32(row))
			phase := g.phase(stack)
			g.pairs[n] = g.pairs[n] || use != category.Input && (phase == "" || phase == "forward")
		}
	})
	layers, drops := layers(g.Snapshot), dropouts(g.Snapshot)
	each(func(row int, n int64, stack snapshot.StackID) {
		if layers[stack] && !g.inside(row) {
			delete(g.pairs, n)
			if g.value == count && g.casts != nil { // of single precision, as of a norm
				delete(g.pairs, 2*n)
			}
		}
	})
	least, most := int64(math.MaxInt64), int64(0)
	for n := range g.pairs {
		least = min(least, n)
	}
	for n := range g.left {
		most = max(most, n)
	}
	each(func(row int, n int64, stack snapshot.StackID) {
		switch {
		case drops[stack] && g.pairs[4*n]:
			g.pairs[n] = true // a byte for each, of what is kept
		case g.value == count && g.phase(stack) == "backward" && n > most && n%least == 0 && g.params[n] == 0:
			g.pairs[n] = true // several values for each, of what forward only looks at
		}
	})
}

// volumes reports whether recordings are of what has a third dimension, such as the voxels of a scan: whether more bytes of the sizes
// of one come again in another with the cube of the value than with the value or its square.
func volumes(a, b *recording) bool {
	const least, much = 1 << 16, 0.3 // bytes that a size has, share of all that matter
	sizes := func(r *recording) map[int64]bool {
		out := map[int64]bool{}
		for row := r.warm; row < len(r.Timeline.Lives); row++ {
			out[r.Timeline.Lives[row].Requested] = true
		}
		return out
	}
	mine, theirs := sizes(a), sizes(b)
	var all float64
	var share [4]float64 // by power
	for _, n := range slices.Sorted(maps.Keys(mine)) {
		if n < least || theirs[n] {
			continue // the same, such as a parameter
		}
		all += float64(n)
		for power := 1; power < len(share); power++ {
			t := term{uint8(power)}
			if scaled := float64(n) / float64(t.of(a.At)) * float64(t.of(b.At)); theirs[int64(math.Round(scaled))] {
				share[power] += float64(n)
			}
		}
	}
	return share[3] > much*all && share[3] > share[1] && share[3] > share[2]
}
