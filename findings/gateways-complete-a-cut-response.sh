#!/usr/bin/env bash
# lighttpd 1.4.69 (mod_proxy) and h2o 2.2.5 (Debian 12), one backend, a GET whose response is chunked.
#
# Seen: the backend dies after half of the response, so its connection ends without a last chunk. Both
# gateways give the client that half as a whole response with 200: h2o with a last chunk of its own,
# lighttpd even with a Content-Length. A client cannot notice, unless the content itself has an end, as
# JSON has. If the backend sends a Content-Length, both let the client see that bytes are missing.
# A good guess: the client's connection is closed before the last chunk, as by nginx, Apache httpd,
# HAProxy, Varnish, Traffic Server and nghttpx.
set -euo pipefail

want='chunked: direct cut, lighttpd whole with a length, h2o whole; with a length: direct cut, lighttpd cut, h2o cut'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q lighttpd=1.4.69-1 libnettle8=3.8.1-2 libxxhash0=0.8.1-1 h2o=2.2.5+dfsg2-7 libyaml-0-2=0.2.5-1 \
	>/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
export LD_LIBRARY_PATH=$dir/debian/usr/lib/$(uname -m)-linux-gnu
# free prints a port that nothing listens on.
free() {
	local port
	port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}
cat >probe.go <<'GO'
// A server that breaks off in the middle of each response, and a client that tells whether a response
// came to its end.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	if os.Args[1] == "serve" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(l.Addr())
		panic(http.Serve(l, http.HandlerFunc(serve)))
	}
	resp, err := http.Get("http://" + os.Args[1] + "/" + os.Args[2])
	if err != nil {
		panic(err)
	}
	half, err := io.ReadAll(resp.Body)
	switch {
	case string(half) != "half of it" || resp.StatusCode != http.StatusOK:
		fmt.Print("something else")
	case err != nil:
		fmt.Print("cut")
	case resp.ContentLength >= 0:
		fmt.Print("whole with a length")
	default:
		fmt.Print("whole")
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/length" {
		w.Header().Set("Content-Length", "20")
	}
	fmt.Fprint(w, "half of it")
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler) // closes the connection
}
GO
go build -o probe probe.go
./probe serve >address &
until [ -s address ]; do sleep 0.1; done
server=$(cat address)

lighttpd=$(free)
cat >lighttpd.conf <<CONF
server.document-root = "$dir"
server.upload-dirs = ("$dir")
server.bind = "127.0.0.1"
server.port = $lighttpd
server.modules = ("mod_proxy")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => ${server#*:})))
CONF
debian/usr/sbin/lighttpd -D -m debian/usr/lib/lighttpd -f lighttpd.conf >log 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$lighttpd") 2>/dev/null; do sleep 0.1; done

h2o=$(free)
cat >h2o.conf <<CONF
user: $(id -un)
listen:
  host: 127.0.0.1
  port: $h2o
hosts:
  default:
    paths:
      /:
        proxy.reverse.url: http://$server/
CONF
debian/usr/bin/h2o -c h2o.conf >h2o.log 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$h2o") 2>/dev/null; do sleep 0.1; done

# ask prints what a client sees of the response that breaks off, directly and through each gateway.
ask() {
	echo -n "direct $(./probe "$server" "$1"), lighttpd $(./probe "127.0.0.1:$lighttpd" "$1")"
	echo ", h2o $(./probe "127.0.0.1:$h2o" "$1")"
}
got="chunked: $(ask chunked); with a length: $(ask length)"
echo "$got (expected $want)"
[ "$got" = "$want" ]
