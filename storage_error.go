package minutes

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"

	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// maxStorageReply is how much of a store's reply is read.
const maxStorageReply = 64 << 10

// storageReply reads and closes the store's reply: nil for a success.
func storageReply(resp *http.Response, mask secret.Mask) *StorageError {
	refuseSwitch(resp)
	if resp.Body != nil {
		defer resp.Body.Close()
	}
	if resp.StatusCode/100 == 2 {
		return nil
	}
	e := &StorageError{StatusCode: resp.StatusCode}
	e.retryAfter = retryAfterOf(resp.StatusCode, resp.Header)
	if resp.Body != nil {
		body := io.LimitReader(resp.Body, maxStorageReply)
		e.read(body)
		_, _ = io.Copy(io.Discard, body) // so that the connection can serve again
	}
	e.Code, e.Message, e.RequestID = mask.Text(e.Code), mask.Text(e.Message), mask.Text(e.RequestID)
	switch {
	case e.Code != "" || e.Message != "":
	case resp.StatusCode/100 == 3:
		e.Message = "redirects are refused"
	default:
		e.Message = "the reply is not the store's XML"
	}
	if e.RequestID == "" {
		e.RequestID = mask.Text(resp.Header.Get("X-Amz-Request-Id"))
	}
	return e
}

// read takes Code, Message and RequestId from the store's XML, the first of
// each and nothing else: other elements echo the key id and the signature. It
// keeps what it has got when the XML breaks off.
func (e *StorageError) read(r io.Reader) {
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
				field = e.field(t.Name.Local)
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
func (e *StorageError) field(name string) *string {
	switch name {
	case "Code":
		return &e.Code
	case "Message":
		return &e.Message
	case "RequestId":
		return &e.RequestID
	}
	return nil
}
