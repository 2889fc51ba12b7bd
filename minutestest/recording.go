package minutestest

import (
	"io"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// SlowRecording returns a recording of size bytes whose ReadAt sleeps, as if it came from a slow
// disk. In a synctest bubble the sleep costs nothing. Below about 550 bytes per second, one read of
// 32 KiB takes more than a minute, and the upload fails, because the recording then counts as
// unreadable.
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
