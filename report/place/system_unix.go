//go:build linux || darwin

package place

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNow opens a file, and neither waits for one that is a pipe by now nor follows a link.
func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
}

// flock locks what is open until it is closed, and reports whether it is free. known is false where the
// file system has no such locks.
func flock(f *os.File, wait bool) (free, known bool) {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how); {
		case err == nil:
			return true, true
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, true
		case !errors.Is(err, unix.EINTR):
			return false, false
		}
	}
}

func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// own reports whether something is this user's.
func own(info fs.FileInfo) bool { return int(stat(info).Uid) == os.Geteuid() }

func sameOwner(a, b fs.FileInfo) bool {
	return stat(a).Uid == stat(b).Uid && stat(a).Gid == stat(b).Gid
}

// links is how many names a file has.
func links(info fs.FileInfo) uint64 { return uint64(stat(info).Nlink) }

// inheritOwner gives path the user and group of old, or else the group, and reports whether it has the group then.
func inheritOwner(path string, old fs.FileInfo) bool {
	uid, gid := int(stat(old).Uid), int(stat(old).Gid)
	return os.Lchown(path, uid, gid) == nil || os.Lchown(path, -1, gid) == nil
}
