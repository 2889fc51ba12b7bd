#!/usr/bin/env bash
# HAProxy 2.6.12 (Debian 12), one server, no option about retries.
#
# Seen: if the server closes a new connection without an answer, the client of a POST gets a 502. If the
# connections of both sides have carried a request before, HAProxy closes the client's connection
# without a byte, so the client cannot tell it from a broken network, or from a broken gateway.
# A good guess: 502 both times.
set -euo pipefail

want='new: 502; reused: closed'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q haproxy=2.6.12-1+deb12u4 liblua5.3-0=5.3.6-2 \
	libopentracing-c-wrapper0=1.1.3-3+b1 libopentracing1=1.6.0-4 >/dev/null 2>&1
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
// A server that answers /warm, and closes the connection of any other request once it has read it;
// and a client that sends a POST on a connection that is new for the gateway, and one after /warm.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
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
	fmt.Printf("new: %s; reused: %s\n", post(os.Args[1], false), post(os.Args[1], true))
}

func serve(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if r.URL.Path != "/warm" {
		conn, _, _ := http.NewResponseController(w).Hijack()
		conn.Close()
	}
}

func post(gateway string, warm bool) string {
	conn, err := net.Dial("tcp", gateway)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	if warm {
		fmt.Fprint(conn, "GET /warm HTTP/1.1\r\nHost: gateway.example\r\n\r\n")
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, resp.Body)
	}
	fmt.Fprint(conn, "POST /orders HTTP/1.1\r\nHost: gateway.example\r\nContent-Length: 5\r\n\r\norder")
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		return strings.ReplaceAll(err.Error(), "unexpected EOF", "closed")
	}
	return fmt.Sprint(resp.StatusCode)
}
GO
go build -o probe probe.go
./probe serve >address &
until [ -s address ]; do sleep 0.1; done
port=$(free)
cat >haproxy.cfg <<CFG
defaults
	mode http
	timeout connect 5s
	timeout client 10s
	timeout server 10s
listen gateway
	bind 127.0.0.1:$port
	server only $(cat address)
CFG
debian/usr/sbin/haproxy -db -f haproxy.cfg >log 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done

got=$(./probe "127.0.0.1:$port")
echo "HAProxy 2.6.12, POST to a server that closes: $got (expected $want)"
[ "$got" = "$want" ]
