package network_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A gateway is a program that forwards requests to a backend.
type gateway struct {
	name    string
	program string
	args    []string          // each may contain the words that start replaces
	files   map[string]string // its configuration, by the name of the file in DIR
}

// start runs the gateway until the test ends, and returns its address. In arguments and files,
// ADDR is that address, PORT its port, BACKEND and BACKENDPORT are those of the backend, DIR is the
// directory of the files, and CERT is the certificate of the tests' servers.
func (g gateway) start(t *testing.T, dir, backend string) (addr string) {
	t.Helper()
	addr = freeAddr()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	_, backendPort, err := net.SplitHostPort(backend)
	require.NoError(t, err)
	for _, d := range []string{dir, filepath.Dir(dir)} { // Apache httpd and Squid run as another user
		require.NoError(t, os.Chmod(d, 0o777))
	}
	words := strings.NewReplacer("BACKENDPORT", backendPort, "BACKEND", backend,
		"ADDR", addr, "PORT", port, "DIR", dir, "CERT", certificate)
	for name, text := range g.files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(words.Replace(text)), 0o644))
	}
	var args []string
	for _, arg := range g.args {
		args = append(args, words.Replace(arg))
	}
	startWith(t, addr, g.program, args...)
	return addr
}

// gateways forward what they get to one backend, with their own settings except for the time that
// they wait for it.
var gateways = []gateway{
	{
		name: "nginx", program: "nginx", args: []string{"-e", "stderr", "-c", "DIR/conf"},
		files: map[string]string{"conf": nginxGateway("", "")},
	},
	{
		name: "HAProxy", program: "haproxy", args: []string{"-db", "-f", "DIR/conf"},
		files: map[string]string{"conf": haproxyGateway("")},
	},
	{
		name: "Apache httpd", program: "apache2", args: []string{"-D", "FOREGROUND", "-f", "DIR/conf"},
		files: map[string]string{"conf": apacheGateway("ProxyPass / http://BACKEND/")},
	},
	{
		name: "lighttpd", program: "lighttpd", args: []string{"-D", "-f", "DIR/conf"},
		files: map[string]string{"conf": lighttpdGateway("")},
	},
	{
		name: "Varnish", program: "varnishd", args: []string{"-F", "-a", "ADDR", "-n", "DIR/work", "-f", "DIR/conf"},
		files: map[string]string{"conf": `vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "BACKENDPORT"; .first_byte_timeout = 1s; }
`},
	},
	{
		name: "h2o", program: "h2o", args: []string{"-c", "DIR/conf"},
		files: map[string]string{"conf": `
user: root
listen:
  host: 127.0.0.1
  port: PORT
hosts:
  default:
    paths:
      /:
        proxy.reverse.url: http://BACKEND/
        proxy.timeout.io: 1000
`},
	},
	{
		name: "Traffic Server", program: "traffic_server", args: []string{"--run-root=DIR/runroot.yaml"},
		files: map[string]string{
			"runroot.yaml": `
prefix: DIR
exec_prefix: DIR
bindir: /usr/bin
sbindir: /usr/sbin
sysconfdir: DIR/etc
datadir: DIR/cache
includedir: DIR
libdir: /usr/lib
libexecdir: /usr/lib/trafficserver/modules
localstatedir: DIR
runtimedir: DIR/run
logdir: DIR/log
mandir: DIR
cachedir: DIR/cache
`,
			"run/.keep": "", "log/.keep": "", "cache/.keep": "",
			"etc/records.config": `
CONFIG proxy.config.http.server_ports STRING PORT:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 1
CONFIG proxy.config.http.connect_attempts_timeout INT 1
CONFIG proxy.config.http.cache.http INT 0
CONFIG proxy.config.body_factory.template_sets_dir STRING /etc/trafficserver/body_factory
CONFIG proxy.config.diags.logfile.filename STRING stderr
`,
			"etc/remap.config":   "map / http://BACKEND/\n",
			"etc/storage.config": "DIR/cache 16M\n",
			"etc/ip_allow.yaml": "ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n" +
				"    methods: ALL\n",
		},
	},
	{
		name: "nghttpx", program: "nghttpx", args: []string{"--conf=DIR/conf"},
		files: map[string]string{"conf": `
frontend=127.0.0.1,PORT;no-tls
backend=127.0.0.1,BACKENDPORT
backend-read-timeout=1s
workers=1
`},
	},
	{
		name: "mitmproxy", program: "mitmdump",
		args: []string{
			"-q", "--mode", "reverse:http://BACKEND", "--listen-host", "127.0.0.1", "--listen-port", "PORT",
			"--set", "confdir=DIR",
		},
	},
	{
		name: "Caddy", program: "caddy", args: []string{"run", "--config", "DIR/Caddyfile", "--adapter", "caddyfile"},
		files: map[string]string{"Caddyfile": `
{
	admin off
	auto_https off
	storage file_system DIR/storage
}
http://ADDR {
	reverse_proxy BACKEND {
		transport http {
			response_header_timeout 1s
		}
	}
}
`},
	},
}

// configured are gateways with settings that let uploads through as they are.
var configured = []gateway{
	{
		name: "nginx, configured", program: "nginx", args: []string{"-e", "stderr", "-c", "DIR/conf"},
		files: map[string]string{"conf": nginxGateway("",
			"proxy_request_buffering off; proxy_http_version 1.1; client_max_body_size 0;")},
	},
	{
		name: "Apache httpd, `AllowEncodedSlashes NoDecode`", program: "apache2",
		args:  []string{"-D", "FOREGROUND", "-f", "DIR/conf"},
		files: map[string]string{"conf": apacheGateway("AllowEncodedSlashes NoDecode\nProxyPass / http://BACKEND/")},
	},
	{
		name: "Apache httpd, configured", program: "apache2", args: []string{"-D", "FOREGROUND", "-f", "DIR/conf"},
		files: map[string]string{
			"conf": apacheGateway("AllowEncodedSlashes NoDecode\nProxyPass / http://BACKEND/ nocanon"),
		},
	},
	{
		name: "lighttpd, configured", program: "lighttpd", args: []string{"-D", "-f", "DIR/conf"},
		files: map[string]string{"conf": lighttpdGateway(`
server.stream-request-body = 1
server.http-parseopts = ("url-normalize" => "disable")
`)},
	},
}

const limitZone = "limit_req_zone $binary_remote_addr zone=api:1m rate=1r/m;"

// limiters are gateways that accept one request a minute.
var limiters = []gateway{
	{
		name: "nginx, `limit_req`", program: "nginx", args: []string{"-e", "stderr", "-c", "DIR/conf"},
		files: map[string]string{"conf": nginxGateway(limitZone, "limit_req zone=api;")},
	},
	{
		name: "nginx, `limit_req` with `limit_req_status 429`", program: "nginx",
		args:  []string{"-e", "stderr", "-c", "DIR/conf"},
		files: map[string]string{"conf": nginxGateway(limitZone, "limit_req zone=api; limit_req_status 429;")},
	},
	{
		name: "HAProxy, `deny` of a stick table", program: "haproxy", args: []string{"-db", "-f", "DIR/conf"},
		files: map[string]string{"conf": haproxyGateway(`
	stick-table type ip size 1k expire 1m store http_req_rate(1m)
	http-request track-sc0 src
	http-request deny if { sc_http_req_rate(0) gt 1 }`)},
	},
	{
		name: "HAProxy, the same with `deny_status 429`", program: "haproxy", args: []string{"-db", "-f", "DIR/conf"},
		files: map[string]string{"conf": haproxyGateway(`
	stick-table type ip size 1k expire 1m store http_req_rate(1m)
	http-request track-sc0 src
	http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1 }`)},
	},
}

// proxies are forward proxies that want a password, and forbid one host.
var proxies = []gateway{
	{
		name: "tinyproxy", program: "tinyproxy", args: []string{"-d", "-c", "DIR/conf"},
		files: map[string]string{
			"conf": `
Listen 127.0.0.1
Port PORT
Timeout 60
BasicAuth alice secret99
Filter "DIR/filter"
LogLevel Critical
`,
			"filter": "forbidden\n",
		},
	},
	{
		name: "Squid", program: "squid", args: []string{"-N", "-n", "tPORT", "-f", "DIR/conf"},
		files: map[string]string{
			"conf": `
http_port ADDR
auth_param basic program /usr/lib/squid/basic_ncsa_auth DIR/passwords
acl known proxy_auth REQUIRED
acl forbidden dstdomain forbidden.example
http_access deny forbidden
http_access allow known
http_access deny all
cache deny all
pid_filename none
access_log none
cache_log DIR/cache.log
shutdown_lifetime 0 seconds
visible_hostname proxy.example
`,
			"passwords": "alice:$1$network$s.14xjD5.PBYhrNBq60Xf/\n",
		},
	},
}

// interceptor is a forward proxy that presents certificates of its own, as a company's may. DIR has
// its authority.
var interceptor = gateway{
	program: "mitmdump",
	args: []string{
		"-q", "--listen-host", "127.0.0.1", "--listen-port", "PORT", "--set", "confdir=DIR",
		"--set", "ssl_verify_upstream_trusted_ca=CERT",
	},
}

func haproxyGateway(frontend string) string {
	return `
defaults
	mode http
	timeout connect 5s
	timeout client 1m
	timeout server 1s
frontend api
	bind ADDR
	default_backend service` + frontend + `
backend service
	server service BACKEND
`
}

func nginxGateway(http, location string) string {
	return `
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
	` + http + `
	server {
		listen ADDR;
		location / { proxy_pass http://BACKEND; proxy_read_timeout 1s; ` + location + ` }
	}
}
`
}

func apacheGateway(proxy string) string {
	return `
ServerRoot DIR
ServerName gateway.example
DefaultRuntimeDir DIR
PidFile DIR/pid
User www-data
Listen ADDR
ErrorLog DIR/log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
ProxyTimeout 1
` + proxy + "\n"
}

func lighttpdGateway(options string) string {
	return `
server.document-root = "DIR"
server.upload-dirs = ("DIR")
server.bind = "127.0.0.1"
server.port = PORT
server.modules = ("mod_proxy")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => BACKENDPORT, "read-timeout" => 1)))
` + options
}
