package storage

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// maxReply is how much of a store's reply is read.
const maxReply = 64 << 10

// readReply reads and closes the store's reply: nil for a success.
func readReply(resp *http.Response, mask secret.Mask) *Failure {
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	f := &Failure{Kind: Refused, StatusCode: resp.StatusCode, RetryAfter: backoff.RetryAfter(resp.StatusCode, resp.Header)}
	body := io.LimitReader(resp.Body, maxReply)
	f.read(body)
	_, _ = io.Copy(io.Discard, body) // so that the connection can serve again
	f.Code, f.Message, f.RequestID = mask.Text(f.Code), mask.Text(f.Message), mask.Text(f.RequestID)
	switch {
	case f.Code != "" || f.Message != "":
	case resp.StatusCode/100 == 3:
		f.Message = "redirects are refused"
	default:
		f.Message = "the reply is not the store's XML"
	}
	if f.RequestID == "" {
		f.RequestID = mask.Text(resp.Header.Get("X-Amz-Request-Id"))
	}
	return f
}

// read takes Code, Message and RequestId from the store's XML, the first of
// each and nothing else: other elements echo the key id and the signature. It
// keeps what it has got when the XML breaks off.
func (f *Failure) read(r io.Reader) {
	d := xml.NewDecoder(r)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // codes are ASCII
	var (
		depth int
		field *string // nil: of no interest
		text  []byte
	)
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			if depth == 1 && t.Name.Local != "Error" {
				return
			}
			field, text = nil, nil
			if depth == 2 {
				field = f.field(t.Name.Local)
			}
		case xml.CharData:
			if field != nil {
				text = append(text, t...)
			}
		case xml.EndElement:
			depth--
			if field != nil && *field == "" {
				*field = string(bytes.TrimSpace(text))
			}
			field = nil
		}
	}
}

// field is where the text of an element belongs.
func (f *Failure) field(name string) *string {
	switch name {
	case "Code":
		return &f.Code
	case "Message":
		return &f.Message
	case "RequestId":
		return &f.RequestID
	}
	return nil
}
