package audio

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files are the recordings in testdata. probed is the duration from ffprobe, decoded is the length of the sound that
// ffmpeg makes of them. If the two differ, why says which one is right, or that neither is.
var files = []struct {
	name            string
	want            time.Duration // 0 is unknown
	probed, decoded time.Duration
	why             string
}{
	{name: "adpcm.wav", want: 1000 * ms, probed: 1000 * ms, decoded: 1000 * ms},
	{name: "extensible.wav", want: 100 * ms, probed: 100 * ms, decoded: 100 * ms},
	{name: "gsm.wav", want: 1500 * ms, probed: 1500 * ms, decoded: 1520 * ms, why: "the last block is padded; fact has the right duration"},
	{name: "mulaw.wav", want: 1000 * ms, probed: 1000 * ms, decoded: 1000 * ms},
	{name: "pcm8.wav", want: 1000 * ms, probed: 1000 * ms, decoded: 1000 * ms},
	{name: "piped.wav", want: 1500 * ms, probed: 1500 * ms, decoded: 1500 * ms},
	{name: "rf64.wav", want: 1500 * ms, probed: 1500 * ms, decoded: 1500 * ms},

	{name: "cbr.mp3", want: 1567 * ms, probed: 1631 * ms, decoded: 1567 * ms, why: "ffprobe counts delay and padding"},
	{name: "vbr.mp3", want: 1500 * ms, probed: 1541 * ms, decoded: 1500 * ms, why: "ffprobe counts delay and padding"},
	{name: "mpeg25.mp3", want: 1500 * ms, probed: 1656 * ms, decoded: 1500 * ms, why: "ffprobe counts delay and padding"},
	{name: "stereo.mp3", want: 1500 * ms, probed: 1536 * ms, decoded: 1500 * ms, why: "ffprobe counts delay and padding"},
	{name: "notag.mp3", want: 1584 * ms, probed: 1584 * ms, decoded: 1584 * ms},
	{name: "layer2.mp2", want: 1515 * ms, probed: 1515 * ms, decoded: 1515 * ms},
	{name: "joined.mp3", want: 3067 * ms, probed: 2590 * ms, decoded: 3176 * ms, why: "cbr.mp3 and mpeg25.mp3 in a row"},

	{name: "plain.flac", want: 500 * ms, probed: 500 * ms, decoded: 500 * ms},
	{name: "piped.flac", want: 500 * ms, probed: 500 * ms, decoded: 500 * ms},
	{name: "flac.oga", want: 500 * ms, probed: 500 * ms, decoded: 500 * ms},

	{name: "voice.opus", want: 1500 * ms, probed: 1506 * ms, decoded: 1500 * ms, why: "ffprobe counts the pre-skip"},
	{name: "voice.ogg", want: 1500 * ms, probed: 1500 * ms, decoded: 1504 * ms, why: "the last page's granule position cuts the end"},
	{name: "voice.spx", want: 1500 * ms, probed: 1560 * ms, decoded: 1500 * ms, why: "the last page's granule position cuts the end"},
	{name: "chained.ogg", want: 3000 * ms, probed: 1506 * ms, decoded: 3000 * ms, why: "ffprobe sees the last link alone"},
	{name: "video.ogg", want: 1500 * ms, probed: 1500 * ms, decoded: 1500 * ms},

	{name: "moov-first.m4a", want: 1500 * ms, probed: 1500 * ms, decoded: 1536 * ms, why: "the edit list cuts the padding"},
	{name: "moov-last.m4a", want: 1500 * ms, probed: 1500 * ms, decoded: 1536 * ms, why: "the edit list cuts the padding"},
	{name: "video.mov", want: 1600 * ms, probed: 1600 * ms, decoded: 1536 * ms, why: "the picture outlasts the sound"},
	{name: "fragmented.mp4", want: 1628 * ms, probed: 1628 * ms, decoded: 1664 * ms, why: "the last sample is cut; its fragment has the right duration"},
}

const ms = time.Millisecond

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("testdata", f.name))
			require.NoError(t, err)
			d, ok := measure(t, data)
			assert.Equal(t, f.want > 0, ok)
			assert.InDelta(t, f.want, d, float64(ms), "want %v, got %v", f.want, d)
			if f.why == "" {
				assert.InDelta(t, f.probed, d, float64(ms))
				assert.InDelta(t, f.decoded, d, float64(ms))
			}
		})
	}
}

// TestFiles_AreAllMeasured keeps a recording from lying in testdata without a test.
func TestFiles_AreAllMeasured(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	listed := map[string]bool{"README.md": true, "make.sh": true, "fuzz": true}
	for _, f := range files {
		listed[f.name] = true
	}
	for _, e := range entries {
		assert.True(t, listed[e.Name()], "%s is not in the table", e.Name())
	}
	assert.Len(t, files, 26)
}
