package main

import (
	"bytes"
	_ "embed"

	"github.com/meeting-minutes/minutes-go"
)

// These variables are the recording that ships with the example, its speakers
// and its text. recording/README.md names its origin.
var (
	//go:embed recording/standup.mp3
	standup []byte
	//go:embed recording/standup.txt
	spoken string
)

const speakers = "Ada Lovelace,Grace Hopper"

func recordingOf(path string) minutes.Source {
	if path != "" {
		return minutes.FromFile(path)
	}
	return minutes.FromReaderAt(bytes.NewReader(standup), int64(len(standup)), "audio/mpeg")
}
