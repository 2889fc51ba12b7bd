#!/usr/bin/env bash
# hey v0.1.4 (github.com/rakyll/hey), a load generator, with -n 100 (requests) and -c 60 (workers).
#
# Seen: it sends 60 requests. Each worker sends n/c, rounded down, so only a multiple of c is sent in
# full. The summary does not say that 40 are missing, and a test that counts what the server got, such
# as that of a rate limit, is off.
# A good guess: 100, as from ab.
set -euo pipefail

want='hey 60, ab 100'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q apache2-utils=2.4.71-1~deb12u1 libapr1=1.7.2-3+deb12u1 libaprutil1=1.6.3-1+deb12u1 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
export LD_LIBRARY_PATH=$dir/debian/usr/lib/$(uname -m)-linux-gnu
GOBIN=$dir go install github.com/rakyll/hey@v0.1.4 >log 2>&1
cat >server.go <<'GO'
// A server that prints a line for each request.
package main

import (
	"fmt"
	"net"
	"net/http"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(r.URL.Path) })))
}
GO
go build -o server server.go
./server >seen &
until [ -s seen ]; do sleep 0.1; done
address=$(head -1 seen)

./hey -n 100 -c 60 "http://$address/hey" >>log
debian/usr/bin/ab -q -n 100 -c 60 "http://$address/ab" >>log 2>&1
got="hey $(grep -c '^/hey' seen), ab $(grep -c '^/ab' seen)"
echo "requests of -n 100 -c 60: $got (expected $want)"
[ "$got" = "$want" ]
