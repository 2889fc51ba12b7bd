package minutes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
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

// Section 3: which states are failures, and which are final.
func TestStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[minutes.Status]struct{ failed, final bool }{
		"created":              {false, false},
		"audio_uploaded":       {false, false},
		"transcribing":         {false, false},
		"transcribed":          {false, false},
		"generating_minutes":   {false, false},
		"minutes_ready":        {false, true},
		"transcription_failed": {true, true},
		"minutes_failed":       {true, true},
		"transcribe_blocked":   {true, true},
		"audio_rejected":       {true, true},
		"being_translated":     {false, false},
		"Minutes_Ready":        {false, false},
		"":                     {false, false},
	} {
		require.Equal(t, want.failed, status.Failed(), status)
		require.Equal(t, want.final, status.Final(), status)
	}
}

// The constants spell the interface's words.
func TestConstants(t *testing.T) {
	t.Parallel()
	for got, want := range map[any]string{
		minutes.StatusCreated: "created", minutes.StatusAudioUploaded: "audio_uploaded", minutes.StatusTranscribing: "transcribing",
		minutes.StatusTranscribed: "transcribed", minutes.StatusGeneratingMinutes: "generating_minutes", minutes.StatusMinutesReady: "minutes_ready",
		minutes.StatusTranscriptionFailed: "transcription_failed", minutes.StatusMinutesFailed: "minutes_failed",
		minutes.StatusTranscribeBlocked: "transcribe_blocked", minutes.StatusAudioRejected: "audio_rejected",
		minutes.VisibilityPrivate: "private", minutes.VisibilityOrganisation: "organisation", minutes.VisibilityShared: "shared",
		minutes.FormatHTML: "html", minutes.FormatMarkdown: "markdown",
		minutes.MemberActive: "active", minutes.MemberInvited: "invited", minutes.MemberNoAccount: "no_account", minutes.MemberDeactivated: "deactivated",
	} {
		require.Equal(t, want, fmt.Sprint(got))
	}
}

// What is decoded can be encoded again in the interface's own form.
func TestValuesEncodeAsTheInterface(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		form := op.replyForm
		value := op.want
		switch v := value.(type) {
		case nil, string:
			continue
		case creation:
			value = v.Meeting
		case []minutes.Member:
			form, value = "Member", v[0]
		case []minutes.Project:
			form, value = "Project", v[0]
		case []minutes.Template:
			form, value = "Template", v[0]
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		requireForm(t, form, text)
	}
}

// Client and UploadTarget print without what is secret in them, under every
// verb, by value and by pointer, alone and in other things.
func TestMaskedPrinting(t *testing.T) {
	t.Parallel()
	client, err := newClient("https://minutes.example/base", testKey)
	require.NoError(t, err)
	target := &minutes.UploadTarget{UploadURL: presigned("https://storage.example/a?X-Amz-Signature=0123456789abcdef"), ExpiresIn: 900, Method: "PUT"}
	odd := &minutes.UploadTarget{UploadURL: presigned("https://storage.example:x%zz?X-Amz-Signature=0123456789abcdef")}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, v := range []any{
		client, *client, target, *target, odd, *odd, []any{client, target, odd}, struct {
			C *minutes.Client
			T minutes.UploadTarget
		}{client, *target}, struct {
			c minutes.Client
			s *minutes.MeetingsService
		}{*client, client.Meetings}, map[string]*minutes.UploadTarget{"t": target},
		client.Meetings, client.Members, client.Projects, client.Templates, client.Vocabulary, client.Usage, *client.Meetings, new(minutes.Client), minutes.UploadTarget{},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T", "%t", "%10.3f"} {
			text := fmt.Sprintf(verb, v)
			require.NotContains(t, text, testKey, verb)
			require.NotContains(t, text, "0123456789abcdef", verb)
			require.NotContains(t, text, fmt.Sprintf("%x", testKey), verb)
		}
		logger.Info("seen", "it", v)
	}
	require.NotContains(t, log.String(), testKey)
	require.NotContains(t, log.String(), "0123456789abcdef")
	require.Equal(t, "minutes.Client(https://minutes.example/base, key masked)", fmt.Sprint(client))
	require.Equal(t, "minutes.UploadTarget(PUT to storage.example, expires in 900 s, URL masked)", fmt.Sprint(target))
}
