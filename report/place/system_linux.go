package place

import (
	"errors"

	"golang.org/x/sys/unix"
)

// swap exchanges two folders of one file system in one step.
func swap(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// exchangeable reports whether a folder has nothing that one in its place would lack: access lists.
func exchangeable(dir string) bool {
	for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
		if _, err := unix.Lgetxattr(dir, name, nil); !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
			return false
		}
	}
	return true
}
