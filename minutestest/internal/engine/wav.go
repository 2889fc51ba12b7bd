package engine

import "encoding/binary"

// wavHead is how much of a recording recordingSeconds is given. A WAV file has its format, and
// usually a few texts, before its data.
const wavHead = 64 << 10

// recordingSeconds is the length of a recording, rounded up, from its first bytes and its size: for
// a WAV file from its header, for any other estimated (D13).
func recordingSeconds(head []byte, size int64) int {
	bytes, rate, ok := wavData(head, size)
	if !ok {
		bytes, rate = size, bytesPerSecond
	}
	return int((bytes + rate - 1) / rate)
}

// wavData finds the size of the data in a WAV file, and how many bytes a second takes.
func wavData(head []byte, size int64) (bytes, rate int64, ok bool) {
	if len(head) < 12 || string(head[:4]) != "RIFF" || string(head[8:12]) != "WAVE" {
		return 0, 0, false
	}
	for at := 12; at+8 <= len(head); {
		name, length := string(head[at:at+4]), int64(binary.LittleEndian.Uint32(head[at+4:]))
		at += 8
		switch {
		case name == "fmt " && at+12 <= len(head):
			rate = int64(binary.LittleEndian.Uint32(head[at+8:]))
		case name == "data": // a writer that streams does not know the length, and one that broke off wrote less
			return min(length, size-int64(at)), rate, rate > 0 && length > 0
		}
		if length > int64(len(head)) {
			break
		}
		at += int(length + length%2)
	}
	return 0, 0, false
}
