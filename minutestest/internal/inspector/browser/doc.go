// Package browser holds no code but tests that drive the inspector's page in a
// real Chromium, as Debian's package chromium is one. Where there is none the
// tests are skipped, and say so. With go test -artifacts their screenshots are
// kept.
package browser
