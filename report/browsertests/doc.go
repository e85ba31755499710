// Package browsertests opens reports in Chromium and holds them against the Go model: what the
// page shows, adds up and says is what the analysis says. It is a module of its own, so that
// nobody who builds snapana inherits a browser driver.
//
// SNAPANA_SCREENSHOTS names a folder for pictures of the pages; without it none are taken. Its tour/index.html shows each
// thing that the page does, in order: what is new has a scene in tour_test.go.
package browsertests
