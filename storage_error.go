package minutes

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxStorageReply is how much of a store's reply is read.
const maxStorageReply = 64 << 10

// storageReply reads and closes the store's reply: nil for a success.
func storageReply(resp *http.Response, mask masker) *StorageError {
	if resp.Body != nil {
		defer resp.Body.Close()
	}
	if resp.StatusCode/100 == 2 {
		return nil
	}
	e := &StorageError{StatusCode: resp.StatusCode}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		e.retryAfter, _ = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	if resp.Body != nil {
		e.read(io.LimitReader(resp.Body, maxStorageReply))
	}
	e.Code, e.Message, e.RequestID = mask.text(e.Code), mask.text(e.Message), mask.text(e.RequestID)
	switch {
	case e.Code != "" || e.Message != "":
	case resp.StatusCode/100 == 3:
		e.Message = "redirects are refused"
	default:
		e.Message = "the reply is not the store's XML"
	}
	if e.RequestID == "" {
		e.RequestID = mask.text(resp.Header.Get("X-Amz-Request-Id"))
	}
	return e
}

// read takes Code, Message and RequestId from the store's XML, and nothing
// else: other elements echo the key id and the signature. It keeps what it has
// got when the XML breaks off.
func (e *StorageError) read(r io.Reader) {
	var (
		d     = xml.NewDecoder(r)
		depth int
		field *string
	)
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			field = nil
			if depth == 1 && t.Name.Local != "Error" {
				return
			}
			if depth == 2 {
				field = map[string]*string{"Code": &e.Code, "Message": &e.Message, "RequestId": &e.RequestID}[t.Name.Local]
			}
		case xml.CharData:
			if field != nil {
				*field = strings.TrimSpace(*field + string(t))
			}
		case xml.EndElement:
			depth--
			field = nil
		}
	}
}
