package main

import (
	"bytes"
	_ "embed"

	"github.com/meeting-minutes/minutes-go"
)

// The recording that ships with the example, who speaks in it, and what is
// said. recording/README.md tells where it is from.
var (
	//go:embed recording/standup.mp3
	standup []byte
	//go:embed recording/standup.txt
	spoken string
)

const speakers = "Ada Lovelace,Grace Hopper"

func openRecording(path string) (minutes.Recording, error) {
	if path != "" {
		return minutes.OpenRecording(path)
	}
	return minutes.Recording{Audio: bytes.NewReader(standup), Size: int64(len(standup)), ContentType: "audio/mpeg"}, nil
}
