#!/usr/bin/env bash
# Apache httpd 2.4.71 (Debian 12), mod_proxy_http, `ProxyPass / http://server/`.
#
# Seen: if the server closes a new connection without an answer, the client of a POST gets a 502 "Proxy
# Error". If the connections of both sides have carried a request before, httpd closes the client's
# connection without a byte.
# A good guess: 502 both times, since httpd waited for the answer both times.
set -euo pipefail

want='new: 502; reused: closed'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q apache2-bin=2.4.71-1~deb12u1 libapr1=1.7.2-3+deb12u1 \
	libaprutil1=1.6.3-1+deb12u1 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu
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
modules=$dir/root/usr/lib/apache2/modules
cat >httpd.conf <<CONF
ServerRoot $dir
ServerName gateway.example
DefaultRuntimeDir $dir
PidFile $dir/pid
ErrorLog $dir/log
Listen 127.0.0.1:$port
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule proxy_module $modules/mod_proxy.so
LoadModule proxy_http_module $modules/mod_proxy_http.so
StartServers 1
ServerLimit 1
ProxyPass / http://$(cat address)/
CONF
[ "$(id -u)" != 0 ] || { echo 'User nobody'; echo 'Group nogroup'; } >>httpd.conf
root/usr/sbin/apache2 -D FOREGROUND -f "$dir/httpd.conf" >out 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done

got=$(./probe "127.0.0.1:$port")
echo "Apache httpd 2.4.71, POST to a server that closes: $got (expected $want)"
[ "$got" = "$want" ]
