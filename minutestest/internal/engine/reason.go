package engine

import (
	"fmt"

	minutes "github.com/meeting-minutes/minutes-go"
)

// reason says why m failed, for people. It is "" for a meeting that has not
// failed. The caller holds o's lock.
func (o *organisation) reason(m *meeting) string {
	if !m.status.Failed() {
		return ""
	}
	j := m.job
	switch scripted := o.world.scripts.of(m).Outcome == m.status; {
	case j.unreadable && !processedSize(j.size):
		return fmt.Sprintf("The recording has %d bytes. It must have between 1 and %d.", j.size, maxAudioBytes)
	case j.unreadable:
		return fmt.Sprintf("The content type %q is neither audio nor video.", j.contentType)
	case j.blocked:
		return fmt.Sprintf("Transcription takes %d s of quota. The organisation had less left when the audio arrived.", j.seconds)
	case scripted:
		return "A script sets this outcome."
	case m.status == minutes.StatusTranscribeBlocked:
		return fmt.Sprintf("Transcription takes %d s of quota, or a script set this outcome and has changed since.", j.seconds)
	case m.status == minutes.StatusMinutesFailed:
		return "The organisation had no credit left, or a script set this outcome and has changed since."
	}
	return "A script set this outcome, and has changed since."
}
