// Package html writes the report as one self-contained page: no script, no font, no image
// and no style sheet from elsewhere, so that it can be mailed, archived and opened without a
// network.
//
// html.go writes a page that page.go (verdict, findings, settings, data quality) and
// device.go (one section per device) have filled; timeline.go, stacks.go, segments.go and
// fragments.go make the parts of a section. page.tmpl and style.css are embedded.
//
// Texts from the file reach the page through html/template, which escapes them by context,
// or through drawing, which escapes every title. Class names are constants. The size of the
// page is bounded whatever the snapshot holds: depth.go says how much of each thing a page
// shows, and everything that is left out is summed in a row that says so.
package html
