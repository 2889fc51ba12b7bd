package storage

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"net/http"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// maxReply is how much of a store's reply is read.
const maxReply = 64 << 10

// refusal is what is read of the store's XML: other elements echo the key id and
// the signature.
type refusal struct {
	XMLName   struct{} `xml:"Error"`
	Code      first
	Message   first
	RequestID first `xml:"RequestId"`
}

// first is the first text that is not empty of the elements of a name.
type first string

func (f *first) UnmarshalText(text []byte) error {
	if *f == "" {
		*f = first(bytes.TrimSpace(text))
	}
	return nil
}

// readReply reads and closes the store's reply.
func readReply(resp *http.Response, mask secret.Mask) Result {
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return Result{Outcome: Stored, StatusCode: resp.StatusCode}
	}
	body := io.LimitReader(resp.Body, maxReply)
	d := xml.NewDecoder(body)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // codes are ASCII
	var r refusal
	_ = d.Decode(&r)                 // of XML that breaks off, the elements before are kept
	_, _ = io.Copy(io.Discard, body) // so that the connection can serve again
	told := Result{
		StatusCode: resp.StatusCode, RetryAfter: backoff.RetryAfter(resp.StatusCode, resp.Header),
		Code: mask.Text(string(r.Code)), Message: mask.Text(string(r.Message)),
		RequestID: mask.Text(cmp.Or(string(r.RequestID), resp.Header.Get("X-Amz-Request-Id"))),
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
