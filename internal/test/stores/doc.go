// Package stores has only tests. They upload to real stores, with and without TLS and behind gateways,
// and end the uploads in the middle. A store must never keep a part of a recording as if it were whole.
// Where a gateway hides the reset of the connection, so that the store keeps a part all the same, the
// next Process must say that it did not upload the audio. The table of runs is in runs.txt.
//
// The tests use real time and programs, so they are not part of CI. They skip what is not installed:
//
//	go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
//	go install github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0
//	go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
//	go install github.com/rclone/rclone@v1.76.0
//	apt-get install nginx haproxy
//	go test -timeout 3h -v . -endings 20
package stores
