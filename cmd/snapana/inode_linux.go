package main

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// inode says which file of which device it is, and when anything about it changed last.
func inode(info fs.FileInfo) (place string, changed time.Time, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}, false
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), time.Unix(st.Ctim.Unix()), true
}
