// Package html writes the report as one self-contained page: no script, no font, no image
// and no style sheet from elsewhere, so that it can be mailed, archived and opened without a
// network.
//
// html.go writes a page that page.go (verdict, findings, settings, data quality) and
// device.go (one section per device) have filled; timeline.go, moment.go, segments.go, replay.go and
// tables.go make the parts of a section. page.tmpl, style.css and live.css are embedded.
//
// So far the page needs no script: still pictures and tables tell the story. Behind them follow
// the data of every allocation (report/internal/page) and a script, made of the TypeScript in
// ui, that puts a timeline to zoom into in the place of the still one, and views of what is live
// at any moment. Where scripts are off, or the script fails, the page stays as it was.
//
// Texts from the file reach the page through html/template, which escapes them by context,
// through drawing, which escapes every title, or compressed in the data, which the script shows
// as text only; a policy keeps anything but that script from running. Class names are constants.
// The size of the page is bounded whatever the snapshot holds: depth.go says how much of each
// thing a page shows, and everything that is left out is summed in a row that says so.
package html
