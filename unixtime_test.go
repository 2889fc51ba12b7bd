package minutes_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

func TestUnixTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 9, 14, 30, 1, 0, time.FixedZone("", 3600))
	u := minutes.UnixTime(at.Unix())
	require.True(t, at.Equal(u.Time()))
	require.Equal(t, time.Local, u.Time().Location())
	require.Equal(t, "2026-03-09T13:30:01Z", u.String())
	require.Equal(t, "2026-03-09T13:30:01Z", fmt.Sprint(u))
	require.True(t, minutes.UnixTime(0).Time().IsZero(), "no time is no time in 1970")
	require.Empty(t, minutes.UnixTime(0).String())
	require.Equal(t, "1969-12-31T23:59:59Z", minutes.UnixTime(-1).String())
	for _, far := range []minutes.UnixTime{math.MaxInt64, math.MinInt64} {
		require.NotPanics(t, func() { _ = far.String() + far.Time().String() })
	}
	text, err := json.Marshal(u)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(at.Unix()), string(text))
}

// Dates and times of day are those of the time's own zone.
func TestDateAndTimeOfDay(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		"2026-03-09 00:05": time.Date(2026, 3, 9, 0, 5, 59, 0, time.FixedZone("", 14*3600)),
		"2026-12-31 23:59": time.Date(2026, 12, 31, 23, 59, 59, 999, time.FixedZone("", -11*3600)),
		"0987-01-02 03:04": time.Date(987, 1, 2, 3, 4, 0, 0, time.UTC),
	} {
		require.Equal(t, want, minutes.DateOf(at)+" "+minutes.TimeOfDay(at))
	}
}
