#!/usr/bin/env bash
# NATS server 2.15.3 with JetStream, nats.go v1.55.0, two workers in processes of their own that share a
# durable pull consumer with AckWait 2 s.
#
# Seen: a worker freezes in the middle of a message (SIGSTOP; a suspended machine does the same). Its
# process has asked the server for more messages ahead, as Consume does, so the server hands the
# redelivery to the frozen worker again. The other worker, which is idle, gets the message as delivery
# 3, after two AckWaits. With MaxDeliver 2 it would never get it. With PullMaxMessages(1), nothing is
# asked for ahead, and the other worker gets delivery 2 after one AckWait.
# A good guess: after one AckWait, the message goes to the worker that is alive.
set -euo pipefail

want='Consume: delivery 3; with PullMaxMessages(1): delivery 2'

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
// A server, and two workers that are processes of this program. The first freezes when it has got the
// message; the program prints which delivery the second gets.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	if len(os.Args) == 3 {
		work(os.Args[1], os.Args[2])
	}
	fmt.Printf("Consume: %s; with PullMaxMessages(1): %s\n", secondGets("ahead"), secondGets("one"))
}

func work(url, asks string) {
	var options []jetstream.PullConsumeOpt
	if asks == "one" {
		options = append(options, jetstream.PullMaxMessages(1))
	}
	consumer, err := connect(url).Consumer(context.Background(), "JOBS", "workers")
	check(err)
	_, err = consumer.Consume(func(m jetstream.Msg) {
		metadata, err := m.Metadata()
		check(err)
		fmt.Println("delivery", metadata.NumDelivered)
		time.Sleep(time.Hour)
	}, options...)
	check(err)
	fmt.Println("ready")
	time.Sleep(time.Minute)
	os.Exit(1)
}

func secondGets(asks string) string {
	store, err := os.MkdirTemp(".", "store")
	check(err)
	options := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: store, NoSigs: true}
	s, err := server.NewServer(options)
	check(err)
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		panic("no server")
	}
	js := connect(s.ClientURL())
	ctx := context.Background()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"}})
	check(err)
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "workers", AckWait: 2 * time.Second})
	check(err)
	first, lines := start(s.ClientURL(), asks)
	defer first.Kill()
	_, err = js.Publish(ctx, "jobs", nil)
	check(err)
	lines.Scan() // its delivery
	check(first.Signal(syscall.SIGSTOP))
	second, lines := start(s.ClientURL(), asks)
	defer second.Kill()
	lines.Scan()
	return lines.Text()
}

func start(url, asks string) (*os.Process, *bufio.Scanner) {
	out, in := io.Pipe()
	worker := exec.Command(os.Args[0], url, asks)
	worker.Stdout = in
	worker.Stderr = os.Stderr
	check(worker.Start())
	go func() {
		_ = worker.Wait()
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	lines.Scan() // ready
	return worker.Process, lines
}

func connect(url string) jetstream.JetStream {
	conn, err := nats.Connect(url)
	check(err)
	js, err := jetstream.New(conn)
	check(err)
	return js
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
GO
go mod init frozen >log 2>&1
go get github.com/nats-io/nats-server/v2@v2.15.3 github.com/nats-io/nats.go@v1.55.0 >>log 2>&1
go build -o frozen . >>log 2>&1

got=$(./frozen)
echo "$got (expected $want)"
[ "$got" = "$want" ]
