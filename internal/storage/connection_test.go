package storage

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// An attempt that ends before the last byte never looks like the end of the recording, because the
// connection is reset. After the last byte it is not, because a reset would discard what the kernel has
// yet to send.
func TestPut_ResetsTheConnectionIfItBreaksOff(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, end := range map[string]func(p *Put, cancel func(), stored <-chan struct{}) (whole bool){
		"canceled in the middle": func(p *Put, cancel func(), _ <-chan struct{}) bool {
			p.Progress = func(sent, _ int64) {
				if sent >= size/2 {
					cancel()
				}
			}
			return false
		},
		"canceled at the first byte": func(p *Put, cancel func(), _ <-chan struct{}) bool {
			began := false
			p.Progress = func(int64, int64) {
				if !began {
					began = true
					cancel()
				}
			}
			return false
		},
		"unreadable in the middle": func(p *Put, _ func(), _ <-chan struct{}) bool {
			p.Audio = brokenFrom(p.Audio, size/2)
			return false
		},
		"unreadable at the last byte": func(p *Put, _ func(), _ <-chan struct{}) bool {
			p.Audio = brokenFrom(p.Audio, size-1)
			return false
		},
		"canceled after the last byte": func(_ *Put, cancel func(), stored <-chan struct{}) bool {
			go func() {
				<-stored
				cancel()
			}()
			return true
		},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				address, stored, ended := listen(t, secure, size)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
				p := put(t, address, tr, size)
				p.WithoutExpect = true
				whole := end(p, cancel, stored)
				o := p.Send(ctx)
				require.Error(t, o.Err)
				err := <-ended
				if whole {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, syscall.ECONNRESET)
			})
		}
	}
}

func brokenFrom(audio io.ReaderAt, end int64) io.ReaderAt {
	return testbase.ReaderAtFunc(func(p []byte, at int64) (int, error) {
		if at+int64(len(p)) > end {
			return 0, errors.New("broken")
		}
		return audio.ReadAt(p, at)
	})
}

// listen accepts one PUT of size bytes, and does not respond. It closes stored once it has all of them,
// and then sends how the connection has ended: nil means in an orderly way.
func listen(t *testing.T, secure bool, size int64) (address string, stored <-chan struct{}, ended <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	address = "http://" + listener.Addr().String() + "/k?s=1"
	if secure {
		server := httptest.NewUnstartedServer(nil)
		server.StartTLS() // for its certificate
		server.Close()
		address = "https://" + listener.Addr().String() + "/k?s=1"
		listener = tls.NewListener(listener, server.TLS)
	}
	all := make(chan struct{})
	end := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		req, err := http.ReadRequest(in)
		if !assert.NoError(t, err) {
			return
		}
		n, err := io.CopyN(io.Discard, in, req.ContentLength)
		if n == size {
			close(all)
			_, err = io.Copy(io.Discard, in)
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
		end <- err
	}()
	return address, all, end
}
