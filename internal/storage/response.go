package storage

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// read reads and closes a response that host sent after the whole recording, or earlier.
func read(resp *http.Response, host string, mask rest.Mask, whole bool) Outcome {
	defer resp.Body.Close()
	o := Outcome{StatusCode: resp.StatusCode}
	success := resp.StatusCode/100 == 2
	if success && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		if !whole {
			o.Unproven, o.Message = true, host+" responded before it had the whole recording"
		}
		return o
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // if it breaks off, its beginning may say enough
	var e struct {                                           // its other elements may contain the key id and the signature
		XMLName   struct{} `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // codes are ASCII
	_ = d.Decode(&e)                                                                     // if the XML breaks off, e has the elements before
	clean := func(s string) string { return mask.Text(strings.TrimSpace(s)) }
	o.RetryAfter = rest.RetryAfter(resp)
	o.Code, o.Message = clean(e.Code), clean(e.Message)
	o.RequestID = clean(cmp.Or(e.RequestID, resp.Header.Get("X-Amz-Request-Id")))
	switch {
	case success: // such as the page of a proxy that asks for a login
		o.Unproven, o.Message = true, "the response is not from storage: "+mask.Page(host, resp.Header, text)
	case o.Code != "" || o.Message != "":
	case resp.StatusCode/100 == 3:
		o.Message = mask.Redirect(host, resp.Header)
	default:
		o.Message = "the response is not an XML error of storage: " + mask.Page(host, resp.Header, text)
	}
	return o
}
