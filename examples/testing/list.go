package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/meeting-minutes/minutes-go"
)

// desk makes lists from recordings.
type desk struct {
	client *minutes.Client
}

var errNoCredits = errors.New("no credits are left")

// process makes the list of a meeting from its recording. It can be called again after any failure: the
// reference finds the meeting of the earlier call.
func (d desk) process(ctx context.Context, title, date string, recording minutes.Source) (list, error) {
	usage, err := d.client.Usage.Get(ctx)
	if err != nil {
		return list{}, err
	}
	if usage.CreditsRemaining < 1 {
		return list{}, errNoCredits // rather than a meeting without minutes
	}
	params := &minutes.MeetingCreateParams{Title: title, Date: date, ExternalID: reference(title, date)}
	opts := &minutes.ProcessOptions{Format: minutes.FormatMarkdown}
	result, err := d.client.Meetings.Process(ctx, params, recording, opts)
	if err != nil {
		return list{}, err
	}
	return list{result.Meeting.Title, result.Meeting.Date, actions(result.Minutes.Content)}, nil
}

// reference is one for each meeting, and never over the 128 characters that the API accepts.
func reference(title, date string) string {
	sum := sha256.Sum256([]byte(date + "\n" + title))
	return "todo-" + hex.EncodeToString(sum[:])
}

// list is the outcome of a meeting.
type list struct {
	title, date string
	items       []item
}

type item struct {
	who, what string // who may be empty
}

// String is l as Markdown.
func (l list) String() string {
	var b strings.Builder
	b.WriteString("# " + l.title + ", " + l.date + "\n\n## Actions\n\n")
	for _, i := range l.items {
		b.WriteString("- ")
		if i.who != "" {
			b.WriteString("**" + i.who + ":** ")
		}
		b.WriteString(i.what + "\n")
	}
	return b.String()
}

// actions returns the tasks in minutes: the list under "Actions", which the
// template of our minutes has.
func actions(markdown string) []item {
	var items []item
	inside := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			inside = heading == "Actions"
			continue
		}
		what, ok := strings.CutPrefix(line, "- ")
		if !ok || !inside {
			continue
		}
		i := item{what: strings.TrimSpace(what)}
		if bold, ok := strings.CutPrefix(i.what, "**"); ok {
			who, what, _ := strings.Cut(bold, ":**")
			who = strings.TrimSpace(who)
			what = strings.TrimSpace(what)
			if who != "" && what != "" {
				i = item{who, what}
			}
		}
		items = append(items, i)
	}
	return items
}

// advice says what to do about an error, for a reader who knows nothing of
// APIs.
func advice(err error) string {
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		switch failed.Status {
		case minutes.StatusAudioRejected:
			return "The recording was not accepted. Is it a sound file of less than a gigabyte?"
		case minutes.StatusTranscribeBlocked:
			return "This month's transcription is used up. Ask for more, then delete the meeting and try again."
		case minutes.StatusTranscriptionFailed:
			return "Nothing could be understood. Is there speech in the recording?"
		case minutes.StatusMinutesFailed:
			return "The transcript is there, but no minutes. Read it, or delete the meeting and try again."
		}
	}
	switch {
	case errors.Is(err, errNoCredits):
		return "This month's minutes are used up. Nothing was uploaded."
	case errors.Is(err, minutes.ErrUnauthenticated), errors.Is(err, minutes.ErrInsufficientScope):
		return "The API key does not work. Ask for another one."
	case errors.Is(err, minutes.ErrRateLimited):
		return "The service has too much to do. Try again later; nothing is lost."
	}
	return err.Error()
}
