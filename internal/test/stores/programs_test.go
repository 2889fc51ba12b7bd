package stores

import (
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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A program is a store or a gateway. In its arguments, variables and files, DIR is an empty directory,
// ADDR its address, PORT the port of that, and BACKEND the address behind it.
type program struct {
	name  string
	run   string
	args  []string
	tls   []string // further arguments for TLS with DIR/cert.pem and DIR/key.pem; nil if it has none
	env   []string
	files map[string]string
}

var stores = []program{
	{
		name: "versitygw", run: "versitygw",
		env:  []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey},
		args: []string{"--port", "ADDR", "--health", "/healthz", "TLS", "posix", "DIR/data"},
		tls:  []string{"--cert", "DIR/cert.pem", "--key", "DIR/key.pem"},
	},
	{
		name: "MinIO", run: "minio", env: []string{"MINIO_ROOT_USER=" + accessKey, "MINIO_ROOT_PASSWORD=" + secretKey},
		args: []string{"server", "--address", "ADDR", "TLS", "DIR/data"},
		tls:  []string{"--certs-dir", "DIR"},
	},
	{
		name: "rclone", run: "rclone",
		args: []string{"serve", "s3", "--addr", "ADDR", "--auth-key", accessKey + "," + secretKey, "TLS", "DIR/data"},
		tls:  []string{"--cert", "DIR/cert.pem", "--key", "DIR/key.pem"},
	},
	{name: "gofakes3", run: "gofakes3", args: []string{"-host", "ADDR", "-backend", "fs", "-fs.path", "DIR/data"}},
}

// gateway is a program before a store. Those that stream over connections of their own hide the reset.
type gateway struct {
	program
	hides bool
}

var gateways = []gateway{
	{program{name: "nginx", run: "nginx", args: nginx, files: map[string]string{
		"conf": nginxBefore("")}}, false},
	{program{name: "nginx without buffering", run: "nginx", args: nginx, files: map[string]string{
		"conf": nginxBefore("proxy_request_buffering off; proxy_http_version 1.1;")}}, true},
	{program{name: "HAProxy", run: "haproxy", args: haproxy, files: map[string]string{
		"conf": haproxyBefore("http")}}, false},
	{program{name: "HAProxy for TCP", run: "haproxy", args: haproxy, files: map[string]string{
		"conf": haproxyBefore("tcp")}}, true},
}

var (
	nginx   = []string{"-e", "stderr", "-c", "DIR/conf"}
	haproxy = []string{"-db", "-f", "DIR/conf"}
)

func nginxBefore(more string) string {
	return `daemon off; master_process off; pid DIR/pid; error_log stderr crit;
events {}
http { access_log off; client_body_temp_path DIR; proxy_temp_path DIR; fastcgi_temp_path DIR; uwsgi_temp_path DIR;
scgi_temp_path DIR; client_max_body_size 0; server { listen ADDR; location / {
proxy_pass http://BACKEND; proxy_set_header Host $http_host; ` + more + ` } } }`
}

func haproxyBefore(mode string) string {
	return `defaults
	mode ` + mode + `
	timeout connect 5s
	timeout client 60s
	timeout server 60s
frontend f
	bind ADDR
	default_backend b
backend b
	server s BACKEND
`
}

// start runs a program until the end of the test, and returns its base URL.
func (p program) start(t *testing.T, backend string, secure bool) string {
	t.Helper()
	path, err := exec.LookPath(p.run)
	if err != nil {
		t.Skip(p.run, "is not installed")
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	fill := strings.NewReplacer("DIR", dir, "ADDR", address, "PORT", port, "BACKEND", backend).Replace
	for name, text := range p.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(fill(text)), 0o600))
	}
	scheme := "http"
	if secure {
		scheme = "https"
		writeCertificate(t, dir)
	}
	var args []string
	for _, arg := range p.args {
		switch {
		case arg != "TLS":
			args = append(args, fill(arg))
		case secure:
			for _, more := range p.tls {
				args = append(args, fill(more))
			}
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	cmd.Stdout = &said
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(p.name, "said:", said.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, p.name)
	return scheme + "://" + address
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// writeCertificate writes that of net/http/httptest, under the names that programs want.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	pair := server.TLS.Certificates[0]
	server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for name, text := range map[string][]byte{
		"cert.pem": certificate, "key.pem": private, "public.crt": certificate, "private.key": private,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// anyCertificate is an HTTP client that trusts every certificate.
func anyCertificate() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}
