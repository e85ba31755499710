package fit

import (
	"math"
	"strings"

	"github.com/snapana/snapana/analyze/category"
)

// value is what the number says that a recording was made with, as far as its name tells.
type value uint8

const (
	count  value = iota // of anything, such as tokens
	batch               // of items that are worked on together
	pixels              // the side of images
)

func valueOf(name string) value {
	name = strings.ToLower(name)
	has := func(part string) bool { return strings.Contains(name, part) }
	switch {
	case has("batch"):
		return batch
	case name == "res", has("side"), has("image"), has("img"), has("resolution"), has("crop"), has("pixel"):
		return pixels
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
	case g.value == pixels, g.pairs[n]:
		return along(term{2}, n, g.At)
	}
	return along(term{1}, n, g.At)
}

// tokens is how many tokens a vision transformer makes of an image with such a side: one for each patch, and one for all.
func tokens(side, patch int64) int64 { return side/patch*(side/patch) + 1 }

// findPatch finds the side of the patches into which a vision transformer divides an image, 0 for none: the one by whose
// tokens the sizes of most bytes that it leaves can be divided.
func (g *guesser) findPatch() {
	const few = 16
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

// findPairs finds the sizes of what is made of all pairs, with four bytes for each: of tokens, where attention makes it or
// a softmax; of the items of a batch, or of two views of each, where the program's own code makes it. No layer makes it of
// single ones, and no program moves it to the device.
func (g *guesser) findPairs() {
	at, lives := g.At[0], g.Timeline.Lives
	if at > math.MaxInt32 {
		return
	}
	attends, layers, drops := attentions(g.Snapshot), layers(g.Snapshot), dropouts(g.Snapshot)
	for row := g.bounds[0]; row < len(lives); row++ {
		n, stack := lives[row].Requested, lives[row].Stack
		switch {
		case g.value == count:
			g.pairs[n] = g.pairs[n] || attends[stack] && n%(4*at*at) == 0
		case n == 4*at*at, n == 4*(2*at)*(2*at):
			use, _ := g.uses.Of(int32(row))
			phase := g.phase(stack)
			g.pairs[n] = g.pairs[n] || use != category.Input && (phase == "" || phase == "forward")
		}
	}
	for row := g.bounds[0]; row < len(lives); row++ {
		if layers[lives[row].Stack] && !g.inside(row) {
			delete(g.pairs, lives[row].Requested)
			if g.value == count && g.casts != nil { // of single precision, as of a norm
				delete(g.pairs, 2*lives[row].Requested)
			}
		}
	}
	for row := g.bounds[0]; row < len(lives); row++ {
		if n := lives[row].Requested; drops[lives[row].Stack] && g.pairs[4*n] {
			g.pairs[n] = true // a byte for each, of what is kept
		}
	}
}
