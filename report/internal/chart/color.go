package chart

import (
	"image/color"
	"slices"

	"github.com/snapana/snapana/analyze/category"
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

// Slot is a color that stands for one of several things, on light and on dark ground. It is
// --s1 and so on of style.css.
type Slot struct{ Light, Dark color.RGBA }

// Slots are s1 to s9: the hues of Okabe and Ito with brown and violet, apart in lightness so
// far that any two, and the greys, can be told apart with any of the common kinds of color
// blindness. Stacks have them by rank.
var Slots = [...]Slot{
	{color.RGBA{0x0a, 0x4e, 0xa6, 0xff}, color.RGBA{0x13, 0x6f, 0xe8, 0xff}}, // blue
	{color.RGBA{0xf5, 0xa3, 0x00, 0xff}, color.RGBA{0xff, 0xb0, 0x1a, 0xff}}, // orange
	{color.RGBA{0x12, 0x80, 0x52, 0xff}, color.RGBA{0x12, 0xb8, 0x7b, 0xff}}, // green
	{color.RGBA{0xa3, 0x6d, 0xb8, 0xff}, color.RGBA{0xdd, 0x98, 0xf8, 0xff}}, // purple
	{color.RGBA{0x2f, 0x9b, 0xf5, 0xff}, color.RGBA{0x7f, 0xf0, 0xf5, 0xff}}, // sky
	{color.RGBA{0xd9, 0x5a, 0x00, 0xff}, color.RGBA{0xe0, 0x5e, 0x18, 0xff}}, // vermilion
	{color.RGBA{0x70, 0x30, 0x0f, 0xff}, color.RGBA{0xa8, 0x51, 0x2f, 0xff}}, // brown
	{color.RGBA{0x5a, 0x32, 0x72, 0xff}, color.RGBA{0x96, 0x52, 0xab, 0xff}}, // violet
	{color.RGBA{0xc9, 0xbc, 0x5e, 0xff}, color.RGBA{0xef, 0xec, 0x84, 0xff}}, // yellow
}

// The greys stand for all others, and for what is not known: --other and --unknown.
var (
	SlotOther   = Slot{color.RGBA{0x8b, 0x94, 0x9e, 0xff}, color.RGBA{0x7c, 0x86, 0x90, 0xff}}
	SlotUnknown = Slot{color.RGBA{0xcf, 0xd5, 0xda, 0xff}, color.RGBA{0x46, 0x50, 0x5b, 0xff}}
)

// useSlots are the categories that have a row of Slots, in their order.
var useSlots = [...]category.Category{
	category.Parameter, category.AutogradSaved, category.Gradient, category.Activation, category.OptimizerState,
	category.Communication, category.Workspace, category.Input, category.Temporary,
}

// UseSlot is the row of Slots of a category, in every plot, table and picture. Those that are
// called other and unknown have none.
func UseSlot(c category.Category) (slot int, ok bool) {
	slot = slices.Index(useSlots[:], c)
	return max(slot, 0), slot >= 0
}

// UseColor is the color of a category.
func UseColor(c category.Category) Slot {
	if slot, ok := UseSlot(c); ok {
		return Slots[slot]
	}
	if c == category.Unknown {
		return SlotUnknown
	}
	return SlotOther
}

// UseName is the custom property of style.css with the color of a category, without dashes.
func UseName(c category.Category) string {
	if slot, ok := UseSlot(c); ok {
		return "s" + string(rune('1'+slot))
	}
	if c == category.Unknown {
		return "unknown"
	}
	return "other"
}
