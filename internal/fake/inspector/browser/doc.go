// Package browser holds only tests that drive the inspector's page in a real
// Chromium, such as Debian's package chromium. Without Chromium the tests are
// skipped, and say so. With go test -artifacts their screenshots are kept.
package browser
