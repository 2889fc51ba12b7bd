#!/usr/bin/env bash
# Squid 5.7 (Debian 12) before one origin: `cache_peer … parent PORT 0 no-query originserver`.
#
# Seen: with the first request, the origin gets a GET /squid-internal-periodic/store_digest that no
# client sent. Squid takes every parent for another Squid, an origin server too, and asks for the list of
# what that has cached, unless the line says no-digest. A limit of requests there counts it, and a test
# that compares what was sent with what arrived is off by one.
# A good guess: a gateway sends what its clients send, since `no-query` switches off its own queries.
set -euo pipefail

want='/orders /squid-internal-periodic/store_digest; with no-digest: /orders'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 "$dir"
apt-get download -q squid=5.7-2+deb12u6 squid-common=5.7-2+deb12u6 squid-langpack=20220130-1 \
	libecap3=1.0.1-3.4 libltdl7=2.4.7-7~deb12u1 libmnl0=1.0.4-3 libnetfilter-conntrack3=1.0.9-3 libnfnetlink0=1.0.2-2 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
export LD_LIBRARY_PATH=$dir/debian/usr/lib/$(uname -m)-linux-gnu
# free prints a port that nothing listens on.
free() {
	local port
	port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}
cat >server.go <<'GO'
// A server that prints the path of each request.
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
# ask sends one request through a Squid whose cache_peer line ends with $2, and lets $1 be what arrives.
ask() {
	local port
	port=$(free)
	./server >"$1" &
	until [ -s "$1" ]; do sleep 0.1; done
	cat >"$1.conf" <<CONF
http_port 127.0.0.1:$port accel defaultsite=gateway.example
cache_peer 127.0.0.1 parent $(sed 's/.*://' "$1") 0 no-query originserver $2
http_access allow all
pid_filename none
access_log none
cache_log $dir/log
coredump_dir $dir
icon_directory $dir/debian/usr/share/squid/icons
error_directory $dir/debian/usr/share/squid-langpack/en
mime_table $dir/debian/usr/share/squid/mime.conf
pinger_enable off
unlinkd_program $dir/debian/usr/lib/squid/unlinkd
logfile_daemon $dir/debian/usr/lib/squid/log_file_daemon
shutdown_lifetime 0 seconds
visible_hostname gateway.example
CONF
	debian/usr/sbin/squid -N -n "t$port" -f "$1.conf" >>out 2>&1 &
	until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
	curl -sf "http://127.0.0.1:$port/orders"
	sleep 2
}
ask plain ''
ask without no-digest
got="$(tail -n +2 plain | sort | xargs); with no-digest: $(tail -n +2 without | sort | xargs)"
echo "Squid 5.7, one GET of /orders arrives as: $got (expected $want)"
[ "$got" = "$want" ]
