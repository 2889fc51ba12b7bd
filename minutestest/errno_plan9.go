package minutestest

import "syscall"

// What a connection reports. Plan 9 has no numbers for errors.
const (
	errRefused    = syscall.ErrorString("connection refused")
	errReset      = syscall.ErrorString("connection reset")
	errBrokenPipe = syscall.ErrorString("broken pipe")
)
