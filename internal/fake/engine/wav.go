package engine

import (
	"encoding/binary"
	"io"
	"math"
	"time"
)

// wavHeader is what a WAV file says of its data. It is zero if the recording is not a WAV file.
type wavHeader struct {
	// bytesPerSecond is how many bytes of data a second takes. For PCM it is exact.
	bytesPerSecond int64

	// dataAt is where the data begins, in bytes from the file's beginning.
	dataAt int64

	// dataLength is how many bytes there should be, or 0 if the writer did not say it. A writer that
	// streams does not know it and says 0 or too much, and a file that broke off has less.
	dataLength int64
}

// wavOrders has the byte order of each kind of WAV file. RF64 and BW64 have lengths of 64 bits.
var wavOrders = map[string]binary.ByteOrder{
	"RIFF": binary.LittleEndian,
	"RF64": binary.LittleEndian,
	"BW64": binary.LittleEndian,
	"RIFX": binary.BigEndian,
}

// readWAVHeader reads a WAV file up to its data. It reads some of any other recording.
func readWAVHeader(r io.Reader) wavHeader {
	at, riff := readRIFF(r)
	order, ok := wavOrders[string(riff[:4])]
	if !ok || string(riff[8:]) != "WAVE" {
		return wavHeader{}
	}
	h := wavHeader{dataAt: at}
	var longLength uint64 // of the data, in RF64
	for {
		var chunk [8]byte
		_, err := io.ReadFull(r, chunk[:])
		if err != nil {
			return wavHeader{}
		}
		length := int64(order.Uint32(chunk[4:]))
		h.dataAt += int64(len(chunk))
		name := string(chunk[:4])
		if name == "data" {
			h.dataLength = length
			if length == math.MaxUint32 && longLength <= math.MaxInt64 {
				h.dataLength = int64(longLength)
			}
			return h
		}
		length += length % 2 // chunks are padded
		content := io.LimitReader(r, length)
		var begin [16]byte
		n, _ := io.ReadFull(content, begin[:]) // if it is too short, there is no data either
		switch {
		case name == "fmt " && n >= 12:
			h.bytesPerSecond = int64(order.Uint32(begin[8:]))
		case name == "ds64" && n == len(begin):
			longLength = order.Uint64(begin[8:])
		}
		_, _ = io.Copy(io.Discard, content)
		h.dataAt += length
	}
}

// readRIFF reads the first twelve bytes of a recording, and returns where they end. An ID3 tag may
// come before them.
func readRIFF(r io.Reader) (at int64, riff [12]byte) {
	n, _ := io.ReadFull(r, riff[:])
	at = int64(n)
	if string(riff[:3]) != "ID3" {
		return at, riff
	}
	tag := int64(10)
	for i, b := range riff[6:10] {
		tag += int64(b&0x7f) << (21 - 7*i)
	}
	_, _ = io.CopyN(io.Discard, r, tag-at) // if it is too short, there is no WAV file
	n, _ = io.ReadFull(r, riff[:])
	return tag + int64(n), riff
}

// length is the length of a recording of this size: for a WAV file by its header, for any other
// estimated (D13).
func (h wavHeader) length(size int64) time.Duration {
	data := size - h.dataAt
	if h.dataLength > 0 {
		data = min(data, h.dataLength)
	}
	rate := h.bytesPerSecond
	if data <= 0 || rate == 0 {
		data = size
		rate = bytesPerSecond
	}
	return time.Duration(data/rate)*time.Second + time.Duration(data%rate)*time.Second/time.Duration(rate)
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
