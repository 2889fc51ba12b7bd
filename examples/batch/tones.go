package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"time"
)

// sample is a recording to make: a tone.
type sample struct {
	name    string
	seconds int
	hertz   float64
}

// samples are the recordings of a run offline. The last one is another's copy.
var samples = []sample{
	{"Monday stand-up.wav", 2, 440},
	{"Tuesday stand-up.wav", 3, 494},
	{"Wednesday stand-up.wav", 2, 523},
	{"Thursday stand-up.wav", 4, 587},
	{"Friday stand-up.wav", 3, 659},
	{"Budget 2027.wav", 8, 330},
	{"Board meeting.wav", 12, 220},
	{"Interview with Ada.wav", 6, 698},
	{"Retrospective.wav", 5, 784},
	{"Sales call.wav", 7, 392},
	{"Security review.wav", 9, 349},
	{"Untitled.wav", 7, 392},
}

// makeRecordings makes the folder and the recordings in it, one a day.
func makeRecordings(dir string, list []sample) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, s := range list {
		path := filepath.Join(dir, s.name)
		if err := os.WriteFile(path, tone(s.seconds, s.hertz), 0o644); err != nil {
			return err
		}
		ended := time.Now().AddDate(0, 0, i-len(list))
		if err := os.Chtimes(path, ended, ended); err != nil {
			return err
		}
	}
	return nil
}

// tone is a WAV file: mono, eight bits, 8,000 samples a second.
func tone(seconds int, hertz float64) []byte {
	const rate = 8000
	n := seconds * rate
	var b bytes.Buffer
	b.WriteString("RIFF")
	put(&b, uint32(36+n))
	b.WriteString("WAVEfmt ")
	put(&b, uint32(16), uint16(1), uint16(1), uint32(rate), uint32(rate), uint16(1), uint16(8))
	b.WriteString("data")
	put(&b, uint32(n))
	for i := range n {
		b.WriteByte(byte(128 + 100*math.Sin(2*math.Pi*hertz*float64(i)/rate)))
	}
	return b.Bytes()
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // of fixed size, into memory: never fails
	}
}
