package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

const ackWait = 5 * time.Second

func natsConsumer(ctx context.Context, address string) (jetstream.JetStream, jetstream.Consumer, func(), error) {
	nc, err := nats.Connect(address)
	if err != nil {
		return nil, nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, nil, err
	}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "RECORDINGS", Subjects: []string{"recordings"}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, "RECORDINGS", jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
	})
	return js, consumer, nc.Close, err
}

func natsWorker(ctx context.Context) error {
	_, consumer, closeAll, err := natsConsumer(ctx, os.Getenv("JOBS_SERVER"))
	if err != nil {
		return err
	}
	defer closeAll()
	var jobs sync.WaitGroup
	consuming, err := consumer.Consume(func(msg jetstream.Msg) {
		jobs.Go(func() { natsJob(ctx, msg) })
	}, jetstream.PullMaxMessages(1))
	if err != nil {
		return err
	}
	<-ctx.Done()
	consuming.Stop()
	jobs.Wait()
	return nil
}

// natsJob is an attempt. JetStream knows no limit and no lease that a worker could lose: it only
// delivers a message again if AckWait passes without a sign of life.
func natsJob(ctx context.Context, msg jetstream.Msg) {
	attempt, cancel := context.WithTimeout(ctx, limit())
	var beating sync.WaitGroup
	beating.Go(func() {
		for {
			select {
			case <-time.After(ackWait / 3):
				_ = msg.InProgress()
			case <-attempt.Done():
				return
			}
		}
	})
	meta, err := msg.Metadata()
	if err == nil {
		err = process(attempt, int(meta.NumDelivered))
	}
	what, pause := next(attempt, err)
	cancel()
	beating.Wait()
	switch what {
	case done:
		err = msg.Ack()
	case stopped:
		err = msg.Nak() // delivered to another worker at once
	case again:
		err = msg.NakWithDelay(pause)
	case discard:
		err = msg.TermWithReason(err.Error())
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Println("ack:", err)
	}
}

func natsEngine(t *testing.T) engine {
	t.Helper()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(srv.Shutdown)
	require.True(t, srv.ReadyForConnections(10*time.Second))
	js, consumer, closeAll, err := natsConsumer(t.Context(), srv.ClientURL())
	require.NoError(t, err)
	t.Cleanup(closeAll)
	return engine{
		server: srv.ClientURL(),
		enqueue: func() {
			_, err := js.Publish(t.Context(), "recordings", nil)
			require.NoError(t, err)
		},
		state: func() string {
			info, err := consumer.Info(t.Context())
			require.NoError(t, err)
			return natsState(info)
		},
	}
}

// natsState says whether the message was delivered more than once; how often depends on chance, since a
// frozen worker still has a request for a message at the server.
func natsState(info *jetstream.ConsumerInfo) string {
	switch {
	case info.NumPending > 0 || info.NumAckPending > 0:
		return "to be delivered again"
	case info.Delivered.Consumer > 1:
		return "delivered again, then removed"
	}
	return "removed"
}
