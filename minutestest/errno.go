//go:build !plan9

package minutestest

import "syscall"

// What a socket reports.
const (
	errRefused    = syscall.ECONNREFUSED
	errReset      = syscall.ECONNRESET
	errBrokenPipe = syscall.EPIPE
)
