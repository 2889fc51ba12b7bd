// Package chaos holds no code but tests of the whole: callers of all kinds work
// on many meetings while requests meet every trouble there is and processes
// die, and what the callers were told is compared with what the service knows.
package chaos
