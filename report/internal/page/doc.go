// Package page packs what the script of the page draws from: every allocation of every
// device, as columns of numbers.
//
// Data is the contract between this package and report/html/ui/data.ts. It travels as
//
//	base64(gzip(length of the header as uint32, little-endian | header | columns))
//
// where the header is Data as JSON, and a Column in it says where its numbers lie behind the
// header. Numbers are base-128 varints, least significant group first, as in protobuf.
//
// A page must stay small enough to mail. When not all fits, the allocations with the most bytes
// times events stay, and those that are live at a moment that a report names; of the others,
// Rest has the sums by category at evenly spread moments, so that totals stay right, and
// LeftOut says what and how much it is.
package page
