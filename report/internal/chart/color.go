package chart

import (
	"cmp"
	"image/color"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Colors of the drawn reports, from the palette of Okabe and Ito, which people with the
// common kinds of color blindness can tell apart. style.css of the HTML report has the same.
var (
	ColorLive       = color.RGBA{0x00, 0x72, 0xb2, 0xff} // blue
	ColorSplit      = color.RGBA{0xe6, 0x9f, 0x00, 0xff} // orange
	ColorReleasable = color.RGBA{0x9c, 0xcf, 0xee, 0xff} // sky, light
	ColorAllocated  = color.RGBA{0x00, 0x9e, 0x73, 0xff} // green
	ColorOOM        = color.RGBA{0xd5, 0x5e, 0x00, 0xff} // vermilion
	ColorInk        = color.RGBA{0x1c, 0x21, 0x28, 0xff}
	ColorMuted      = color.RGBA{0x5d, 0x67, 0x72, 0xff}
	ColorGrid       = color.RGBA{0xe3, 0xe7, 0xeb, 0xff}
	ColorOther      = color.RGBA{0xb4, 0xbc, 0xc4, 0xff}
)

// Slot is a color that stands for one of several things, the same in every plot, table and
// picture: a row of Slots. The number tells it without color.
type Slot int

// The greys stand for all others, and for what is not known. Between them are s1 to s10 of
// style.css, of which stacks have the first by rank.
const (
	SlotOther   Slot = 0
	StackSlots       = 8
	SlotUnknown      = Slot(len(Slots) - 1)
)

// Shades are a slot's color on light and on dark ground.
type Shades struct{ Light, Dark color.RGBA }

// Slots are the hues of Okabe and Ito with brown and violet, apart in lightness so far that any
// two, and the greys, can be told apart with any of the common kinds of color blindness.
var Slots = [...]Shades{
	{color.RGBA{0x8b, 0x94, 0x9e, 0xff}, color.RGBA{0x7c, 0x86, 0x90, 0xff}}, // other
	{color.RGBA{0x0a, 0x4e, 0xa6, 0xff}, color.RGBA{0x13, 0x6f, 0xe8, 0xff}}, // blue
	{color.RGBA{0xf5, 0xa3, 0x00, 0xff}, color.RGBA{0xff, 0xb0, 0x1a, 0xff}}, // orange
	{color.RGBA{0x12, 0x80, 0x52, 0xff}, color.RGBA{0x12, 0xb8, 0x7b, 0xff}}, // green
	{color.RGBA{0xa3, 0x6d, 0xb8, 0xff}, color.RGBA{0xdd, 0x98, 0xf8, 0xff}}, // purple
	{color.RGBA{0x2f, 0x9b, 0xf5, 0xff}, color.RGBA{0x7f, 0xf0, 0xf5, 0xff}}, // sky
	{color.RGBA{0xd9, 0x5a, 0x00, 0xff}, color.RGBA{0xe0, 0x5e, 0x18, 0xff}}, // vermilion
	{color.RGBA{0x70, 0x30, 0x0f, 0xff}, color.RGBA{0xa8, 0x51, 0x2f, 0xff}}, // brown
	{color.RGBA{0x5a, 0x32, 0x72, 0xff}, color.RGBA{0x96, 0x52, 0xab, 0xff}}, // violet
	{color.RGBA{0xc9, 0xbc, 0x5e, 0xff}, color.RGBA{0xef, 0xec, 0x84, 0xff}}, // yellow
	{color.RGBA{0xfc, 0x90, 0xe4, 0xff}, color.RGBA{0xfc, 0x84, 0xc0, 0xff}}, // pink
	{color.RGBA{0xcf, 0xd5, 0xda, 0xff}, color.RGBA{0x46, 0x50, 0x5b, 0xff}}, // unknown
}

// Color is that on light ground.
func (s Slot) Color() color.RGBA { return Slots[s].Light }

// Name is the custom property of style.css with the color, without dashes.
func (s Slot) Name() string {
	switch s {
	case SlotOther:
		return "other"
	case SlotUnknown:
		return "unknown"
	}
	return "s" + strconv.Itoa(int(s))
}

// Class is the class of style.css that has the color as its ground.
func (s Slot) Class() string {
	if s == SlotOther || s == SlotUnknown {
		return "s-" + s.Name()
	}
	return s.Name()
}

// useSlots are the categories that have a color of their own, s1 to s10 in this order.
var useSlots = []category.Category{
	category.Parameter, category.AutogradSaved, category.Gradient, category.Activation, category.OptimizerState,
	category.Communication, category.Workspace, category.Input, category.Temporary,
	category.KVCache,
}

// UseOrder stacks what stays below what comes and goes.
var UseOrder = []category.Category{
	category.Parameter, category.OptimizerState, category.Gradient, category.Workspace, category.Communication,
	category.KVCache, category.Input, category.AutogradSaved, category.Activation, category.Temporary, category.Other,
	category.Unknown,
}

// UseSlot is the color of a category.
func UseSlot(c category.Category) Slot {
	if c == category.Unknown {
		return SlotUnknown
	}
	return Slot(slices.Index(useSlots, c) + 1)
}

// StackColors gives colors to the sources that allocated the largest part of what is active at any of the moments, by
// their stacks; all others have SlotOther.
func StackColors(moments ...*analyze.Moment) map[snapshot.StackID]Slot {
	type claim struct {
		source *Source
		part   float64
	}
	var claims []claim
	for _, m := range moments {
		sources := Sources(m.Live)
		for i := range sources[:min(len(sources), StackSlots)] {
			claims = append(claims, claim{&sources[i], Share(sources[i].Rounded, m.Frag.Active)})
		}
	}
	sorting.Stable(claims, func(a, b claim) int { return cmp.Compare(b.part, a.part) })
	slots := map[snapshot.StackID]Slot{}
	used := SlotOther
	for _, c := range claims {
		slot := SlotOther
		for _, stack := range c.source.Stacks { // one may be known from another moment
			slot = cmp.Or(slot, slots[stack])
		}
		if slot == SlotOther {
			if used == StackSlots {
				continue
			}
			used++
			slot = used
		}
		for _, stack := range c.source.Stacks {
			slots[stack] = slot
		}
	}
	return slots
}

// Share is part of whole between 0 and 1.
func Share(part, whole int64) float64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(float64(part)/float64(whole), 1)
}

// Informed reports whether it is known of most of the memory what it is for.
func Informed(sums []category.Sum) bool {
	var vague, all int64
	for i := range sums {
		all += sums[i].Rounded
		if c := sums[i].Category; c == category.Other || c == category.Unknown {
			vague += sums[i].Rounded
		}
	}
	return all > 0 && 2*vague <= all
}
