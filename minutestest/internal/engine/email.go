package engine

import (
	"net/mail"
	"strings"
	"unicode/utf8"
)

// validEmail takes a bare address and nothing around it. net/mail alone would
// take display names, comments and route syntax too.
func validEmail(s string) bool {
	addr, err := mail.ParseAddress(s)
	if err != nil || addr.Name != "" || addr.Address != s || len(s) > 254 {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	if at > 64 {
		return false
	}
	for label := range strings.SplitSeq(s[at+1:], ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c >= utf8.RuneSelf) {
				return false
			}
		}
	}
	return true
}

// foldEmail is the form in which addresses are compared (D16).
func foldEmail(s string) string { return strings.ToLower(s) }
