package minutestest

import (
	"io"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// SlowRecording returns a recording of size bytes whose ReadAt sleeps, as if it came from a slow
// disk. In a synctest bubble the sleep costs nothing. The Client reads up to 32 KiB at once, which
// takes over a minute at less than about 550 bytes per second. The upload then fails, because the
// recording counts as unreadable.
func SlowRecording(size, bytesPerSecond int64) minutes.Source {
	return minutes.FromReaderAt(slowAudio{size, max(bytesPerSecond, 1)}, size, "audio/mpeg")
}

type slowAudio struct{ size, bytesPerSecond int64 }

func (a slowAudio) ReadAt(p []byte, at int64) (n int, err error) {
	if at >= a.size {
		return 0, io.EOF
	}
	n = int(min(int64(len(p)), a.size-at))
	if n < len(p) {
		err = io.EOF
	}
	clear(p[:n])
	time.Sleep(timeFor(int64(n), a.bytesPerSecond))
	return n, err
}

func timeFor(n, bytesPerSecond int64) time.Duration {
	return time.Duration(float64(n) / float64(bytesPerSecond) * float64(time.Second))
}
