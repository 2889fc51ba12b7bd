#!/usr/bin/env bash
# HAProxy 2.6.12 (Debian 12), `retry-on empty-response`, `retries 2`.
#
# Seen: if the server closes the connection without an answer, HAProxy sends a POST with its body three
# times, as it does a GET. The server may have carried out each of them.
# A good guess: only methods that are idempotent are sent again, as nginx does it unless it is told
# `non_idempotent`. (HAProxy's manual says how to exclude POST: `http-request disable-l7-retry`.)
set -euo pipefail

want='POST x3'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q haproxy=2.6.12-1+deb12u4 liblua5.3-0=5.3.6-2 \
	libopentracing-c-wrapper0=1.1.3-3+b1 libopentracing1=1.6.0-4 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
export LD_LIBRARY_PATH=$dir/debian/usr/lib/$(uname -m)-linux-gnu

cat >server.go <<'GO'
// A server that reads a request whole, prints its method, and closes the connection.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Println(r.Method)
		conn, _, _ := http.NewResponseController(w).Hijack()
		conn.Close()
	})))
}
GO
go build -o server server.go
./server >seen &
until [ -s seen ]; do sleep 0.1; done
cat >haproxy.cfg <<CFG
defaults
	mode http
	timeout connect 5s
	timeout client 10s
	timeout server 10s
	retries 2
	retry-on empty-response
listen gateway
	bind unix@$dir/gateway mode 666
	server only $(head -1 seen)
CFG
debian/usr/sbin/haproxy -db -f haproxy.cfg >log 2>&1 &
until [ -S gateway ]; do sleep 0.1; done
curl -s -o /dev/null --unix-socket gateway -d 'one order' http://gateway.example/orders

got="$(tail -n +2 seen | sort | uniq -c | awk '{ print $2 " x" $1 }')"
echo "HAProxy 2.6.12 sent: $got (expected $want)"
[ "$got" = "$want" ]
