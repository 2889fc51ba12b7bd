#!/usr/bin/env bash
# gofakes3 v1.2.0 (github.com/johannesboyne/gofakes3), an S3 server for tests, with its backends mem and fs.
#
# Seen: a key has an object, and a PUT of another one breaks off in the middle. With the backend fs, GET
# then answers 200 with half of the new object, and the old one is gone. With the backend mem, GET
# answers with the old object.
# A good guess: the old object stays with both, as on S3, where a PUT is atomic. So a test of broken
# uploads sees on fs what S3 never shows.
set -euo pipefail

want='mem: old; fs: half of it'

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
GOBIN=$dir go install github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0 >log 2>&1
# free prints a port that nothing listens on.
free() {
	local port
	port=$((20000 + RANDOM % 10000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}
# ask gets the object of a backend after a PUT that broke off.
ask() {
	local port
	port=$(free)
	mkdir "$1"
	./gofakes3 -host "127.0.0.1:$port" -backend "$1" -fs.path "$1" >>log 2>&1 &
	until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
	curl -sf -X PUT "http://127.0.0.1:$port/bucket"
	curl -sf -X PUT -d old "http://127.0.0.1:$port/bucket/key"
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'PUT /bucket/key HTTP/1.1\r\nHost: storage.example\r\nContent-Length: 20\r\n\r\nhalf of it' >&3
	sleep 0.5
	exec 3>&-
	sleep 0.5
	curl -sf "http://127.0.0.1:$port/bucket/key" >"$1.object"
}
ask mem
ask fs

got="mem: $(cat mem.object); fs: $(cat fs.object)"
echo "gofakes3 v1.2.0, GET after a PUT that broke off: $got (expected $want)"
[ "$got" = "$want" ]
