package stores

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

var endings = flag.Int("endings", 0, "how often each ending is tried")

const (
	size        = 20_000_000
	contentType = "audio/mpeg"
)

var recording = func() []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}()

// service is a small Meeting Minutes Service. A meeting has audio once the store has its object.
type service struct {
	*httptest.Server
	store  string // the base URL at which the service looks
	upload string // the base URL of upload URLs, which may be a gateway's
	mu     sync.Mutex
	ids    map[string]string // meetings by external id
}

func newService(t *testing.T, store, upload string) *service {
	s := &service{store: store, upload: upload, ids: make(map[string]string)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/meetings"), "/")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && len(parts) == 1:
		var p minutes.MeetingCreateParams
		_ = json.NewDecoder(r.Body).Decode(&p)
		s.mu.Lock()
		id := s.ids[p.ExternalID]
		if id == "" {
			id = fmt.Sprintf("mtg_%d", len(s.ids)+1)
			s.ids[p.ExternalID] = id
		}
		s.mu.Unlock()
		s.show(w, id)
	case r.Method == http.MethodPost:
		target := presign(http.MethodPut, s.upload, "/bucket/"+parts[1], contentType)
		_ = json.NewEncoder(w).Encode(map[string]any{"upload_url": target, "expires_in": 3600, "method": "PUT"})
	case len(parts) == 3:
		_, _ = fmt.Fprintf(w, `{"format":"html","content":"minutes of %d bytes"}`, len(s.object(parts[1])))
	default:
		s.show(w, parts[1])
	}
}

func (s *service) show(w io.Writer, id string) {
	status := minutes.StatusCreated
	if s.object(id) != nil {
		status = minutes.StatusMinutesReady
	}
	_, _ = fmt.Fprintf(w, `{"id":%q,"status":%q}`, id, status)
}

// object returns what the store has for a meeting, or nil.
func (s *service) object(id string) []byte {
	resp, err := anyCertificate().Get(presign(http.MethodGet, s.store, "/bucket/"+id, ""))
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return data
}

func (s *service) client(opts ...minutes.Option) *minutes.Client {
	timeouts := minutes.WithUploadTimeouts(minutes.UploadTimeouts{Stall: 2 * time.Second})
	all := append([]minutes.Option{minutes.WithHTTPClient(anyCertificate()), timeouts}, opts...)
	c, err := minutes.New(s.URL, "key_0123456789abcdef", all...)
	if err != nil {
		panic(err)
	}
	return c
}

func (s *service) process(ctx context.Context, c *minutes.Client, id string, source minutes.Source,
	progress func(sent, total int64)) (*minutes.Result, error) {
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: id}
	return c.Meetings.Process(ctx, params, source, &minutes.ProcessOptions{Progress: progress})
}

func whole() minutes.Source {
	return minutes.FromReaderAt(bytes.NewReader(recording), size, contentType)
}

// ends are the ways in which a process can break off at a byte.
var ends = map[string]func(t *testing.T, s *service, id string, at int64){
	"canceled": func(t *testing.T, s *service, id string, at int64) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := s.process(ctx, s.client(), id, whole(), func(sent, _ int64) {
			if sent >= at {
				cancel()
			}
		})
		assert.ErrorIs(t, err, context.Canceled)
	},
	"a file that grows": func(t *testing.T, s *service, id string, at int64) {
		path := filepath.Join(t.TempDir(), "a.mp3")
		require.NoError(t, os.WriteFile(path, append([]byte("ID3\x04\x00"), recording[5:]...), 0o600))
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		defer f.Close()
		grow := sync.OnceFunc(func() { _, _ = f.WriteString("more") })
		_, err = s.process(t.Context(), s.client(), id, minutes.FromFile(path), func(sent, _ int64) {
			if sent >= at {
				grow()
			}
		})
		assert.Error(t, err)
	},
	"unreadable": func(t *testing.T, s *service, id string, at int64) {
		broken := func(int64) (int, error) { return 0, errors.New("broken") }
		_, err := s.process(t.Context(), s.client(), id, failing{at, broken}.source(), nil)
		assert.ErrorContains(t, err, "broken")
	},
	"stalled": func(t *testing.T, s *service, id string, at int64) {
		stalled := func(int64) (int, error) {
			time.Sleep(3 * time.Second)
			return 0, io.EOF
		}
		_, err := s.process(t.Context(), s.client(minutes.WithMaxRetries(0)), id, failing{at, stalled}.source(), nil)
		assert.Error(t, err)
	},
	"killed": func(t *testing.T, s *service, id string, at int64) {
		child := exec.Command(os.Args[0], "-test.run", "^TestChild$")
		child.Env = append(os.Environ(), "STORES_SERVICE="+s.URL, "STORES_ID="+id)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			sent, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err == nil && sent >= at {
				break
			}
		}
		assert.NoError(t, child.Process.Kill())
		_ = child.Wait()
	},
}

// failing is the recording up to a byte, where reading it does something else.
type failing struct {
	at   int64
	then func(int64) (int, error)
}

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.at {
		return f.then(at)
	}
	return copy(p, recording[at:]), nil
}

func (f failing) source() minutes.Source { return minutes.FromReaderAt(f, size, contentType) }

// TestChild is the process that is killed.
func TestChild(t *testing.T) {
	address := os.Getenv("STORES_SERVICE")
	if address == "" {
		t.Skip("not a child")
	}
	s := &service{Server: &httptest.Server{URL: address}}
	progress := func(sent, _ int64) { fmt.Println(sent) }
	_, err := s.process(t.Context(), s.client(), os.Getenv("STORES_ID"), whole(), progress)
	require.NoError(t, err)
}

// Whatever ends an upload in the middle, no store keeps a part, unless a gateway hides the reset. In any
// case, the next Process either uploads the whole recording or says that it did not.
func TestStores_KeepNoPart(t *testing.T) {
	if *endings == 0 {
		t.Skip("needs -endings")
	}
	for _, store := range stores {
		for _, secure := range []bool{false, true} {
			if secure && store.tls == nil {
				continue
			}
			t.Run(fmt.Sprint(store.name, ", TLS ", secure), func(t *testing.T) {
				base := store.start(t, "", secure)
				testStore(t, base, base, false)
			})
		}
		for _, before := range gateways {
			t.Run(store.name+" behind "+before.name, func(t *testing.T) {
				base := store.start(t, "", false)
				upload := before.start(t, strings.TrimPrefix(base, "http://"), false)
				testStore(t, base, upload, before.hides)
			})
		}
	}
}

func testStore(t *testing.T, base, upload string, mayKeep bool) {
	bucket := presign(http.MethodPut, base, "/bucket", "")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, bucket, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the store may still be starting
		resp, err := anyCertificate().Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 30*time.Second, 200*time.Millisecond, "no bucket")
	s := newService(t, base, upload)
	random := rand.New(rand.NewPCG(1, 1))
	for name, end := range ends {
		parts := 0
		for n := range *endings {
			id := fmt.Sprint(name, n)
			at := 1 + random.Int64N(size-1)
			end(t, s, id, at)
			time.Sleep(100 * time.Millisecond) // for the store to notice
			s.mu.Lock()
			meeting := s.ids[id]
			s.mu.Unlock()
			found := s.object(meeting)
			r, err := s.process(t.Context(), s.client(), id, whole(), nil)
			if !assert.NoError(t, err, "%s at %d", id, at) {
				continue
			}
			isWhole := sha256.Sum256(s.object(meeting)) == sha256.Sum256(recording)
			assert.False(t, r.Uploaded && found != nil, "%s at %d: %d bytes were stored", id, at, len(found))
			assert.False(t, r.Uploaded && !isWhole, "%s at %d", id, at)
			if !isWhole {
				parts++
			}
		}
		t.Logf("%s: a part was stored %d of %d times", name, parts, *endings)
		if !mayKeep {
			assert.Zero(t, parts, name)
		}
	}
}
