package testkit

import (
	"net/http"
	"strings"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Identify returns the operation and the meeting of a request to the in-memory
// service, or "" if the interface has none.
func Identify(r *http.Request) (op minutes.Operation, meetingID string) {
	path := strings.Split(r.URL.Path, "/")
	if path[1] == "storage" {
		return minutes.OpUpload, path[len(path)-1]
	}
	for _, row := range route.Table {
		if r.Method != row.Method {
			continue
		}
		if before, after, has := strings.Cut(row.Path, route.Param); has {
			rest, begins := strings.CutPrefix(r.URL.Path, before)
			id, ends := strings.CutSuffix(rest, after)
			if begins && ends && !strings.Contains(id, "/") {
				return minutes.Operation(row.Operation), id
			}
		} else if r.URL.Path == row.Path {
			return minutes.Operation(row.Operation), ""
		}
	}
	return "", ""
}
