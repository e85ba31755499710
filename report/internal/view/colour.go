package view

import "image/color"

// Colours of the drawn reports, from the palette of Okabe and Ito, which people with the
// common kinds of colour blindness can tell apart. style.css of the HTML report has the same.
var (
	ColourLive       = color.RGBA{0x00, 0x72, 0xb2, 0xff} // blue
	ColourSplit      = color.RGBA{0xe6, 0x9f, 0x00, 0xff} // orange
	ColourReleasable = color.RGBA{0x9c, 0xcf, 0xee, 0xff} // sky, light
	ColourAllocated  = color.RGBA{0x00, 0x9e, 0x73, 0xff} // green
	ColourOOM        = color.RGBA{0xd5, 0x5e, 0x00, 0xff} // vermilion
	ColourInk        = color.RGBA{0x1c, 0x21, 0x28, 0xff}
	ColourMuted      = color.RGBA{0x5d, 0x67, 0x72, 0xff}
	ColourGrid       = color.RGBA{0xe3, 0xe7, 0xeb, 0xff}
	ColourOther      = color.RGBA{0xb4, 0xbc, 0xc4, 0xff}
)

// Colours gives each class of a map its colour.
var Colours = [NumClasses]color.RGBA{ColourLive, ColourSplit, ColourReleasable}
