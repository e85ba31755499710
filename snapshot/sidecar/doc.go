// Package sidecar reads and writes .snapana files: what the Python recorder saw of a program
// from outside a memory snapshot, and readings of the driver. FORMAT.md beside this file
// specifies the format.
//
// A file comes from a process that may have been killed at any byte, and may come from a
// stranger. Read takes the complete records in order and says where the file breaks. Each
// record is first walked without being interpreted, with its size and depth limited, so that
// nothing is allocated by a length that only the file claims; then its values are decoded by
// the tags of the structs they go to, and indexes are checked once, so that users of a File need not.
//
// What a file does not say is unknown, never zero: single numbers are pointers that are nil
// then, strings are "", lists are nil (an empty list was looked at and had nothing).
package sidecar
