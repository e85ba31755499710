package main

import (
	"errors"
	"fmt"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// inFlags adds to an error of reading what to do about it, in flags and commands of the program.
func inFlags(err error) error {
	var fault *snapshot.FormatError
	if !errors.As(err, &fault) {
		return err
	}
	said := *fault
	if said.Msg = advice(fault.Msg, fault.Err); said.Msg == fault.Msg {
		return err
	}
	return &said
}

// advice is inFlags for the message of an error of that class.
func advice(msg string, class error) string {
	var limit *snapshot.LimitError
	switch isSnapshot := errors.Is(class, snapshot.ErrSnapshot); {
	case errors.As(class, &limit) && limit.Bytes > 0:
		return fmt.Sprintf("exceeds the %d bytes that --max-bytes allows", limit.Bytes)
	case limit != nil:
		return msg + "; if you trust it, allow more with --max-bytes"
	case errors.Is(class, sidecar.ErrForeign) && isSnapshot:
		return msg + "; give a snapshot as FILE, and the recorder's file with --recorder"
	case errors.Is(class, sidecar.ErrForeign):
		return msg + "; `snapana recorder` prints the recorder that writes them"
	case isSnapshot:
		return msg + "; use `snapana report`"
	case errors.Is(class, memstats.ErrLongPickle):
		return msg + ", or use `snapana report` if it is a snapshot"
	}
	return msg
}
