package chart

import (
	"image/color"

	"github.com/snapana/snapana/analyze/fragmentation"
)

// FreeKind is a class of memory that is reserved and not allocated, as every output names and draws it.
type FreeKind struct {
	Name  string
	Means string // in more words
	Class string // of style.css
	Color color.RGBA
	Bytes func(*fragmentation.Classes) int64
}

// FreeKinds are in the order in which they are told and, from below, drawn. Those of a
// fragmentation.Class come first, by class. Free pieces that touch across the border of two segments
// are one piece where segments are expandable.
var FreeKinds = [...]FreeKind{
	{"releasable", "free segments: empty_cache() returns them", "k-releasable", ColorReleasable,
		func(c *fragmentation.Classes) int64 { return c.Releasable }},
	{"between live blocks", "free pieces that live blocks keep in their segment", "k-split", ColorSplit,
		func(c *fragmentation.Classes) int64 { return c.Hard }},
	{"at segment borders", "free pieces that touch across the border of their segments: expandable segments can join them",
		Slot(4).Class(), Slot(4).Color(), func(c *fragmentation.Classes) int64 { return c.Soft }},
	{"other stream or pool", "free, but for another stream or a private pool",
		SlotOther.Class(), SlotOther.Color(), func(c *fragmentation.Classes) int64 { return c.Stream }},
	{"pending", "freed by the program, but another stream may still use it",
		Slot(8).Class(), Slot(8).Color(), func(c *fragmentation.Classes) int64 { return c.Pending }},
}
