package pickle

// Options steer one decoding. The zero value is usable.
type Options struct {
	// Size is the length of the input in bytes where it is known, 0 where it is not. It
	// only tightens limits.
	Size int64
	// Partial keeps everything decoded before a fault: Decode then returns both the
	// snapshot and the error.
	Partial bool
	// Progress, if set, is called about once per mebibyte with the bytes read so far.
	Progress func(bytes int64)
}

// Info is what Decode learned about the encoding itself.
type Info struct {
	Protocol int   // pickle protocol 0 to 5
	Bytes    int64 // length of the pickle, up to and including STOP
}
