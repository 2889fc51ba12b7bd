package upload

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// Response is the response of storage. Message is storage's own, or describes an unexpected
// response. A 2xx with a Message does not prove that the recording is stored.
type Response struct {
	StatusCode               int
	Code, Message, RequestID string
	RetryAfter               time.Duration
}

// readResponse reads and closes storage's response.
func readResponse(resp *http.Response, host string, mask secret.Mask) Response {
	defer resp.Body.Close()
	success := resp.StatusCode/100 == 2
	if success && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return Response{StatusCode: resp.StatusCode}
	}
	var e struct { // other elements may contain the key id and the signature
		XMLName   struct{} `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // codes are ASCII
	_ = d.Decode(&e)                                                                     // if the XML breaks off, e has the elements before
	text := func(s string) string { return mask.Text(strings.TrimSpace(s)) }
	r := Response{
		StatusCode: resp.StatusCode, RetryAfter: backoff.RetryAfter(resp.StatusCode, resp.Header),
		Code: text(e.Code), Message: text(e.Message),
		RequestID: text(cmp.Or(e.RequestID, resp.Header.Get("X-Amz-Request-Id"))),
	}
	switch {
	case r.Code != "" || r.Message != "":
	case resp.StatusCode/100 == 3:
		r.Message = mask.Redirect(host, resp.Header)
	case success:
		r.Message = "the response is not from storage: " + mask.Page(host, resp.Header, body)
	default:
		r.Message = "the response is not an XML error of storage: " + mask.Page(host, resp.Header, body)
	}
	return r
}
