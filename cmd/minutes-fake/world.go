package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// loadWorld reads a file, or returns the default world if there is no file. Its
// errors are one line each and contain the path of the value.
func loadWorld(path string) (minutestest.World, error) {
	if path == "" {
		return minutestest.DefaultWorld(), nil
	}
	file, err := os.Open(path)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return minutestest.World{}, fmt.Errorf("-world %s: %w", path, err)
	}
	defer file.Close()
	world, err := minutestest.LoadWorld(file)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "world: ")
		return world, fmt.Errorf("-world %s: %s", path, strings.ReplaceAll(text, "\n", "; "))
	}
	usual := minutestest.DefaultWorld().Stages
	world.Stages.Prepare = cmp.Or(world.Stages.Prepare, usual.Prepare)
	world.Stages.Transcribe = cmp.Or(world.Stages.Transcribe, usual.Transcribe)
	world.Stages.Write = cmp.Or(world.Stages.Write, usual.Write)
	return world, nil
}

// faster divides stages by speed. A stage that is left out stays so, and none
// becomes it.
func faster(s minutestest.Stages, speed float64) minutestest.Stages {
	for _, d := range []*time.Duration{&s.Prepare, &s.Transcribe, &s.Write} {
		if *d > 0 {
			*d = max(time.Duration(min(float64(*d)/speed, float64(1<<62))), 1)
		}
	}
	return s
}
