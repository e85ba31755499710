// Package chart prepares what several reports show in the same way: axis ticks, reduced
// curves, top rows with their remainder, names, pins with their sites, and segment maps. It
// draws nothing and knows no output format.
package chart
