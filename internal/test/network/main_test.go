package network_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The whole test binary shares these. Clients without options read the certificates and
// the proxy from the environment, once for each process.
var (
	certificate string // a PEM file with certificate and key, for 127.0.0.1
	proxyAddr   string // where tests start their HTTPS_PROXY
)

const (
	proxyUser     = "alice"
	proxyPassword = "opensesame99"
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "network")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	certificate = filepath.Join(dir, "server.pem")
	// The certificate of net/http/httptest is valid for 127.0.0.1, and is its own authority.
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	pair := srv.TLS.Certificates[0]
	srv.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		panic(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	err = os.WriteFile(certificate, text, 0o600)
	if err != nil {
		panic(err)
	}
	proxyAddr = freeAddr()
	for name, value := range map[string]string{
		"SSL_CERT_FILE": certificate,
		"HTTPS_PROXY":   "http://" + proxyUser + ":" + proxyPassword + "@" + proxyAddr,
		"HTTP_PROXY":    "", "NO_PROXY": "", "https_proxy": "", "http_proxy": "", "no_proxy": "",
	} {
		err := os.Setenv(name, value)
		if err != nil {
			panic(err)
		}
	}
	toxics.Register("drop", new(dropToxic))
	return m.Run()
}

func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// program returns the path of a program, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	if !testbase.Long() {
		t.Skip("uses real time: set MINUTES_LONG=1")
	}
	for _, path := range []string{name, "/usr/sbin/" + name} { // /usr/sbin may not be in the PATH
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// start runs a program with a configuration file as its last argument, until the test
// ends, and waits until it listens on addr.
func start(t *testing.T, addr, config, name string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".conf")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	startWith(t, addr, name, append(args, file)...)
}

// startWith runs a program until the test ends, and waits until it listens on addr.
func startWith(t *testing.T, addr, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(program(t, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Apache httpd and Varnish have child processes
	var output bytes.Buffer
	cmd.Stdout = &output
	cmd.Stderr = &output
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // Squid leaves shared memory behind if it is killed
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() && output.Len() > 0 {
			t.Logf("%s: %s", name, output.String()[max(0, output.Len()-2000):])
		}
	})
	for range 1500 { // mitmproxy takes long to start on a busy machine
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.Fail(t, name+" does not listen", "on %s, started with %q", addr, args)
}

// origin is the service on a real address, behind the servers that the tests start.
type origin struct {
	*minutestest.Server
	addr    string
	storage atomic.Value // a host: if set, upload URLs lead to it instead of the request's host
}

// newOrigin starts a service whose meetings become ready at once.
func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{Server: minutestest.NewServer(t)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _ := o.storage.Load().(string)
		if r.Header.Get("X-Forwarded-Proto") == "https" || host != "" {
			r.TLS = new(tls.ConnectionState)
		}
		if host != "" {
			r.Host = host
		}
		o.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	o.addr = srv.Listener.Addr().String()
	return o
}

// client returns a Client without options, as most programs have it.
func (o *origin) client(t *testing.T, baseURL string, opts ...minutes.Option) *minutes.Client {
	t.Helper()
	c, err := minutes.New(baseURL, o.Key(), opts...)
	require.NoError(t, err)
	return c
}

// create creates a meeting and returns its id.
func create(t *testing.T, c *minutes.Client, title string) string {
	t.Helper()
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
	require.NoError(t, err)
	return m.ID
}

// A front is a server with TLS and HTTP/2 before the service. It returns its address.
type front func(t *testing.T, o *origin) string

var fronts = map[string]front{
	"haproxy": haproxy,
	"nginx": func(t *testing.T, o *origin) string {
		t.Helper()
		return nginx(t, o, "", `listen ADDR ssl http2; location / { `+passOn+` }`)
	},
}

func haproxy(t *testing.T, o *origin) string {
	t.Helper()
	addr := freeAddr()
	start(t, addr, strings.NewReplacer("ADDR", addr, "ORIGIN", o.addr, "CERT", certificate).Replace(`
defaults
	mode http
	timeout connect 5s
	timeout client 10m
	timeout server 10m
frontend api
	bind ADDR ssl crt CERT alpn h2,http/1.1
	http-request set-header X-Forwarded-Proto https
	http-request set-header X-Seen-Proto HTTP/%[req.ver]
	default_backend service
backend service
	server service ORIGIN
`), "haproxy", "-db", "-f")
	return addr
}

// passOn has nginx forward requests as they arrive.
const passOn = `
	proxy_pass http://ORIGIN;
	proxy_http_version 1.1;
	proxy_request_buffering off;
	proxy_set_header Host $http_host;
	proxy_set_header X-Forwarded-Proto $scheme;
	proxy_set_header X-Seen-Proto $server_protocol;
	client_max_body_size 0;
`

// nginx starts nginx with these directives in its http and server blocks.
func nginx(t *testing.T, o *origin, http, server string) string {
	t.Helper()
	addr := freeAddr()
	values := strings.NewReplacer("ADDR", addr, "ORIGIN", o.addr, "CERT", certificate, "DIR", t.TempDir())
	start(t, addr, values.Replace(`
daemon off;
master_process off;
pid DIR/pid;
error_log stderr crit;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	ssl_certificate CERT;
	ssl_certificate_key CERT;
	`+http+`
	server { `+server+` }
}
`), "nginx", "-e", "stderr", "-c")
	return addr
}
