#!/usr/bin/env bash
# Apache Traffic Server 9.2.9 (Debian 12, trafficserver 9.2.5+ds-0+deb12u4), one origin, no cache.
#
# Seen: if the origin closes the connection without an answer, Traffic Server sends a GET four times, at
# once, before it answers 502. A POST it sends once. So an origin that fails under load gets four times
# the load, and a limit of requests there counts each one.
# A good guess: once, as from nginx, lighttpd, h2o and nghttpx, or twice for a connection that was reused.
set -euo pipefail

want='GET x4, POST x1'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q trafficserver=9.2.5+ds-0+deb12u4 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
export LD_LIBRARY_PATH=$dir/debian/usr/lib/$(uname -m)-linux-gnu:$dir/debian/usr/lib/trafficserver:$dir/debian/usr/lib/$(uname -m)-linux-gnu/trafficserver
# free prints a port that nothing listens on.
free() {
	local port
	port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}
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
port=$(free)
mkdir -p etc run log cache
cat >runroot.yaml <<YAML
prefix: $dir
exec_prefix: $dir
bindir: $dir/debian/usr/bin
sbindir: $dir/debian/usr/sbin
sysconfdir: $dir/etc
datadir: $dir/cache
includedir: $dir
libdir: $dir/debian/usr/lib
libexecdir: $dir/debian/usr/lib/trafficserver/modules
localstatedir: $dir
runtimedir: $dir/run
logdir: $dir/log
mandir: $dir
cachedir: $dir/cache
YAML
cat >etc/records.config <<CONFIG
CONFIG proxy.config.http.server_ports STRING $port:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.http.cache.http INT 0
CONFIG proxy.config.body_factory.template_sets_dir STRING $dir/debian/etc/trafficserver/body_factory
CONFIG
echo "map / http://$(head -1 seen)/" >etc/remap.config
echo "$dir/cache 16M" >etc/storage.config
printf 'ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n    methods: ALL\n' >etc/ip_allow.yaml
debian/usr/bin/traffic_server "--run-root=$dir/runroot.yaml" >out 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done

curl -s -o /dev/null "http://127.0.0.1:$port/orders"
curl -s -o /dev/null -d 'one order' "http://127.0.0.1:$port/orders"
got="$(tail -n +2 seen | sort | uniq -c | awk '{ printf "%s%s x%s", sep, $2, $1; sep = ", " }')"
echo "Traffic Server 9.2.9 sent: $got (expected $want)"
[ "$got" = "$want" ]
