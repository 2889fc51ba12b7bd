package engine

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFlow is section 1 of the interface: from a meeting to its minutes.
func TestFlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, func(cfg *Config) {
			cfg.Stages = Stages{Prepare: time.Minute, Transcribe: 2 * time.Minute, Write: 3 * time.Minute}
		})
		id := s.create("ci", `"participant_ids":["emp_bob","emp_ada"],"time":"09:30"`)
		start := time.Now()
		s.upload("ci", id, 32_001)
		require.Equal(t, "audio_uploaded", s.status("ci", id))
		s.do("ci", "GET /v1/meetings/"+id+"/transcript", "").is(409, "TRANSCRIPT_NOT_READY")
		time.Sleep(time.Minute)
		require.Equal(t, "transcribing", s.status("ci", id))
		require.Equal(t, "3", s.do("ci", "GET /v1/meetings/"+id, "").field("duration_seconds"))
		time.Sleep(2 * time.Minute)
		require.Equal(t, "generating_minutes", s.status("ci", id))
		s.do("ci", "GET /v1/meetings/"+id+"/minutes", "").is(409, "MINUTES_NOT_READY")
		time.Sleep(3 * time.Minute)
		require.Equal(t, "minutes_ready", s.status("ci", id))

		text := s.do("ci", "GET /v1/meetings/"+id+"/transcript", "").is(200, "").field("transcript")
		for _, line := range strings.Split(text, "\n") {
			require.Regexp(t, `^spk_[01]: \S`, line)
		}
		md := s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "").is(200, "").field("content")
		require.Contains(t, md, "# Weekly")
		require.Contains(t, md, "Ada Lovelace")
		require.Contains(t, md, "2026-03-02, 09:30")
		page := s.do("ci", "GET /v1/meetings/"+id+"/minutes", "").is(200, "").field("content")
		require.Contains(t, page, "Bob &lt;Builder&gt; &amp; Sons")
		for d := xml.NewDecoder(strings.NewReader(page)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		state, ok := s.Meeting(id)
		require.True(t, ok)
		require.Len(t, state.History, 6)
		require.Equal(t, start.Add(6*time.Minute).UnixNano(), state.History[5].At.UnixNano())
		t.Log(text, "\n", md, "\n", page)
	})
}
