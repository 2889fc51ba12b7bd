package network_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

// A behaviour is what the backend does with a request.
type behaviour int32

const (
	accepts behaviour = iota // reads the whole request, and answers with 200
	rejects                  // answers with 403 before it reads the body, and closes the connection
	loses                    // reads the whole request, and closes the connection without an answer
	stalls                   // never answers
)

// backend is the server behind a gateway: the service for calls, storage for uploads.
type backend struct {
	addr  string
	close func()
	does  atomic.Int32       // a behaviour
	seen  chan *http.Request // each request, once its head has arrived
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{seen: make(chan *http.Request, 100)}
	srv := httptest.NewServer(b)
	b.addr = srv.Listener.Addr().String()
	b.close = sync.OnceFunc(func() {
		srv.Listener.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	t.Cleanup(b.close)
	return b
}

func (b *backend) set(does behaviour) { b.does.Store(int32(does)) }

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	does := behaviour(b.does.Load())
	b.seen <- r
	if does == rejects {
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
		return
	}
	_, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	switch does {
	case loses:
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	case stalls:
		<-r.Context().Done()
	}
}

// probes are parts of an upload URL that a gateway may rewrite, each between two letters that
// occur nowhere else.
var probes = map[string]string{
	"g": "%2F", "h": "//", "j": "%7E", "k": "%2B", "m": "%20", "n": "+", "p": "%40", "q": "%c3",
	"G": "%2F", "H": "//", "J": "%7E", "K": "%2B", "M": "%20", "N": "+", "P": "%40", "Q": "%c3", "R": "%41",
}

// objectURL is the path and query of an upload URL. Lower-case letters mark the path's probes, and
// upper-case letters the query's.
const objectURL = "/0/g%2Fgh//hj%7Ejk%2Bkm%20mn+np%40pq%c3q" +
	"?0=G%2FGH//HJ%7EJK%2BKM%20MN+NP%40PQ%c3QR%41R"

// upload is what became of an upload.
type upload struct {
	err      error
	seen     *http.Request // at the backend; nil if the gateway rejected it
	streamed bool          // the backend saw its head before the gateway had the whole body
}

// upload uploads a recording through a gateway, with one attempt.
func (b *backend) upload(t *testing.T, addr string) upload {
	t.Helper()
	for len(b.seen) > 0 {
		<-b.seen
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			expires := time.Now().Add(time.Hour).Unix()
			fmt.Fprintf(w, `{"upload_url":"http://%s%s","expires_at":%d}`, addr, objectURL, expires)
			return
		}
		fmt.Fprint(w, `{"id":"mtg_1","title":"Weekly","status":"created"}`)
	}))
	defer service.Close()
	client, err := minutes.New(service.URL, "key", minutes.WithMaxRetries(0))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	audio := &halves{seen: b.seen}
	err = client.Meetings.Upload(ctx, "mtg_1", minutes.FromReaderAt(audio, audioSize, "audio/mpeg"), nil)
	u := upload{err: err, seen: audio.request, streamed: audio.request != nil}
	if u.seen == nil && len(b.seen) > 0 {
		u.seen = <-b.seen
	}
	return u
}

// taken is the cell that says when storage sees the recording.
func (u upload) taken() string {
	switch {
	case u.seen == nil:
		return "never"
	case u.streamed:
		return "at once"
	}
	return "once it is whole"
}

// expect is the cell that says whether storage sees Expect: 100-continue.
func (u upload) expect() string {
	if u.seen == nil {
		return "–"
	}
	return yes(u.seen.Header.Get("Expect") != "")
}

// rewritten is the cell that lists what differs in the URL that storage sees.
func (u upload) rewritten() string {
	if u.seen == nil {
		return "–"
	}
	var path, query []string
	for _, letter := range strings.Split("ghjkmnpqGHJKMNPQR", "") {
		parts := strings.Split(u.seen.RequestURI, letter)
		if len(parts) != 3 || parts[1] == probes[letter] {
			continue
		}
		change := "`" + probes[letter] + "` → `" + parts[1] + "`"
		if letter < "a" {
			query = append(query, change)
		} else {
			path = append(path, change)
		}
	}
	switch {
	case len(path)+len(query) == 0:
		return "nothing"
	case len(query) == 0:
		return strings.Join(path, ", ")
	}
	return strings.Join(path, ", ") + "; in the query " + strings.Join(query, ", ")
}

const audioSize = 8 << 20

// halves is a recording whose second half comes once the backend has seen the request, or after
// a second.
type halves struct {
	seen    chan *http.Request
	once    sync.Once
	request *http.Request
}

func (h *halves) ReadAt(p []byte, off int64) (int, error) {
	if off >= audioSize/2 {
		h.once.Do(func() {
			select {
			case h.request = <-h.seen:
			case <-time.After(time.Second):
			}
		})
	}
	n := int(min(int64(len(p)), audioSize-off))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
