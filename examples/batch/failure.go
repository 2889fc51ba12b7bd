package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/meeting-minutes/minutes-go"
)

// failure is a recording without minutes.
type failure struct {
	name string
	err  error
}

func reason(err error) string {
	if unusable, ok := errors.AsType[*minutes.ParamError](err); ok && unusable.Err != nil {
		return unusable.Err.Error() // without the path, because the file is named anyway
	}
	return strings.TrimPrefix(err.Error(), "minutes: ")
}

// advice is what to do about a failure.
func advice(err error) string {
	const again = "run it again: nothing is uploaded twice"
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		switch failed.Status {
		case minutes.StatusTranscribeBlocked:
			return "wait for the quota's top-up, then run it again with -restart"
		case minutes.StatusAudioRejected:
			return "convert the recording to a smaller file"
		}
		return "run it again with -restart, which deletes the failed meeting first"
	}
	_, unusable := errors.AsType[*minutes.ParamError](err)
	_, file := errors.AsType[*fs.PathError](err)
	_, rename := errors.AsType[*os.LinkError](err)
	switch {
	case minutes.KeyRejected(err):
		return "look to the API key and its organisation, then " + again
	case errors.Is(err, minutes.ErrRecordingTooLarge):
		return "convert the file to audio of less than 1 GiB"
	case unusable: // empty, of no known format, no file
		return "convert the file to audio, or move it away"
	case errors.Is(err, errChanged):
		return "wait until the recording is complete, then run it again"
	case file, rename:
		return "see to the file or its folder, then " + again
	case errors.Is(err, minutes.ErrExternalIDTaken):
		return "somebody whose meetings this key cannot see has handed in this recording; ask them"
	case errors.Is(err, minutes.ErrNotFound):
		return "the meeting was deleted on the way; run it again"
	case minutes.Retryable(err):
		return "wait a while, then " + again
	}
	return again
}
