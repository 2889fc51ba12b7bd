package minutes

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// Format prints the target without its presigned query, under every verb.
func (t UploadTarget) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.mask()) }

// LogValue keeps the presigned query out of structured logs.
func (t UploadTarget) LogValue() slog.Value { return slog.StringValue(t.mask()) }

func (t UploadTarget) mask() string {
	host := "?"
	if u, err := url.Parse(t.UploadURL); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("minutes.UploadTarget(%s to %s, expires in %d s, URL masked)", t.Method, host, t.ExpiresIn)
}
