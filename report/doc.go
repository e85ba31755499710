// Package report writes the full report on an analysis as a folder: report.html for people,
// report.json for programs, and pictures to pass on. What each of them shows is up to the
// packages below this one.
package report
