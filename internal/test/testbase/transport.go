package testbase

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
)

// A RoundTripper is a transport made from a function.
type RoundTripper func(*http.Request) (*http.Response, error)

func (f RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Failing returns a body that fails.
func Failing(err error) io.Reader {
	return ReaderFunc(func([]byte) (int, error) { return 0, err })
}

// A ReaderFunc is an io.Reader made from a function.
type ReaderFunc func([]byte) (int, error)

func (f ReaderFunc) Read(p []byte) (int, error) { return f(p) }

// A ReaderAtFunc is an io.ReaderAt made from a function.
type ReaderAtFunc func([]byte, int64) (int, error)

func (f ReaderAtFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// OwnTransport returns a transport that no other test shares.
func OwnTransport(t testing.TB) *http.Transport {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

var noHost = &net.DNSError{Err: "no such host", Name: "api.minutes.test", IsNotFound: true}

// The reasons why a connection fails.
var (
	ErrRefused   error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	ErrNoHost    error = &net.OpError{Op: "dial", Net: "tcp", Err: noHost}
	ErrUntrusted error = &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	ErrHandshake error = tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
)

// Buffer is a buffer that several goroutines may write to, for example a debug log.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
