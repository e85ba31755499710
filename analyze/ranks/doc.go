// Package ranks compares the snapshots of the processes of one distributed run: which of them
// failed first, what verdicts they share, and which one holds more than the others, and where.
//
// Each snapshot is reduced to a few figures as soon as it is analyzed, so that thousands of them
// take no more memory than the ones that are being read. Ranks are compared at their own peaks of
// active memory, on the device of each on which most was reserved.
package ranks
