// Package pickle turns a pickled (or JSON) snapshot into typed columns in one pass.
//
// # Safety
//
// A pickle is a program. This machine runs only the opcodes that build plain data; every
// opcode that would import, call or restore something is refused by name and byte offset.
// The single exception is collections.OrderedDict with no arguments, which memory_stats
// dumps contain and which is read as a dict. Lengths are never trusted: memory grows with
// the bytes that were really read, and the stack, the memo and copies have limits.
//
// # Model
//
// The input is read in large chunks, by a second goroutine, and each byte is looked at
// once. Values on the machine's stack are 16 bytes and hold no pointers. A dict is
// recognized by its keys the moment it is complete and becomes a row of a table (an event, a
// segment, a block, a frame); what stays on the stack is the row's number. Lists of frames
// become interned stack ids, lists of rows become ranges. So a million events wait on the
// stack as one value, and nothing that the file repeats by reference is ever copied.
//
// Python memoizes a container before it fills it. A reference to a container that is still
// being filled (a cycle) is refused: snapshots have none.
package pickle
