// Package network has only tests. They run the Client behind the servers that users have between
// their programs and the service or its storage: nginx, HAProxy, Apache httpd, proxies, and
// toxiproxy, which breaks connections. The service behind these servers is minutestest, on a real
// address, or a backend that fails on purpose.
//
// The tests use real time, so they run only with MINUTES_LONG=1, as .ci/run does. They skip if a
// program is not installed:
//
//	apt-get install nginx haproxy tinyproxy apache2-bin lighttpd varnish h2o trafficserver \
//		nghttp2-proxy mitmproxy caddy squid
//	MINUTES_LONG=1 go test -timeout 30m -parallel 8 -v .
//
// The tables of docs/gateways.md and uploads.txt are what these tests saw. If a new version of a server behaves
// differently, the test prints the row that belongs there.
package network
