#!/usr/bin/env bash
# tinyproxy 1.11.1 (Debian 12), a plain http request with `Expect: 100-continue`.
#
# Seen: tinyproxy passes Expect on, and the server answers 100 at once, but the client gets that 100 only
# after it has sent the body. So Expect saves nothing: the client waits for as long as it is willing to
# (Go's transport: a second), and an early rejection comes after the body.
# A good guess: a proxy that passes Expect on passes the 100 on, too.
set -euo pipefail

want='the 100 comes after the body'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q tinyproxy-bin=1.11.1-2.1+deb12u1 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" debian; done
# free prints a port that nothing listens on.
free() {
	local port
	port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}
cat >probe.go <<'GO'
// A server that answers 100 as soon as it has the header, and a client that waits two seconds for it.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go serve(l)
	conn, err := net.Dial("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(conn, "PUT http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nContent-Length: 5\r\n"+
		"Expect: 100-continue\r\n\r\n", l.Addr())
	answers := bufio.NewReader(conn)
	conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	line, err := answers.ReadString('\n')
	if err == nil {
		fmt.Println("the first line comes before the body:", line)
		return
	}
	fmt.Fprint(conn, "sound")
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	line, err = answers.ReadString('\n')
	if strings.Contains(line, " 100 ") {
		fmt.Println("the 100 comes after the body")
		return
	}
	fmt.Println(line, err)
}

func serve(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		panic(err)
	}
	request := bufio.NewReader(conn)
	expects := false
	for {
		line, err := request.ReadString('\n')
		if err != nil || line == "\r\n" {
			break
		}
		expects = expects || strings.HasPrefix(strings.ToLower(line), "expect: 100-continue")
	}
	if expects {
		fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	request.Discard(5)
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	conn.Close()
}
GO
go build -o probe probe.go
port=$(free)
printf 'Listen 127.0.0.1\nPort %s\nTimeout 30\nLogLevel Critical\n' "$port" >tinyproxy.conf
debian/usr/bin/tinyproxy -d -c tinyproxy.conf >log 2>&1 &
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done

got=$(./probe "127.0.0.1:$port")
echo "tinyproxy 1.11.1: $got (expected $want)"
[ "$got" = "$want" ]
