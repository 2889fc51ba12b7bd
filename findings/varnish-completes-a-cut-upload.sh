#!/usr/bin/env bash
# Varnish 7.1.1 (Debian 12), one backend, a PUT with a chunked body. Needs a C compiler as well, since
# Varnish compiles its configuration.
#
# Seen: if the client's connection breaks before the last chunk, Varnish ends the body towards the
# backend with a last chunk of its own. So the backend gets half an upload that looks whole, and may
# store it. With a Content-Length the backend notices, because bytes are missing.
# A good guess: the backend's connection is closed before the last chunk, as by HAProxy, nghttpx and
# Traffic Server.
set -euo pipefail

want='chunked: direct cut, through Varnish whole; with a length: direct cut, through Varnish cut'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q varnish=7.1.1-2+deb12u1 libvarnishapi3=7.1.1-2+deb12u1 libjemalloc2=5.3.0-1 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
export LD_LIBRARY_PATH=$dir/debian/usr/lib/$(uname -m)-linux-gnu:$dir/debian/usr/lib/$(uname -m)-linux-gnu/varnish
# free prints a port that nothing listens on.
free() {
	local port
	port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}
cat >probe.go <<'GO'
// A server that tells whether the body of a request came to its end, and a client that breaks off in
// the middle of a body.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
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
	conn, err := net.Dial("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: storage.example\r\n", os.Args[2])
	if os.Args[3] == "chunked" {
		fmt.Fprint(conn, "Transfer-Encoding: chunked\r\n\r\n9\r\nhalf of i\r\n")
	} else {
		fmt.Fprint(conn, "Content-Length: 18\r\n\r\nhalf of i")
	}
	time.Sleep(500 * time.Millisecond)
	conn.Close()
}

func serve(_ http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		fmt.Println(r.URL.Path, "cut")
		return
	}
	fmt.Println(r.URL.Path, "whole")
}
GO
go build -o probe probe.go
./probe serve >seen &
until [ -s seen ]; do sleep 0.1; done
server=$(head -1 seen)
port=$(free)
printf 'vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "%s"; }\n' "${server#*:}" >vcl
debian/usr/sbin/varnishd -F -j none -a "127.0.0.1:$port" -n "$dir/work" -f "$dir/vcl" >log 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done

# ask prints what the server says of the body that breaks off at an address.
ask() {
	./probe "$1" "$2" "$3"
	until grep -q "^$2 " seen; do sleep 0.1; done
	sed -n "s|^$2 ||p" seen
}
got="chunked: direct $(ask "$server" /1 chunked), through Varnish $(ask "127.0.0.1:$port" /2 chunked)"
got="$got; with a length: direct $(ask "$server" /3 length), through Varnish $(ask "127.0.0.1:$port" /4 length)"
echo "Varnish 7.1.1: $got (expected $want)"
[ "$got" = "$want" ]
