package storage

import (
	"cmp"
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// refusal is what is read of the store's XML: other elements echo the key id and
// the signature.
type refusal struct {
	XMLName   struct{} `xml:"Error"`
	Code      string
	Message   string
	RequestID string `xml:"RequestId"`
}

// readReply reads and closes the store's reply.
func readReply(resp *http.Response, mask secret.Mask) Result {
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return Result{Outcome: Stored, StatusCode: resp.StatusCode}
	}
	body := io.LimitReader(resp.Body, 64<<10)
	d := xml.NewDecoder(body)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // codes are ASCII
	var r refusal
	_ = d.Decode(&r)                 // of XML that breaks off, the elements before are kept
	_, _ = io.Copy(io.Discard, body) // so that the connection can serve again
	tidy := func(s string) string { return mask.Text(strings.TrimSpace(s)) }
	told := Result{
		StatusCode: resp.StatusCode, RetryAfter: backoff.RetryAfter(resp.StatusCode, resp.Header),
		Code: tidy(r.Code), Message: tidy(r.Message),
		RequestID: tidy(cmp.Or(r.RequestID, resp.Header.Get("X-Amz-Request-Id"))),
	}
	switch {
	case told.Code != "" || told.Message != "":
	case resp.StatusCode/100 == 3:
		told.Message = "redirects are refused"
	default:
		told.Message = "the reply is not the store's XML"
	}
	return told
}
