package minutestest

import (
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that has responded and closed continues to read the request for a while.
func TestLink_ReadsOnAfterResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := newLink(true)
		server.gone = func() {}
		require.NoError(t, server.Close())
		require.NoError(t, server.Close(), "twice")
		n, err := client.Write(make([]byte, 1<<20))
		require.NoError(t, err)
		assert.Equal(t, 1<<20, n)
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		time.Sleep(lingerTime + 1)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		require.NoError(t, client.Close())
	})
}

func TestLink_ObeysDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := newLink(true)
		server.gone = func() {}
		start := time.Now()
		require.NoError(t, client.SetDeadline(start.Add(time.Hour)))
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, time.Hour, time.Since(start))

		require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = server.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, client.Close())
		_, err = server.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Error(t, server.ctx.Err(), "the context has ended with the client")
		require.NoError(t, server.Close())
	})
}

func TestLink_ReportsResets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := newLink(true)
		server.gone = func() {}
		server.reset()
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NoError(t, client.Close())
	})
}
