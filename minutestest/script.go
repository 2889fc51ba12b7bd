package minutestest

import (
	"encoding/json"
)

// Script decides how future meetings proceed and end, and how meetings in progress continue. A
// script replaces an earlier one for the same meeting, external id or title, or for all; a script
// with only a MeetingID, ExternalID or Title removes the earlier one, and an empty one removes that
// for all. An invalid one fails the test, but the scripts before it take effect.
//
// A script may match no meeting, because the meeting may come later. If the test given to
// [NewServer] fails, its log names each of [Server.UnmatchedScripts].
func (s *Server) Script(scripts ...Script) {
	s.reporter.Helper()
	for _, sc := range scripts {
		err := s.engine.Script(sc)
		if err != nil {
			s.reporter.Mistake("Script", err)
			return
		}
		s.inspector.Did("Script", sc.MeetingID, summary(sc))
	}
}

func summary(sc Script) string {
	text, _ := json.Marshal(sc)
	return string(text)
}

// Scripts returns the scripts in force: the one for all meetings, then those for titles, for
// external ids and for ids, each sorted.
func (s *Server) Scripts() []Script { return s.engine.Scripts() }

// UnmatchedScripts returns the scripts for a meeting, an external id or a title that no meeting has
// had, deleted ones included, because a typing error there may be why a test failed.
func (s *Server) UnmatchedScripts() []Script { return s.engine.UnmatchedScripts() }
