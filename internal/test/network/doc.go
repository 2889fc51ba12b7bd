// Package network has only tests. They run the Client behind real servers: nginx,
// HAProxy, tinyproxy and toxiproxy. The service behind these servers is minutestest, on
// a real address.
//
// The tests use real time, so they run only with MINUTES_LONG=1, as .ci/run does. They skip if a
// program is not installed:
//
//	apt-get install nginx haproxy tinyproxy
//	MINUTES_LONG=1 go test -timeout 30m -parallel 8 -v .
package network
