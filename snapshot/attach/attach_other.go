//go:build !linux

package attach

import (
	"context"
	"runtime"
)

// Run has a running program record its memory; here it cannot.
func Run(context.Context, Options) (Result, error) {
	return Result{}, &Error{Kind: Unsupported, what: "a running program can be recorded on Linux only, and this is " +
		runtime.GOOS}
}
