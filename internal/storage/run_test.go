package storage

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRun_HandsOverLateValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late atomic.Int64
		open := func(took time.Duration, err error) (int, error) {
			f := func() (int, error) {
				time.Sleep(took)
				return 7 + int(took/time.Hour), err
			}
			return Run(ctx, f, func(n int) { late.Add(int64(n)) })
		}
		n, err := open(time.Millisecond, nil)
		require.NoError(t, err)
		require.Equal(t, 7, n)
		n, err = open(time.Hour, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, n)
		_, err = open(2*time.Hour, io.EOF)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, late.Load())
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		require.EqualValues(t, 8, late.Load(), "once, and not after an error")
	})
}
