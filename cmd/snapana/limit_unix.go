//go:build unix

package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// usage tells what the process takes.
type usage struct {
	statm *os.File // of Linux, nil elsewhere
	page  int64
}

func openUsage() *usage {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		f = nil
	}
	return &usage{f, int64(os.Getpagesize())}
}

// now gives the bytes that are in memory, 0 where that is unknown, and the time of all processors so far.
func (u *usage) now() (memory int64, cpu time.Duration) {
	if u.statm != nil {
		var buf [128]byte
		n, _ := u.statm.ReadAt(buf[:], 0)
		if fields := bytes.Fields(buf[:n]); len(fields) > 1 { // man proc_pid_statm: size, resident
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			memory = pages * u.page
		}
	}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		cpu = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return memory, cpu
}

func (u *usage) close() {
	if u.statm != nil {
		u.statm.Close()
	}
}
