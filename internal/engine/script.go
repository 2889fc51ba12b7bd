package engine

import (
	minutes "github.com/meeting-minutes/minutes-go"
)

// Selector names the meetings a script is for: those with this id, this
// external id or this title, or, being zero, all of every organisation. At
// most one field may be set.
type Selector struct {
	MeetingID  string
	ExternalID string
	Title      string
}

// Script says what becomes of a meeting. Its zero fields leave the matter to
// a script with a wider selector, and in the end to the natural course.
type Script struct {
	// Outcome is the state the meeting ends in: one of the four failure states,
	// or minutes_ready for the natural course (which quota and the recording
	// itself may still turn into a failure).
	Outcome minutes.Status

	// Transcript is what is said, one "spk_0: words" a line. Lines without a
	// label go on with the turn before.
	Transcript string

	// Minutes are the minutes as they come out. A format left "" is written
	// from the transcript.
	Minutes Minutes

	// Stages replaces the durations of all stages.
	Stages *Stages

	// Hold stops the meeting in this state, audio_uploaded, transcribing,
	// transcribed or generating_minutes, until it is released or advanced.
	Hold minutes.Status
}

// Minutes are written minutes in both formats.
type Minutes struct {
	Markdown string
	HTML     string
}
