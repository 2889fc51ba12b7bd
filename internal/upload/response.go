package upload

import (
	"cmp"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// Response is storage's response. All fields but StatusCode are empty for a 2xx.
type Response struct {
	StatusCode               int
	Code, Message, RequestID string
	RetryAfter               time.Duration
}

// readResponse reads and closes the store's response.
func readResponse(resp *http.Response, mask secret.Mask) Response {
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return Response{StatusCode: resp.StatusCode}
	}
	var e struct { // other elements of the XML echo the key id and the signature
		XMLName   struct{} `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}
	body := io.LimitReader(resp.Body, 64<<10)
	d := xml.NewDecoder(body)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // codes are ASCII
	_ = d.Decode(&e)                                                                     // if the XML breaks off, the elements before are kept
	_, _ = io.Copy(io.Discard, body)                                                     // so that the connection can be reused
	text := func(s string) string { return mask.Text(strings.TrimSpace(s)) }
	r := Response{
		StatusCode: resp.StatusCode, RetryAfter: backoff.RetryAfter(resp.StatusCode, resp.Header),
		Code: text(e.Code), Message: text(e.Message),
		RequestID: text(cmp.Or(e.RequestID, resp.Header.Get("X-Amz-Request-Id"))),
	}
	switch {
	case r.Code != "" || r.Message != "":
	case resp.StatusCode/100 == 3:
		r.Message = "redirects are refused"
	default:
		r.Message = "the response is not the store's XML"
	}
	return r
}
